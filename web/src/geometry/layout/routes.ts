// The ways of a document's edges. Edges never cross the border of a container, so each container is a plan of its own; a plan
// whose boxes and edges did not change keeps its ways.

import type { Document, Point } from '../../api/types'
import { leadsInside, indexOf, kindOf, namedHandles, type EdgeItem, type Specs } from '../../document/document'
import { BODY_X, CONTAINER_HEAD, handlePlace, inPlace, NOTE_SIZE, PAD, sizeOf, up } from '../size'
import { route, type Rect, type Wire } from './route'

/** Corners from the source's handle on, which is [0, 0]; both ends included. */
export type Way = readonly Point[]
export type Ways = ReadonlyMap<string, Way>

/** Width of a letter on an edge, and what stands around its label. */
export const CHAR = 6.2
const LABEL_ROOM = 20

interface Plan {
  key: string
  ways: Map<string, Way>
}

/** Finds ways, and keeps those of the containers in which nothing moved. */
export function router(): (doc: Document, specs: Specs) => Ways {
  let plans = new Map<string, Plan>()
  let last: { doc: Document; specs: Specs; ways: Ways } | null = null
  return (doc, specs) => {
    if (last && last.doc === doc && last.specs === specs) return last.ways
    const next: typeof plans = new Map()
    const ways = new Map<string, Way>()
    for (const [container, edges] of byContainer(doc)) {
      const { boxes, within, wires, ids } = planOf(doc, specs, container, edges)
      const key = JSON.stringify([boxes, within, wires, ids])
      let plan = plans.get(container)
      if (!plan || plan.key !== key) {
        const found = route(boxes, wires, within)
        const before = plan?.ways
        plan = {
          key,
          ways: new Map(ids.map((id, i): [string, Way] => [id, reused(before?.get(id), fromStart(found[i]!))])),
        }
      }
      next.set(container, plan)
      for (const [id, way] of plan.ways) ways.set(id, way)
    }
    plans = next
    last = { doc, specs, ways }
    return ways
  }
}

function fromStart(points: Way): Way {
  const [x, y] = points[0]!
  return points.map((point): Point => [point[0] - x, point[1] - y])
}

/** The same object while it says the same, so that the edge is not drawn again. */
function reused(before: Way | undefined, now: Way): Way {
  return before?.length === now.length && before.every(([x, y], i) => x === now[i]![0] && y === now[i]![1])
    ? before
    : now
}

/** Edges by the container they run in: that of their target. */
function byContainer(doc: Document): Map<string, EdgeItem[]> {
  const found = new Map<string, EdgeItem[]>()
  for (const edge of indexOf(doc).edges) {
    const [source, target] = [doc.blocks[edge.source], doc.blocks[edge.target]]
    if (!source || !target) continue
    const container = target.parent && doc.blocks[target.parent] ? target.parent : ''
    const from = leadsInside(doc, edge) ? edge.source : source.parent && doc.blocks[source.parent] ? source.parent : ''
    if (from !== container) continue
    const list = found.get(container)
    if (list) list.push(edge)
    else found.set(container, [edge])
  }
  return found
}

/** Everything in pixels from the container's corner. */
function planOf(
  doc: Document,
  specs: Specs,
  container: string,
  edges: readonly EdgeItem[],
): { boxes: Rect[]; within: Rect | null; wires: Wire[]; ids: string[] } {
  const rect = (id: string): Rect => {
    const block = doc.blocks[id]!
    const [x, y] = block.at ?? [0, 0]
    const [w, h] = sizeOf(block, specs.get(block.type))
    return { x, y, w, h }
  }
  const children = indexOf(doc).children.get(container) ?? []
  const isNote = (id: string): boolean =>
    doc.blocks[id]!.type === 'note' || specs.get(doc.blocks[id]!.type)?.category === 'annotation'
  const blocks = children.filter((id) => !isNote(id)).map(rect)
  // A note is something to go around as well, unless blocks stand on it.
  const notes = [...children.filter(isNote).map(rect), ...(container ? [] : notesOf(doc))]
  const boxes = [...blocks, ...notes.filter((note) => !blocks.some((box) => overlap(box, note)))]
  const wires = edges.map((edge): Wire => {
    const source = doc.blocks[edge.source]!
    const [tx, ty] = doc.blocks[edge.target]!.at ?? [0, 0]
    const out = handlePlace(source, specs.get(source.type), edge.handle)
    const inner = leadsInside(doc, edge)
    const [sx, sy] = inner ? [0, 0] : (source.at ?? [0, 0])
    const into = inPlace()
    return {
      start: [sx + (inner ? BODY_X : out.x), sy + out.y],
      end: [tx + into.x, ty + into.y],
      down: out.side === 'bottom',
      lead: out.side === 'bottom' ? 0 : labelWidth(titleOf(doc, edge.source, edge.handle)),
      from: `${edge.source}:${edge.handle}`,
      to: edge.target,
    }
  })
  const size = container && kindOf(doc, container, specs) ? rect(container) : null
  return {
    boxes,
    within: size && { x: 0, y: CONTAINER_HEAD, w: size.w, h: size.h - CONTAINER_HEAD },
    wires,
    ids: edges.map((edge) => edge.id),
  }
}

/** What stands on an edge that leaves by `handle`: the title of its case, route or action, or that it is for errors. */
export function titleOf(doc: Document, source: string, handle: string): string {
  if (handle === 'out' || handle === 'body') return ''
  if (handle === 'error') return 'On error'
  if (handle === 'finally') return 'Finally'
  const block = doc.blocks[source]
  return (block && namedHandles(block).find((named) => named.id === handle)?.title) || handle
}

/** Room that a label wants beside its handle, in pixels. */
export function labelWidth(label: string): number {
  return label ? Math.round(label.length * CHAR) + LABEL_ROOM : 0
}

/** How far from the left border of a container the card stands to which this handle of it leads. */
export function insideOf(doc: Document, container: string, handle: string): number {
  return Math.max(PAD.left, up(BODY_X + labelWidth(titleOf(doc, container, handle))))
}

function notesOf(doc: Document): Rect[] {
  return (doc.notes ?? []).flatMap((note) =>
    note.at ? [{ x: note.at[0], y: note.at[1], w: (note.size ?? NOTE_SIZE)[0], h: (note.size ?? NOTE_SIZE)[1] }] : [],
  )
}

function overlap(a: Rect, b: Rect): boolean {
  return a.x < b.x + b.w && b.x < a.x + a.w && a.y < b.y + b.h && b.y < a.y + a.h
}
