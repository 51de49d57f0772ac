// Where blocks stand: moved, dropped into containers, wrapped, tidied.

import { announce } from '../a11y'
import type { Block, Edge, Point } from '../api/types'
import {
  absoluteAt,
  checkParent,
  freshId,
  freshName,
  indexOf,
  isTrigger,
  nameOf,
  noteId,
  parentOf,
  rootsOf,
  leadsInside,
} from '../document/document'
import { layout } from '../geometry/layout'
import { roomAround, type Box } from '../geometry/room'
import { CONTAINER_MIN, PAD, up } from '../geometry/size'
import { shownDocument } from '../state/collapsed'
import type { Command } from '../state/commands'
import { dispatch, docStore, specsOf } from '../state/doc'
import { select, uiStore } from '../state/ui'
import { containerAt } from './connect'
import { glide } from './inPlace'
import { boxesIn, around, isEmptyBody } from './places'
import { presetOf } from './presets'
import { refuse, toastUndo } from './undo'
import { focusNode } from './view'

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
