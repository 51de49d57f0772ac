// Every edit of a document is a command. `applyCommand` is pure: it returns the new document and the command that undoes
// it. A command that cannot be done leaves the document as it is (the same object).

import type { Json, JsonObject } from '../api/schemas'
import type { Block, Document, Edge, Note, Point, Policy } from '../api/types'
import { roomBehind } from '../geometry/room'
import { PAD, sizeOf, snap, up } from '../geometry/size'
import { repair } from '../net/repair'
import { keepReferences, refName, rewriteBlock } from '../refs/scope'
import { normalize, parse, withHead } from '../refs/parse'
import { renameVariable } from '../refs/renameVariable'
import {
  absoluteAt,
  chainOf,
  checkParent,
  freshId,
  freshName,
  handleParams,
  handlesOf,
  indexOf,
  isInside,
  isTrigger,
  kindOf,
  nameOf,
  NO_SPECS,
  noteId,
  parentOf,
  rootsOf,
  withDescendants,
  type Specs,
} from '../document/document'
import type { Tidy } from '../geometry/layout'

export type Command =
  /** `block.at` is relative to `block.parent`. `edges` join it at once. */
  | { type: 'addBlock'; id: string; block: Block; edges?: Edge[] }
  /** With everything inside them. A block with one edge in (or several) and one out is healed: its neighbours are joined. */
  | { type: 'removeBlocks'; ids: string[]; notes?: string[] }
  /** New positions, relative to the container. Containers grow to hold their children. */
  | { type: 'moveBlocks'; to: Record<string, Point>; notes?: Record<string, Point> }
  | { type: 'resize'; id: string; size: Point; at?: Point }
  /** Top-level params; undefined removes one. Edges by handles that are gone go too. */
  | { type: 'setParams'; id: string; params: Record<string, Json | undefined> }
  /** One value inside the params; undefined removes it. */
  | { type: 'setParam'; id: string; path: (string | number)[]; value: Json | undefined }
  /** A new name; every reference to the block follows. */
  | { type: 'rename'; id: string; name: string }
  /** A workflow variable gets another name; what reads and writes it follows. */
  | { type: 'renameVariable'; from: string; to: string }
  /** The id of a case, route or action; its edges follow. */
  | { type: 'renameHandle'; id: string; from: string; to: string }
  /** Fields of the policy; undefined removes one. */
  | { type: 'setPolicy'; id: string; policy: { [K in keyof Policy]?: Policy[K] | undefined } }
  /** Other fields of a block (assign, description, type, ...); undefined removes one. */
  | { type: 'setBlock'; id: string; fields: { [K in keyof Block]?: Block[K] | undefined } }
  | { type: 'setEnabled'; ids: string[]; enabled: boolean }
  | { type: 'addEdge'; edge: Edge }
  /** Ids of document.ts. */
  | { type: 'removeEdges'; ids: string[] }
  /** Put blocks into a container ('' is the canvas). They stay where they are, or go to the absolute positions of `to`.
   * Edges that would cross a border are dropped. */
  | { type: 'reparent'; ids: string[]; parent: string; to?: Record<string, Point> }
  /** `at`: absolute position of the top left corner. See `pasteIds` for the ids that result. */
  | { type: 'paste'; clip: Clip; at: Point; parent: string }
  /** A whole new document, as one step. What is equal keeps its identity. */
  | { type: 'replaceDoc'; doc: Document }
  | {
      type: 'setMeta'
      meta: { [K in 'name' | 'description' | 'input' | 'variables' | 'settings']?: Document[K] | undefined }
    }
  | { type: 'addNote'; note: Note & { id: string } }
  | { type: 'setNote'; id: string; note: Partial<Note> }
  | { type: 'removeNotes'; ids: string[] }
  /** Result of the layout: positions relative to containers, sizes of containers, positions of notes. */
  | Tidy
  | { type: 'batch'; label?: string; commands: Command[] }
  /** Back to a document as it was: what every inverse is. Documents share what they have in common, so this is cheap. */
  | { type: 'restore'; doc: Document; label: string }

/** Blocks on the clipboard: JSON text, also readable by people. Roots carry absolute positions and no parent. */
export interface Clip {
  format: 'weft-clip/1'
  blocks: Record<string, Block>
  edges: Edge[]
  notes?: Note[]
}

/** The document after the command, and the command that undoes it. */
export function applyCommand(doc: Document, command: Command, specs: Specs = NO_SPECS): [Document, Command] {
  return [step(doc, command, specs), { type: 'restore', doc, label: labelOf(command, doc) }]
}

/** What a command does, for menus and for the screen reader: "move 3 blocks". */
export function labelOf(command: Command, doc?: Document): string {
  const blocks = (n: number, one?: string): string =>
    n === 1 && one ? `“${doc ? nameOf(doc, one) : one}”` : `${n} blocks`
  switch (command.type) {
    case 'addBlock':
      return `add “${command.block.name ?? command.id}”`
    case 'removeBlocks':
      return command.ids.length ? `delete ${blocks(command.ids.length, command.ids[0])}` : 'delete notes'
    case 'moveBlocks':
      return `move ${blocks(Object.keys(command.to).length, Object.keys(command.to)[0])}`
    case 'resize':
      return `resize ${blocks(1, command.id)}`
    case 'setParams':
    case 'setParam':
    case 'setPolicy':
    case 'setBlock':
    case 'renameHandle':
      return `change ${blocks(1, command.id)}`
    case 'renameVariable':
    case 'rename':
      return `rename to “${command.type === 'rename' ? command.name : command.to}”`
    case 'setEnabled':
      return `${command.enabled ? 'enable' : 'disable'} ${blocks(command.ids.length, command.ids[0])}`
    case 'addEdge':
      return 'connect'
    case 'removeEdges':
      return command.ids.length === 1 ? 'delete connection' : `delete ${command.ids.length} connections`
    case 'reparent':
      return command.parent
        ? `move into “${doc ? nameOf(doc, command.parent) : command.parent}”`
        : 'move out of container'
    case 'paste':
      return `paste ${blocks(Object.keys(command.clip.blocks).length)}`
    case 'replaceDoc':
      return 'edit JSON'
    case 'setMeta':
      return 'change workflow settings'
    case 'addNote':
      return 'add note'
    case 'setNote':
      return 'change note'
    case 'removeNotes':
      return 'delete note'
    case 'tidy':
      return 'tidy'
    case 'batch':
      return command.label ?? (command.commands[0] ? labelOf(command.commands[0], doc) : 'nothing')
    case 'restore':
      return command.label
  }
}

/** The blocks (with what is inside them), their inner edges and the notes, to be pasted. */
export function copy(doc: Document, ids: readonly string[], notes: readonly string[] = []): Clip {
  const all = new Set(withDescendants(doc, ids))
  const blocks: Record<string, Block> = {}
  for (const id of all) {
    const block = doc.blocks[id]!
    if (all.has(parentOf(doc, id))) blocks[id] = block
    else {
      const { parent: _, ...rest } = block
      blocks[id] = { ...rest, at: absoluteAt(doc, id) }
    }
  }
  const edges = doc.edges.filter((e) => all.has(e.source) && all.has(e.target))
  const copied = (doc.notes ?? []).filter((note, i) => notes.includes(noteId(note, i)))
  return { format: 'weft-clip/1', blocks, edges, ...(copied.length ? { notes: copied } : {}) }
}

/** A clip from clipboard text: our own, or a whole document; null when it is neither. */
export function readClip(text: string): Clip | null {
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch {
    return null
  }
  if (!isObject(value) || !isObject(value.blocks)) return null
  if (!Object.values(value.blocks).every((block) => isObject(block) && typeof block.type === 'string')) return null
  const { blocks, edges: all, notes = [] } = repair(value).document
  const edges = all.filter((e) => blocks[e.source] && blocks[e.target])
  return { format: 'weft-clip/1', blocks, edges, ...(notes.length ? { notes } : {}) }
}

/** Old id -> new id for a paste into `doc`; deterministic, so it can be asked before. Triggers are left out in containers. */
export function pasteIds(doc: Document, clip: Clip, parent = '', specs: Specs = NO_SPECS): Record<string, string> {
  const used = new Set(Object.keys(doc.blocks))
  const ids: Record<string, string> = {}
  for (const [id, block] of Object.entries(clip.blocks)) {
    if (parent && isTrigger(block, specs)) continue
    const fresh = freshId((other) => used.has(other), id)
    used.add(fresh)
    ids[id] = fresh
  }
  return ids
}

function step(doc: Document, command: Command, specs: Specs): Document {
  switch (command.type) {
    case 'restore':
      return command.doc
    case 'batch':
      return command.commands.reduce((at, next) => step(at, next, specs), doc)
    case 'replaceDoc':
      return share(doc as unknown as Json, command.doc as unknown as Json) as unknown as Document
    case 'addBlock': {
      if (doc.blocks[command.id]) return doc
      const added = {
        ...doc,
        blocks: { ...doc.blocks, [command.id]: command.block },
        edges: [...doc.edges, ...(command.edges ?? [])],
      }
      return grow(added, [parentOf(added, command.id)], specs)
    }
    case 'removeBlocks':
      return removeBlocks(doc, command.ids, command.notes ?? [])
    case 'moveBlocks': {
      const at = pick(command.to, doc)
      const moved = setNotes(
        patchBlocks(
          doc,
          mapValues(at, (point) => ({ at: point })),
        ),
        command.notes,
      )
      return grow(
        moved,
        Object.keys(at).map((id) => parentOf(moved, id)),
        specs,
      )
    }
    case 'resize': {
      if (!doc.blocks[command.id]) return doc
      const sized = patchBlocks(doc, {
        [command.id]: { size: command.size, ...(command.at ? { at: command.at } : {}) },
      })
      return grow(sized, [command.id], specs)
    }
    case 'setParams':
      return withParams(doc, command.id, specs, (params) => merged(params, command.params))
    case 'setParam':
      return withParams(doc, command.id, specs, (params) => setAt(params, command.path, command.value) as JsonObject)
    case 'rename': {
      const block = doc.blocks[command.id]
      const name = command.name.trim()
      if (!block || name === nameOf(doc, command.id)) return doc
      return keepReferences(doc, patchBlocks(doc, { [command.id]: { name: name || undefined } }), specs)
    }
    case 'renameVariable':
      return renameVariable(doc, command.from, command.to, specs)
    case 'renameHandle':
      return renameHandle(doc, command.id, command.from, command.to, specs)
    case 'setPolicy': {
      const block = doc.blocks[command.id]
      if (!block) return doc
      const policy = merged(block.policy ?? {}, command.policy) as Policy
      return patchBlocks(doc, { [command.id]: { policy: Object.keys(policy).length ? policy : undefined } })
    }
    case 'setBlock':
      return dropLostEdges(
        doc,
        patchBlocks(doc, doc.blocks[command.id] ? { [command.id]: command.fields } : {}),
        command.id,
        specs,
      )
    case 'setEnabled':
      return patchBlocks(
        doc,
        Object.fromEntries(
          command.ids
            .filter((id) => doc.blocks[id])
            .map((id) => [id, { enabled: command.enabled ? undefined : false }]),
        ),
      )
    case 'addEdge': {
      const { source, target, handle = 'out' } = command.edge
      if (!doc.blocks[source] || !doc.blocks[target] || indexOf(doc).edge.has(`${source}:${handle}>${target}`))
        return doc
      const { handle: _, ...rest } = command.edge
      return { ...doc, edges: [...doc.edges, handle === 'out' ? rest : { ...rest, handle }] }
    }
    case 'removeEdges': {
      const gone = new Set(command.ids.map((id) => indexOf(doc).edge.get(id)?.index).filter((i) => i !== undefined))
      return gone.size ? { ...doc, edges: doc.edges.filter((_, i) => !gone.has(i)) } : doc
    }
    case 'reparent':
      return reparent(doc, command.ids, command.parent, command.to ?? {}, specs)
    case 'paste':
      return paste(doc, command.clip, command.at, command.parent, specs)
    case 'setMeta':
      return merged(doc, command.meta as Partial<Document>) as Document
    case 'addNote':
      return { ...doc, notes: [...(doc.notes ?? []), command.note] }
    case 'setNote':
      return patchNotes(doc, (note, id) => (id === command.id ? { ...note, ...command.note } : note))
    case 'removeNotes':
      return doc.notes ? { ...doc, notes: doc.notes.filter((note, i) => !command.ids.includes(noteId(note, i))) } : doc
    case 'tidy': {
      const patches: Record<string, Partial<Block>> = mapValues(pick(command.at, doc), (at) => ({ at }))
      for (const [id, size] of Object.entries(command.size ?? {}))
        if (doc.blocks[id]) patches[id] = { ...patches[id], size }
      return setNotes(patchBlocks(doc, patches), command.notes)
    }
  }
}

function removeBlocks(doc: Document, ids: string[], notes: string[]): Document {
  const gone = new Set(withDescendants(doc, ids))
  let healed = doc.edges
  for (const id of rootsOf(doc, ids)) healed = heal(healed, id)
  const blocks = Object.fromEntries(Object.entries(doc.blocks).filter(([id]) => !gone.has(id)))
  const edges = healed.filter((e) => !gone.has(e.source) && !gone.has(e.target))
  const next = { ...doc, blocks, edges }
  return notes.length ? step(next, { type: 'removeNotes', ids: notes }, NO_SPECS) : next
}

/** Join what led to `id` with what it led to, when it had exactly one edge in and one out by `out`. */
function heal(edges: Edge[], id: string): Edge[] {
  const into = edges.filter((e) => e.target === id)
  const outOf = edges.filter((e) => e.source === id && (e.handle ?? 'out') !== 'body')
  const [before, after] = [into[0], outOf[0]]
  if (into.length !== 1 || outOf.length !== 1 || !before || !after || (after.handle ?? 'out') === 'error') return edges
  const joined = { ...before, target: after.target }
  const twin = edges.some(
    (e) => e.source === joined.source && e.target === joined.target && (e.handle ?? 'out') === (joined.handle ?? 'out'),
  )
  return edges.flatMap((e) => (e === before ? (twin ? [] : [joined]) : e === after ? [] : [e]))
}

function renameHandle(doc: Document, id: string, from: string, to: string, specs: Specs): Document {
  const block = doc.blocks[id]
  if (!block || from === to) return doc
  const params = { ...block.params }
  const hinted = handleParams(specs.get(block.type))
  for (const list of ['cases', 'routes', ...hinted.filter(([, hint]) => hint === 'id').map(([name]) => name)]) {
    const items = params[list]
    if (Array.isArray(items))
      params[list] = items.map((item) => (isObject(item) && item.id === from ? { ...item, id: to } : item)) as Json[]
  }
  for (const [name, hint] of hinted) {
    const value = params[name]
    if (hint === 'items' && Array.isArray(value)) params[name] = value.map((item) => (item === from ? to : item))
    else if (hint === 'value' && value === from) params[name] = to
  }
  if (block.type === 'approval') {
    const actions = Array.isArray(params.actions) ? params.actions : ['approve', 'reject']
    params.actions = actions.map((action) => (action === from ? to : action))
    if (params.on_expire === from) params.on_expire = to
  }
  if (block.type === 'router' && params.default === from) params.default = to
  const edges = doc.edges.map((e) => (e.source === id && e.handle === from ? { ...e, handle: to } : e))
  return { ...patchBlocks(doc, { [id]: { params } }), edges }
}

function reparent(doc: Document, ids: string[], parent: string, to: Record<string, Point>, specs: Specs): Document {
  const moving = rootsOf(doc, ids).filter((id) => checkParent(doc, [id], parent, specs) === null)
  if (!moving.length) return doc
  const base = parent ? absoluteAt(doc, parent) : [0, 0]
  const patches: Record<string, Partial<Block>> = {}
  for (const id of moving) {
    const at = to[id] ?? absoluteAt(doc, id)
    patches[id] = { parent: parent || undefined, at: [at[0] - base[0]!, at[1] - base[1]!] }
  }
  const moved = patchBlocks(doc, patches)
  const legal = moved.edges.filter((e) => {
    if (!moving.includes(e.source) && !moving.includes(e.target)) return true
    return e.handle === 'body' || (e.handle === 'finally' && kindOf(moved, e.source, specs))
      ? parentOf(moved, e.target) === e.source
      : parentOf(moved, e.source) === parentOf(moved, e.target)
  })
  return grow(legal.length === moved.edges.length ? moved : { ...moved, edges: legal }, [parent], specs)
}

function paste(doc: Document, clip: Clip, at: Point, parent: string, specs: Specs): Document {
  const ids = pasteIds(doc, clip, parent, specs)
  const source: Document = { format: 'weft/1', blocks: clip.blocks, edges: clip.edges }
  const roots = Object.keys(ids).filter((id) => !parentOf(source, id))
  const corners = [
    ...roots.map((id) => clip.blocks[id]!.at ?? [0, 0]),
    ...(clip.notes ?? []).map((note) => note.at ?? [0, 0]),
  ]
  if (!corners.length) return doc
  const left = Math.min(...corners.map(([x]) => x!))
  const top = Math.min(...corners.map(([, y]) => y!))
  const base = parent ? absoluteAt(doc, parent) : [0, 0]
  const shifted = (point: Point = [0, 0]): Point => [snap(at[0] + point[0] - left), snap(at[1] + point[1] - top)]
  const names = new Set(Object.keys(doc.blocks).map((id) => nameOf(doc, id)))
  const blocks = { ...doc.blocks }
  for (const [id, fresh] of Object.entries(ids)) {
    const { parent: holder, ...block } = clip.blocks[id]!
    const name = freshName(names, nameOf(source, id))
    names.add(name)
    const outer = holder && ids[holder] ? ids[holder] : parent
    const point = shifted(block.at)
    blocks[fresh] = {
      ...block,
      name,
      ...(outer ? { parent: outer } : {}),
      at: holder && ids[holder] ? (block.at ?? [0, 0]) : [point[0] - base[0]!, point[1] - base[1]!],
    }
  }
  const edges = clip.edges.flatMap((e) => {
    const [from, target] = [ids[e.source], ids[e.target]]
    return from && target ? [{ ...e, source: from, target }] : []
  })
  const used = new Set((doc.notes ?? []).map(noteId))
  const notes = (clip.notes ?? []).map((note, i) => {
    const id = freshId((other) => used.has(other), noteId(note, i))
    used.add(id)
    return { ...note, id, at: shifted(note.at) }
  })
  const pasted: Document = {
    ...doc,
    blocks,
    edges: [...doc.edges, ...edges],
    ...(notes.length ? { notes: [...(doc.notes ?? []), ...notes] } : {}),
  }
  return grow(remapReferences(pasted, source, ids, specs), [parent], specs)
}

/** References among pasted blocks lead to the copies, not to the originals. */
function remapReferences(doc: Document, source: Document, ids: Record<string, string>, specs: Specs): Document {
  const byName = new Map<string, string>()
  for (const id of Object.keys(ids).reverse()) byName.set(normalize(id), id)
  for (const id of Object.keys(ids).reverse()) byName.set(normalize(nameOf(source, id)), id)
  const blocks = { ...doc.blocks }
  for (const fresh of Object.values(ids)) {
    blocks[fresh] = rewriteBlock(blocks[fresh]!, specs, (found) => {
      const segments = found.env ? undefined : parse(found.text)?.segments
      for (let used = segments?.length ?? 0; used > 0; used--) {
        const name = segments!.slice(0, used)
        const old = name.every((part) => typeof part === 'string') ? byName.get(normalize(name.join('.'))) : undefined
        if (old !== undefined) return withHead(found.text, used, refName(doc, ids[old]!))
      }
      return null
    })
  }
  return { ...doc, blocks }
}

/** Containers, from these outwards, grow so that their children are inside. What is drawn where stays where it is, but for blocks
 * behind or below that a container would grow into: those move on. */
function grow(doc: Document, containers: string[], specs: Specs): Document {
  const todo = new Set(containers.filter(Boolean).flatMap((id) => [id, ...chainOf(doc, id)]))
  const order = [...todo].sort((a, b) => chainOf(doc, b).length - chainOf(doc, a).length)
  return order.reduce((at, id) => growOne(at, id, specs), doc)
}

function growOne(doc: Document, id: string, specs: Specs): Document {
  const block = doc.blocks[id]
  const children = (indexOf(doc).children.get(id) ?? []).filter((child) => doc.blocks[child]?.at)
  if (!block || !kindOf(doc, id, specs) || !children.length) return doc
  const spec = specs.get(block.type)
  const boxes = children.map((child) => {
    const inner = doc.blocks[child]!
    const [w, h] = sizeOf(inner, specs.get(inner.type))
    const below = kindOf(doc, child, specs) ? MARGIN : PAD.bottom // A card grows in a run: a line that waits, an error.
    return { x: inner.at![0], y: inner.at![1], right: inner.at![0] + w, bottom: inner.at![1] + h + below }
  })
  const dx = up(Math.max(0, MARGIN - Math.min(...boxes.map((b) => b.x))))
  const dy = up(Math.max(0, PAD.top - Math.min(...boxes.map((b) => b.y))))
  const [w, h] = sizeOf(block, spec)
  const size: Point = [
    Math.max(w + dx, up(Math.max(...boxes.map((b) => b.right)) + dx + MARGIN)),
    Math.max(h + dy, up(Math.max(...boxes.map((b) => b.bottom)) + dy)),
  ]
  const patches: Record<string, Partial<Block>> = {}
  if (dx || dy) {
    const at = block.at ?? [0, 0]
    patches[id] = { at: [at[0] - dx, at[1] - dy] }
    for (const child of children) {
      const [x, y] = doc.blocks[child]!.at!
      patches[child] = { at: [x + dx, y + dy] }
    }
  }
  if (size[0] !== w || size[1] !== h) {
    patches[id] = { ...patches[id], size }
    const [x, y] = block.at ?? [0, 0]
    const others = (indexOf(doc).children.get(parentOf(doc, id)) ?? [])
      .filter((other) => other !== id && doc.blocks[other]!.at)
      .map((other) => {
        const beside = doc.blocks[other]!
        const [bw, bh] = sizeOf(beside, specs.get(beside.type))
        return { id: other, x: beside.at![0], y: beside.at![1], w: bw, h: bh }
      })
    const moves = roomBehind({ x, y, w, h }, { x: x - dx, y: y - dy, w: size[0], h: size[1] }, others)
    for (const [other, at] of Object.entries(moves)) patches[other] = { at }
  }
  return patchBlocks(doc, patches)
}

const MARGIN = 16

function withParams(doc: Document, id: string, specs: Specs, change: (params: JsonObject) => JsonObject): Document {
  const block = doc.blocks[id]
  if (!block) return doc
  const params = change(block.params ?? {})
  const next = patchBlocks(doc, { [id]: { params: Object.keys(params).length || block.params ? params : undefined } })
  return grow(dropLostEdges(doc, next, id, specs), [parentOf(doc, id)], specs)
}

/** Edges of `id` by handles it had before and has no longer. */
function dropLostEdges(before: Document, after: Document, id: string, specs: Specs): Document {
  if (before === after || !before.blocks[id] || !after.blocks[id]) return after
  const now = new Set(handlesOf(after.blocks[id], specs))
  const lost = new Set(handlesOf(before.blocks[id], specs).filter((handle) => !now.has(handle)))
  if (!lost.size) return after
  return { ...after, edges: after.edges.filter((e) => e.source !== id || !lost.has(e.handle ?? 'out')) }
}

function patchBlocks(doc: Document, patches: Record<string, { [K in keyof Block]?: Block[K] | undefined }>): Document {
  const entries = Object.entries(patches)
  if (!entries.length) return doc
  const blocks = { ...doc.blocks }
  for (const [id, patch] of entries) blocks[id] = merged(blocks[id]!, patch) as Block
  return { ...doc, blocks }
}

function patchNotes(doc: Document, change: (note: Note, id: string) => Note): Document {
  return doc.notes ? { ...doc, notes: doc.notes.map((note, i) => change(note, noteId(note, i))) } : doc
}

function setNotes(doc: Document, at: Record<string, Point> | undefined): Document {
  if (!at || !Object.keys(at).length) return doc
  return patchNotes(doc, (note, id) => (at[id] ? { ...note, at: at[id] } : note))
}

/** `change` over `value`; undefined takes a field away. The same object when nothing changes. */
function merged<T extends object>(value: T, change: { [key: string]: unknown } | Partial<T>): T {
  const next = { ...value } as Record<string, unknown>
  let changed = false
  for (const [key, item] of Object.entries(change)) {
    if (item === undefined ? !(key in next) : Object.is(next[key], item)) continue
    changed = true
    if (item === undefined) delete next[key]
    else next[key] = item
  }
  return changed ? (next as T) : value
}

/** A copy of `value` with `item` at `path`; objects and lists on the way are made when missing. */
export function setAt(
  value: Json | undefined,
  path: readonly (string | number)[],
  item: Json | undefined,
): Json | undefined {
  const [head, ...rest] = path
  if (head === undefined) return item
  if (typeof head === 'number') {
    const list = Array.isArray(value) ? [...value] : []
    const inner = setAt(list[head], rest, item)
    if (inner === undefined) list.splice(head, 1)
    else list[head] = inner
    return list
  }
  const object: JsonObject = isObject(value) ? { ...(value as JsonObject) } : {}
  const inner = setAt(object[head], rest, item)
  if (inner === undefined) delete object[head]
  else object[head] = inner
  return object
}

/** `after`, with every part that equals the same part of `before` replaced by that very object. */
export function share(before: Json | undefined, after: Json): Json {
  if (before === after || typeof before !== 'object' || typeof after !== 'object' || !before || !after) return after
  if (Array.isArray(before) !== Array.isArray(after)) return after
  if (Array.isArray(after)) {
    const items = after.map((item, i) => share((before as Json[])[i], item))
    return items.length === (before as Json[]).length && items.every((item, i) => item === (before as Json[])[i])
      ? before
      : items
  }
  const old = before as JsonObject
  const keys = Object.keys(after)
  const entries = keys.map((key): [string, Json] => [key, share(old[key], after[key]!)])
  const sameOrder = Object.keys(old).length === keys.length && Object.keys(old).every((key, i) => key === keys[i])
  return sameOrder && entries.every(([key, item]) => item === old[key]) ? before : Object.fromEntries(entries)
}

function pick(points: Record<string, Point>, doc: Document): Record<string, Point> {
  return Object.fromEntries(Object.entries(points).filter(([id]) => doc.blocks[id]))
}

function mapValues<T, U>(record: Record<string, T>, change: (value: T) => U): Record<string, U> {
  return Object.fromEntries(Object.entries(record).map(([key, value]) => [key, change(value)]))
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

export { isInside }
