// One word, one glyph and one colour for each state; the same in canvas, trace, lists and API.

import type { ReactElement } from 'react'
import type { BlockStatus, RunFold } from '../run'
import { Icon, type IconName } from './icons'

export type Tone = 'run' | 'ok' | 'err' | 'wait' | 'quiet'
type AnyStatus = BlockStatus | RunFold['status'] | 'interrupted' | 'pending' | 'answered' | 'expired'

const STATUS: Record<AnyStatus, { word: string; tone: Tone; icon: IconName | null }> = {
  idle: { word: 'Not started', tone: 'quiet', icon: null },
  queued: { word: 'Queued', tone: 'quiet', icon: 'queued' },
  running: { word: 'Running', tone: 'run', icon: 'running' },
  retrying: { word: 'Retrying', tone: 'run', icon: 'running' },
  succeeded: { word: 'Succeeded', tone: 'ok', icon: 'succeeded' },
  failed: { word: 'Failed', tone: 'err', icon: 'failed' },
  handled: { word: 'Failed, handled', tone: 'err', icon: 'failed' },
  waiting: { word: 'Waiting', tone: 'wait', icon: 'waiting' },
  attention: { word: 'Needs attention', tone: 'wait', icon: 'warning' },
  skipped: { word: 'Skipped', tone: 'quiet', icon: 'skipped' },
  cancelled: { word: 'Cancelled', tone: 'quiet', icon: 'cancelled' },
  cancelling: { word: 'Cancelling', tone: 'quiet', icon: 'cancelled' },
  interrupted: { word: 'Interrupted', tone: 'quiet', icon: 'cancelled' },
  restored: { word: 'Restored', tone: 'ok', icon: 'restored' },
  pending: { word: 'Waiting', tone: 'wait', icon: 'waiting' },
  answered: { word: 'Answered', tone: 'ok', icon: 'succeeded' },
  expired: { word: 'Expired', tone: 'quiet', icon: 'cancelled' },
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
