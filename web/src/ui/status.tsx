// One word, one glyph and one colour for each state; the same in canvas, trace, lists and API.

import type { ReactElement } from 'react'
import type { BlockStatus, RunFold } from '../state/run'
import { Icon, type IconName } from './icons'

export type Tone = 'run' | 'ok' | 'err' | 'wait' | 'quiet'
type AnyStatus = BlockStatus | RunFold['status'] | 'pending' | 'answered' | 'expired'

const STATUS: Record<AnyStatus, { word: string; tone: Tone; icon: IconName | null }> = {
  idle: { word: 'not started', tone: 'quiet', icon: null },
  queued: { word: 'queued', tone: 'quiet', icon: 'queued' },
  running: { word: 'running', tone: 'run', icon: 'running' },
  retrying: { word: 'retrying', tone: 'run', icon: 'running' },
  succeeded: { word: 'succeeded', tone: 'ok', icon: 'succeeded' },
  failed: { word: 'failed', tone: 'err', icon: 'failed' },
  handled: { word: 'failed, handled', tone: 'err', icon: 'failed' },
  waiting: { word: 'waiting', tone: 'wait', icon: 'waiting' },
  attention: { word: 'needs attention', tone: 'wait', icon: 'warning' },
  skipped: { word: 'skipped', tone: 'quiet', icon: 'skipped' },
  cancelled: { word: 'cancelled', tone: 'quiet', icon: 'cancelled' },
  cancelling: { word: 'cancelling', tone: 'quiet', icon: 'cancelled' },
  restored: { word: 'restored', tone: 'ok', icon: 'restored' },
  pending: { word: 'waiting', tone: 'wait', icon: 'waiting' },
  answered: { word: 'answered', tone: 'ok', icon: 'succeeded' },
  expired: { word: 'expired', tone: 'quiet', icon: 'cancelled' },
}

export const wordOf = (status: AnyStatus): string => STATUS[status].word
export const toneOf = (status: AnyStatus): Tone => STATUS[status].tone
export const glyphOf = (status: AnyStatus): IconName | null => STATUS[status].icon

/** Glyph and word; `detail` follows the word. */
export function Status({ status, detail }: { status: AnyStatus; detail?: string }): ReactElement {
  const { word, tone, icon } = STATUS[status]
  return (
    <span className="status" data-tone={tone} data-status={status}>
      {icon ? <Icon name={icon} size={14} /> : null}
      {detail ? `${word} ${detail}` : word}
    </span>
  )
}
