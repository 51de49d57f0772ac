// Where the events of a run lie on the Tape. Pure: the painter draws it, the pointer asks it which event is where.

import type { WireEvent } from '../../api/types'
import type { Tone } from '../../ui/status'
import { toneOfEvent } from '../events/describe'
import { IDLE_MS, timeScale } from './timeScale'

export type Axis = 'order' | 'time'

/** Above so many events ticks would overlap: they are gathered in bars. */
export const BIN_ABOVE = 2000
export const PAD_X = 14
/** Between two events of a short run, and how far left of the first one "before everything" begins. */
const PITCH_MAX = 160
const BEFORE = 6
const BIN_W = 3
const GAP_W = 96
const NARROW_GAP_W = 10

/** Some pixels of the Tape and what happened there. `tone` is the most common one, `top` the gravest. */
export interface Bar {
  x: number
  count: number
  tone: Tone
  top: Tone
  /** seq of the first and the last event. */
  first: number
  last: number
}

/** An idle stretch, in pixels: its middle and its ends. `label` false: too many of them to show how long each is. */
export interface Break {
  x: number
  from: number
  to: number
  ms: number
  label: boolean
}

export interface TapeLayout {
  axis: Axis
  width: number
  /** x of each event, by seq - 1. Never falls. */
  xs: Float64Array
  /** The place of the present of the run: not left of the last event. */
  end: number
  bars: readonly Bar[] | null
  breaks: readonly Break[]
}

/** `width` in pixels; `end` is the run's last moment so far, in Unix ms. */
export function tapeLayout(log: readonly WireEvent[], width: number, axis: Axis, end: number): TapeLayout {
  const xs = new Float64Array(log.length)
  const breaks = axis === 'order' ? byOrder(log, width, xs) : byTime(log, width, xs, end)
  const last = axis === 'time' && log.length && end > log.at(-1)!.at_ms ? width - PAD_X : (xs.at(-1) ?? PAD_X)
  return { axis, width, xs, breaks, end: last, bars: log.length > BIN_ABOVE ? gather(log, xs) : null }
}

/** How tall a tick is: the run 22, blocks 14, attempts and iterations 10. */
export function heightOf(event: WireEvent): number {
  if (event.type.startsWith('run.')) return 22
  if (event.type === 'node.started' && event.attempt > 1) return 10
  return /^(node\.(started|succeeded|failed|skipped)|region\.exited|wait\.)/.test(event.type) ? 14 : 10
}

/** The seq at a place: 0 left of everything. */
export function seqAt(layout: Pick<TapeLayout, 'xs'>, x: number): number {
  const { xs } = layout
  if (!xs.length || x < xs[0]! - BEFORE) return 0
  let [low, high] = [0, xs.length - 1]
  while (low < high) {
    const mid = (low + high + 1) >> 1
    if (xs[mid]! <= x) low = mid
    else high = mid - 1
  }
  const next = xs[low + 1]
  return next !== undefined && next - x < x - xs[low]! ? low + 2 : low + 1
}

/** Where the cursor stands after `seq`. */
export function xOf(layout: TapeLayout, seq: number): number {
  if (!layout.xs.length) return PAD_X
  return seq <= 0 ? layout.xs[0]! - BEFORE : layout.xs[Math.min(seq, layout.xs.length) - 1]!
}

function byOrder(log: readonly WireEvent[], width: number, xs: Float64Array): Break[] {
  let idle = 0
  for (let i = 1; i < log.length; i++) if (log[i]!.at_ms - log[i - 1]!.at_ms > IDLE_MS) idle++
  const room = Math.max(1, width - 2 * PAD_X)
  const label = idle * GAP_W < room * 0.5
  const gap = label ? GAP_W : idle * NARROW_GAP_W < room * 0.25 ? NARROW_GAP_W : 0
  // A break is as wide as a step where steps are wide anyway.
  let pitch = Math.min(PITCH_MAX, room / Math.max(1, log.length - 1))
  if (pitch < gap) pitch = (room - idle * gap) / Math.max(1, log.length - 1 - idle)
  const wide = Math.max(gap, pitch)
  const breaks: Break[] = []
  let x = PAD_X
  for (let i = 0; i < log.length; i++) {
    if (i) {
      const ms = log[i]!.at_ms - log[i - 1]!.at_ms
      if (ms > IDLE_MS && gap) {
        breaks.push({ x: x + wide / 2, from: x, to: x + wide, ms, label })
        x += wide
      } else x += pitch
    }
    xs[i] = x
  }
  return breaks
}

function byTime(log: readonly WireEvent[], width: number, xs: Float64Array, end: number): Break[] {
  const scale = timeScale(log, end)
  const room = Math.max(1, width - 2 * PAD_X)
  let before = 0
  for (let i = 0; i < log.length; i++) {
    before = Math.max(before, PAD_X + scale.at(log[i]!.at_ms) * room)
    xs[i] = before
  }
  return scale.gaps.map((gap) => {
    const [x, half] = [PAD_X + gap.x * room, (gap.width * room) / 2]
    return { x, from: x - half, to: x + half, ms: gap.to - gap.from, label: half > 28 }
  })
}

/** What came of something says more than that it began. */
const GRAVE: Record<Tone, number> = { quiet: 0, run: 1, ok: 2, wait: 3, err: 4 }
const weigh = (tone: Tone): number => (tone === 'quiet' || tone === 'run' ? 0.01 : 1)

function gather(log: readonly WireEvent[], xs: Float64Array): Bar[] {
  const bars: Bar[] = []
  let at = -1
  let counts: Partial<Record<Tone, number>> = {}
  for (let i = 0; i < log.length; i++) {
    const slot = Math.floor(xs[i]! / BIN_W)
    const tone = toneOfEvent(log[i]!)
    const bar = bars.at(-1)
    if (!bar || slot !== at) {
      at = slot
      counts = { [tone]: weigh(tone) }
      bars.push({ x: slot * BIN_W + BIN_W / 2, count: 1, tone, top: tone, first: i + 1, last: i + 1 })
      continue
    }
    counts[tone] = (counts[tone] ?? 0) + weigh(tone)
    bar.count++
    bar.last = i + 1
    if (GRAVE[tone] > GRAVE[bar.top]) bar.top = tone
    if (counts[tone] > (counts[bar.tone] ?? 0)) bar.tone = tone
  }
  return bars
}
