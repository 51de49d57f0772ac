// The labels below a histogram of times.

import type { ReactElement } from 'react'
import { useWidthBelow } from '../ui/useWidthBelow'
import { ticks } from './ticks'
import './timeaxis.css'

export function TimeAxis({ from, to, end }: { from: number; to: number; end?: string }): ReactElement {
  const narrow = useWidthBelow(760)
  const room = narrow ? 0.14 : 0.05 // half of a label
  const inside = ticks(from, to, narrow ? 3 : 6)
    .map((tick) => ({ ...tick, x: (tick.at - from) / (to - from) }))
    .filter(({ x }) => x >= room && x <= 1 - room * (end === undefined ? 1 : 1.5))
  return (
    <div className="timeaxis" aria-hidden="true">
      {inside.map(({ label, x }) => (
        <span key={label} style={{ left: `${x * 100}%` }}>
          {label}
        </span>
      ))}
      {end === undefined ? null : <b>{end}</b>}
    </div>
  )
}
