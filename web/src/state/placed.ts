// Documents written by a program or by hand may have no positions of blocks, or lack those of some.

import { indexOf, NO_SPECS, parentOf, type Specs } from '../document/document'
import { layout } from '../geometry/layout'
import { freePlace, type Box } from '../geometry/room'
import { PAD, sizeOf } from '../geometry/size'
import type { Document, Point } from '../api/types'
import { applyCommand } from './commands'

const GAP_X = 64
const GAP_Y = 48

/** The document itself when every block has a place. When none has, one that is tidied; else one in which those that have none
 * stand at free places beside their neighbours, and the others where they were. */
export function placed(doc: Document, specs: Specs = NO_SPECS): Document {
  const blocks = Object.values(doc.blocks)
  if (blocks.length < 2 || blocks.every((block) => block.at)) return doc
  const command = blocks.some((block) => block.at) ? among(doc, specs) : layout(doc, specs)
  return applyCommand(doc, command, specs)[0]
}

function among(doc: Document, specs: Specs): { type: 'moveBlocks'; to: Record<string, Point> } {
  const index = indexOf(doc)
  const to: Record<string, Point> = {}
  const boxOf = (id: string): Box | null => {
    const at = to[id] ?? doc.blocks[id]!.at
    const [w, h] = sizeOf(doc.blocks[id]!, specs.get(doc.blocks[id]!.type))
    return at ? { x: at[0], y: at[1], w, h } : null
  }
  for (const [id, block] of Object.entries(doc.blocks)) {
    if (block.at) continue
    const inside = parentOf(doc, id)
    const boxes = (ids: readonly string[]): Box[] =>
      ids.flatMap((other) => (parentOf(doc, other) === inside ? (boxOf(other) ?? []) : []))
    const size = sizeOf(block, specs.get(block.type))
    const others = boxes(index.children.get(inside) ?? [])
    const [before] = boxes((index.into.get(id) ?? []).map((edge) => edge.source))
    const [behind] = boxes((index.outOf.get(id) ?? []).map((edge) => edge.target))
    const wanted: Point = before
      ? [before.x + before.w + GAP_X, before.y]
      : behind
        ? [behind.x - size[0] - GAP_X, behind.y]
        : others.length
          ? [Math.min(...others.map((box) => box.x)), Math.max(...others.map((box) => box.y + box.h)) + GAP_Y]
          : [PAD.left, PAD.top]
    to[id] = freePlace(inside ? [Math.max(PAD.left, wanted[0]), Math.max(PAD.top, wanted[1])] : wanted, size, others)
  }
  return { type: 'moveBlocks', to }
}
