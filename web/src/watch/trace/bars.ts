// The mini bar of a trace row: which stretches of the time axis it covers, and in which tone.

import type { WireEvent } from '../../api/types'
import type { TimeScale } from '../tape/timeScale'
import { endingOf } from '../../run/ending'
import { toneOf, type Tone } from '../../ui/status'
import type { TraceRow } from './rows'

/** `x` and `width` from 0 to 1. `thin`: it only says that something inside is under way. */
export interface Segment {
  x: number
  width: number
  tone: Tone
  thin: boolean
  /** The places at which the axis leaves out a stretch of it: there the bar is drawn with a break. */
  breaks: readonly number[]
}

/** A break stands near the end of what is left out. */
export const BREAK_AT = 0.8

/** The places at which the axis leaves out a part of this stretch, from 0 to 1. */
export function breaksIn(scale: TimeScale, from: number, to: number): number[] {
  return scale.gaps
    .filter((gap) => Math.min(gap.to, to) - Math.max(gap.from, from) > (gap.to - gap.from) / 2)
    .map((gap) => gap.x + gap.width * (BREAK_AT - 0.5))
}

export function segmentsOf(row: TraceRow, scale: TimeScale, now: number): Segment[] {
  if (row.startedAt === null) return []
  const segments: Segment[] = []
  const add = (from: number, to: number, tone: Tone, thin = false): void => {
    const x = scale.at(from)
    const width = Math.max(0, scale.at(Math.max(from, to)) - x)
    segments.push({ x, width, tone, thin, breaks: breaksIn(scale, from, to) })
  }
  const end = row.finishedAt ?? now
  const tone = toneOf(row.status)
  const { node } = row
  if (row.step) add(row.startedAt, end, row.step.kind === 'wait' ? 'wait' : tone, row.step.kind === 'wait')
  else if (!node || node.region) add(row.startedAt, end, tone, true)
  else if (!node.attempts.length) add(row.startedAt, end, tone)
  else {
    for (const [i, attempt] of node.attempts.entries()) {
      const isLast = i === node.attempts.length - 1
      const to = attempt.endedAt ?? (isLast ? end : (node.attempts[i + 1]?.startedAt ?? end))
      const asked = node.steps.find((step) => step.kind === 'wait' && step.attempt === attempt.attempt)
      const wait = isLast && node.wait ? node.wait.openedAt : (asked?.startedAt ?? null)
      if (wait !== null && wait >= attempt.startedAt) {
        add(attempt.startedAt, wait, isLast ? tone : 'ok')
        add(wait, to, 'wait', true)
      } else add(attempt.startedAt, to, attempt.error ? toneOf(endingOf(true, attempt.error)) : isLast ? tone : 'err')
      // The pause before the next attempt.
      const next = node.attempts[i + 1]
      if (next) add(to, next.startedAt, 'quiet', true)
      else if (node.status === 'retrying') add(to, now, 'quiet', true)
    }
  }
  return segments
}

/** The axis begins with the first block: what comes before is the server's own time. */
export function fromFirstBlock(log: readonly WireEvent[]): readonly WireEvent[] {
  const first = log.findIndex((event) => event.type === 'node.started')
  return first > 0 ? log.slice(first) : log
}
