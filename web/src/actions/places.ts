// Where things of a document stand, and where a new one has room. Pure but for the middle of what is seen.

import type { Document, Point } from '../api/types'
import { absoluteAt, indexOf, kindOf, parentOf, type Specs } from '../document/document'
import { insideOf, labelWidth, titleOf } from '../geometry/layout/routes'
import { freePlace, type Box } from '../geometry/room'
import { CARD_H, GRID, PORT_Y, sizeOf, snap, up } from '../geometry/size'
import type { Command } from '../state/commands'
import { handleAt } from './connect'
import { herePoint } from './view'

export const GAP_X = 64

/** The handle that a new block follows. */
export interface From {
  source: string
  handle: string
}

/** `aside`: blocks that will make room. */
export function placeFor(
  doc: Document,
  specs: Specs,
  size: Point,
  parent: string,
  from: From | undefined,
  at: Point | undefined,
  aside: ReadonlySet<string>,
): Point {
  const others = absoluteBoxes(doc, specs, parent).filter((box) => !aside.has(box.id))
  // Where the pointer is, the new block's edge comes in; not upon another block.
  if (at) return freePlace([snap(at[0]), snap(at[1] - PORT_Y)], size, others)
  if (from) {
    const [x, y] = handleAt(doc, specs, from.source, from.handle)
    const inside = isInner(doc, specs, from)
    const right = inside
      ? x + insideOf(doc, from.source, from.handle)
      : absoluteAt(doc, from.source)[0] +
        sizeOf(doc.blocks[from.source]!, specs.get(doc.blocks[from.source]!.type))[0] +
        gapBehind(doc, from)
    return freePlace([snap(right), snap(y - PORT_Y + (from.handle === 'error' ? CARD_H : 0))], size, others)
  }
  const here = herePoint()
  return freePlace([snap(here[0] - size[0] / 2), snap(here[1] - size[1] / 2)], size, others)
}

/** So wide that the name of the branch can be read on the edge. */
function gapBehind(doc: Document, from: From): number {
  return from.handle === 'error'
    ? GAP_X
    : Math.max(GAP_X, up(labelWidth(titleOf(doc, from.source, from.handle)) + GRID))
}

export function boxOf([x, y]: Point, [w, h]: Point): Box {
  return { x, y, w, h }
}

/** The blocks of one container, from its corner on. */
export function boxesIn(doc: Document, specs: Specs, parent: string): (Box & { id: string })[] {
  return (indexOf(doc).children.get(parent) ?? []).map((id) => {
    const block = doc.blocks[id]!
    return { id, ...boxOf(block.at ?? [0, 0], sizeOf(block, specs.get(block.type))) }
  })
}

export function absoluteBoxes(doc: Document, specs: Specs, parent: string): (Box & { id: string })[] {
  const [x, y] = parent ? absoluteAt(doc, parent) : [0, 0]
  return boxesIn(doc, specs, parent).map((box) => ({ ...box, x: box.x + x, y: box.y + y }))
}

/** The smallest box around all of them. */
export function around(boxes: readonly Box[]): Box {
  const [x, y] = [Math.min(...boxes.map((box) => box.x)), Math.min(...boxes.map((box) => box.y))]
  return {
    x,
    y,
    w: Math.max(...boxes.map((box) => box.x + box.w)) - x,
    h: Math.max(...boxes.map((box) => box.y + box.h)) - y,
  }
}

export function shiftRight(doc: Document, target: string, by: number): Command {
  const to: Record<string, Point> = {}
  for (const id of levelWith(doc, target)) {
    const at = doc.blocks[id]!.at ?? [0, 0]
    to[id] = [at[0] + by, at[1]]
  }
  return { type: 'moveBlocks', to }
}

/** The block and all of its container that stand as far to the right, or further. */
export function levelWith(doc: Document, target: string): string[] {
  const from = doc.blocks[target]?.at?.[0] ?? 0
  return (indexOf(doc).children.get(parentOf(doc, target)) ?? []).filter((id) => (doc.blocks[id]!.at?.[0] ?? 0) >= from)
}

export function parentBehind(doc: Document, specs: Specs, from: From): string {
  return isInner(doc, specs, from) ? from.source : parentOf(doc, from.source)
}

/** The handles of a container that lead to blocks inside it. */
function isInner(doc: Document, specs: Specs, from: From): boolean {
  return from.handle === 'body' || (from.handle === 'finally' && kindOf(doc, from.source, specs) !== null)
}

export function isEmptyBody(doc: Document, container: string): boolean {
  return !(indexOf(doc).outOf.get(container) ?? []).some((edge) => edge.handle === 'body')
}
