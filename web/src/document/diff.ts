// What is different between two documents, by blocks: added, removed, changed (and in what), moved only; connections; the
// workflow's own fields. Pure.

import { isObject } from '../net/json'
import type { Json } from '../api/schemas'
import type { Block, Document, Edge } from '../api/types'
import { nameOf, readingOrder } from './document'

export interface FieldChange {
  /** `params.cases.0.when`. */
  path: string
  before: Json | undefined
  after: Json | undefined
}

export interface BlockChange {
  id: string
  name: string
  type: string
  how: 'added' | 'removed' | 'changed'
  fields: readonly FieldChange[]
}

export interface EdgeChange {
  how: 'added' | 'removed'
  source: string
  target: string
  handle: string
}

export interface DocumentDiff {
  blocks: readonly BlockChange[]
  edges: readonly EdgeChange[]
  /** Of the workflow itself: name, input, variables, settings, ... */
  fields: readonly FieldChange[]
  /** Ids of blocks that only lie elsewhere, or are of another size. */
  moved: readonly string[]
}

/** Deeper than this, parts are compared as a whole. */
const DEPTH_MAX = 8
const PLACE = new Set(['at', 'size'])

export function diffDocuments(before: Document, after: Document): DocumentDiff {
  const blocks: BlockChange[] = []
  const moved: string[] = []
  const order = [...readingOrder(after), ...readingOrder(before).filter((id) => !after.blocks[id])]
  for (const id of order) {
    const [old, now] = [before.blocks[id], after.blocks[id]]
    const doc = now ? after : before
    const entry = { id, name: nameOf(doc, id), type: doc.blocks[id]!.type }
    if (!old || !now) blocks.push({ ...entry, how: now ? 'added' : 'removed', fields: [] })
    else if (old !== now) {
      const fields = changes(plain(old), plain(now))
      if (fields.length) blocks.push({ ...entry, how: 'changed', fields })
      else if (!equal(old.at as Json, now.at as Json) || !equal(old.size as Json, now.size as Json)) moved.push(id)
    }
  }
  const { blocks: _b, edges: _e, notes: _n, format: _f, ...own } = before
  const { blocks: _b2, edges: _e2, notes: _n2, format: _f2, ...now } = after
  return { blocks, edges: edgeChanges(before.edges, after.edges), fields: changes(own as Json, now as Json), moved }
}

export function isSame({ blocks, edges, fields }: DocumentDiff): boolean {
  return !blocks.length && !edges.length && !fields.length
}

function edgeChanges(before: readonly Edge[], after: readonly Edge[]): EdgeChange[] {
  const keys = (edges: readonly Edge[]): Map<string, Edge> =>
    new Map(edges.map((e) => [`${e.source}\0${e.handle ?? 'out'}\0${e.target}`, e]))
  const [old, now] = [keys(before), keys(after)]
  const only = (from: Map<string, Edge>, other: Map<string, Edge>, how: EdgeChange['how']): EdgeChange[] =>
    [...from]
      .filter(([key]) => !other.has(key))
      .map(([, { source, target, handle = 'out' }]) => ({ how, source, target, handle }))
  return [...only(now, old, 'added'), ...only(old, now, 'removed')]
}

function plain(block: Block): Json {
  return Object.fromEntries(Object.entries(block).filter(([name]) => !PLACE.has(name))) as Json
}

/** Where two values differ: the innermost places, objects by their fields, lists by their items. */
function changes(before: Json | undefined, after: Json | undefined, path: readonly string[] = []): FieldChange[] {
  if (equal(before, after)) return []
  if (path.length < DEPTH_MAX && isObject(before) && isObject(after)) {
    const names = new Set([...Object.keys(before), ...Object.keys(after)])
    return [...names].flatMap((name) => changes(before[name], after[name], [...path, name]))
  }
  if (path.length < DEPTH_MAX && Array.isArray(before) && Array.isArray(after) && before.length === after.length) {
    return before.flatMap((item, i) => changes(item, after[i], [...path, String(i)]))
  }
  return [{ path: path.join('.'), before, after }]
}

function equal(a: Json | undefined, b: Json | undefined): boolean {
  if (Object.is(a, b)) return true
  if (typeof a !== 'object' || typeof b !== 'object' || a === null || b === null) return false
  if (Array.isArray(a) || Array.isArray(b))
    return Array.isArray(a) && Array.isArray(b) && a.length === b.length && a.every((item, i) => equal(item, b[i]))
  const names = Object.keys(a)
  return names.length === Object.keys(b).length && names.every((name) => name in b && equal(a[name], b[name]))
}
