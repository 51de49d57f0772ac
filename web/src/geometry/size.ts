// How large things are, known before anything is drawn: layout, culling and edges need no measuring. All multiples of 16,
// in canvas pixels, but the width of agents; offsets are from the block's top left corner.

import type { Block, BlockSpec, Point } from '../api/types'
import { containerKind, namedHandles } from '../document/document'
import { outline, shapeOf } from './silhouette'

export const GRID = 16
export const CARD_W = 208
export const CARD_H = 64
/** A ticket is as much wider as its stub needs; an agent shows its thought, its tools and what it has used. */
export const TICKET_W = 240
export const AGENT: Point = [396, 176]
export const ROW_H = 24
/** Where edges come in, and where `out` leaves: the same height on every block, so that rows of blocks join straight. */
export const PORT_Y = 32
/** A container's header, and the least room between its border and its children. */
export const CONTAINER_HEAD = 40
export const CONTAINER_MIN: Point = [288, 160]
export const PAD = { left: 48, top: 48, right: 32, bottom: 48 } as const
/** Where edges of `body` begin: at the right side of its tab. */
export const BODY_X = 7
export const NOTE_SIZE: Point = [208, 96]

export interface HandlePlace {
  x: number
  y: number
  side: 'left' | 'right' | 'bottom'
}

const COLLAPSED_W = 448
const collapsed = new WeakSet<Block>()

/** A container that is shown as its head only, as high as a card. */
export function collapsedCopy(block: Block): Block {
  const copy = { ...block }
  collapsed.add(copy)
  return copy
}

export const isCollapsed = (block: Block): boolean => collapsed.has(block)

/** Width and height. Containers have the size stored in the document, at least CONTAINER_MIN. */
export function sizeOf(block: Block, spec?: BlockSpec): Point {
  if (collapsed.has(block)) return [Math.min(Math.max(block.size?.[0] ?? 0, CONTAINER_MIN[0]), COLLAPSED_W), CARD_H]
  if (containerKind(block, spec)) {
    return [Math.max(block.size?.[0] ?? 0, CONTAINER_MIN[0]), Math.max(block.size?.[1] ?? 0, CONTAINER_MIN[1])]
  }
  if (block.type === 'note') return block.size ?? NOTE_SIZE
  const rows = namedHandles(block, spec).length
  const shape = shapeOf(block, spec)
  if (shape === 'agent') return AGENT
  return [shape === 'ticket' ? TICKET_W : CARD_W, rows ? up(CARD_H + rows * ROW_H) : CARD_H]
}

/** Where an edge comes in. */
export function inPlace(): HandlePlace {
  return { x: 0, y: PORT_Y, side: 'left' }
}

/** Where an edge leaves by `handle`. `error` leaves at the bottom; `body` and `finally` start at the container's
 * left border, inside; the `finally` of a trigger leaves at the bottom. */
export function handlePlace(block: Block, spec: BlockSpec | undefined, handle: string): HandlePlace {
  const [w, h] = sizeOf(block, spec)
  if (handle === 'error') return { x: w - 32, y: h, side: 'bottom' }
  if (handle === 'finally') {
    return containerKind(block, spec) ? { x: 0, y: h - PORT_Y, side: 'right' } : { x: w - 32, y: h, side: 'bottom' }
  }
  if (handle === 'body') return { x: 0, y: PAD.top + PORT_Y, side: 'right' }
  const row = namedHandles(block, spec).findIndex((named) => named.id === handle)
  return { x: w, y: row < 0 ? PORT_Y : rowY(row), side: 'right' }
}

const rowY = (row: number): number => CARD_H + row * ROW_H + ROW_H / 2

/** The outline of a block: its right side comes to a point where its edges leave. */
export function outlineOf(block: Block, spec?: BlockSpec): string {
  const [w, h] = sizeOf(block, spec)
  const rows = namedHandles(block, spec).length
  return outline(shapeOf(block, spec), w, h, 1, rows ? [rowY(0), rowY(rows - 1)] : [PORT_Y, PORT_Y])
}

export function snap(value: number): number {
  return Math.round(value / GRID) * GRID
}

/** The next multiple of the grid that is not smaller. */
export function up(value: number): number {
  return Math.ceil(value / GRID) * GRID
}
