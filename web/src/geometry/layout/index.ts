// Tidy: where blocks stand best. Containers are laid out first and then count as one box. Pure, on the grid, and a second run
// moves nothing. Notes keep their place beside the block that is nearest to them.

import type { Block, Document, Point } from '../../api/types'
import {
  absoluteAt,
  chainOf,
  indexOf,
  kindOf,
  NO_SPECS,
  noteId,
  parentOf,
  rootsOf,
  type Specs,
  leadsInside,
} from '../../document/document'
import { CONTAINER_MIN, handlePlace, NOTE_SIZE, PAD, sizeOf, snap, up } from '../size'
import { columns, type Link } from './layers'
import { GAP_Y, place } from './place'
import { insideOf, labelWidth, titleOf } from './routes'
import { wrapped } from './wrap'

/** New places, sizes of containers and places of notes, by id. */
export interface Tidy {
  type: 'tidy'
  at: Record<string, Point>
  size?: Record<string, Point>
  notes?: Record<string, Point>
}

/** The command that tidies the whole document, or only `ids` (with everything inside them), around where they are now. */
export function layout(doc: Document, specs: Specs = NO_SPECS, ids?: readonly string[]): Tidy {
  const work: Work = { doc, specs, at: {}, size: {} }
  if (ids?.length) {
    const groups = new Map<string, string[]>()
    for (const id of rootsOf(doc, ids)) groups.set(parentOf(doc, id), [...(groups.get(parentOf(doc, id)) ?? []), id])
    for (const [container, members] of groups) {
      arrange(work, members, cornerOf(doc, members))
      growAround(work, container)
    }
  } else {
    const members = indexOf(doc).children.get('') ?? []
    arrange(
      work,
      members,
      cornerOf(
        doc,
        members.filter((id) => !isNote(doc.blocks[id]!, specs)),
      ),
    )
  }
  return { type: 'tidy', at: work.at, size: work.size, notes: notesBeside(work) }
}

interface Work {
  doc: Document
  specs: Specs
  at: Record<string, Point>
  size: Record<string, Point>
}

/** Lay out blocks of one container, innermost containers first. `corner`: top left of the result. */
function arrange(work: Work, members: readonly string[], corner: Point): void {
  const { doc, specs } = work
  const ids = members.filter((id) => !isNote(doc.blocks[id]!, specs))
  if (!ids.length) return
  for (const id of ids) {
    if (!kindOf(doc, id, specs)) continue
    const children = indexOf(doc).children.get(id) ?? []
    arrange(work, children, [leftOf(doc, id), PAD.top])
    work.size[id] = fit(work, children)
  }
  const order = entriesFirst(doc, ids)
  const number = new Map(order.map((id, i) => [id, i]))
  const boxes = order.map((id) => ({ w: sizeIn(work, id)[0], h: sizeIn(work, id)[1], lead: leadOf(doc, id) }))
  const links = indexOf(doc).edges.flatMap((edge): Link[] => {
    const [source, target] = [number.get(edge.source), number.get(edge.target)]
    if (source === undefined || target === undefined || leadsInside(doc, edge)) return []
    return [{ source, target, port: portOf(work, edge.source, edge.handle) }]
  })
  const placed = place(columns(order.length, links), boxes).map((point, i) => ({ ...point, ...boxes[i]! }))
  for (const [i, point] of wrapped(placed, links).entries()) {
    work.at[order[i]!] = [corner[0] + snap(point.x), corner[1] + snap(point.y)]
  }
}

/** Where the children of a container begin: with a cleanup, the name of its handle is between the border and the first card. */
function leftOf(doc: Document, id: string): number {
  const edges = indexOf(doc).outOf.get(id) ?? []
  const named = edges.some((edge) => edge.handle === 'finally' && leadsInside(doc, edge))
  return named ? insideOf(doc, id, 'finally') : PAD.left
}

/** Size that holds the children, with room at every side. */
function fit(work: Work, children: readonly string[]): Point {
  const ends = children
    .filter((id) => work.at[id])
    .map(
      (id): Point => [
        work.at[id]![0] + sizeIn(work, id)[0] + PAD.right,
        work.at[id]![1] + sizeIn(work, id)[1] + below(work, id),
      ],
    )
  return [
    up(Math.max(CONTAINER_MIN[0], ...ends.map(([x]) => x))),
    up(Math.max(CONTAINER_MIN[1], ...ends.map(([, y]) => y))),
  ]
}

/** Room below a block: what hangs below a card while it runs stays inside; nothing hangs below a container. */
function below(work: Work, id: string): number {
  return kindOf(work.doc, id, work.specs) ? PAD.right : PAD.bottom
}

/** After a part was laid out: the containers around it hold it still. */
function growAround(work: Work, container: string): void {
  const { doc, specs } = work
  for (let id = container; id; id = parentOf(doc, id)) {
    const [w, h] = sizeIn(work, id)
    const ends = (indexOf(doc).children.get(id) ?? []).map((child): Point => {
      const at = work.at[child] ?? doc.blocks[child]!.at ?? [0, 0]
      const [cw, ch] = sizeIn(work, child)
      return [at[0] + cw + PAD.right, at[1] + ch + below(work, child)]
    })
    const size: Point = [up(Math.max(w, ...ends.map(([x]) => x))), up(Math.max(h, ...ends.map(([, y]) => y)))]
    if (size[0] !== w || size[1] !== h) work.size[id] = size
    if (!kindOf(doc, id, specs)) return
  }
}

function sizeIn(work: Work, id: string): Point {
  const block = work.doc.blocks[id]!
  return work.size[id] ?? sizeOf(block, work.specs.get(block.type))
}

/** Height at which an edge leaves; what leaves at the bottom wants to go below the block. */
function portOf(work: Work, id: string, handle: string): number {
  const block = work.doc.blocks[id]!
  const out = handlePlace(block, work.specs.get(block.type), handle)
  return out.side === 'bottom' ? sizeIn(work, id)[1] + GAP_Y : out.y
}

/** Room for the longest label on the edges that leave a block to the right. */
function leadOf(doc: Document, id: string): number {
  const edges = indexOf(doc).outOf.get(id) ?? []
  return Math.max(
    0,
    ...edges.map(({ handle }) =>
      handle === 'error' || handle === 'finally' ? 0 : labelWidth(titleOf(doc, id, handle)),
    ),
  )
}

/** First what a run or an iteration begins with, then the others, each in document order. */
function entriesFirst(doc: Document, ids: readonly string[]): string[] {
  const { into } = indexOf(doc)
  const within = new Set(ids)
  const isEntry = (id: string): boolean =>
    !(into.get(id) ?? []).some((edge) => within.has(edge.source) && !leadsInside(doc, edge))
  const leads = (id: string): boolean => (indexOf(doc).outOf.get(id) ?? []).some((edge) => within.has(edge.target))
  const rank = (id: string): number => (isEntry(id) ? (leads(id) ? 0 : 2) : 1)
  return [...ids].sort((a, b) => rank(a) - rank(b))
}

function cornerOf(doc: Document, ids: readonly string[]): Point {
  const points = ids.map((id) => doc.blocks[id]!.at ?? [0, 0])
  if (!points.length) return [0, 0]
  return [snap(Math.min(...points.map(([x]) => x!))), snap(Math.min(...points.map(([, y]) => y!)))]
}

function isNote(block: Block, specs: Specs): boolean {
  return block.type === 'note' || specs.get(block.type)?.category === 'annotation'
}

/** New positions of notes (and of note blocks, in `work.at`): as far from their nearest block as they were. */
function notesBeside(work: Work): Record<string, Point> {
  const { doc, specs } = work
  const blocks = Object.keys(doc.blocks).filter((id) => !isNote(doc.blocks[id]!, specs))
  const after = (id: string): Point => {
    let [x, y] = work.at[id] ?? doc.blocks[id]!.at ?? [0, 0]
    for (const container of chainOf(doc, id)) {
      const at = work.at[container] ?? doc.blocks[container]!.at ?? [0, 0]
      x += at[0]
      y += at[1]
    }
    return [x, y]
  }
  const shiftOf = (at: Point, size: Point): Point | null => {
    const near = nearest(doc, specs, blocks, [at[0] + size[0] / 2, at[1] + size[1] / 2])
    if (!near) return null
    const [was, now] = [absoluteAt(doc, near), after(near)]
    return [now[0] - was[0], now[1] - was[1]]
  }
  const notes: Record<string, Point> = {}
  for (const [i, note] of (doc.notes ?? []).entries()) {
    if (!note.at) continue
    const shift = shiftOf(note.at, note.size ?? NOTE_SIZE)
    if (shift && (shift[0] || shift[1])) notes[noteId(note, i)] = [note.at[0] + shift[0], note.at[1] + shift[1]]
  }
  for (const [id, block] of Object.entries(doc.blocks)) {
    if (!isNote(block, specs) || !block.at) continue
    const shift = shiftOf(absoluteAt(doc, id), sizeOf(block, specs.get(block.type)))
    const outer = parentOf(doc, id)
    const [was, now] = outer
      ? [absoluteAt(doc, outer), after(outer)]
      : [
          [0, 0],
          [0, 0],
        ]
    if (shift)
      work.at[id] = [block.at[0] + shift[0] - (now[0]! - was[0]!), block.at[1] + shift[1] - (now[1]! - was[1]!)]
  }
  return notes
}

/** The block whose box is nearest to a point; inside a container the block there wins over the container. */
function nearest(doc: Document, specs: Specs, blocks: readonly string[], [px, py]: Point): string | null {
  let best: string | null = null
  let least = Infinity
  for (const id of blocks) {
    const [x, y] = absoluteAt(doc, id)
    const [w, h] = sizeOf(doc.blocks[id]!, specs.get(doc.blocks[id]!.type))
    const dx = Math.max(x - px, 0, px - x - w)
    const dy = Math.max(y - py, 0, py - y - h)
    const far = dx * dx + dy * dy + (kindOf(doc, id, specs) ? 1 : 0)
    if (far < least) [best, least] = [id, far]
  }
  return best
}
