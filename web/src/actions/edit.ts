// Edits of the document on the canvas, as functions for menus, keys, the palette and the pointer. Each dispatches one command
// (one undo step), selects the result and announces it.

import { announce } from '../a11y'
import type { Json } from '../api/schemas'
import type { Block, Document, Edge, Note, Point } from '../api/types'
import {
  absoluteAt,
  checkEdge,
  freshId,
  freshName,
  indexOf,
  isEmptyContainer,
  isTrigger,
  nameOf,
  noteId,
} from '../document/document'
import { CONTAINER_MIN, NOTE_SIZE, sizeOf, snap, up } from '../geometry/size'
import { shownDocument } from '../state/collapsed'
import type { Command } from '../state/commands'
import { dispatch, docStore, specsOf } from '../state/doc'
import { NOTHING, select, uiStore } from '../state/ui'
import { containerAt, freeHandle } from './connect'
import { glide, inPlaceStore } from './inPlace'
import { GAP_X, placeFor, shiftRight, levelWith, parentBehind, isEmptyBody, type From } from './places'
import { presetOf } from './presets'
import { refuse } from './undo'
import { focusNode, herePoint, reveal, revealAdded } from './view'

export interface AddRequest {
  /** Where the pointer was, in canvas pixels; without it: to the right of `from`, or in the middle of what is seen. */
  at?: Point | undefined
  from?: From | undefined
  /** An edge that the new block is put into. */
  edge?: string | undefined
  parent?: string | undefined
}

/** Add a block of this type, join it, select it. Null (with the reason said) when it cannot stand there. */
export function addBlock(type: string, request: AddRequest = {}): string | null {
  const { doc } = docStore.getState()
  const specs = specsOf()
  const spec = specs.get(type)
  if (type === 'note') return addNote(request.at)
  const names = new Set(Object.keys(doc.blocks).map((id) => nameOf(doc, id)))
  const name = freshName(names, spec?.title ?? type)
  const id = freshId((other) => other in doc.blocks, name)
  const bare: Block = { type, name, params: presetOf(type) }
  const isContainer = spec?.container ?? null
  const block: Block = isContainer ? { ...bare, size: [CONTAINER_MIN[0] + 96, CONTAINER_MIN[1]] } : bare
  const between = request.edge === undefined ? undefined : indexOf(doc).edge.get(request.edge)
  const from = between ? { source: between.source, handle: between.handle } : request.from
  const parent =
    request.parent ??
    (from ? parentBehind(doc, specs, from) : request.at ? containerAt(shownDocument(doc), specs, request.at) : '')
  if (parent && isTrigger(block, specs))
    return refuse(`${spec?.title ?? type} is a trigger and cannot be inside a container.`)

  const size = sizeOf(block, spec)
  const base = parent ? absoluteAt(doc, parent) : [0, 0]
  const aside = new Set(between ? levelWith(doc, between.target) : [])
  const at = placeFor(doc, specs, size, parent, from, request.at, aside)
  const placed: Block = { ...block, ...(parent ? { parent } : {}), at: [at[0] - base[0]!, at[1] - base[1]!] }
  const unused = isTrigger(block, specs) ? untouchedStart(doc) : undefined
  if (unused !== undefined && !request.at) placed.at = absoluteAt(doc, unused)
  const commands: Command[] = [{ type: 'addBlock', id, block: placed }]
  if (unused !== undefined) commands.unshift({ type: 'removeBlocks', ids: [unused] })
  const after: Document = { ...doc, blocks: { ...doc.blocks, [id]: placed } }
  const join = (edge: Edge): void => {
    if (!checkEdge(after, edge, specs, request.edge)) commands.push({ type: 'addEdge', edge })
  }
  if (between) commands.push({ type: 'removeEdges', ids: [between.id] })
  if (from) join({ ...from, target: id })
  else if (parent && isEmptyBody(doc, parent)) join({ source: parent, handle: 'body', target: id })
  const onward = between && freeHandle(after, specs, id)
  if (between && onward) {
    join({ source: id, handle: onward, target: between.target })
    const shift = at[0] + size[0] + GAP_X - absoluteAt(doc, between.target)[0]
    if (shift > 0) commands.push(shiftRight(doc, between.target, up(shift)))
  }
  if (between) glide()
  dispatch({ type: 'batch', label: `add “${name}”`, commands })
  select({ blocks: [id] })
  showAdded(id, size, from?.source)
  focusNode(id)
  announce(from ? `${name} added after ${nameOf(doc, from.source)}` : `${name} added`)
  return id
}

/** The Start of a workflow that has just been begun: another trigger takes its place. */
function untouchedStart({ blocks, input }: Document): string | undefined {
  const [id, ...more] = Object.keys(blocks)
  const block = id === undefined || more.length ? undefined : blocks[id]
  const asks = Object.keys(input?.properties ?? {}).length > 0 || (block?.params?.fields as Json[] | undefined)?.length
  return block?.type === 'start' && !asks ? id : undefined
}

/** Bring a new block into view, beside the block it follows. */
function showAdded(id: string, size: Point, before: string | undefined): void {
  const { doc } = docStore.getState()
  const at = absoluteAt(doc, id)
  const block = before === undefined ? undefined : doc.blocks[before]
  if (!block) return reveal(at, size)
  const [x, y] = absoluteAt(doc, before!)
  const [width, height] = sizeOf(block, specsOf().get(block.type))
  revealAdded(at, size, { x, y, width, height })
}

/** What a new block follows when nothing else is said: the one selected block, by its first free handle (an empty container is
 * filled first); of a workflow that has just been begun its only block. */
export function fromSelection(): From | undefined {
  const { doc } = docStore.getState()
  const { selection } = uiStore.getState()
  const all = Object.keys(doc.blocks)
  const chosen =
    !selection.blocks.length && all.length === 1 && isTrigger(doc.blocks[all[0]!], specsOf()) ? all : selection.blocks
  const [source, ...more] = chosen
  if (source === undefined || more.length || !doc.blocks[source]) return undefined
  if (isEmptyContainer(doc, source, specsOf())) return { source, handle: 'body' }
  const handle = freeHandle(doc, specsOf(), source)
  return handle === null ? undefined : { source, handle }
}

export function addNote(at?: Point, text = ''): string {
  const { doc } = docStore.getState()
  const used = new Set((doc.notes ?? []).map(noteId))
  const id = freshId((other) => used.has(other), 'note-1')
  const point = at ?? herePoint()
  const note: Note & { id: string } = { id, text, at: [snap(point[0]), snap(point[1])], size: NOTE_SIZE }
  dispatch({ type: 'addNote', note })
  select({ notes: [id] })
  inPlaceStore.setState({ note: id })
  return id
}

/** Join two blocks. The reason why not, else null. */
export function connect(source: string, handle: string, target: string, instead: string | null = null): string | null {
  const { doc } = docStore.getState()
  const reason = checkEdge(doc, { source, handle, target }, specsOf(), instead ?? undefined)
  if (reason) {
    announce(reason)
    return reason
  }
  const add: Command = { type: 'addEdge', edge: { source, handle, target } }
  dispatch(
    instead ? { type: 'batch', label: 'connect', commands: [{ type: 'removeEdges', ids: [instead] }, add] } : add,
  )
  announce(`${nameOf(doc, source)} connected to ${nameOf(doc, target)}`)
  return null
}

export function deleteSelection(): void {
  const { doc } = docStore.getState()
  const { blocks, edges, notes } = uiStore.getState().selection
  const commands: Command[] = []
  if (edges.length) commands.push({ type: 'removeEdges', ids: [...edges] })
  if (blocks.length || notes.length) commands.push({ type: 'removeBlocks', ids: [...blocks], notes: [...notes] })
  if (!commands.length) return
  const next = blocks.length === 1 ? (indexOf(doc).into.get(blocks[0]!) ?? [])[0]?.source : undefined
  dispatch(commands.length === 1 ? commands[0]! : { type: 'batch', label: 'delete', commands })
  select(next && docStore.getState().doc.blocks[next] ? { blocks: [next] } : NOTHING)
  focusNode(next ?? null)
  announce(blocks.length === 1 ? `${nameOf(doc, blocks[0]!)} deleted` : 'Deleted')
}

export function toggleEnabled(): void {
  const { doc } = docStore.getState()
  const { blocks } = uiStore.getState().selection
  if (!blocks.length) return
  const enabled = blocks.some((id) => doc.blocks[id]?.enabled === false)
  dispatch({ type: 'setEnabled', ids: [...blocks], enabled })
  announce(enabled ? 'Enabled' : 'Disabled')
}
