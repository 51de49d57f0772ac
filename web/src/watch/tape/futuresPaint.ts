// Draws two runs as two threads: twisted as long as they are the same, then flax (before) above and plum (now) below, with the spans
// of each, and the first differing value between them.

import { durationText, exactTime } from '../../ui/time'
import type { Difference } from './firstDifference'
import { LEFT, PARTING, type Futures, type Thread } from './futures'
import type { Span } from './lanes'
import { fitted } from './lanesPaint'
import type { Colours } from './paint'

const ROW = 22
const SPAN_H = 16
const THREAD = 3.4
const HALF_WAVE = 26
const SWING = 4
const TOP = 42
const GAP = 82
const AXIS = 24
const HEAD_MAX = 48
const VALUE_MAX = 28

export interface FuturesPicture {
  futures: Futures
  difference: Difference | null
  /** The names of the two at their ends. */
  names: { before: string; now: string }
  /** The place of the playhead in the run of now. */
  seq: number
  only: 'before' | 'both' | 'now'
  height: number
  /** How far the threads have parted, from 0 to 1. */
  parted: number
}

const yOf = ({ before }: Futures, parted = 1): { up: number; middle: number; down: number } => {
  const down = TOP + 12 + before.rows.length * ROW + GAP
  const middle = Math.min(TOP + 26, (TOP + down) / 2)
  return { up: middle + (TOP - middle) * parted, middle, down: middle + (down - middle) * parted }
}

export function heightOfFutures(f: Futures): number {
  return Math.max(yOf(f).down + 12 + f.now.rows.length * ROW + 10 + AXIS, 200)
}

export function paintFutures(ctx: CanvasRenderingContext2D, p: FuturesPicture, c: Colours): void {
  const { futures: f } = p
  const { up, middle, down } = yOf(f, p.parted)
  ctx.clearRect(0, 0, f.width, p.height)
  ctx.textBaseline = 'middle'
  if (f.now.split) shared(ctx, p, middle, c)
  const faded = (which: 'before' | 'now'): number => (p.only === 'both' || p.only === which ? 1 : 0.25)
  ctx.globalAlpha = faded('before')
  future(ctx, f, f.before, middle, up, c.flax, p.names.before, c)
  ctx.globalAlpha = faded('now')
  future(ctx, f, f.now, middle, down, c.thread, p.names.now, c)
  ctx.globalAlpha = 1
  if (p.difference && p.parted === 1) differs(ctx, p, p.difference, c)
  axis(ctx, p, c)
  head(ctx, p, c)
}

function shared(ctx: CanvasRenderingContext2D, p: FuturesPicture, y: number, c: Colours): void {
  const { futures: f } = p
  ctx.font = `600 12px ${c.words}`
  ctx.textAlign = 'left'
  ctx.fillStyle = c.ink
  ctx.fillText('Shared', 14, y)
  ctx.font = `12px ${c.words}`
  ctx.fillStyle = c.ink2
  ctx.fillText(f.now.split === 1 ? '1 event' : `${f.now.split} events`, 14, y + 16)
  twist(ctx, LEFT, f.splitX, y, c)
  rows(ctx, f.now, f.shared, y + 14, f.splitX, c.ink2, c)
}

/** Two threads over and under each other, the upper one drawn last. */
function twist(ctx: CanvasRenderingContext2D, from: number, to: number, y: number, c: Colours): void {
  for (let x = from, half = 0; x < to; x += HALF_WAVE, half++) {
    const end = Math.min(x + HALF_WAVE, to)
    const order = half % 2 ? [c.flax, c.thread] : [c.thread, c.flax]
    for (const [at, colour] of order.entries()) {
      // Each half wave the two change sides.
      const side = (colour === c.thread ? 1 : -1) * (half % 2 ? 1 : -1)
      if (at) strand(ctx, x, end, y, side, c.panel, THREAD + 2.4)
      strand(ctx, x, end, y, side, colour, THREAD)
    }
  }
}

function strand(
  ctx: CanvasRenderingContext2D,
  from: number,
  to: number,
  y: number,
  side: number,
  colour: string,
  w: number,
): void {
  ctx.beginPath()
  ctx.moveTo(from, y)
  for (let x = from; x <= to; x += 2) ctx.lineTo(x, y + side * SWING * Math.sin((Math.PI * (x - from)) / HALF_WAVE))
  ctx.strokeStyle = colour
  ctx.lineWidth = w
  ctx.lineCap = 'butt'
  ctx.stroke()
}

function future(
  ctx: CanvasRenderingContext2D,
  f: Futures,
  thread: Thread,
  from: number,
  y: number,
  colour: string,
  name: string,
  c: Colours,
): void {
  if (thread.log.length <= thread.split) return
  const x = f.splitX
  ctx.beginPath()
  ctx.moveTo(x, thread.split ? from : y)
  if (thread.split) ctx.bezierCurveTo(x + PARTING / 2, from, x + PARTING / 2, y, x + PARTING, y)
  ctx.lineTo(thread.end, y)
  ctx.strokeStyle = colour
  ctx.lineWidth = THREAD
  ctx.lineCap = 'round'
  ctx.stroke()
  ctx.font = `600 12px ${c.words}`
  ctx.textAlign = 'left'
  ctx.fillStyle = colour
  const w = ctx.measureText(name).width
  const left = Math.min(f.width - w - 14, Math.max(x + PARTING, thread.end - w))
  ctx.strokeStyle = c.panel
  ctx.lineWidth = 4
  ctx.strokeText(name, left, y - 12)
  ctx.fillText(name, left, y - 12)
  rows(ctx, thread, thread.rows, y + 10, f.width, colour, c)
}

function rows(
  ctx: CanvasRenderingContext2D,
  thread: Thread,
  rows: readonly (readonly Span[])[],
  y: number,
  end: number,
  colour: string,
  c: Colours,
): void {
  for (const [row, spans] of rows.entries())
    for (const [i, each] of spans.entries()) {
      const next = spans[i + 1]
      span(ctx, thread, each, y + row * ROW, next ? thread.xs[next.from - 1]! : end, colour, c)
    }
}

function span(
  ctx: CanvasRenderingContext2D,
  thread: Thread,
  each: Span,
  y: number,
  free: number,
  colour: string,
  c: Colours,
): void {
  const [a, b] = [thread.log[each.from - 1], each.to === null ? null : thread.log[each.to - 1]]
  const text = each.wait && a && b ? `${each.label}, ${durationText(b.at_ms - a.at_ms)}` : each.label
  const x = thread.xs[each.from - 1]!
  const end = each.to === null ? thread.end : thread.xs[each.to - 1]!
  ctx.font = `12px ${c.words}`
  // As wide as its label, where the row has room for that.
  const width = Math.max(4, end - x, Math.min(ctx.measureText(text).width + 12, free - x - 4))
  const alpha = ctx.globalAlpha
  ctx.beginPath()
  ctx.roundRect(x + 0.5, y + 0.5, width - 1, SPAN_H - 1, Math.min(3, width / 2))
  ctx.fillStyle = colour
  ctx.globalAlpha = alpha * 0.2
  ctx.fill()
  ctx.globalAlpha = alpha
  ctx.strokeStyle = colour
  ctx.lineWidth = 1
  // A span with no end yet is dashed.
  ctx.setLineDash(each.to === null ? [4, 3] : [])
  ctx.stroke()
  ctx.setLineDash([])
  if (width < 28) return
  ctx.textAlign = 'left'
  ctx.fillStyle = c.ink
  ctx.fillText(fitted(ctx, text, width - 10), x + 6, y + SPAN_H / 2 + 0.5)
}

/** A dotted line from one future to the other, and the two values on it. */
function differs(ctx: CanvasRenderingContext2D, p: FuturesPicture, difference: Difference, c: Colours): void {
  const { futures: f } = p
  const { up, down } = yOf(f)
  // Between the threads: where both are one there is no room for it.
  const apart = f.splitX + (f.now.split ? PARTING : 0)
  const [a, b] = difference.seqs.map((seq, i) => {
    const thread = i ? f.now : f.before
    return Math.max(apart, (seq === null ? undefined : thread.xs[seq - 1]) ?? apart)
  }) as [number, number]
  const top = up + 12 + f.before.rows.length * ROW
  ctx.beginPath()
  ctx.moveTo(a, top)
  ctx.lineTo(b, down - 4)
  ctx.setLineDash([2, 3])
  ctx.strokeStyle = c.ink2
  ctx.lineWidth = 1.4
  ctx.stroke()
  ctx.setLineDash([])
  ctx.font = `12px ${c.words}`
  const head = cut(`First difference, ${difference.name}`, HEAD_MAX)
  const became = [cut(difference.before), ' became ', cut(difference.now)]
  const widths = became.map((text) => ctx.measureText(text).width)
  const w = Math.max(ctx.measureText(head).width, widths[0]! + widths[1]! + widths[2]!) + 20
  const x = Math.max(0, Math.min(f.width - w - 10, Math.max(a, b) + 10))
  const y = top + 8
  ctx.beginPath()
  ctx.roundRect(x, y, w, 38, 5)
  ctx.fillStyle = c.panel
  ctx.fill()
  ctx.strokeStyle = c.line2
  ctx.lineWidth = 1
  ctx.stroke()
  ctx.textAlign = 'left'
  ctx.fillStyle = c.ink2
  ctx.fillText(head, x + 10, y + 11)
  let at = x + 10
  for (const [i, text] of became.entries()) {
    ctx.fillStyle = [c.flax, c.ink2, c.thread][i]!
    ctx.fillText(text, at, y + 27)
    at += widths[i]!
  }
}

const cut = (text: string, most = VALUE_MAX): string => (text.length > most ? `${text.slice(0, most - 1)}…` : text)

function axis(ctx: CanvasRenderingContext2D, p: FuturesPicture, c: Colours): void {
  const { futures: f } = p
  const y = p.height - AXIS
  ctx.fillStyle = c.line2
  ctx.fillRect(0, y, f.width, 1)
  ctx.font = `11px ${c.font}`
  ctx.textAlign = 'left'
  ctx.fillStyle = c.ink2
  const { log, split, xs } = f.now
  if (split && log[0]) ctx.fillText(exactTime(log[0].at_ms), LEFT, y + 13)
  let free = split ? LEFT + 110 : 0
  let written = ''
  // After the split both have a clock of their own: how long after it.
  for (const thread of [f.before, f.now])
    for (let i = thread.split; i < thread.log.length; i++) {
      const x = thread.xs[i]!
      const since = Math.max(0, thread.log[i]!.at_ms - thread.parted)
      const text = `+${durationText(since)}`
      if (x < free || x > f.width - 60 || text === written) continue
      ctx.fillText(text, x, y + 13)
      written = text
      free = x + 120
    }
  if (split && xs.length) ctx.fillRect(f.splitX, y - 4, 1, 8)
}

function head(ctx: CanvasRenderingContext2D, p: FuturesPicture, c: Colours): void {
  const { futures: f } = p
  const x = p.seq <= 0 ? LEFT : (f.now.xs[p.seq - 1] ?? f.now.end)
  ctx.fillStyle = c.thread
  ctx.fillRect(Math.round(x) - 1, 6, 2, p.height - AXIS - 6)
  const text = p.seq >= f.now.log.length ? 'You' : `You, at event ${p.seq}`
  ctx.font = `600 11px ${c.words}`
  const w = ctx.measureText(text).width + 14
  const left = Math.max(LEFT, Math.min(f.width - w, x - w / 2))
  ctx.beginPath()
  ctx.roundRect(left, 0, w, 17, 4)
  ctx.fill()
  ctx.fillStyle = c.onThread
  ctx.textAlign = 'center'
  ctx.fillText(text, left + w / 2, 9)
}
