// Draws the Tape: ticks or bars on a line, times below, the cursor above. Everything behind the cursor is pale. Folded it is a
// strip: the same without times.

import type { WireEvent } from '../../api/types'
import type { Tone } from '../../ui/status'
import { toneOfEvent } from '../events/describe'
import { heightOf, PAD_X, xOf, type TapeLayout } from './layout'
import { TAPE_H } from './sizes'
import { exactTime, roughly, timeOfDay } from '../../ui/time'

const LINE_Y = 44
const STRIP_LINE_Y = 19
/** Of the heights of ticks and bars. */
const STRIP_SCALE = 0.7
const TEXT_Y = 57
const BAR_MAX = 22

export type Colours = Record<
  Tone | 'ink' | 'ink2' | 'line' | 'line2' | 'paper' | 'panel' | 'sunk' | 'thread' | 'onThread' | 'flax',
  string
> & {
  font: string
  words: string
}

export interface Picture {
  layout: TapeLayout
  log: readonly WireEvent[]
  /** Where the cursor stands; `live`: at the end, and following. */
  seq: number
  live: boolean
  /** Under the pointer, or null. */
  hover: number | null
  /** Block whose events are marked below the line. */
  block: string | null
  strip: boolean
  /** Idle for so long since the last event, and not over; else 0. */
  idleMs: number
}

export function coloursOf(element: Element): Colours {
  const style = getComputedStyle(element)
  const of = (name: string): string => style.getPropertyValue(name).trim()
  return {
    run: of('--run'),
    ok: of('--ok'),
    err: of('--err'),
    wait: of('--wait'),
    quiet: of('--edge'),
    ink: of('--ink'),
    ink2: of('--ink-2'),
    line: of('--line'),
    line2: of('--line-2'),
    sunk: of('--sunk'),
    thread: of('--thread'),
    onThread: of('--on-thread'),
    flax: of('--flax'),
    paper: of('--paper'),
    panel: of('--panel'),
    font: of('--font-mono'),
    words: of('--font-ui'),
  }
}

export function paint(ctx: CanvasRenderingContext2D, picture: Picture, c: Colours): void {
  const { layout, log, seq, live, hover, idleMs, strip } = picture
  const { width } = layout
  const lineY = lineYOf(picture)
  ctx.clearRect(0, 0, width, TAPE_H)
  ctx.fillStyle = c.line
  ctx.fillRect(PAD_X, lineY, width - 2 * PAD_X, 1)
  if (layout.bars) bars(ctx, picture, c)
  else ticks(ctx, picture, c)
  if (picture.block) marks(ctx, picture, c)
  if (!strip) times(ctx, layout, log, c)
  const x = xOf(layout, seq)
  if (live && idleMs > 0 && !strip) {
    const text = idleText(idleMs)
    ctx.font = `11px ${c.words}`
    const room = x + 14 + ctx.measureText(text).width < width - PAD_X
    label(ctx, text, room ? x + 14 : x - 10, LINE_Y - 30, c.ink2, c.words, room ? 'left' : 'right')
  }
  if (hover !== null && hover !== seq && hover > 0) {
    ctx.fillStyle = c.ink2
    ctx.fillRect(Math.round(xOf(layout, hover)), strip ? 2 : 14, 1, lineY - (strip ? 0 : 8))
  }
  if (log.length) head(ctx, x, live ? null : seq, picture, c)
}

const lineYOf = ({ strip }: Picture): number => (strip ? STRIP_LINE_Y : LINE_Y)
const idleText = (ms: number): string => `${roughly(ms)} idle`

function ticks(ctx: CanvasRenderingContext2D, picture: Picture, c: Colours): void {
  const { layout, log, seq, strip } = picture
  const { xs } = layout
  const lineY = lineYOf(picture)
  const wide = xs.length > 1 && xs[xs.length - 1]! - xs[0]! < xs.length * 5 ? 2 : 3
  for (let i = 0; i < log.length; i++) {
    const event = log[i]!
    const h = heightOf(event) * (strip ? STRIP_SCALE : 1)
    ctx.fillStyle = i < seq ? c[toneOfEvent(event)] : c.line
    ctx.fillRect(Math.round(xs[i]! - wide / 2), lineY - h, wide, h)
    // A new attempt, and the first event after a pause, get a foot.
    if (event.attempt > 1 && event.type === 'node.started') ctx.fillRect(Math.round(xs[i]! - 3), lineY - 2, 6, 2)
    if (log[i - 1]?.type === 'run.parked') ctx.fillRect(Math.round(xs[i]! - wide / 2), lineY, wide, 5)
  }
}

function bars(ctx: CanvasRenderingContext2D, picture: Picture, c: Colours): void {
  const { layout, seq, strip } = picture
  const lineY = lineYOf(picture)
  const barMax = BAR_MAX * (strip ? STRIP_SCALE : 1)
  let most = 1
  for (const bar of layout.bars!) most = Math.max(most, bar.count)
  for (const bar of layout.bars!) {
    const h = Math.max(5, Math.round(barMax * Math.sqrt(bar.count / most)))
    const past = bar.first <= seq
    ctx.fillStyle = past ? c[bar.tone] : c.line
    ctx.fillRect(bar.x - 1, lineY - h, 2, h)
    if (!past || bar.top === bar.tone) continue
    ctx.fillStyle = c[bar.top]
    ctx.fillRect(bar.x - 1, lineY - h, 2, Math.max(4, h / 3))
  }
}

function marks(ctx: CanvasRenderingContext2D, picture: Picture, c: Colours): void {
  const { layout, log, block } = picture
  const lineY = lineYOf(picture)
  ctx.fillStyle = c.ink
  for (let i = 0; i < log.length; i++)
    if (log[i]!.block === block) ctx.fillRect(Math.round(layout.xs[i]! - 1.5), lineY + 2, 3, 2)
}

/** Times of day along the line, where there is room; the lengths of idle stretches first. */
function times(ctx: CanvasRenderingContext2D, layout: TapeLayout, log: readonly WireEvent[], c: Colours): void {
  if (!log.length) return
  const occupied: [number, number][] = []
  const put = (text: string, x: number, align: CanvasTextAlign, font = c.font): boolean => {
    ctx.font = `11px ${font}`
    const w = ctx.measureText(text).width
    const from = align === 'left' ? x : align === 'right' ? x - w : x - w / 2
    if (from < 0 || from + w > layout.width || occupied.some(([a, b]) => from < b + 14 && from + w > a - 14))
      return false
    occupied.push([from, from + w])
    label(ctx, text, x, TEXT_Y, c.ink2, font, align)
    return true
  }
  ctx.font = `11px ${c.font}`
  ctx.textBaseline = 'middle'
  for (const gap of layout.breaks) {
    ctx.fillStyle = c.panel
    ctx.fillRect(gap.x - 4, LINE_Y - 1, 8, 3)
    ctx.fillStyle = c.ink2
    ctx.fillRect(Math.round(gap.x - 4), LINE_Y - 3, 1, 7)
    ctx.fillRect(Math.round(gap.x + 3), LINE_Y - 3, 1, 7)
    if (gap.label) put(idleText(gap.ms), gap.x, 'center', c.words)
  }
  const first = layout.xs[0]!
  const last = layout.xs[layout.xs.length - 1]!
  // All are times of day. Within a few seconds, milliseconds distinguish them.
  const began = log[0]!.at_ms
  const text = log.at(-1)!.at_ms - began < 20_000 ? exactTime : timeOfDay
  // Neighbours may share a moment: it is written once.
  const written = new Set<string>()
  const putTime = (at: number, x: number, align: CanvasTextAlign): void => {
    const time = text(at)
    if (!written.has(time) && put(time, x, align)) written.add(time)
  }
  putTime(began, Math.max(first - 2, PAD_X), 'left')
  if (last > first + 80) putTime(log.at(-1)!.at_ms, last, last > layout.width - 40 ? 'right' : 'center')
  for (let x = first + 220; x < last - 100; x += 220) {
    const i = firstFrom(layout.xs, x)
    putTime(log[i]!.at_ms, layout.xs[i]!, 'center')
  }
}

/** Index of the first place that is not left of `x`, or the last one. */
export function firstFrom(xs: Float64Array, x: number): number {
  let [low, high] = [0, xs.length - 1]
  while (low < high) {
    const mid = (low + high) >> 1
    if (xs[mid]! < x) low = mid + 1
    else high = mid
  }
  return low
}

function label(
  ctx: CanvasRenderingContext2D,
  text: string,
  x: number,
  y: number,
  colour: string,
  font: string,
  align: CanvasTextAlign,
): void {
  ctx.font = `11px ${font}`
  ctx.textBaseline = 'middle'
  ctx.textAlign = align
  ctx.fillStyle = colour
  ctx.fillText(text, x, y)
}

function head(ctx: CanvasRenderingContext2D, x: number, seq: number | null, picture: Picture, c: Colours): void {
  const { strip, layout } = picture
  ctx.fillStyle = c.thread
  ctx.fillRect(Math.round(x) + (seq === null ? 3 : 0), strip ? 1 : 4, 2, lineYOf(picture) + (strip ? 1 : 2))
  if (seq === null || strip) return
  const text = `Event ${seq}`
  ctx.font = `11px ${c.words}`
  const w = ctx.measureText(text).width + 12
  const left = x + 8 + w > layout.width ? x - w - 6 : x + 8
  ctx.beginPath()
  ctx.roundRect(left, 2, w, 17, 3)
  ctx.fill()
  label(ctx, text, left + 6, 11, c.onThread, c.words, 'left')
}
