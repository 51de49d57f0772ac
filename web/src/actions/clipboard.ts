// Copy, paste and duplicate.

import { announce } from '../a11y'
import type { Document, Point } from '../api/types'
import { absoluteAt, indexOf, kindOf, nameOf, noteId, parentOf, rootsOf, type Specs } from '../document/document'
import { freePlace } from '../geometry/room'
import { NOTE_SIZE, PAD, sizeOf, snap, up } from '../geometry/size'
import { shownDocument } from '../state/collapsed'
import { copy, pasteIds, readClip, type Clip, type Command } from '../state/commands'
import { dispatch, docStore, specsOf } from '../state/doc'
import { select, uiStore } from '../state/ui'
import { toast } from '../ui/Toast'
import { containerAt } from './connect'
import { boxOf, absoluteBoxes, around, isEmptyBody } from './places'
import { focusNode, pointerOnScreen, reveal, toCanvas } from './view'

let copied: { text: string; pointer: { x: number; y: number } | null } | null = null

/** The selection as the text for the clipboard; null when nothing is selected. */
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
  if (left) toast('Triggers cannot be inside a container.', 'wait')
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
