// The canvas as other files see it: where it looks, where the pointer is, and how to bring a block into view. React Flow
// itself stays in src/canvas, which sets the eye.

import { createStore } from 'zustand/vanilla'
import type { Point } from '../api/types'
import { reducedMotion } from '../a11y'
import { isTextField } from '../keys'
import { pickerStore } from './picker'
import { MARGIN, zoomFor, type Box } from '../geometry/fitting'
import { WHOLE } from '../geometry/fitting'

export interface Eye {
  toCanvas(screen: { x: number; y: number }): Point
  zoom(): number
  zoomTo(zoom: number, ms: number): void
  fit(ids: readonly string[] | null, ms: number): void
  center(at: Point, zoom: number, ms: number): void
  /** The canvas on the screen. */
  box(): DOMRect
}

/** Does the view go to where a run is? */
export const followStore = createStore<{ on: boolean }>(() => ({ on: false }))

let eye: Eye | null = null
let pointer: { x: number; y: number } | null = null

export function setEye(next: Eye | null): void {
  eye = next
  pointer = null
}

/** Where the pointer is over the canvas, in window pixels; null when it is elsewhere. */
export function setPointer(at: { x: number; y: number } | null): void {
  pointer = at
}

export function pointerOnScreen(): { x: number; y: number } | null {
  return pointer
}

/** Window pixels to canvas pixels; null without a canvas. */
export function toCanvas(screen: { x: number; y: number }): Point | null {
  return eye?.toCanvas(screen) ?? null
}

/** Where the pointer is on the canvas, else the middle of what is seen. */
export function herePoint(): Point {
  return toCanvas(hereOnScreen()) ?? [0, 0]
}

export function hereOnScreen(): { x: number; y: number } {
  if (pointer) return pointer
  const box = eye?.box()
  return box ? { x: box.left + box.width / 2, y: box.top + box.height / 2 } : { x: innerWidth / 2, y: innerHeight / 2 }
}

export function fit(ids: readonly string[] | null = null, ms = 180): void {
  eye?.fit(ids, reducedMotion() ? 0 : ms)
}

export function zoomTo(zoom: number): void {
  eye?.zoomTo(zoom, reducedMotion() ? 0 : 120)
}

export function zoomBy(factor: number): void {
  if (eye) zoomTo(eye.zoom() * factor)
}

/** A block that was just added and what stands before it, until something else is looked at. */
let added: { at: Point; size: Point; before: Box } | null = null

/** The same for a block that was just added: what stands before it stays whole. The view is moved if that is enough, and zoomed out
 * only as far as names can still be read; without room for both, the new block alone is shown. */
export function revealAdded(at: Point, size: Point, before: Box): void {
  if (!eye) return
  added = { at, size, before }
  const [x, y] = [Math.min(at[0], before.x), Math.min(at[1], before.y)]
  const [width, height] = [
    Math.max(at[0] + size[0], before.x + before.width) - x,
    Math.max(at[1] + size[1], before.y + before.height) - y,
  ]
  const zoom = zoomFor(eye.box(), { x, y, width, height }, eye.zoom(), WHOLE)
  if (zoom === null) show(at, size)
  else if (zoom === eye.zoom()) show([x, y], [width, height])
  else eye.center([x + width / 2, y + height / 2], zoom, reducedMotion() ? 0 : 180)
}

/** Show a block in the middle of a strip along the upper border of the canvas, no larger than the strip. Returns its box on the
 * screen, and what moves the view back. */
export function park(at: Point, size: Point, strip: number): { box: Box; back: () => void } | null {
  if (!eye) return null
  const [box, zoom] = [eye.box(), eye.zoom()]
  const before = eye.toCanvas({ x: box.left + box.width / 2, y: box.top + box.height / 2 })
  const near = Math.min(1, Math.max(zoom, 0.75), (strip - 24) / size[1])
  eye.center([at[0] + size[0] / 2, at[1] + size[1] / 2 + (box.height - strip) / 2 / near], near, 0)
  const [width, height] = [size[0] * near, size[1] * near]
  const x = box.left + (box.width - width) / 2
  const back = (): void => eye?.center(before, zoom, 0)
  return { box: { x, y: box.top + (strip - height) / 2, width, height }, back }
}

/** The view was moved by hand. */
export function forgetAdded(): void {
  added = null
}

/** Move the view just so far that a box is seen; nothing moves when it is seen already. `at` and `size` in canvas pixels. */
export function reveal(at: Point, size: Point): void {
  // A panel opens for what was just added and takes some of its room.
  const again = added
  added = null
  if (again && same(again.at, at) && same(again.size, size)) revealAdded(at, size, again.before)
  else show(at, size)
}

/** The smallest zoom at which a block that was looked for is shown. */
const FOUND_ZOOM = 0.6

/** As `reveal`, and from near enough to read it. */
export function lookAt(at: Point, size: Point): void {
  if (!eye) return
  added = null
  const box = eye.box()
  const room = Math.min(box.width / (size[0] + 2 * MARGIN), box.height / (size[1] + 2 * MARGIN))
  const zoom = Math.max(eye.zoom(), Math.min(FOUND_ZOOM, room))
  if (zoom <= eye.zoom()) return show(at, size)
  eye.center([at[0] + size[0] / 2, at[1] + size[1] / 2], zoom, reducedMotion() ? 0 : 180)
}

const FOUND_MS = 1600

/** Ring a block for a moment, once it is drawn. */
export function markFound(id: string): void {
  setTimeout(() => {
    const node = document.querySelector<HTMLElement>(`.canvas .react-flow__node[data-id="${CSS.escape(id)}"]`)
    if (!node) return
    node.dataset.found = ''
    setTimeout(() => delete node.dataset.found, FOUND_MS)
  }, 240)
}

const same = (a: Point, b: Point): boolean => a[0] === b[0] && a[1] === b[1]

function show(at: Point, size: Point): void {
  if (!eye) return
  const box = eye.box()
  const [left, top] = eye.toCanvas({ x: box.left, y: box.top })
  const [right, bottom] = eye.toCanvas({ x: box.right, y: box.bottom })
  const dx = shift(at[0], size[0], left, right)
  const dy = shift(at[1], size[1], top, bottom)
  if (dx || dy) eye.center([(left + right) / 2 + dx, (top + bottom) / 2 + dy], eye.zoom(), reducedMotion() ? 0 : 180)
}

function shift(at: number, size: number, from: number, to: number): number {
  const margin = Math.min(MARGIN, (to - from) / 8)
  if (at < from + margin || size + margin * 2 > to - from) return at - margin - from
  return Math.max(0, at + size + margin - to)
}

/** Give the keyboard to a block, or to the canvas itself; unless a list or a text field took it in the meantime. */
export function focusNode(id: string | null): void {
  const before = document.activeElement
  requestAnimationFrame(() => {
    const now = document.activeElement
    if (pickerStore.getState().request || (now !== before && isTextField(now))) return
    const canvas = document.querySelector<HTMLElement>('.canvas')
    const node =
      id === null
        ? null
        : canvas?.querySelector<HTMLElement>(`:is(.react-flow__node, .weave__block)[data-id="${CSS.escape(id)}"]`)
    const target = node ?? canvas
    target?.focus({ preventScroll: true })
  })
}
