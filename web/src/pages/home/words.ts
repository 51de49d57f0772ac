// The texts on the card of a workflow: one sentence, its next start, and the results of its last runs.

import type { Card, ShortRun } from '../../api/schemas'
import type { Document } from '../../api/types'
import type { IconName } from '../../ui/icons'
import { durationText, roughly } from '../../ui/time'
import type { Tone } from '../../ui/status'

/** The description of the document, to its first full stop, else the names of its blocks. */
export function sentenceOf(doc: Document): string {
  const about = (doc.description ?? '').replace(/^Teaches [^:]+: /, '').trim()
  if (about) {
    const [first] = about.split(/(?<=[.!?])\s|\n/)
    return first![0]!.toUpperCase() + first!.slice(1).replace(/\.$/, '')
  }
  const names = Object.values(doc.blocks)
    .filter((block) => block.type !== 'note' && block.type !== 'start')
    .map((block) => block.name || block.type)
  if (!names.length) return 'Empty'
  const shown = names.slice(0, 3)
  if (names.length > 3) return `${shown.join(', ')} and ${names.length - 3} more`
  return shown.length < 2 ? shown[0]! : `${shown.slice(0, -1).join(', ')} and ${shown.at(-1)}`
}

const DAY = new Intl.DateTimeFormat(undefined, { weekday: 'long' })
const TIME = new Intl.DateTimeFormat(undefined, { hour: '2-digit', minute: '2-digit', hourCycle: 'h23' })

/** "at 22:15", "on Monday 08:00", "in 12 d". */
export function momentOf(at: number, now: number): string {
  const days = Math.round((new Date(at).setHours(0, 0, 0, 0) - new Date(now).setHours(0, 0, 0, 0)) / 86_400_000)
  if (days === 0) return `at ${TIME.format(at)}`
  return days > 0 && days < 7 ? `on ${DAY.format(at)} ${TIME.format(at)}` : `in ${roughly(at - now)}`
}

const PAGES: readonly [type: string, icon: IconName, words: string][] = [
  ['chat_trigger', 'chat_trigger', 'Chat page'],
  ['form_trigger', 'form_trigger', 'Form page'],
  ['webhook', 'webhook', 'Webhook'],
]

const TODAY_MAX = 1000

/** The next start. */
export function startOf(card: Pick<Card, 'next_ms' | 'today'>, doc: Document, now: number): [IconName, string] {
  if (card.next_ms !== null) return ['schedule', `Next ${momentOf(Math.max(card.next_ms, now), now)}`]
  const today = card.today ? `${card.today}${card.today >= TODAY_MAX ? '+' : ''}` : ''
  const types = new Set(Object.values(doc.blocks).map((block) => block.type))
  const page = PAGES.find(([type]) => types.has(type))
  if (page) return [page[1], today ? `${page[2]}, ${today} today` : page[2]]
  return ['play', today ? `${today} ${today === '1' ? 'run' : 'runs'} today` : 'By hand or by a call']
}

export interface Pill {
  tone: Tone
  words: string
  /** Since when, shown after the words. */
  at?: number
}

/** The state of a workflow: what is open now, else how the last run ended. */
export function pillOf(card: Pick<Card, 'open' | 'runs'>): Pill {
  const { running = 0, waiting = 0, queued = 0 } = card.open
  if (running) return { tone: 'run', words: `${running} running` }
  if (waiting) return { tone: 'wait', words: `${waiting} waiting` }
  if (queued) return { tone: 'quiet', words: `${queued} queued` }
  const last = card.runs.at(-1)
  if (!last) return { tone: 'quiet', words: 'Never run' }
  const at = last.created_at_ms + (last.duration_ms ?? 0)
  if (last.status === 'failed') return { tone: 'err', words: 'Failed', at }
  return last.status === 'succeeded' ? { tone: 'ok', words: '', at } : { tone: 'quiet', words: 'Cancelled', at }
}

/** The height of a bar, 2 to 14: a tenth of the longest is still seen. */
export function heightOf(run: ShortRun, longest: number): number {
  if (run.duration_ms === null || longest <= 0) return 14
  return Math.max(2, Math.round(14 * Math.sqrt(run.duration_ms / longest)))
}

export function barsText(runs: readonly ShortRun[]): string {
  const failed = runs.filter((run) => run.status === 'failed').length
  const longest = Math.max(0, ...runs.map((run) => run.duration_ms ?? 0))
  return `The last ${runs.length} runs: ${failed || 'none'} failed, the longest took ${durationText(longest)}`
}
