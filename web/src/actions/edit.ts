// Edits of the document on the canvas, as functions for menus, keys, the palette and the pointer. Each dispatches one command
// (one undo step), selects the result and announces it.

import { createStore } from 'zustand/vanilla'
import { announce } from '../a11y'
import type { Json } from '../api/schemas'
import type { Block, Document, Edge, Note, Point } from '../api/types'
import { copy, pasteIds, readClip, type Clip, type Command } from '../state/commands'
import { shownDocument } from '../state/collapsed'
import { dispatch, docStore, redo, specsOf, undo } from '../state/doc'
import {
  absoluteAt,
  checkEdge,
  checkParent,
  freshId,
  freshName,
  indexOf,
  isEmptyContainer,
  isTrigger,
  kindOf,
  nameOf,
  noteId,
  parentOf,
  rootsOf,
  type Specs,
  leadsInside,
} from '../document/document'
import { NOTHING, select, uiStore } from '../state/ui'
import { toast } from '../ui/Toast'
import { containerAt, freeHandle, handleAt } from './connect'
import { layout } from '../geometry/layout'
import { insideOf, labelWidth, titleOf } from '../geometry/layout/routes'
import { presetOf } from './presets'
import { freePlace, roomAround, type Box } from '../geometry/room'
import { CARD_H, CONTAINER_MIN, GRID, NOTE_SIZE, PAD, PORT_Y, sizeOf, snap, up } from '../geometry/size'
import { focusNode, herePoint, pointerOnScreen, reveal, revealAdded, toCanvas } from './view'

/** What is being changed in place on the canvas: the name of a block, the text of a note. `tidying`: things glide. */
export const inPlaceStore = createStore<{ rename: string | null; note: string | null; tidying: boolean }>(() => ({
  rename: null,
  note: null,
  tidying: false,
}))

const GAP_X = 64
const GLIDE_MS = 240
let gliding: ReturnType<typeof setTimeout> | undefined

/** Animate the blocks that the next change moves. */
function glide(): void {
  clearTimeout(gliding)
  inPlaceStore.setState({ tidying: true })
  gliding = setTimeout(() => inPlaceStore.setState({ tidying: false }), GLIDE_MS)
}

export interface AddRequest {
  /** Where the pointer was, in canvas pixels; without it: to the right of `from`, or in the middle of what is seen. */
  at?: Point | undefined
  from?: { source: string; handle: string } | undefined
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
export function fromSelection(): { source: string; handle: string } | undefined {
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

/** Blocks were dropped: new places, and another container when they were dropped into one. `to`: absolute positions. */
export function dropBlocks(to: Record<string, Point>, notes: Record<string, Point>, pointer: Point): void {
  const { doc } = docStore.getState()
  const specs = specsOf()
  const ids = rootsOf(doc, Object.keys(to))
  const parent = ids.length ? containerAt(shownDocument(doc), specs, pointer, ids) : ''
  const moving = ids.filter((id) => parentOf(doc, id) !== parent)
  const reason = moving.length ? checkParent(doc, moving, parent, specs) : null
  if (reason) {
    refuse(reason)
    return
  }
  const stay: Record<string, Point> = {}
  for (const id of ids) {
    if (moving.includes(id)) continue
    const base = parentOf(doc, id) ? absoluteAt(doc, parentOf(doc, id)) : [0, 0]
    stay[id] = [to[id]![0] - base[0]!, to[id]![1] - base[1]!]
  }
  const commands: Command[] = []
  if (Object.keys(stay).length || Object.keys(notes).length) commands.push({ type: 'moveBlocks', to: stay, notes })
  if (moving.length) {
    commands.push({ type: 'reparent', ids: moving, parent, to: Object.fromEntries(moving.map((id) => [id, to[id]!])) })
    const first = moving[0]!
    if (parent && isEmptyBody(doc, parent))
      commands.push({ type: 'addEdge', edge: { source: parent, handle: 'body', target: first } })
  }
  const before = doc.edges.length
  if (!commands.length || !dispatch(commands.length === 1 ? commands[0]! : { type: 'batch', commands })) return
  if (!moving.length) return
  const lost = before - docStore.getState().doc.edges.filter((edge) => doc.edges.includes(edge)).length
  const where = parent ? `moved into ${nameOf(doc, parent)}` : 'moved out'
  announce(`${moving.length === 1 ? nameOf(doc, moving[0]!) : `${moving.length} blocks`} ${where}`)
  if (lost)
    toastUndo(
      lost === 1
        ? '1 connection was removed because it crossed the container.'
        : `${lost} connections were removed because they crossed the container.`,
    )
}

/** Move what is selected; presses in quick succession are one undo step. */
export function nudge(dx: number, dy: number): void {
  const { doc } = docStore.getState()
  const { blocks, notes } = uiStore.getState().selection
  const to: Record<string, Point> = {}
  for (const id of rootsOf(doc, blocks)) {
    const at = doc.blocks[id]?.at ?? [0, 0]
    to[id] = [at[0] + dx, at[1] + dy]
  }
  const moved: Record<string, Point> = {}
  for (const [i, note] of (doc.notes ?? []).entries()) {
    if (notes.includes(noteId(note, i))) moved[noteId(note, i)] = [(note.at?.[0] ?? 0) + dx, (note.at?.[1] ?? 0) + dy]
  }
  if (Object.keys(to).length || Object.keys(moved).length) dispatch({ type: 'moveBlocks', to, notes: moved }, 'nudge')
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

// --- clipboard -------------------------------------------------------------------------------------------------------

let copied: { text: string; pointer: { x: number; y: number } | null } | null = null

/** What is selected, as the text for the clipboard; null when nothing is. */
export function copySelection(): string | null {
  const { doc } = docStore.getState()
  const { blocks, notes } = uiStore.getState().selection
  if (!blocks.length && !notes.length) return null
  const text = JSON.stringify(copy(doc, blocks, notes), null, 2)
  copied = { text, pointer: pointerOnScreen() }
  announce(blocks.length === 1 ? `${nameOf(doc, blocks[0]!)} copied` : `${blocks.length} blocks copied`)
  return text
}

/** Paste clipboard text: into the one selected container, where the pointer went since the copy, or beside the original.
 * False when the text is nothing of ours. */
export function pasteText(text: string, at?: Point): boolean {
  const clip = readClip(text)
  if (!clip) return false
  const { doc } = docStore.getState()
  const specs = specsOf()
  const place = at ? { at, parent: containerAt(shownDocument(doc), specs, at) } : placeForPaste(doc, specs, clip, text)
  pasteClip(clip, place.at, place.parent)
  return true
}

/** The text last copied in this page, for when the browser's clipboard may not be read. */
export function lastCopied(): string | null {
  return copied?.text ?? null
}

export function duplicate(): void {
  const { doc } = docStore.getState()
  const { blocks, notes } = uiStore.getState().selection
  if (!blocks.length && !notes.length) return
  const clip = copy(doc, blocks, notes)
  const parents = new Set(rootsOf(doc, blocks).map((id) => parentOf(doc, id)))
  const parent = parents.size === 1 ? [...parents][0]! : ''
  pasteClip(clip, besideCopy(doc, specsOf(), clip, parent), parent)
}

function pasteClip(clip: Clip, at: Point, parent: string): void {
  const { doc } = docStore.getState()
  const specs = specsOf()
  const ids = pasteIds(doc, clip, parent, specs)
  const roots = Object.keys(clip.blocks).filter(
    (id) => !(clip.blocks[id]!.parent && clip.blocks[clip.blocks[id]!.parent!]) && ids[id],
  )
  const commands: Command[] = [{ type: 'paste', clip, at: [snap(at[0]), snap(at[1])], parent }]
  if (parent && isEmptyBody(doc, parent)) {
    const entry = roots.find((id) => !clip.edges.some((edge) => edge.target === id))
    if (entry) commands.push({ type: 'addEdge', edge: { source: parent, handle: 'body', target: ids[entry]! } })
  }
  const had = new Set((doc.notes ?? []).map(noteId))
  dispatch(commands.length === 1 ? commands[0]! : { type: 'batch', label: 'paste', commands })
  const notes = (docStore.getState().doc.notes ?? []).map(noteId).filter((id) => !had.has(id))
  const blocks = roots.map((id) => ids[id]!)
  select({ blocks, notes })
  const after = docStore.getState().doc
  if (blocks.length) {
    const all = around(absoluteBoxes(after, specs, parent).filter((box) => blocks.includes(box.id)))
    reveal([all.x, all.y], [all.w, all.h])
  }
  focusNode(blocks[0] ?? null)
  const left = Object.keys(clip.blocks).length - Object.keys(ids).length
  if (left) toast('Triggers were not pasted because they cannot be inside a container.', 'wait')
  announce(`${Object.keys(ids).length} blocks pasted`)
}

function placeForPaste(doc: Document, specs: Specs, clip: Clip, text: string): { at: Point; parent: string } {
  const [only, ...more] = uiStore.getState().selection.blocks
  if (only !== undefined && !more.length && kindOf(doc, only, specs) && !clip.blocks[only]) {
    const [x, y] = absoluteAt(doc, only)
    const below = (indexOf(doc).children.get(only) ?? []).map(
      (id) => (doc.blocks[id]!.at?.[1] ?? 0) + sizeOf(doc.blocks[id]!, specs.get(doc.blocks[id]!.type))[1],
    )
    return { at: [x + PAD.left, y + Math.max(PAD.top, ...below.map((bottom) => up(bottom + 32)))], parent: only }
  }
  const pointer = pointerOnScreen()
  const before = copied?.text === text ? copied.pointer : null
  const moved = pointer && (!before || Math.hypot(pointer.x - before.x, pointer.y - before.y) > 24)
  if (moved) {
    const at = toCanvas(pointer) ?? [0, 0]
    return { at, parent: containerAt(shownDocument(doc), specs, at) }
  }
  const root = Object.keys(clip.blocks).find((id) => doc.blocks[id])
  const parent = root ? parentOf(doc, root) : ''
  return { at: besideCopy(doc, specs, clip, parent), parent }
}

/** The first place below the original where a copy touches nothing. */
function besideCopy(doc: Document, specs: Specs, clip: Clip, parent: string): Point {
  const roots = Object.values(clip.blocks).filter((block) => !(block.parent && clip.blocks[block.parent]))
  const boxes = roots.map((block) => boxOf(block.at ?? [0, 0], sizeOf(block, specs.get(block.type))))
  const all = around([...boxes, ...(clip.notes ?? []).map((note) => boxOf(note.at ?? [0, 0], note.size ?? NOTE_SIZE))])
  const notes = clip.notes?.length
    ? (doc.notes ?? []).map((note) => boxOf(note.at ?? [0, 0], note.size ?? NOTE_SIZE))
    : []
  return freePlace([all.x, all.y], [all.w, all.h], [...absoluteBoxes(doc, specs, parent), ...notes])
}

// --- arranging -------------------------------------------------------------------------------------------------------

/** Tidy the selection when it has several blocks, else everything. */
export function tidy(): void {
  const { doc } = docStore.getState()
  const { blocks } = uiStore.getState().selection
  glide()
  const changed = dispatch(layout(doc, specsOf(), blocks.length > 1 ? blocks : undefined))
  announce(changed ? 'Tidied' : 'Already tidy')
}

/** Put what is selected into a new loop or parallel; what led in leads to the container, what led out leaves it. */
export function wrap(type: 'loop' | 'parallel'): void {
  const { doc } = docStore.getState()
  const specs = specsOf()
  const ids = rootsOf(doc, uiStore.getState().selection.blocks)
  const parent = ids[0] === undefined ? '' : parentOf(doc, ids[0])
  if (!ids.length) return void refuse('Select the blocks to wrap.')
  if (ids.some((id) => parentOf(doc, id) !== parent)) return void refuse('Select blocks of the same container.')
  const trigger = ids.find((id) => isTrigger(doc.blocks[id], specs))
  if (trigger) return void refuse(`${nameOf(doc, trigger)} is a trigger and cannot be inside a container.`)
  const siblings = boxesIn(doc, specs, parent)
  const wrapped = siblings.filter((box) => ids.includes(box.id))
  const inner = around(wrapped)
  // The container is entered where its first block was: an edge that led straight there leads straight to it.
  const entered = (each: string): boolean =>
    (indexOf(doc).into.get(each) ?? []).some((edge) => !ids.includes(edge.source))
  const down = (wrapped.find(({ id }) => entered(id)) ?? wrapped[0]!).y - (inner.y - PAD.top)
  const outer: Box = {
    x: inner.x - PAD.left,
    y: inner.y - PAD.top + down,
    w: Math.max(CONTAINER_MIN[0], up(inner.w + PAD.left + PAD.right)),
    h: Math.max(CONTAINER_MIN[1], up(inner.h + PAD.top + PAD.bottom)),
  }
  const { shift, moves } = roomAround(
    inner,
    outer,
    siblings.filter((box) => !ids.includes(box.id)),
  )
  const names = new Set(Object.keys(doc.blocks).map((id) => nameOf(doc, id)))
  const name = freshName(names, specs.get(type)?.title ?? type)
  const id = freshId((other) => other in doc.blocks, name)
  const block: Block = {
    type,
    name,
    params: presetOf(type),
    size: [outer.w, outer.h],
    at: [outer.x + shift[0], outer.y + shift[1]],
    ...(parent ? { parent } : {}),
  }
  const inside = new Set(ids)
  const edges: Edge[] = []
  const entries = new Set(
    ids.filter((each) => !(indexOf(doc).into.get(each) ?? []).some((edge) => inside.has(edge.source))),
  )
  for (const edge of indexOf(doc).edges) {
    if (inside.has(edge.target) && !inside.has(edge.source)) {
      entries.add(edge.target)
      edges.push({ source: edge.source, handle: edge.handle, target: id })
    } else if (inside.has(edge.source) && !inside.has(edge.target) && !leadsInside(doc, edge))
      edges.push({ source: id, target: edge.target })
  }
  for (const target of entries) edges.push({ source: id, handle: 'body', target })
  const absolute = Object.fromEntries(
    ids.map((each): [string, Point] => {
      const [x, y] = absoluteAt(doc, each)
      return [each, [x + shift[0], y + shift[1] + down]]
    }),
  )
  dispatch({
    type: 'batch',
    label: `wrap in “${name}”`,
    // The others move first: a container around them all that grows to the left or upwards counts anew from there.
    commands: [
      { type: 'moveBlocks', to: moves },
      { type: 'addBlock', id, block },
      { type: 'reparent', ids, parent: id, to: absolute },
      ...edges.map((edge): Command => ({ type: 'addEdge', edge })),
    ],
  })
  select({ blocks: [id] })
  focusNode(id)
}

export function toggleEnabled(): void {
  const { doc } = docStore.getState()
  const { blocks } = uiStore.getState().selection
  if (!blocks.length) return
  const enabled = blocks.some((id) => doc.blocks[id]?.enabled === false)
  dispatch({ type: 'setEnabled', ids: [...blocks], enabled })
  announce(enabled ? 'Enabled' : 'Disabled')
}

export function undoStep(): void {
  glide()
  const label = undo()
  announce(label === null ? 'Nothing to undo' : `Undone: ${label}`)
}

/** Say what was just done, with a button that undoes it. It goes with the next change of the document. */
export function toastUndo(text: string, tone: 'plain' | 'ok' = 'plain'): void {
  const { doc } = docStore.getState()
  const dismiss = toast(text, tone, { label: 'Undo', onSelect: undoStep })
  const stop = docStore.subscribe(() => {
    if (docStore.getState().doc === doc) return
    stop()
    dismiss()
  })
}

export function redoStep(): void {
  glide()
  const label = redo()
  announce(label === null ? 'Nothing to redo' : `Redone: ${label}`)
}

// --- places ----------------------------------------------------------------------------------------------------------

/** `aside`: blocks that will make room. */
function placeFor(
  doc: Document,
  specs: Specs,
  size: Point,
  parent: string,
  from: AddRequest['from'],
  at: Point | undefined,
  aside: ReadonlySet<string>,
): Point {
  const others = absoluteBoxes(doc, specs, parent).filter((box) => !aside.has(box.id))
  // Where the pointer is, the new block's edge comes in; not upon another block.
  if (at) return freePlace([snap(at[0]), snap(at[1] - PORT_Y)], size, others)
  if (from) {
    const [x, y] = handleAt(doc, specs, from.source, from.handle)
    const inside = isInner(doc, specs, from)
    const right = inside
      ? x + insideOf(doc, from.source, from.handle)
      : absoluteAt(doc, from.source)[0] +
        sizeOf(doc.blocks[from.source]!, specs.get(doc.blocks[from.source]!.type))[0] +
        gapBehind(doc, from)
    return freePlace([snap(right), snap(y - PORT_Y + (from.handle === 'error' ? CARD_H : 0))], size, others)
  }
  const here = herePoint()
  return freePlace([snap(here[0] - size[0] / 2), snap(here[1] - size[1] / 2)], size, others)
}

/** So wide that the name of the branch can be read on the edge. */
function gapBehind(doc: Document, from: { source: string; handle: string }): number {
  return from.handle === 'error'
    ? GAP_X
    : Math.max(GAP_X, up(labelWidth(titleOf(doc, from.source, from.handle)) + GRID))
}

function boxOf([x, y]: Point, [w, h]: Point): Box {
  return { x, y, w, h }
}

/** The blocks of one container, from its corner on. */
function boxesIn(doc: Document, specs: Specs, parent: string): (Box & { id: string })[] {
  return (indexOf(doc).children.get(parent) ?? []).map((id) => {
    const block = doc.blocks[id]!
    return { id, ...boxOf(block.at ?? [0, 0], sizeOf(block, specs.get(block.type))) }
  })
}

function absoluteBoxes(doc: Document, specs: Specs, parent: string): (Box & { id: string })[] {
  const [x, y] = parent ? absoluteAt(doc, parent) : [0, 0]
  return boxesIn(doc, specs, parent).map((box) => ({ ...box, x: box.x + x, y: box.y + y }))
}

/** The smallest box around all of them. */
function around(boxes: readonly Box[]): Box {
  const [x, y] = [Math.min(...boxes.map((box) => box.x)), Math.min(...boxes.map((box) => box.y))]
  return {
    x,
    y,
    w: Math.max(...boxes.map((box) => box.x + box.w)) - x,
    h: Math.max(...boxes.map((box) => box.y + box.h)) - y,
  }
}

function shiftRight(doc: Document, target: string, by: number): Command {
  const to: Record<string, Point> = {}
  for (const id of levelWith(doc, target)) {
    const at = doc.blocks[id]!.at ?? [0, 0]
    to[id] = [at[0] + by, at[1]]
  }
  return { type: 'moveBlocks', to }
}

/** The block and all of its container that stand as far to the right, or further. */
function levelWith(doc: Document, target: string): string[] {
  const from = doc.blocks[target]?.at?.[0] ?? 0
  return (indexOf(doc).children.get(parentOf(doc, target)) ?? []).filter((id) => (doc.blocks[id]!.at?.[0] ?? 0) >= from)
}

function parentBehind(doc: Document, specs: Specs, from: { source: string; handle: string }): string {
  return isInner(doc, specs, from) ? from.source : parentOf(doc, from.source)
}

/** The handles of a container that lead to blocks inside it. */
function isInner(doc: Document, specs: Specs, from: { source: string; handle: string }): boolean {
  return from.handle === 'body' || (from.handle === 'finally' && kindOf(doc, from.source, specs) !== null)
}

function isEmptyBody(doc: Document, container: string): boolean {
  return !(indexOf(doc).outOf.get(container) ?? []).some((edge) => edge.handle === 'body')
}

function refuse(reason: string): null {
  toast(reason, 'wait')
  return null
}
