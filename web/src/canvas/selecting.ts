// The selection of React Flow becomes that of the editor.

import type { EdgeChange } from '@xyflow/react'
import type { Document } from '../api/types'
import { indexOf, noteId } from '../document/document'
import { select, uiStore } from '../state/ui'
import { NOTE_PREFIX, type FlowLine } from './flow'

export function choose(id: string): void {
  if (id.startsWith(NOTE_PREFIX)) select({ notes: [id.slice(NOTE_PREFIX.length)] })
  else select({ blocks: [id] })
}

export function chooseNodes(changes: readonly { id: string; selected: boolean }[]): void {
  const { selection } = uiStore.getState()
  const blocks = new Set(selection.blocks)
  const notes = new Set(selection.notes)
  for (const { id, selected } of changes) {
    const [set, name] = id.startsWith(NOTE_PREFIX) ? [notes, id.slice(NOTE_PREFIX.length)] : [blocks, id]
    if (selected) set.add(name)
    else set.delete(name)
  }
  uiStore.setState({ selection: { ...selection, blocks: [...blocks], notes: [...notes] } })
}

export function chooseEdges(changes: EdgeChange<FlowLine>[], boxing: boolean): void {
  const { selection } = uiStore.getState()
  const edges = new Set(selection.edges)
  for (const change of changes) {
    if (change.type !== 'select') continue
    if (change.selected && !boxing) edges.add(change.id)
    else edges.delete(change.id)
  }
  if (edges.size !== selection.edges.length || selection.edges.some((id) => !edges.has(id)))
    uiStore.setState({ selection: { ...selection, edges: [...edges] } })
}

/** Take out of the selection what the document no longer has. */
export function forgetGone(doc: Document): void {
  const { selection } = uiStore.getState()
  const notes = new Set((doc.notes ?? []).map(noteId))
  const { edge } = indexOf(doc)
  const next = {
    blocks: selection.blocks.filter((id) => doc.blocks[id]),
    edges: selection.edges.filter((id) => edge.has(id)),
    notes: selection.notes.filter((id) => notes.has(id)),
  }
  const gone =
    next.blocks.length !== selection.blocks.length ||
    next.edges.length !== selection.edges.length ||
    next.notes.length !== selection.notes.length
  if (gone) uiStore.setState({ selection: next })
}
