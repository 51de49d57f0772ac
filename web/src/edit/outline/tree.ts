// The document as a tree of rows: blocks in reading order, what is inside containers below them, and under each block where it
// leads.

import type { Document } from '../../api/types'
import { chainOf, indexOf, kindOf, nameOf, readingOrder, type EdgeItem, type Specs } from '../../document/document'

export type OutlineRow =
  | { key: string; kind: 'block'; id: string; depth: number; open: boolean | null }
  | { key: string; kind: 'edge'; id: string; depth: number; edge: EdgeItem; target: string }

/** `closed`: blocks whose inside and connections are folded away. */
export function outlineRows(doc: Document, specs: Specs, closed: ReadonlySet<string>): OutlineRow[] {
  const { outOf, children } = indexOf(doc)
  const rows: OutlineRow[] = []
  for (const id of readingOrder(doc)) {
    if (doc.blocks[id]?.type === 'note') continue
    const chain = chainOf(doc, id)
    if (chain.some((container) => closed.has(container))) continue
    const edges = outOf.get(id) ?? []
    const hasInside = edges.length > 0 || (kindOf(doc, id, specs) !== null && (children.get(id)?.length ?? 0) > 0)
    rows.push({ key: id, kind: 'block', id, depth: chain.length, open: hasInside ? !closed.has(id) : null })
    if (closed.has(id)) continue
    for (const edge of edges)
      rows.push({
        key: edge.id,
        kind: 'edge',
        id: edge.id,
        depth: chain.length + 1,
        edge,
        target: nameOf(doc, edge.target),
      })
  }
  return rows
}

/** Index of the block a row belongs to; the row itself when it belongs to none. */
export function parentRow(rows: readonly OutlineRow[], at: number): number {
  const depth = rows[at]?.depth ?? 0
  for (let i = at - 1; i >= 0; i--) if (rows[i]!.depth < depth && rows[i]!.kind === 'block') return i
  return at
}
