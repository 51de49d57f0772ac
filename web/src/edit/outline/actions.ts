// What can be done with a block from the outline, all by commands: the same as on the canvas, without a pointer.

import { announce } from '../../a11y'
import type { Block, BlockSpec, Document, Point } from '../../api/types'
import { CARD_W, CONTAINER_MIN, PAD, sizeOf, snap } from '../../geometry/size'
import { dispatch, docStore, specsOf } from '../../state/doc'
import {
  checkEdge,
  checkParent,
  freshId,
  freshName,
  handlesOf,
  indexOf,
  kindOf,
  nameOf,
  parentOf,
  type Specs,
} from '../../document/document'
import { select } from '../../state/ui'

const GAP = 64

/** Add a block behind `after`, joined to it where that may be; or at the end of its container. Its id. */
export function addBehind(after: string | null, spec: BlockSpec): string | null {
  const { doc } = docStore.getState()
  const specs = specsOf()
  const inside =
    after !== null &&
    kindOf(doc, after, specs) !== null &&
    !(indexOf(doc).children.get(after)?.length ?? 0) &&
    !spec.trigger
      ? after
      : null
  const parent = inside ?? (after === null || spec.trigger ? '' : parentOf(doc, after))
  const names = new Set(Object.keys(doc.blocks).map((id) => nameOf(doc, id)))
  const name = freshName(names, spec.title)
  const id = freshId((other) => other in doc.blocks, name)
  const block: Block = {
    type: spec.type,
    name,
    at: placeBehind(doc, after, inside, specs),
    ...(parent ? { parent } : {}),
    ...(spec.container ? { size: CONTAINER_MIN } : {}),
  }
  if (!dispatch({ type: 'addBlock', id, block })) return null
  if (after !== null) join(inside ? { source: after, handle: 'body' } : { source: after }, id)
  select({ blocks: [id] })
  announce(`Added ${name}`)
  return id
}

/** An edge from the first handle without one, if that is allowed. */
function join(from: { source: string; handle?: string }, target: string): void {
  const { doc } = docStore.getState()
  const specs = specsOf()
  const used = new Set((indexOf(doc).outOf.get(from.source) ?? []).map((edge) => edge.handle))
  const handles = from.handle
    ? [from.handle]
    : handlesOf(doc.blocks[from.source]!, specs).filter((handle) => !['error', 'body', 'finally'].includes(handle))
  const handle = handles.find((each) => !used.has(each)) ?? handles[0]
  if (handle === undefined) return
  const edge = { source: from.source, target, handle }
  if (checkEdge(doc, edge, specs) === null) dispatch({ type: 'addEdge', edge })
}

function placeBehind(doc: Document, after: string | null, inside: string | null, specs: Specs): Point {
  if (inside) return [PAD.left, PAD.top]
  const block = after === null ? undefined : doc.blocks[after]
  if (!block) {
    const right = (indexOf(doc).children.get('') ?? []).map(
      (id) => (doc.blocks[id]!.at?.[0] ?? 0) + sizeOf(doc.blocks[id]!, specs.get(doc.blocks[id]!.type))[0],
    )
    return [snap(Math.max(0, ...right) + GAP), 0]
  }
  const [width] = sizeOf(block, specs.get(block.type))
  const at: Point = [(block.at?.[0] ?? 0) + Math.max(width, CARD_W) + GAP, block.at?.[1] ?? 0]
  const around = (indexOf(doc).children.get(parentOf(doc, after!)) ?? []).map((id) => doc.blocks[id]!)
  // Not on top of another one.
  while (around.some((other) => overlaps(other, at, specs))) at[1] += 96
  return [snap(at[0]), snap(at[1])]
}

function overlaps(other: Block, at: Point, specs: Specs): boolean {
  const [x, y] = other.at ?? [0, 0]
  const [w, h] = sizeOf(other, specs.get(other.type))
  return at[0] < x + w && x < at[0] + CARD_W && at[1] < y + h && y < at[1] + 80
}

/** Containers a block can be put into; `why` where it cannot. '' is the canvas. */
export function containersFor(
  doc: Document,
  id: string,
  specs: Specs,
): { id: string; name: string; why: string | null }[] {
  const now = parentOf(doc, id)
  const containers = Object.keys(doc.blocks).filter((other) => other !== id && kindOf(doc, other, specs))
  return ['', ...containers]
    .filter((other) => other !== now)
    .map((other) => ({
      id: other,
      name: other ? nameOf(doc, other) : 'Outside all containers',
      why: checkParent(doc, [id], other, specs),
    }))
}

export function targetsFor(
  doc: Document,
  source: string,
  handle: string,
  specs: Specs,
): { id: string; name: string; why: string | null }[] {
  return Object.keys(doc.blocks)
    .filter((id) => doc.blocks[id]!.type !== 'note')
    .map((id) => ({ id, name: nameOf(doc, id), why: checkEdge(doc, { source, target: id, handle }, specs) }))
}
