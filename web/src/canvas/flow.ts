// The nodes and edges of React Flow, derived from the document alone, with sizes and handles known in advance. What did not
// change stays the same object, so only changes are drawn again.

import type { Edge as RfEdge, Node as RfNode, NodeHandle, Position } from '@xyflow/react'
import type { Block, BlockSpec, Document, Note, Point } from '../api/types'
import {
  handlesOf,
  indexOf,
  isEmptyContainer,
  kindOf,
  nameOf,
  noteId,
  parentOf,
  readingOrder,
  type Specs,
} from '../document/document'
import type { Selection } from '../state/ui'
import { sentenceText } from './sentence'
import { titleOf, type Way, type Ways } from '../geometry/layout/routes'
import { BODY_X, handlePlace, inPlace, NOTE_SIZE, sizeOf } from '../geometry/size'

/** `wired`: handles with an edge, and `in`; separated by blanks. `empty`: a container that holds nothing. */
export type BlockData = { block: Block; spec: BlockSpec | undefined; wired: string; empty: boolean }
export type NoteData = { text: string; note: string | null; block: string | null }
export type CardFlow = RfNode<BlockData, 'block'>
export type ContainerFlow = RfNode<BlockData, 'container'>
export type NoteFlow = RfNode<NoteData, 'note'>
export type FlowNode = CardFlow | ContainerFlow | NoteFlow
/** `way`: its corners from the source's handle on, as long as both ends are where the document has them. */
export type FlowEdgeData = { handle: string; label: string; names: string; way: Way | undefined }
export type FlowLine = RfEdge<FlowEdgeData, 'flow'>

export const NOTE_PREFIX = 'note:'
export const HANDLE_SIZE = 12
/** How far the box of `body` reaches out of its container. */
const BODY_LEFT = HANDLE_SIZE - BODY_X

/** Positions and sizes while something is dragged or resized, relative to the container, by node id. */
export type Local = ReadonlyMap<string, { at?: Point; size?: Point }>

export interface Deriver {
  nodes(doc: Document, specs: Specs, selection: Selection, local: Local): FlowNode[]
  edges(doc: Document, specs: Specs, selection: Selection, ways: Ways): FlowLine[]
}

export function deriver(): Deriver {
  let cards = new Map<string, { key: readonly unknown[]; node: FlowNode }>()
  let lines = new Map<string, { key: readonly unknown[]; edge: FlowLine }>()
  let order: { doc: Document; ids: string[] } | null = null

  const orderOf = (doc: Document): string[] => {
    if (!order || !sameShape(order.doc, doc)) order = { doc, ids: readingOrder(doc) }
    else order.doc = doc
    return order.ids
  }

  return {
    nodes(doc, specs, selection, local) {
      const next: typeof cards = new Map()
      const chosen = new Set(selection.blocks)
      const chosenNotes = new Set(selection.notes)
      const keep = (id: string, key: readonly unknown[], make: () => FlowNode): FlowNode => {
        const known = cards.get(id)
        const entry = known && same(known.key, key) ? known : { key, node: make() }
        next.set(id, entry)
        return entry.node
      }
      const out: FlowNode[] = []
      for (const [i, note] of (doc.notes ?? []).entries()) {
        const id = noteId(note, i)
        const key = NOTE_PREFIX + id
        const moved = local.get(key)
        out.push(
          keep(key, [note, chosenNotes.has(id), moved], () => noteNode(key, id, note, chosenNotes.has(id), moved)),
        )
      }
      for (const id of orderOf(doc)) {
        const block = doc.blocks[id]!
        const spec = specs.get(block.type)
        const moved = local.get(id)
        const wired = wiredOf(doc, id)
        const empty = isEmptyContainer(doc, id, specs)
        const parent = parentOf(doc, id)
        out.push(
          keep(id, [block, spec, wired, empty, parent, chosen.has(id), moved], () =>
            blockNode(doc, id, spec, wired, empty, parent, chosen.has(id), moved, specs),
          ),
        )
      }
      cards = next
      return out
    },
    edges(doc, specs, selection, ways) {
      const next: typeof lines = new Map()
      const chosen = new Set(selection.edges)
      const out = indexOf(doc).edges.map(({ id, source, handle, target }) => {
        const label = titleOf(doc, source, handle)
        const way = ways.get(id)
        const names = `${nameOf(doc, source)} to ${nameOf(doc, target)}`
        const valid =
          !!doc.blocks[source] && !!doc.blocks[target] && handlesOf(doc.blocks[source], specs).includes(handle)
        const key = [source, handle, target, label, names, chosen.has(id), valid, way]
        const known = lines.get(id)
        const entry =
          known && same(known.key, key)
            ? known
            : {
                key,
                edge: {
                  id,
                  type: 'flow',
                  source,
                  target,
                  sourceHandle: handle,
                  targetHandle: 'in',
                  selected: chosen.has(id),
                  data: { handle, label, names, way },
                  ariaLabel: `${names}${label ? `, ${label}` : ''}`,
                  hidden: !valid,
                } satisfies FlowLine,
              }
        next.set(id, entry)
        return entry.edge
      })
      lines = next
      return out
    },
  }
}

function blockNode(
  doc: Document,
  id: string,
  spec: BlockSpec | undefined,
  wired: string,
  empty: boolean,
  parent: string,
  selected: boolean,
  moved: { at?: Point; size?: Point } | undefined,
  specs: Specs,
): FlowNode {
  const block = doc.blocks[id]!
  const at = moved?.at ?? block.at ?? [0, 0]
  const [width, height] = moved?.size ?? sizeOf(block, spec)
  const kind = kindOf(doc, id, specs)
  // What is selected lies above what it overlaps; a container would cover what lies in front of it.
  const place = {
    id,
    position: { x: at[0], y: at[1] },
    width,
    height,
    measured: { width, height },
    selected,
    zIndex: selected && !kind ? 1 : 0,
    ...(parent ? { parentId: parent } : {}),
  }
  if (block.type === 'note' || spec?.category === 'annotation') {
    const text = block.params?.text
    return {
      ...place,
      type: 'note',
      data: { text: typeof text === 'string' ? text : '', note: null, block: id },
      ariaLabel: 'Note',
    }
  }
  const into = indexOf(doc).into.get(id)?.length ?? 0
  const outOf = indexOf(doc).outOf.get(id)?.length ?? 0
  const ariaLabel = `${nameOf(doc, id)}, ${spec?.title ?? block.type}, ${sentenceText(block, spec)}, ${into} in, ${outOf} out${block.enabled === false ? ', disabled' : ''}`
  return {
    ...place,
    type: kind ? 'container' : 'block',
    data: { block, spec, wired, empty },
    handles: handleBoxes(block, spec, specs),
    ariaLabel,
  } as FlowNode
}

function noteNode(
  key: string,
  id: string,
  note: Note,
  selected: boolean,
  moved: { at?: Point; size?: Point } | undefined,
): FlowNode {
  const at = moved?.at ?? note.at ?? [0, 0]
  const [width, height] = moved?.size ?? note.size ?? NOTE_SIZE
  return {
    id: key,
    type: 'note',
    position: { x: at[0], y: at[1] },
    width,
    height,
    measured: { width, height },
    selected,
    data: { text: note.text ?? '', note: id, block: null },
    ariaLabel: `Note: ${note.text ?? ''}`,
  }
}

/** The boxes of the handles, as the components draw them: React Flow ends edges at their outer side. */
function handleBoxes(block: Block, spec: BlockSpec | undefined, specs: Specs): NodeHandle[] {
  const size = { width: HANDLE_SIZE, height: HANDLE_SIZE }
  const half = HANDLE_SIZE / 2
  const out = handlesOf(block, specs).map((id): NodeHandle => {
    const { x, y, side } = handlePlace(block, spec, id)
    const left = side === 'bottom' ? x - half : id === 'body' || id === 'finally' ? x - BODY_LEFT : x - HANDLE_SIZE
    return {
      id,
      type: 'source',
      position: side as Position,
      x: left,
      y: side === 'bottom' ? y - HANDLE_SIZE : y - half,
      ...size,
    }
  })
  if (spec?.trigger ?? block.type === 'start') return out
  const { x, y } = inPlace()
  return [{ id: 'in', type: 'target', position: 'left' as Position, x, y: y - half, ...size }, ...out]
}

function wiredOf(doc: Document, id: string): string {
  const { into, outOf } = indexOf(doc)
  const handles = [...new Set((outOf.get(id) ?? []).map((edge) => edge.handle))]
  return [...(into.get(id)?.length ? ['in'] : []), ...handles].join(' ')
}

/** Would both be read in the same order? Positions break ties only. */
function sameShape(a: Document, b: Document): boolean {
  if (a === b) return true
  if (a.edges !== b.edges) return false
  const ids = Object.keys(a.blocks)
  const others = Object.keys(b.blocks)
  return ids.length === others.length && ids.every((id, i) => id === others[i] && parentOf(a, id) === parentOf(b, id))
}

function same(a: readonly unknown[], b: readonly unknown[]): boolean {
  return a.length === b.length && a.every((item, i) => Object.is(item, b[i]))
}
