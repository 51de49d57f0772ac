// Draws the lanes of the Tape: the axis above, names at the left, a span for each stretch, the playhead in plum, a tear where the
// server died. The picture of a share is drawn by the same.

import type { WireEvent } from '../../api/types'
import type { Tear } from '../../run'
import { glyph, type IconName } from '../../ui/icons'
import { durationText, exactTime, timeOfDay } from '../../ui/time'
import { BREAK_AT } from '../trace/bars'
import { toneOfEvent } from '../events/describe'
import { pausesOf, type Lane, type Span } from './lanes'
import { xOf, type TapeLayout } from './layout'
import { AXIS_H, LANE_H } from './sizes'
import { firstFrom, type Colours } from './paint'

const SPAN_H = 14
const SPAN_MIN = 4
/** Names at the left; in a narrow window fewer pixels. */
export const GUTTER = 168
export const GUTTER_NARROW = 112
const LABEL_EVERY = 132
const TICK_PITCH = 6
const TEAR_STEP = 12

/** The part of the axis that is seen: `zoom` 1 is all of it, `pan` in pixels of what is drawn. */
export interface Window {
  zoom: number
  pan: number
}

export interface LanesPicture {
  lanes: readonly Lane[]
  layout: TapeLayout
  log: readonly WireEvent[]
  tears: readonly Tear[]
  window: Window
  gutter: number
  width: number
  height: number
  /** Pixels that the lanes are scrolled down. */
  top: number
  seq: number
  /** The text of the flag of the playhead. */
  flag: string
  hover: Span | null
  block: string | null
  /** A chosen stretch, between two events. */
  range: readonly [number, number] | null
}

/** x of a place of the layout, on the picture. */
export const toScreen = (p: Pick<LanesPicture, 'gutter' | 'window'>, x: number): number =>
  p.gutter + x * p.window.zoom - p.window.pan
export const toLayout = (p: Pick<LanesPicture, 'gutter' | 'window'>, x: number): number =>
  (x - p.gutter + p.window.pan) / p.window.zoom

/** The place of a span; a short one is still seen. */
export function boxOf(p: Pick<LanesPicture, 'gutter' | 'window' | 'layout'>, span: Span): [number, number] {
  const x = toScreen(p, xOf(p.layout, span.from))
  const end = toScreen(p, span.to === null ? p.layout.end : xOf(p.layout, span.to))
  return [x, Math.max(SPAN_MIN, end - x)]
}

export const tearX = (p: Pick<LanesPicture, 'gutter' | 'window' | 'layout'>, tear: Tear): number =>
  toScreen(p, (xOf(p.layout, tear.seq - 1) + xOf(p.layout, tear.seq)) / 2)

export function paintLanes(ctx: CanvasRenderingContext2D, p: LanesPicture, c: Colours): void {
  ctx.clearRect(0, 0, p.width, p.height)
  ctx.textBaseline = 'middle'
  const first = Math.max(0, Math.floor(p.top / LANE_H))
  const last = Math.min(p.lanes.length, Math.ceil((p.top + p.height - AXIS_H) / LANE_H))
  const yOf = (lane: number): number => AXIS_H + lane * LANE_H - p.top
  clipped(ctx, 0, AXIS_H, p.width, p.height - AXIS_H, () => {
    for (let at = first; at < last; at++) ground(ctx, p, at, yOf(at), c)
    clipped(ctx, p.gutter, AXIS_H, p.width - p.gutter, p.height - AXIS_H, () => {
      for (let at = first; at < last; at++) {
        pauses(ctx, p, p.lanes[at]!.spans, yOf(at) + LANE_H / 2, c)
        for (const each of p.lanes[at]!.spans) span(ctx, p, each, yOf(at) + (LANE_H - SPAN_H) / 2, c)
      }
      later(ctx, p, c)
    })
    for (let at = first; at < last; at++) name(ctx, p.lanes[at]!, yOf(at), p.gutter, c)
  })
  axis(ctx, p, c)
  for (const each of p.tears) tear(ctx, p, tearX(p, each), c)
  if (p.range) range(ctx, p, p.range, c)
  playhead(ctx, p, c)
  ctx.fillStyle = c.line
  ctx.fillRect(p.gutter, 0, 1, p.height)
}

function clipped(ctx: CanvasRenderingContext2D, x: number, y: number, w: number, h: number, draw: () => void): void {
  ctx.save()
  ctx.beginPath()
  ctx.rect(x, y, Math.max(0, w), Math.max(0, h))
  ctx.clip()
  draw()
  ctx.restore()
}

function ground(ctx: CanvasRenderingContext2D, p: LanesPicture, at: number, y: number, c: Colours): void {
  if (at % 2) return
  ctx.globalAlpha = 0.45
  ctx.fillStyle = c.sunk
  ctx.fillRect(p.gutter, y, p.width - p.gutter, LANE_H)
  ctx.globalAlpha = 1
}

const outlines = new Map<IconName, { line: Path2D; fill: Path2D | null }>()

function sign(ctx: CanvasRenderingContext2D, icon: IconName, x: number, y: number, colour: string): void {
  let paths = outlines.get(icon)
  if (!paths) {
    const { d, fill } = glyph(icon)
    outlines.set(icon, (paths = { line: new Path2D(d), fill: fill ? new Path2D(fill) : null }))
  }
  ctx.save()
  ctx.translate(x, y)
  ctx.scale(0.75, 0.75)
  ctx.strokeStyle = ctx.fillStyle = colour
  ctx.lineWidth = 1.5
  ctx.lineCap = ctx.lineJoin = 'round'
  ctx.stroke(paths.line)
  if (paths.fill) ctx.fill(paths.fill)
  ctx.restore()
}

function name(ctx: CanvasRenderingContext2D, lane: Lane, y: number, gutter: number, c: Colours): void {
  if (!lane.label) return
  const x = 14 + lane.depth * 14
  const strong = lane.depth === 0
  if (lane.icon) sign(ctx, lane.icon, x, y + 5, c.ink2)
  else {
    ctx.fillStyle = c.ink2
    ctx.fillRect(x + 5, y + 10, 2, 2)
  }
  ctx.font = `${strong ? 600 : 400} 12px ${c.words}`
  ctx.textAlign = 'left'
  ctx.fillStyle = strong ? c.ink : c.ink2
  const folded = lane.open === false ? ' …' : ''
  ctx.fillText(fitted(ctx, lane.label + folded, gutter - x - 26), x + 18, y + LANE_H / 2 + 0.5)
}

/** As much of a text as has room, or nothing. */
export function fitted(ctx: CanvasRenderingContext2D, text: string, room: number): string {
  if (ctx.measureText(text).width <= room) return text
  const part = Math.floor((text.length * room) / ctx.measureText(text).width) - 1
  return part < 3 ? '' : `${text.slice(0, part)}…`
}

function span(ctx: CanvasRenderingContext2D, p: LanesPicture, each: Span, y: number, c: Colours): void {
  const [left, w] = boxOf(p, each)
  if (left + w < p.gutter || left > p.width) return
  // Canvas draws nothing right where a rectangle is millions of pixels wide.
  const x = Math.max(left, p.gutter - 8)
  const width = Math.min(left + w, p.width + 8) - x
  ctx.beginPath()
  ctx.roundRect(x + 0.5, y + 0.5, Math.max(1, width - 1), SPAN_H - 1, Math.min(3, width / 2))
  ctx.fillStyle = c.panel
  ctx.fill()
  ctx.globalAlpha = each.whole ? 0.14 : 0.22
  ctx.fillStyle = c[each.tone]
  ctx.fill()
  ctx.globalAlpha = 1
  const marked = each === p.hover || each.node.block === p.block
  ctx.strokeStyle = marked ? c.thread : c[each.tone]
  ctx.lineWidth = marked ? 2 : 1
  ctx.stroke()
  const cuts = each.whole ? [] : breaksOf(p, left, left + w)
  for (const at of cuts) cut(ctx, at, y, c.panel, c[each.tone])
  // The name stays in view, and ends before a break.
  const from = Math.max(x, p.gutter)
  const room = Math.min(x + width, ...cuts.map((at) => at - 4)) - from
  if (room < 26) return
  ctx.font = `12px ${c.words}`
  ctx.textAlign = 'left'
  ctx.fillStyle = c.ink
  ctx.fillText(fitted(ctx, textOf(p, each), room - 10), from + 6, y + SPAN_H / 2 + 0.5)
}

/** A line from each failed attempt to the next one of its block. */
function pauses(ctx: CanvasRenderingContext2D, p: LanesPicture, spans: readonly Span[], y: number, c: Colours): void {
  for (const [before, next] of pausesOf(spans)) {
    const [left, width] = boxOf(p, before)
    const from = Math.max(p.gutter, left + width)
    const to = Math.min(p.width, boxOf(p, next)[0])
    ctx.fillStyle = c[before.tone]
    // Dots, as many as can be seen: a dashed stroke of millions of pixels is not drawn.
    for (let x = from + 2; x < to - 1; x += 4) ctx.fillRect(x, Math.round(y), 2, 1)
  }
}

function textOf(p: LanesPicture, each: Span): string {
  const [from, to] = [p.log[each.from - 1], each.to === null ? null : p.log[each.to - 1]]
  return each.wait && from && to ? `${each.label}, ${durationText(to.at_ms - from.at_ms)}` : each.label
}

/** The places at which the axis leaves out a stretch between two places. */
function breaksOf(p: LanesPicture, from: number, to: number): number[] {
  return p.layout.breaks
    .map((gap) => [toScreen(p, gap.from), toScreen(p, gap.to)] as const)
    .filter(([a, b]) => Math.min(b, to) - Math.max(a, from) > (b - a) / 2)
    .map(([a, b]) => a + (b - a) * BREAK_AT)
}

/** Two slanted lines with nothing between them. */
function cut(ctx: CanvasRenderingContext2D, x: number, y: number, ground: string, colour: string): void {
  const [top, middle, bottom] = [y - 2, y + SPAN_H / 2, y + SPAN_H + 2]
  ctx.beginPath()
  ctx.moveTo(x - 6, top)
  ctx.lineTo(x - 2, middle)
  ctx.lineTo(x - 6, bottom)
  ctx.lineTo(x + 3, bottom)
  ctx.lineTo(x + 7, middle)
  ctx.lineTo(x + 3, top)
  ctx.fillStyle = ground
  ctx.fill()
  ctx.beginPath()
  for (const dx of [-6, 3]) {
    ctx.moveTo(x + dx, top)
    ctx.lineTo(x + dx + 4, middle)
    ctx.lineTo(x + dx, bottom)
  }
  ctx.strokeStyle = colour
  ctx.lineWidth = 1
  ctx.stroke()
}

/** Draw everything later than the playhead pale. */
function later(ctx: CanvasRenderingContext2D, p: LanesPicture, c: Colours): void {
  const x = Math.max(p.gutter, headX(p))
  ctx.globalAlpha = 0.68
  ctx.fillStyle = c.panel
  if (p.seq < p.log.length) ctx.fillRect(x, AXIS_H, p.width - x, p.height)
  ctx.globalAlpha = 1
}

const headX = (p: LanesPicture): number => toScreen(p, p.seq >= p.log.length ? p.layout.end : xOf(p.layout, p.seq))

function axis(ctx: CanvasRenderingContext2D, p: LanesPicture, c: Colours): void {
  const { log, layout } = p
  ctx.fillStyle = c.line
  ctx.fillRect(p.gutter, AXIS_H - 1, p.width - p.gutter, 1)
  if (!log.length) return
  ctx.font = `11px ${c.font}`
  ctx.textAlign = 'left'
  const short = log.at(-1)!.at_ms - log[0]!.at_ms < 20_000
  let free = p.gutter + 4
  const from = firstFrom(layout.xs, toLayout(p, p.gutter))
  const seen = (x: number): boolean => x <= p.width
  // A mark for each event only where they do not touch.
  const upto = firstFrom(layout.xs, toLayout(p, p.width))
  const room = (p.width - p.gutter) / Math.max(1, upto - from)
  if (p.window.zoom > 1 && room >= TICK_PITCH)
    for (let i = from; i <= upto && i < log.length; i++) {
      ctx.fillStyle = c[toneOfEvent(log[i]!)]
      ctx.fillRect(Math.round(toScreen(p, layout.xs[i]!)), AXIS_H - 6, 2, 5)
    }
  let written = ''
  const [flagFrom, flagTo] = flagBox(ctx, p, c) ?? [0, 0]
  ctx.font = `11px ${c.font}`
  for (let i = from; i < log.length; ) {
    const x = toScreen(p, layout.xs[i]!)
    if (!seen(x)) break
    const text = (short ? exactTime : timeOfDay)(log[i]!.at_ms)
    const w = ctx.measureText(text).width
    if (x >= free && x + 4 + w < p.width && text !== written) {
      ctx.fillStyle = c.line2
      ctx.fillRect(Math.round(x), AXIS_H - 7, 1, 6)
      ctx.fillStyle = c.ink2
      // Half a time below the flag cannot be read.
      if (x + 4 + w < flagFrom || x + 4 > flagTo) ctx.fillText(text, x + 4, 9)
      written = text
      free = x + Math.max(LABEL_EVERY, w + 24)
    }
    i = Math.max(i + 1, firstFrom(layout.xs, toLayout(p, free)))
    if (i >= log.length) break
  }
  // Between two events: when what is at the left edge was.
  if (!written && from > 0) ctx.fillText(exactTime(timeBetween(p, from)), p.gutter + 4, 9)
}

/** The time at the left edge, which lies before event `next`. */
function timeBetween({ log, layout, ...p }: LanesPicture, next: number): number {
  const [a, b] = [layout.xs[next - 1]!, layout.xs[next]!]
  const part = b > a ? (toLayout(p, p.gutter) - a) / (b - a) : 0
  const [from, to] = [log[next - 1]!.at_ms, log[next]!.at_ms]
  return Math.round(from + (to - from) * Math.max(0, Math.min(1, part)))
}

function tear(ctx: CanvasRenderingContext2D, p: LanesPicture, x: number, c: Colours): void {
  if (x < p.gutter || x > p.width) return
  ctx.beginPath()
  ctx.moveTo(x + 2, 2)
  for (let y = 10, i = 0; y < p.height + TEAR_STEP; y += TEAR_STEP, i++) ctx.lineTo(x + (i % 2 ? 3 : -3), y)
  ctx.strokeStyle = c.err
  ctx.lineWidth = 1.4
  ctx.stroke()
}

function range(ctx: CanvasRenderingContext2D, p: LanesPicture, [a, b]: readonly [number, number], c: Colours): void {
  const from = Math.max(p.gutter, toScreen(p, a))
  const to = Math.min(p.width, toScreen(p, b))
  if (to < from) return
  ctx.globalAlpha = 0.14
  ctx.fillStyle = c.thread
  ctx.fillRect(from, 0, to - from, p.height)
  ctx.globalAlpha = 1
  ctx.fillRect(from, 0, 1, p.height)
  ctx.fillRect(to - 1, 0, 1, p.height)
}

/** From where to where the flag of the playhead reaches; null: it has none. */
function flagBox(ctx: CanvasRenderingContext2D, p: LanesPicture, c: Colours): [number, number] | null {
  const x = headX(p)
  if (!p.flag || x < p.gutter - 1 || x > p.width + 1) return null
  ctx.font = `600 11px ${c.words}`
  const w = ctx.measureText(p.flag).width + 14
  const left = Math.max(p.gutter, Math.min(p.width - w, x - w / 2))
  return [left, left + w]
}

function playhead(ctx: CanvasRenderingContext2D, p: LanesPicture, c: Colours): void {
  if (!p.log.length) return
  const x = headX(p)
  if (x < p.gutter - 1 || x > p.width + 1) return
  ctx.fillStyle = c.thread
  ctx.fillRect(Math.round(x) - 1, 0, 2, p.height)
  const box = flagBox(ctx, p, c)
  if (!box) return
  const [left, right] = box
  ctx.beginPath()
  ctx.roundRect(left, 0, right - left, 17, 4)
  ctx.fill()
  ctx.fillStyle = c.onThread
  ctx.textAlign = 'center'
  ctx.fillText(p.flag, (left + right) / 2, 9)
}

/** The tear or the span under a point. */
export function hit(p: LanesPicture, x: number, y: number): { tear: Tear } | { span: Span } | null {
  const torn = p.tears.find((each) => Math.abs(tearX(p, each) - x) < 6)
  if (torn) return { tear: torn }
  if (y < AXIS_H || x < p.gutter) return null
  const lane = p.lanes[Math.floor((y - AXIS_H + p.top) / LANE_H)]
  const found = lane?.spans.filter((each) => {
    const [left, w] = boxOf(p, each)
    return x >= left - 1 && x <= left + w + 1
  })
  return found?.length ? { span: found.at(-1)! } : null
}
