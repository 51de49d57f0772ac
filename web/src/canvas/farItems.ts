// The shapes of the far canvas, made once for a document and a state of its run: for each state one path of all its outlines, so that a
// frame is a handful of fills whatever the number of blocks.

import type { Document } from '../api/types'
import { absoluteAt, kindOf, leadsInside, nameOf, readingOrder, indexOf, type Specs } from '../document/document'
import { handleAt } from '../actions/connect'
import type { Ways } from '../geometry/layout/routes'
import { BODY_X, inPlace, outlineOf, sizeOf } from '../geometry/size'
import { shapeOf } from '../geometry/silhouette'

export interface FarBox {
  id: string
  x: number
  y: number
  w: number
  h: number
  name: string
  container: boolean
}

/** Outer containers first: what is drawn later lies above. */
export interface FarPlan {
  containers: readonly FarBox[]
  blocks: readonly (FarBox & { path: Path2D; inner: Path2D })[]
  edges: readonly { source: string; handle: string; target: string; path: string }[]
}

export function farPlan(doc: Document, specs: Specs, ways: Ways): FarPlan {
  const containers: FarBox[] = []
  const blocks: (FarBox & { path: Path2D; inner: Path2D })[] = []
  for (const id of readingOrder(doc)) {
    const block = doc.blocks[id]!
    const spec = specs.get(block.type)
    if (block.type === 'note' || spec?.category === 'annotation') continue
    const [x, y] = absoluteAt(doc, id)
    const [w, h] = sizeOf(block, spec)
    const box: FarBox = { id, x, y, w, h, name: nameOf(doc, id), container: kindOf(doc, id, specs) !== null }
    if (box.container) containers.push(box)
    else {
      const path = new Path2D()
      path.addPath(new Path2D(outlineOf(block, spec)), new DOMMatrix([1, 0, 0, 1, x, y]))
      blocks.push({ ...box, path, inner: wordsOf(box, shapeOf(block, spec) === 'agent') })
    }
  }
  containers.sort((a, b) => b.w * b.h - a.w * a.h)
  return { containers, blocks, edges: linesOf(doc, specs, ways) }
}

/** A stroke in place of a name, and those of an agent's tools. */
function wordsOf({ x, y, w, h, name }: FarBox, agent: boolean): Path2D {
  const path = new Path2D()
  const line = agent ? y + 30 : y + h / 2
  path.roundRect(x + 28, line - 6, Math.min(w - 72, 24 + name.length * 7), 12, 6)
  if (agent) for (let n = 0; n < 3; n++) path.roundRect(x + 28 + n * 112, y + h - 60, 88, 28, 14)
  return path
}

/** Without round corners: they could not be seen. */
export function linesOf(doc: Document, specs: Specs, ways: Ways): FarPlan['edges'] {
  return indexOf(doc).edges.flatMap(({ id, source, handle, target }) => {
    if (!doc.blocks[source] || !doc.blocks[target]) return []
    const [hx, y] = handleAt(doc, specs, source, handle)
    const x = leadsInside(doc, { source, handle, target }) ? hx + BODY_X : hx
    const way = ways.get(id)
    if (way) return [{ source, handle, target, path: `M${way.map(([dx, dy]) => `${x + dx},${y + dy}`).join('L')}` }]
    const [tx, ty] = absoluteAt(doc, target)
    return [{ source, handle, target, path: `M${x},${y}L${tx},${ty + inPlace().y}` }]
  })
}

/** The block at a place, in pixels of the canvas: the smallest box around it. */
export function boxAt(plan: FarPlan, x: number, y: number): FarBox | null {
  const around = [...plan.containers, ...plan.blocks].filter(
    (box) => x >= box.x && x <= box.x + box.w && y >= box.y && y <= box.y + box.h,
  )
  return around.reduce<FarBox | null>((best, box) => (best && best.w * best.h <= box.w * box.h ? best : box), null)
}
