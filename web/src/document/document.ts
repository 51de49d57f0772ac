// Questions about a document: parents and children, edges, the handles of a block, allowed connections. Pure;
// the document's own JSON is the state, so fields that are unknown here survive every edit.

import type { JsonObject } from '../api/schemas'
import type { Block, BlockSpec, Document, Edge, Note, Point, UiHint } from '../api/types'

export type Specs = ReadonlyMap<string, BlockSpec>
export const NO_SPECS: Specs = new Map()
export const NESTING_MAX = 10
export const ID = /^[A-Za-z0-9_.-]{1,128}$/

/** An edge with what is derived: `id` from its ends (stable while it is unchanged), `index` in `doc.edges`. */
export interface EdgeItem {
  id: string
  index: number
  source: string
  handle: string
  target: string
}

export interface DocIndex {
  /** Children by container id, '' for the outermost; in document order. */
  children: ReadonlyMap<string, string[]>
  edges: readonly EdgeItem[]
  edge: ReadonlyMap<string, EdgeItem>
  into: ReadonlyMap<string, EdgeItem[]>
  outOf: ReadonlyMap<string, EdgeItem[]>
  /** Blocks of cleanups: what `finally` handles lead to, and what follows from it in the same container. */
  cleanups: ReadonlySet<string>
}

const indexes = new WeakMap<Document, DocIndex>()

/** Built once for each document value. */
export function indexOf(doc: Document): DocIndex {
  let index = indexes.get(doc)
  if (!index) indexes.set(doc, (index = buildIndex(doc)))
  return index
}

/** The name of a new draft. Nothing is published under it. */
export const UNTITLED = 'untitled'

export function emptyDocument(name = UNTITLED): Document {
  return {
    format: 'weft/1',
    name,
    description: '',
    blocks: { start: { type: 'start', name: 'Start', at: [0, 0] } },
    edges: [],
  }
}

export function nameOf(doc: Document, id: string): string {
  return doc.blocks[id]?.name?.trim() || id
}

/** The container a block is in; '' for the outermost, also when `parent` names nothing. */
export function parentOf(doc: Document, id: string): string {
  const parent = doc.blocks[id]?.parent
  return parent && parent !== id && doc.blocks[parent] ? parent : ''
}

/** Containers around a block, innermost first. Safe when containers hold each other. */
export function chainOf(doc: Document, id: string): string[] {
  const chain: string[] = []
  for (let at = parentOf(doc, id); at && !chain.includes(at) && at !== id; at = parentOf(doc, at)) chain.push(at)
  return chain
}

export function isInside(doc: Document, id: string, container: string): boolean {
  return chainOf(doc, id).includes(container)
}

/** The ids and everything inside them, in document order. */
export function withDescendants(doc: Document, ids: Iterable<string>): string[] {
  const wanted = new Set(ids)
  return Object.keys(doc.blocks).filter((id) => wanted.has(id) || chainOf(doc, id).some((c) => wanted.has(c)))
}

/** Those of `ids` that lie in none of the others. */
export function rootsOf(doc: Document, ids: Iterable<string>): string[] {
  const wanted = new Set(ids)
  return [...wanted].filter((id) => doc.blocks[id] && !chainOf(doc, id).some((c) => wanted.has(c)))
}

/** Position on the canvas, containers added up. */
export function absoluteAt(doc: Document, id: string): Point {
  let [x, y] = doc.blocks[id]?.at ?? [0, 0]
  for (const container of chainOf(doc, id)) {
    const at = doc.blocks[container]?.at ?? [0, 0]
    x += at[0]
    y += at[1]
  }
  return [x, y]
}

export function containerKind(block: Block | undefined, spec?: BlockSpec): 'loop' | 'parallel' | null {
  if (spec) return spec.container
  return block?.type === 'loop' || block?.type === 'parallel' ? block.type : null
}

export function kindOf(doc: Document, id: string, specs: Specs = NO_SPECS): 'loop' | 'parallel' | null {
  const block = doc.blocks[id]
  return block ? containerKind(block, specs.get(block.type)) : null
}

/** A loop or a parallel with nothing inside it. */
export function isEmptyContainer(doc: Document, id: string, specs: Specs = NO_SPECS): boolean {
  return kindOf(doc, id, specs) !== null && !indexOf(doc).children.has(id)
}

export function isTrigger(block: Block | undefined, specs: Specs = NO_SPECS): boolean {
  return !!block && (specs.get(block.type)?.trigger ?? block.type === 'start')
}

export interface NamedHandle {
  id: string
  title: string
}

/** Handles that a block's params create, each a row on its card: cases, routes (and the default), actions. */
export function namedHandles(block: Block, spec?: BlockSpec): NamedHandle[] {
  const params = block.params ?? {}
  switch (block.type) {
    case 'condition':
      return listed(params.cases, 'Else')
    case 'router': {
      const routes = listed(params.routes, '')
      const other = params.default
      return typeof other === 'string' && other && !routes.some((r) => r.id === other)
        ? [...routes, { id: other, title: 'Default' }]
        : routes
    }
    case 'approval': {
      const actions = params.actions === undefined || params.actions === null ? ['approve', 'reject'] : params.actions
      return (Array.isArray(actions) ? actions : [])
        .filter((a): a is string => typeof a === 'string')
        .map((id) => ({ id, title: capital(id.replace(/[_-]/g, ' ')) }))
    }
    default:
      return hintedHandles(params, spec)
  }
}

type HandleHint = NonNullable<UiHint['handles']>

/** Params of a block type that make handles (`x-ui.handles`), in the order the form shows them. */
export function handleParams(spec: BlockSpec | undefined): [string, HandleHint][] {
  const named = Object.entries(spec?.params.properties ?? {}).flatMap(
    ([name, schema]): [string, HandleHint, number][] => {
      const hint = schema['x-ui']
      return hint?.handles ? [[name, hint.handles, hint.order ?? 1e6]] : []
    },
  )
  return named.sort((a, b) => a[2] - b[2]).map(([name, hint]) => [name, hint])
}

/** Handles of a block type that is not built in, as its params' hints say. */
function hintedHandles(params: JsonObject, spec: BlockSpec | undefined): NamedHandle[] {
  const found = handleParams(spec).flatMap(([name, hint]): NamedHandle[] => {
    const value = params[name] ?? spec?.params.properties?.[name]?.default
    if (hint === 'id') return listed(value, '')
    if (hint === 'value') return typeof value === 'string' && value ? [{ id: value, title: value }] : []
    return Array.isArray(value)
      ? value
          .filter((item) => typeof item === 'string' && item !== '')
          .map((id) => ({ id: String(id), title: String(id) }))
      : []
  })
  return found.filter((handle, i) => found.findIndex((other) => other.id === handle.id) === i)
}

/** What a branch of a block is called: the title of a case, route or button, else a word for the fixed ones. */
export function handleTitle(block: Block, handle: string, spec?: BlockSpec): string {
  const named = namedHandles(block, spec).find((each) => each.id === handle)
  if (named) return named.title
  const inside = containerKind(block, spec) !== null
  return (
    { body: 'Each iteration', out: inside ? 'When done' : 'Next', error: 'On error', finally: 'Finally' }[handle] ??
    handle
  )
}

/** The same of a block of a document, which may be gone. */
export function routeTitle(doc: Document, id: string, route: string, specs: Specs = NO_SPECS): string {
  const block = doc.blocks[id]
  return block ? handleTitle(block, route, specs.get(block.type)) : route
}

/** All handles an edge may leave this block by. Unknown types have `out` and `error`. */
export function handlesOf(block: Block, specs: Specs = NO_SPECS): string[] {
  const spec = specs.get(block.type)
  if (block.type === 'note' || spec?.category === 'annotation') return []
  if (containerKind(block, spec)) return ['body', 'out', 'error', 'finally']
  const branching = block.type === 'condition' || block.type === 'router'
  const fixed = spec ? spec.handles : branching ? [] : ['out']
  const named = namedHandles(block, spec).map((h) => h.id)
  return isTrigger(block, specs) ? [...fixed, ...named, 'finally'] : [...fixed, ...named, 'error']
}

/** Why this edge cannot be, in words; null when it can. `ignore`: the id of an edge that is being replaced. */
export function checkEdge(doc: Document, edge: Edge, specs: Specs = NO_SPECS, ignore?: string): string | null {
  const source = doc.blocks[edge.source]
  const target = doc.blocks[edge.target]
  const handle = edge.handle ?? 'out'
  if (!source || !target) return 'This block no longer exists.'
  if (handlesOf(source, specs).length === 0) return `${nameOf(doc, edge.source)} is a note. Notes cannot be connected.`
  if (target.type === 'note' || specs.get(target.type)?.category === 'annotation')
    return `${nameOf(doc, edge.target)} is a note. Notes cannot be connected.`
  if (isTrigger(target, specs)) return `${nameOf(doc, edge.target)} is a trigger. Nothing can be connected to it.`
  if (edge.source === edge.target) return 'A block cannot be connected to itself. Use a loop to repeat it.'
  if (!handlesOf(source, specs).includes(handle)) return `${nameOf(doc, edge.source)} has no handle “${handle}”.`
  if (handle === 'body' || (handle === 'finally' && kindOf(doc, edge.source, specs))) {
    if (parentOf(doc, edge.target) !== edge.source)
      return `Connect this handle to a block inside ${nameOf(doc, edge.source)}.`
  } else if (parentOf(doc, edge.source) !== parentOf(doc, edge.target)) {
    if (parentOf(doc, edge.target) === edge.source)
      return 'To connect to a block inside, use the handle on the inner left side of the container.'
    return 'A connection cannot cross the border of a container.'
  }
  const index = indexOf(doc)
  const twin = index.edges.find((e) => e.source === edge.source && e.handle === handle && e.target === edge.target)
  if (twin && twin.id !== ignore) return 'These blocks are already connected.'
  if (!leadsInside(doc, edge) && reaches(index, edge.target, edge.source, ignore))
    return 'This would create a cycle. Use a loop to repeat blocks.'
  return null
}

/** Why these blocks cannot be put into `parent` ('' is the canvas), in words; null when they can. */
export function checkParent(
  doc: Document,
  ids: readonly string[],
  parent: string,
  specs: Specs = NO_SPECS,
): string | null {
  if (parent && !kindOf(doc, parent, specs)) return `${nameOf(doc, parent)} is not a container.`
  for (const id of ids) {
    if (parent && isTrigger(doc.blocks[id], specs))
      return `${nameOf(doc, id)} is a trigger and cannot be inside a container.`
    if (parent === id || (parent && isInside(doc, parent, id))) return 'A container cannot be moved into itself.'
    if (parent && chainOf(doc, parent).length + 1 + depthOf(doc, id, specs) > NESTING_MAX)
      return `Containers can be nested up to ${NESTING_MAX} levels deep.`
  }
  return null
}

/** Everything that leads to `id` inside its container, with its distance in edges (1: right before it). */
export function upstreamOf(doc: Document, id: string): Map<string, number> {
  return walk(id, (at) => (indexOf(doc).into.get(at) ?? []).filter((e) => !leadsInside(doc, e)).map((e) => e.source))
}

/** Everything that `id` leads to inside its container, with its distance. */
export function downstreamOf(doc: Document, id: string): Map<string, number> {
  return walk(id, (at) => (indexOf(doc).outOf.get(at) ?? []).filter((e) => !leadsInside(doc, e)).map((e) => e.target))
}

/** Blocks of the whole document in reading order: by container, along the edges, ties by position. */
export function readingOrder(doc: Document): string[] {
  const { children, into } = indexOf(doc)
  const out: string[] = []
  const visit = (container: string): void => {
    const left = new Set(children.get(container) ?? [])
    const place = (id: string): number => (doc.blocks[id]?.at?.[0] ?? 0) * 10_000 + (doc.blocks[id]?.at?.[1] ?? 0)
    while (left.size) {
      const ready = [...left].filter(
        (id) => !(into.get(id) ?? []).some((e) => !leadsInside(doc, e) && left.has(e.source)),
      )
      const next = (ready.length ? ready : [...left]).sort((a, b) => place(a) - place(b))
      for (const id of ready.length ? next : next.slice(0, 1)) {
        left.delete(id)
        out.push(id)
        if (children.has(id)) visit(id)
      }
    }
  }
  visit('')
  const seen = new Set(out)
  return [...out, ...Object.keys(doc.blocks).filter((id) => !seen.has(id))]
}

/** `base`, or `base-2`, `base-3`, ... : an id that is not used. */
export function freshId(used: (id: string) => boolean, base: string): string {
  const plain =
    base
      .toLowerCase()
      .replace(/[^a-z0-9_.-]+/g, '-')
      .replace(/^-+|-+$/g, '')
      .slice(0, 100) || 'block'
  if (!used(plain)) return plain
  const stem = plain.replace(/-\d+$/, '')
  for (let n = 2; ; n++) if (!used(`${stem}-${n}`)) return `${stem}-${n}`
}

/** `Draft`, or `Draft 2`, ...: a name that no block has. */
export function freshName(used: ReadonlySet<string>, base: string): string {
  if (!used.has(base)) return base
  const stem = base.replace(/ \d+$/, '')
  for (let n = 2; ; n++) if (!used.has(`${stem} ${n}`)) return `${stem} ${n}`
}

/** Id of a note: its own, or one made of its place in the list. */
export function noteId(note: Note, index: number): string {
  return note.id ?? `note-${index}`
}

function buildIndex(doc: Document): DocIndex {
  const children = new Map<string, string[]>([['', []]])
  for (const id of Object.keys(doc.blocks)) push(children, parentOf(doc, id), id)
  const edges: EdgeItem[] = []
  const edge = new Map<string, EdgeItem>()
  const into = new Map<string, EdgeItem[]>()
  const outOf = new Map<string, EdgeItem[]>()
  for (const [index, raw] of doc.edges.entries()) {
    const handle = raw.handle ?? 'out'
    const base = `${raw.source}:${handle}>${raw.target}`
    let id = base
    for (let n = 2; edge.has(id); n++) id = `${base}#${n}`
    const item = { id, index, source: raw.source, handle, target: raw.target }
    edges.push(item)
    edge.set(id, item)
    push(into, raw.target, item)
    push(outOf, raw.source, item)
  }
  const cleanups = new Set<string>()
  const stack = edges.filter((each) => each.handle === 'finally').map((each) => each.target)
  while (stack.length) {
    const at = stack.pop()!
    if (cleanups.has(at)) continue
    cleanups.add(at)
    for (const each of outOf.get(at) ?? []) if (!leadsInside(doc, each)) stack.push(each.target)
  }
  return { children, edges, edge, into, outOf, cleanups }
}

/** Does the edge lead from a container to a block inside it: to its body or its cleanup? */
export function leadsInside(doc: Document, edge: Pick<EdgeItem, 'source' | 'target'> & { handle?: string }): boolean {
  return edge.handle === 'body' || (edge.handle === 'finally' && parentOf(doc, edge.target) === edge.source)
}

function walk(from: string, next: (id: string) => string[]): Map<string, number> {
  const seen = new Map<string, number>()
  let front = [from]
  for (let distance = 1; front.length; distance++) {
    const found: string[] = []
    for (const at of front)
      for (const id of next(at))
        if (id !== from && !seen.has(id)) {
          seen.set(id, distance)
          found.push(id)
        }
    front = found
  }
  return seen
}

function reaches(index: DocIndex, from: string, to: string, ignore?: string): boolean {
  const seen = new Set([from])
  const stack = [from]
  while (stack.length) {
    const at = stack.pop()!
    if (at === to) return true
    for (const e of index.outOf.get(at) ?? []) {
      if (e.handle === 'body' || e.id === ignore || seen.has(e.target)) continue
      seen.add(e.target)
      stack.push(e.target)
    }
  }
  return false
}

/** How many containers deep the inside of `id` goes; 0 for a plain block. */
function depthOf(doc: Document, id: string, specs: Specs): number {
  if (!kindOf(doc, id, specs)) return 0
  const inside = (indexOf(doc).children.get(id) ?? []).map((child) => depthOf(doc, child, specs))
  return 1 + Math.max(0, ...inside)
}

function listed(value: unknown, emptyTitle: string): NamedHandle[] {
  if (!Array.isArray(value)) return []
  return value.flatMap((item: unknown) => {
    if (!item || typeof item !== 'object' || Array.isArray(item)) return []
    const { id, title, when } = item as { id?: unknown; title?: unknown; when?: unknown }
    if (typeof id !== 'string') return []
    const otherwise = when === undefined || when === null || when === '' ? emptyTitle : ''
    return [{ id, title: typeof title === 'string' && title ? title : otherwise || id }]
  })
}

function capital(text: string): string {
  return text.charAt(0).toUpperCase() + text.slice(1)
}

function push<K, V>(map: Map<K, V[]>, key: K, value: V): void {
  const list = map.get(key)
  if (list) list.push(value)
  else map.set(key, [value])
}

export type { Block, Document, Edge, Note, Point }
