// The places of blocks in the picture of all runs: as in the editor, with more room below each for its figures; and the bundles of
// threads between them. Pure.

import type { Block, Document, Point } from '../../api/types'
import { absoluteAt, containerKind, type EdgeItem, type Specs } from '../../document/document'
import { CONTAINER_HEAD, handlePlace, sizeOf } from '../../geometry/size'
import { outline, shapeOf, type Shape } from '../../geometry/silhouette'

/** Heights and distances downwards are so much larger than in the editor. */
const TALL = 1.7
export const CARD = 100
const PITCH = 1.55
/** The radius of the thread in the middle of a bundle; those outside turn wider. */
const RADIUS = 34

export interface Place {
  id: string
  block: Block
  shape: Shape
  x: number
  y: number
  w: number
  h: number
  outline: string
  /** The area for cells of iterations; null for a block that is no container. */
  grid: { x: number; y: number; w: number; h: number } | null
}

export function placesOf(doc: Document, specs: Specs): Map<string, Place> {
  const places = new Map<string, Place>()
  for (const [id, block] of Object.entries(doc.blocks)) {
    if (block.type === 'note') continue
    const spec = specs.get(block.type)
    const [x, y] = absoluteAt(doc, id)
    const [w, h] = sizeOf(block, spec)
    const tall = containerKind(block, spec) ? h * TALL : CARD
    const shape = shapeOf(block, spec)
    const low = lowest(doc, id, specs)
    places.set(id, {
      id,
      block,
      shape,
      x,
      y: y * TALL,
      w,
      h: tall,
      outline: outline(shape, w, tall),
      grid: shape === 'container' ? { x: 12, y: low + 12, w: w - 24, h: tall - low - 36 } : null,
    })
  }
  return places
}

/** The lower side of the lowest child of a container, in its own coordinates. */
function lowest(doc: Document, id: string, specs: Specs): number {
  let low = CONTAINER_HEAD
  for (const child of Object.values(doc.blocks)) {
    if (child.parent !== id || child.type === 'note') continue
    const spec = specs.get(child.type)
    const tall = containerKind(child, spec) ? sizeOf(child, spec)[1] * TALL : CARD
    low = Math.max(low, (child.at?.[1] ?? 0) * TALL + tall)
  }
  return low
}

export interface Bundle {
  edge: EdgeItem
  /** The path of a thread, `at` pixels beside the middle of the bundle. */
  thread: (at: number) => string
  label: Point
}

export function bundleOf(edge: EdgeItem, places: ReadonlyMap<string, Place>, specs: Specs): Bundle | null {
  const source = places.get(edge.source)
  const target = places.get(edge.target)
  if (!source || !target) return null
  const spec = specs.get(source.block.type)
  const place = handlePlace(source.block, spec, edge.handle)
  const down = place.side === 'bottom'
  const inside = target.block.parent === edge.source
  const y = down ? source.h : inside ? place.y * TALL : middle(source, place.y)
  const from: Point = [source.x + place.x, source.y + y]
  const to: Point = [target.x, target.y + CARD / 2]
  return { edge, ...(down ? downward(from, to) : across(from, to)) }
}

/** A card's own exit is at the middle of its side; those with names are spread over it. */
function middle(source: Place, y: number): number {
  if (source.shape === 'container') return CARD / 2
  return Math.min(source.h - 12, source.h / 2 + (y - 32) * 0.6)
}

function across([x0, y0]: Point, [x1, y1]: Point): Pick<Bundle, 'thread' | 'label'> {
  const back = x1 < x0 + 24
  const mid = back ? x0 + 24 : (x0 + x1) / 2
  const sign = Math.sign(y1 - y0) || 1
  return {
    label: Math.abs(y1 - y0) < 2 ? [(x0 + x1) / 2, y0] : [mid, (y0 + y1) / 2],
    thread: (at) => {
      const [a, b, x] = [y0 + at, y1 + at, mid - sign * at]
      const high = Math.abs(b - a)
      if (high < 2) return `M${x0} ${a}H${x1}`
      const out = back ? -1 : 1
      const first = radius(RADIUS - sign * at, high / 2, x - x0)
      const second = radius(RADIUS + out * sign * at, high - first, out * (x1 - x))
      return `M${x0} ${a}H${x - first}Q${x} ${a} ${x} ${a + sign * first}V${b - sign * second}Q${x} ${b} ${x + out * second} ${b}H${x1}`
    },
  }
}

function radius(wanted: number, ...room: number[]): number {
  return Math.max(2, Math.min(wanted, ...room.map(Math.abs)))
}

function downward([x0, y0]: Point, [x1, y1]: Point): Pick<Bundle, 'thread' | 'label'> {
  if (y1 > y0 + RADIUS && x1 > x0 + RADIUS) {
    return {
      label: [x0, (y0 + y1) / 2],
      thread: (at) =>
        `M${x0 + at} ${y0}V${y1 - at - RADIUS}Q${x0 + at} ${y1 - at} ${x0 + at + RADIUS} ${y1 - at}H${x1}`,
    }
  }
  const low = Math.max(y0, y1) + 40
  return {
    label: [(x0 + x1) / 2, low],
    thread: (at) => `M${x0 + at} ${y0}V${low + at}H${x1 - 20 - at}V${y1 + at}H${x1}`,
  }
}

/** The paths of `count` threads as one, the first `skip` places of the bundle of `all` left free. */
export function threads(bundle: Bundle, count: number, skip: number, all: number): string {
  let path = ''
  for (let i = 0; i < count; i++) path += bundle.thread((skip + i - (all - 1) / 2) * PITCH)
  return path
}

/** The thickness of a bundle. */
export const thickness = (all: number): number => Math.max(1, all) * PITCH

/** The frame around all. */
export function frameOf(places: ReadonlyMap<string, Place>): { x: number; y: number; w: number; h: number } {
  let [left, top, right, bottom] = [Infinity, Infinity, -Infinity, -Infinity]
  for (const place of places.values()) {
    left = Math.min(left, place.x)
    top = Math.min(top, place.y)
    right = Math.max(right, place.x + place.w)
    bottom = Math.max(bottom, place.y + place.h)
  }
  return places.size ? { x: left, y: top, w: right - left, h: bottom - top } : { x: 0, y: 0, w: 1, h: 1 }
}
