// Moving from block to block with the keyboard: right and left along edges, up and down among siblings; down from a container
// goes inside when nothing stands below it, up from the topmost block of a container goes to the container.

import { announce } from '../a11y'
import type { Document } from '../api/types'
import { leadsInside, absoluteAt, indexOf, nameOf, parentOf, readingOrder, type Specs } from '../document/document'
import { select, uiStore } from '../state/ui'
import { sizeOf } from '../geometry/size'
import { focusNode, lookAt, markFound, reveal } from '../actions/view'

export function walk(doc: Document, specs: Specs, [dx, dy]: readonly [number, number]): boolean {
  const [from] = uiStore.getState().selection.blocks
  const to = from === undefined || !doc.blocks[from] ? readingOrder(doc)[0] : next(doc, from, dx, dy)
  if (to === undefined) return false
  go(doc, specs, to, reveal)
  return true
}

/** To a block that was looked for: near enough to be read, and marked for a moment. */
export function goTo(doc: Document, specs: Specs, id: string): void {
  go(doc, specs, id, lookAt)
  markFound(id)
}

function go(doc: Document, specs: Specs, id: string, look: typeof reveal): void {
  const block = doc.blocks[id]
  if (!block) return
  select({ blocks: [id] })
  look(absoluteAt(doc, id), sizeOf(block, specs.get(block.type)))
  focusNode(id)
  announce(nameOf(doc, id))
}

function next(doc: Document, from: string, dx: number, dy: number): string | undefined {
  const { into, outOf, children } = indexOf(doc)
  const parent = parentOf(doc, from)
  const byHeight = (ids: string[]): string | undefined =>
    ids.sort((a, b) => absoluteAt(doc, a)[1] - absoluteAt(doc, b)[1])[0]
  if (dx > 0)
    return (
      byHeight((outOf.get(from) ?? []).filter((e) => !leadsInside(doc, e)).map((e) => e.target)) ??
      byHeight(children.get(from)?.slice() ?? [])
    )
  if (dx < 0) return byHeight((into.get(from) ?? []).map((e) => e.source)) ?? (parent || undefined)
  const [x, y] = absoluteAt(doc, from)
  const siblings = (children.get(parent) ?? []).filter(
    (id) => id !== from && Math.sign(absoluteAt(doc, id)[1] - y) === dy,
  )
  const distance = (id: string): number =>
    Math.abs(absoluteAt(doc, id)[1] - y) + Math.abs(absoluteAt(doc, id)[0] - x) * 2
  const nearest = siblings.sort((a, b) => distance(a) - distance(b))[0]
  if (nearest !== undefined) return nearest
  return dy > 0 ? byHeight(children.get(from)?.slice() ?? []) : parent || undefined
}
