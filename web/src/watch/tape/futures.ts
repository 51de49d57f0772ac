// Two runs on one axis: what both begin with by order, what follows by the time since they parted. Pure.

import type { Document, WireEvent } from '../../api/types'
import type { RunFold } from '../../run'
import { lanesOf, pack, type Span } from './lanes'
import { timeScale } from './timeScale'

export const LEFT = 168
const RIGHT = 24
/** The width in which the threads part; the spans after that begin at its end. */
export const PARTING = 84
const ROWS_MAX = 3
const SHARED_LEAST = 0.16
const SHARED_MOST = 0.42
const TIMED_MS = 1000

export interface Thread {
  log: readonly WireEvent[]
  /** The number of events that the other one has too; the others are later than `parted`, in Unix ms. */
  split: number
  parted: number
  /** x of each event. */
  xs: Float64Array
  end: number
  rows: readonly (readonly Span[])[]
}

export interface Futures {
  width: number
  splitX: number
  shared: readonly (readonly Span[])[]
  before: Thread
  now: Thread
}

export interface Side {
  view: RunFold
  log: readonly WireEvent[]
  doc: Document | null
  split: number
}

export function futuresOnAxis(a: Side, b: Side, width: number): Futures {
  const room = Math.max(1, width - LEFT - RIGHT)
  const after = Math.max(a.log.length - a.split, b.log.length - b.split)
  const part = b.split / Math.max(1, b.split + after)
  const share = !b.split ? 0 : after ? Math.max(SHARED_LEAST, Math.min(SHARED_MOST, part)) : 1
  const splitX = LEFT + room * share
  const from = after ? splitX + (b.split ? PARTING : 8) : splitX
  const place = placeOf(a, b, after)
  const thread = (side: Side): Thread => {
    const xs = new Float64Array(side.log.length)
    for (let i = 0; i < xs.length; i++)
      xs[i] =
        i < side.split
          ? LEFT + 8 + (i / Math.max(1, side.split - 1)) * (splitX - LEFT - 24)
          : from + place(side, i) * (LEFT + room - from)
    const rows = rowsOf(side).after
    return { log: side.log, split: side.split, parted: partedAt(side), xs, end: xs.at(-1) ?? splitX, rows }
  }
  return { width, splitX, shared: rowsOf(b).shared, before: thread(a), now: thread(b) }
}

/** The time at which a run parted from the other: events that a fork took over keep the times of the run it began as. */
export function partedAt({ view, log, split }: Pick<Side, 'view' | 'log' | 'split'>): number {
  return Math.max(log[split]?.at_ms ?? log.at(-1)?.at_ms ?? 0, view.forkedFrom?.at ?? 0)
}

/** The place of an event after the split, from 0 to 1: by the time since then, idle stretches cut; if it took no time, by order. */
function placeOf(a: Side, b: Side, after: number): (side: Side, i: number) => number {
  const since = (side: Side, i: number): number => Math.max(0, side.log[i]!.at_ms - partedAt(side))
  const times = [a, b].flatMap((side) => side.log.slice(side.split).map((_, i) => since(side, side.split + i)))
  const longest = Math.max(
    0,
    ...[a, b].map((side) => (side.log.length > side.split ? since(side, side.log.length - 1) : 0)),
  )
  if (longest < TIMED_MS) return (side, i) => (i - side.split) / Math.max(1, after - 1)
  const events = times.sort((x, y) => x - y).map((at_ms) => ({ at_ms }) as WireEvent)
  const scale = timeScale(events, longest)
  return (side, i) => scale.at(since(side, i))
}

function rowsOf({ view, doc, split }: Side): { shared: Span[][]; after: Span[][] } {
  const spans = lanesOf(view, doc, new Set()).flatMap((lane) => lane.spans.filter((span) => !span.whole))
  const shared = spans.filter((span) => span.to !== null && span.to <= split)
  const after = spans
    .filter((span) => span.to === null || span.to > split)
    .map((span) => (span.from > split ? span : { ...span, from: split + 1 }))
  return { shared: pack(shared).slice(0, ROWS_MAX), after: pack(after).slice(0, ROWS_MAX) }
}
