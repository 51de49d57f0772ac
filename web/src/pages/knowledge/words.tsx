// Words and small parts that the pages of collections share.

import type { ReactElement, ReactNode } from 'react'
import { Icon, type IconName } from '../../ui/icons'
import type { Tone } from '../../ui/status'

export const addressOf = (collection: string): string => `/knowledge/${encodeURIComponent(collection)}`

export const countText = (count: number, what: string): string =>
  `${count.toLocaleString('en')} ${what}${count === 1 ? '' : 's'}`

/** `12,400 characters`, and of many `1.2 million characters`. */
export const charsText = (chars: number): string =>
  chars < 1e6 ? countText(chars, 'character') : `${(chars / 1e6).toFixed(1)} million characters`

const ICONS: Partial<Record<Tone, IconName>> = { ok: 'succeeded', err: 'failed', run: 'running' }

export function State({ tone, children }: { tone: Tone; children: ReactNode }): ReactElement {
  const icon = ICONS[tone]
  return (
    <span className="conn__state" data-tone={tone}>
      {icon ? <Icon name={icon} size={12} /> : null}
      {children}
    </span>
  )
}

/** Where a document is from: a link if it is an address of the web. */
export function Source({ of }: { of: string }): ReactElement | null {
  if (!of) return null
  return /^https?:\/\//.test(of) ? (
    <a className="know__source" href={of} target="_blank" rel="noreferrer">
      {of}
    </a>
  ) : (
    <span className="know__source">{of}</span>
  )
}
