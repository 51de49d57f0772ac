// Draws the far canvas. Paths are in pixels of the document; strokes, labels and marks keep their size on the screen.

import type { Futures } from '../state/futures'
import type { RunState } from '../state/live'
import { statusAt, type BlockStatus } from '../run'
import type { FarBox, FarPlan } from './farItems'
import { WEAVE_ZOOM } from './lod'
import { edgePaint } from './paint'

type Tone = 'idle' | 'skip' | 'ok' | 'run' | 'wait' | 'err' | 'flax' | 'thread'
type Colours = Readonly<Record<string, string>>

const TONES: Partial<Record<BlockStatus, Tone>> = {
  running: 'run',
  retrying: 'run',
  succeeded: 'ok',
  restored: 'ok',
  failed: 'err',
  handled: 'err',
  waiting: 'wait',
  attention: 'wait',
  skipped: 'skip',
}
/** In the order in which they are drawn. */
const ORDER: readonly Tone[] = ['idle', 'skip', 'ok', 'run', 'flax', 'thread', 'wait', 'err']
const LOUD: ReadonlySet<Tone> = new Set(['wait', 'err'])

export interface Picture {
  tones: ReadonlyMap<Tone, { path: Path2D; inner: Path2D; boxes: FarBox[] }>
  containers: readonly (FarBox & { tone: Tone })[]
  edges: readonly { key: string; path: Path2D }[]
  boxes: ReadonlyMap<string, FarBox>
}

export function picture(
  plan: FarPlan,
  run: Pick<RunState, 'doc' | 'view'>,
  iter: Readonly<Record<string, number>>,
  futures: Futures['blocks'],
): Picture {
  const sides = { before: 'flax', you: 'thread' } as const
  const toneOf = (id: string): Tone =>
    futures.has(id)
      ? sides[futures.get(id)!]
      : run.doc?.blocks[id] && run.view.seq
        ? (TONES[statusAt(run.view, run.doc, id, iter)] ?? 'idle')
        : 'idle'
  const tones: Map<Tone, { path: Path2D; inner: Path2D; boxes: FarBox[] }> = new Map()
  for (const block of plan.blocks) {
    const tone = toneOf(block.id)
    let group = tones.get(tone)
    if (!group) tones.set(tone, (group = { path: new Path2D(), inner: new Path2D(), boxes: [] }))
    group.path.addPath(block.path)
    group.inner.addPath(block.inner)
    group.boxes.push(block)
  }
  const edges = new Map<string, string>()
  for (const { source, handle, target, path } of plan.edges) {
    const { state, tone } = edgePaint(run, source, handle, target, iter)
    const key = state === 'live' ? tone : state === 'active' ? 'run' : 'edge'
    edges.set(key, (edges.get(key) ?? '') + path)
  }
  return {
    tones,
    containers: plan.containers.map((box) => ({ ...box, tone: toneOf(box.id) })),
    edges: [...edges].map(([key, path]) => ({ key, path: new Path2D(path) })),
    boxes: new Map([...plan.containers, ...plan.blocks].map((box) => [box.id, box])),
  }
}

const NAMES = ['card', 'panel', 'paper', 'ink', 'line-2', 'edge', 'thread', 'flax', 'ok', 'run', 'wait', 'err'] as const
const TINTS = ['ok', 'run', 'flax', 'thread', 'wait', 'err'] as const
let known: { key: string; colours: Colours } | null = null

/** The tokens as they are now: a canvas does not know variables. */
export function coloursOf(element: HTMLElement, theme: string): Colours {
  const key = `${theme} ${matchMedia('(prefers-color-scheme: dark)').matches}`
  if (known?.key === key) return known.colours
  const style = getComputedStyle(element)
  const read = (name: string): string => style.getPropertyValue(`--${name}`).trim()
  const colours: Record<string, string> = Object.fromEntries(NAMES.map((name) => [name, read(name)]))
  for (const name of TINTS) colours[`${name}-tint`] = read(`${name}-tint`)
  colours.font = read('font-ui')
  known = { key, colours }
  return colours
}

export interface Frame {
  transform: readonly [number, number, number]
  width: number
  height: number
  /** The number of device pixels for one pixel of the screen. */
  scale: number
  selected: readonly string[]
  colours: Colours
}

export function drawFar(context: CanvasRenderingContext2D, picture: Picture, frame: Frame): void {
  const [tx, ty, zoom] = frame.transform
  const { scale, colours } = frame
  context.setTransform(1, 0, 0, 1, 0, 0)
  context.clearRect(0, 0, context.canvas.width, context.canvas.height)
  context.setTransform(zoom * scale, 0, 0, zoom * scale, tx * scale, ty * scale)
  const marks = zoom < WEAVE_ZOOM
  drawContainers(context, picture, colours, zoom, marks)
  context.lineWidth = (marks ? 0.8 : 1.4) / zoom
  for (const { key, path } of picture.edges) {
    context.strokeStyle = colours[key]!
    context.globalAlpha = key === 'edge' ? 0.55 : 0.9
    context.stroke(path)
  }
  context.globalAlpha = 1
  for (const tone of ORDER) {
    const group = picture.tones.get(tone)
    if (!group) continue
    if (marks) drawMarks(context, group.boxes, tone, colours, zoom)
    else drawOutlines(context, group, tone, colours, zoom)
  }
  context.strokeStyle = colours.thread!
  context.lineWidth = 2 / zoom
  const ring = 2 / zoom
  for (const id of frame.selected) {
    const box = picture.boxes.get(id)
    if (box) context.strokeRect(box.x - ring, box.y - ring, box.w + 2 * ring, box.h + 2 * ring)
  }
  drawLabels(context, picture, frame)
}

function drawContainers(
  context: CanvasRenderingContext2D,
  { containers }: Picture,
  colours: Colours,
  zoom: number,
  single: boolean,
): void {
  context.lineWidth = 1 / zoom
  for (const { x, y, w, h, tone } of containers) {
    context.globalAlpha = 0.6
    context.fillStyle = colours.panel!
    const box = new Path2D()
    box.roundRect(x, y, w, h, 12)
    context.fill(box)
    context.globalAlpha = 1
    context.strokeStyle = tone === 'idle' || tone === 'skip' || tone === 'ok' ? colours['line-2']! : colours[tone]!
    context.stroke(box)
    const gap = 3 / zoom
    if (!single && w > 4 * gap && h > 4 * gap) context.strokeRect(x + gap, y + gap, w - 2 * gap, h - 2 * gap)
  }
}

function drawOutlines(
  context: CanvasRenderingContext2D,
  { path, inner }: { path: Path2D; inner: Path2D },
  tone: Tone,
  colours: Colours,
  zoom: number,
): void {
  const quiet = tone === 'idle' || tone === 'skip'
  context.fillStyle = quiet ? colours.card! : colours[`${tone}-tint`]!
  context.fill(path)
  context.lineWidth = (quiet ? 1 : 1.4) / zoom
  context.strokeStyle = quiet ? colours['line-2']! : colours[tone]!
  context.setLineDash(tone === 'skip' ? [3 / zoom, 3 / zoom] : [])
  context.stroke(path)
  context.setLineDash([])
  context.globalAlpha = tone === 'skip' ? 0.35 : 0.6
  context.fillStyle = quiet ? colours['line-2']! : colours[tone]!
  context.fill(inner)
  context.globalAlpha = 1
}

/** One mark for each block; what wants a person is 1 px larger on each side and full in colour. */
function drawMarks(
  context: CanvasRenderingContext2D,
  boxes: readonly FarBox[],
  tone: Tone,
  colours: Colours,
  zoom: number,
): void {
  const loud = LOUD.has(tone)
  const more = loud ? 1 / zoom : 0
  const marks = new Path2D()
  for (const { x, y, w, h } of boxes) marks.rect(x - more, y - more, w + 2 * more, h + 2 * more)
  context.globalAlpha = loud ? 1 : 0.62
  context.fillStyle = tone === 'idle' || tone === 'skip' ? colours['line-2']! : colours[tone]!
  context.fill(marks)
  context.globalAlpha = 1
}

const LABEL = { height: 18, pad: 6, font: 11, least: 48, most: 160 }

/** The names of containers, 11 px on the screen at any zoom, on small labels that do not lie over each other. A name is cut to its
 * container where the next one needs the room. */
function drawLabels(context: CanvasRenderingContext2D, { containers }: Picture, frame: Frame): void {
  const [tx, ty, zoom] = frame.transform
  const { scale, colours } = frame
  context.setTransform(scale, 0, 0, scale, 0, 0)
  context.font = `600 ${LABEL.font}px ${colours.font}`
  context.textBaseline = 'middle'
  context.lineWidth = 1
  const labels: { x: number; y: number; w: number }[] = []
  for (const { x, y, w, name } of containers) {
    const [left, top, room] = [tx + x * zoom + 4, ty + y * zoom - LABEL.height / 2, w * zoom - 8]
    if (room < LABEL.least || left > frame.width || top > frame.height || left + room < 0 || top < -LABEL.height)
      continue
    const whole = Math.min(LABEL.most, context.measureText(name).width + 2 * LABEL.pad)
    const isFree = (wide: number): boolean =>
      !labels.some((each) => left < each.x + each.w && each.x < left + wide && Math.abs(each.y - top) < LABEL.height)
    const wide = [whole, Math.min(room, whole)].find(isFree)
    if (wide === undefined) continue
    labels.push({ x: left, y: top, w: wide })
    const label = new Path2D()
    label.roundRect(left, top, wide, LABEL.height, 4)
    context.fillStyle = colours.panel!
    context.fill(label)
    context.strokeStyle = colours['line-2']!
    context.stroke(label)
    context.save()
    context.clip(label)
    context.fillStyle = colours.ink!
    context.fillText(name, left + LABEL.pad, top + LABEL.height / 2 + 0.5)
    context.restore()
  }
}
