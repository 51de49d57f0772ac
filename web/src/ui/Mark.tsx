// The mark of weft: three warps of ink and two wefts of plum, over and under in turn.

import type { ReactElement } from 'react'

/** `ground` is the colour that it stands on: gaps of this colour show which thread lies above. */
export function Mark({ size = 20, ground = 'var(--panel)' }: { size?: number; ground?: string }): ReactElement {
  return (
    <svg width={size} height={size} viewBox="0 0 20 20" fill="none" strokeWidth="2.4" aria-hidden="true">
      <path d="M4.5 2v16M10 2v16M15.5 2v16" stroke="var(--ink)" strokeLinecap="round" />
      <path d="M1.6 7h16.8M1.6 13h16.8" stroke="var(--thread)" strokeLinecap="round" />
      <path
        d="M2.2 7h4.6M13.2 7h4.6M7.7 13h4.6M10 4.7v4.6M4.5 10.7v4.6M15.5 10.7v4.6"
        stroke={ground}
        strokeWidth="4.6"
      />
      <path d="M2.1 7h4.8M13.1 7h4.8M7.6 13h4.8" stroke="var(--thread)" />
      <path d="M10 4.6v4.8M4.5 10.6v4.8M15.5 10.6v4.8" stroke="var(--ink)" />
    </svg>
  )
}
