// What a reference means in a document: names to blocks, what a block can read, and renaming. The rules of compiler/bind.py,
// for the editor: it says what is reachable and how far away, not everything a compile would report.

import { schemaOfType } from '../document/triggers'
import { asSchema } from '../net/repair'
import type { Json } from '../api/schemas'
import type { Block, BlockSpec, Document, JsonSchema } from '../api/types'
import {
  chainOf,
  containerKind,
  indexOf,
  kindOf,
  nameOf,
  NO_SPECS,
  parentOf,
  upstreamOf,
  type Specs,
} from '../document/document'
import {
  FIELD,
  find,
  isWritable,
  mapTexts,
  normalize,
  parse,
  rewrite,
  withHead,
  type Found,
  type Parsed,
  type Segment,
} from './parse'

export const LOOP_FIELDS = ['index', 'iteration', 'item', 'items', 'results', 'break'] as const
export const PARALLEL_FIELDS = ['index', 'iteration', 'item', 'items'] as const
/** Feedback is offered after everything that is upstream. */
const FEEDBACK = 1e6
const MOMENT: JsonSchema = { type: 'integer', description: 'Unix milliseconds' }
/** Names that a reference reads as something else than a block. */
export const RESERVED = new Set(['loop', 'parallel', 'workflow', 'variable', 'input'])

/** Where the text stands. `inside`: a loop's own test, which reads from inside the loop. */
export interface Reader {
  block: string
  inside?: boolean
}

/** What a reference reads. `path` is what follows the name. */
export type Target =
  | { kind: 'block'; block: string; path: Segment[]; parsed: Parsed }
  | { kind: 'scope'; container: string; path: Segment[]; parsed: Parsed }
  | { kind: 'variable'; name: string; path: Segment[]; parsed: Parsed }
  | { kind: 'input'; path: Segment[]; parsed: Parsed }
  | { kind: 'env'; name: string }

/** current: this scope's output. last: the last iteration of a loop before. previous: the iteration before this one. */
export type Mode = 'current' | 'last' | 'previous'

export interface Reachable {
  block: string
  mode: Mode
  /** Edges away; a block of an outer container is further than any of an inner one. */
  distance: number
}

type Names = ReadonlyMap<string, readonly string[]>
const namesOf = new WeakMap<Document, Names>()

/** The block with the longest name (or id) the segments begin with, and how many of them that takes. */
export function lookup(doc: Document, segments: readonly Segment[]): { block: string; used: number } | null {
  const names = allNames(doc)
  const texts = segments.findIndex((part) => typeof part !== 'string')
  for (let used = texts < 0 ? segments.length : texts; used > 0; used--) {
    const blocks = names.get(normalize(segments.slice(0, used).join('.')))
    if (blocks?.[0] !== undefined) return { block: blocks[0], used }
  }
  return null
}

/** What a candidate reads in this document, or null: text that only looks like a reference. */
export function resolve(doc: Document, found: Found, reader: Reader, specs: Specs = NO_SPECS): Target | null {
  if (found.env) return { kind: 'env', name: found.text }
  const parsed = parse(found.text)
  if (!parsed) return null
  const first = normalize(String(parsed.segments[0]))
  const around = aroundOf(doc, reader)
  if (first === 'loop' || first === 'parallel') {
    const container = around.find((c) => kindOf(doc, c, specs) === first)
    if (container) return { kind: 'scope', container, path: parsed.segments.slice(1), parsed }
  }
  if (first === 'workflow' || first === 'variable') {
    const name = parsed.segments[1]
    return typeof name === 'string' ? { kind: 'variable', name, path: parsed.segments.slice(2), parsed } : null
  }
  if (first === 'input') return { kind: 'input', path: parsed.segments.slice(1), parsed }
  const hit = lookup(doc, parsed.segments)
  if (!hit) return null
  const path = parsed.segments.slice(hit.used)
  if (around.includes(hit.block)) return { kind: 'scope', container: hit.block, path, parsed }
  if (!path.every((part) => typeof part === 'number' || FIELD.test(part))) return null
  return { kind: 'block', block: hit.block, path, parsed }
}

/** Every block whose output `reader` may read, nearest first. Containers around it are not among them (see `aroundOf`). */
export function reachable(doc: Document, reader: Reader, specs: Specs = NO_SPECS): Reachable[] {
  const best = new Map<string, Reachable>()
  const offer = (block: string, mode: Mode, distance: number): void => {
    if (block === reader.block && mode !== 'previous') return
    const known = best.get(block)
    if (!known || (known.mode === 'previous' && mode !== 'previous')) best.set(block, { block, mode, distance })
  }
  const around = aroundOf(doc, reader)
  let at: string | null = reader.inside ? null : reader.block
  let far = 0
  for (const container of [...around, '']) {
    const before = at === null ? new Map<string, number>() : upstreamOf(doc, at)
    for (const [block, distance] of before) {
      offer(block, 'current', far + distance)
      for (const inner of insideLoops(doc, block, specs)) offer(inner, 'last', far + distance + 0.5)
    }
    if (container && inLoop(doc, container, specs)) {
      for (const block of indexOf(doc).children.get(container) ?? []) {
        if (before.has(block) || doc.blocks[block]?.type === 'note') continue
        offer(block, 'previous', FEEDBACK + far)
        for (const inner of insideLoops(doc, block, specs)) offer(inner, 'previous', FEEDBACK + far + 0.5)
      }
    }
    at = container
    far += 1000
  }
  for (const container of around) best.delete(container)
  return [...best.values()].sort((a, b) => a.distance - b.distance)
}

/** Containers around a reader, innermost first. */
export function aroundOf(doc: Document, reader: Reader): string[] {
  const chain = chainOf(doc, reader.block)
  return reader.inside && kindOf(doc, reader.block) ? [reader.block, ...chain] : chain
}

/** The schema of a block's output, as far as it can be known without running; null: anything. */
export function outputSchema(doc: Document, id: string, specs: Specs = NO_SPECS): JsonSchema | null {
  const block = doc.blocks[id]
  if (!block) return null
  const spec = specs.get(block.type)
  const kind = containerKind(block, spec)
  if (kind)
    return objectOf(
      kind === 'loop'
        ? { results: { type: 'array' }, last: lastSchema(doc, id, specs) }
        : { results: { type: 'array' } },
    )
  switch (block.type) {
    case 'start':
      return objectOf({ ...doc.input?.properties, ...startFields(block) })
    case 'schedule':
      return objectOf({
        scheduled_at: MOMENT,
        fired_at: MOMENT,
        ...(isRecord(block.params?.input) ? shapeOf(block.params.input)?.properties : {}),
      })
    case 'form_trigger':
      return isRecord(block.params?.fields) ? asSchema(block.params.fields) : objectOf({ ...doc.input?.properties })
    case 'webhook':
      return objectOf({
        body: isRecord(block.params?.body_schema) ? asSchema(block.params.body_schema) : {},
        headers: { type: 'object' },
        query: { type: 'object' },
        method: { type: 'string' },
        delivery: { type: 'string' },
        received_at: MOMENT,
      })
    case 'condition':
      return objectOf({ case: { type: 'string' }, title: { type: 'string' }, result: { type: 'boolean' } })
    case 'approval':
      return answerOf(block, { action: { type: 'string' } }, { expired: { type: 'boolean' } })
    case 'form':
      return answerOf(block)
    case 'set':
      return shapeOf(block.params?.value)
    default:
      return spec?.output ?? null
  }
}

/** How `block` should be written in a reference: its name, or its id when the name is shared or cannot be written. */
export function refName(doc: Document, block: string): string {
  const name = nameOf(doc, block)
  const plain = isWritable(name) && !RESERVED.has(normalize(name)) && lookup(doc, parse(name)!.segments)
  return plain && plain.block === block && plain.used === parse(name)!.segments.length ? name : block
}

/** `before` with every reference of all blocks written so that in `after` it still reads the same block. Blocks of `after`
 * whose references read right stay the same objects. */
export function keepReferences(before: Document, after: Document, specs: Specs = NO_SPECS): Document {
  const blocks: Record<string, Block> = {}
  let changed = false
  for (const [id, block] of Object.entries(after.blocks)) {
    const next = before.blocks[id]
      ? rewriteBlock(block, specs, (found) => moved(before, after, id, found, specs))
      : block
    blocks[id] = next
    changed ||= next !== block
  }
  return changed ? { ...after, blocks } : after
}

/** All texts of a block that may hold references, mapped; the same block when nothing changed. */
export function rewriteBlock(block: Block, specs: Specs, change: (found: Found) => string | null): Block {
  const schema = specs.get(block.type)?.params
  const params = mapTexts(block.params, (text, pointer) =>
    isLiteral(block, schema, pointer) ? text : rewrite(text, change),
  )
  const skip = block.policy?.skip_if
  const skipped = typeof skip === 'string' ? rewrite(skip, change) : skip
  const cache = isRecord(block.policy?.cache) ? block.policy.cache : null
  const key = typeof cache?.key === 'string' ? rewrite(cache.key, change) : cache?.key
  const limit = block.policy?.limit
  const limited = typeof limit?.key === 'string' ? rewrite(limit.key, change) : limit?.key
  if (params === block.params && skipped === skip && key === cache?.key && limited === limit?.key) return block
  const next: Block = { ...block }
  if (params !== block.params && params !== undefined) next.params = params
  if (skipped !== skip) next.policy = { ...block.policy, skip_if: skipped }
  if (cache && key !== undefined && key !== cache.key) next.policy = { ...next.policy, cache: { ...cache, key } }
  if (limit && limited !== undefined && limited !== limit.key)
    next.policy = { ...next.policy, limit: { ...limit, key: limited } }
  return next
}

/** Every reference of a block: where (JSON pointer below `params`, `skip_if`, `cache.key` or `limit.key`), what is written, what it reads. */
export function referencesOf(
  doc: Document,
  id: string,
  specs: Specs = NO_SPECS,
): { pointer: string; found: Found; target: Target | null }[] {
  const block = doc.blocks[id]
  if (!block) return []
  const out: { pointer: string; found: Found; target: Target | null }[] = []
  const schema = specs.get(block.type)?.params
  mapTexts(block.params, (text, pointer) => {
    if (!isLiteral(block, schema, pointer)) {
      const inside = pointer === '/condition' && kindOf(doc, id, specs) === 'loop'
      for (const found of find(text))
        out.push({ pointer, found, target: resolve(doc, found, { block: id, inside }, specs) })
    }
    return text
  })
  const cache = isRecord(block.policy?.cache) ? block.policy.cache : null
  for (const [pointer, text] of [
    ['skip_if', block.policy?.skip_if],
    ['cache.key', cache?.key],
    ['limit.key', block.policy?.limit?.key],
  ] as const) {
    if (typeof text !== 'string') continue
    for (const found of find(text)) out.push({ pointer, found, target: resolve(doc, found, { block: id }, specs) })
  }
  return out
}

function moved(before: Document, after: Document, reader: string, found: Found, specs: Specs): string | null {
  const old = resolve(before, found, { block: reader, inside: true }, specs)
  if (!old || (old.kind !== 'block' && old.kind !== 'scope')) return null
  const was = old.kind === 'block' ? old.block : old.container
  const first = normalize(String(old.parsed.segments[0]))
  if (old.kind === 'scope' && (first === 'loop' || first === 'parallel')) return null
  if (!after.blocks[was]) return null
  const now = lookup(after, old.parsed.segments)
  const used = old.parsed.segments.length - old.path.length
  const written = normalize(old.parsed.segments.slice(0, used).join('.'))
  const byOldName = nameOf(before, was) !== nameOf(after, was) && written === normalize(nameOf(before, was))
  if (now?.block === was && now.used === used && !byOldName) return null
  return withHead(found.text, used, refName(after, was))
}

function allNames(doc: Document): Names {
  let names = namesOf.get(doc)
  if (!names) {
    const built = new Map<string, string[]>()
    const add = (name: string, id: string): void => {
      const key = normalize(name)
      const list = built.get(key)
      if (list) list.push(id)
      else built.set(key, [id])
    }
    for (const id of Object.keys(doc.blocks)) add(nameOf(doc, id), id)
    for (const id of Object.keys(doc.blocks)) add(id, id)
    namesOf.set(doc, (names = built))
  }
  return names
}

/** Blocks inside `block` that can be read from outside it: through loops, not through parallels. */
function insideLoops(doc: Document, block: string, specs: Specs): string[] {
  if (kindOf(doc, block, specs) !== 'loop') return []
  const children = (indexOf(doc).children.get(block) ?? []).filter((id) => doc.blocks[id]?.type !== 'note')
  return children.flatMap((id) => [id, ...insideLoops(doc, id, specs)])
}

function inLoop(doc: Document, container: string, specs: Specs): boolean {
  for (let at = container; at; at = parentOf(doc, at)) if (kindOf(doc, at, specs) === 'loop') return true
  return false
}

function lastSchema(doc: Document, loop: string, specs: Specs): JsonSchema {
  const children = indexOf(doc).children.get(loop) ?? []
  return objectOf(Object.fromEntries(children.map((id) => [id, outputSchema(doc, id, specs) ?? {}])))
}

/** A file as references see it. */
const FILE: JsonSchema = {
  type: 'object',
  format: 'file',
  properties: {
    type: { type: 'string' },
    id: { type: 'string' },
    name: { type: 'string' },
    media_type: { type: 'string' },
    size: { type: 'integer' },
  },
}

function startFields(block: Block): Record<string, JsonSchema> {
  const fields = Array.isArray(block.params?.fields) ? block.params.fields : []
  const out: Record<string, JsonSchema> = {}
  for (const field of fields) {
    if (!field || typeof field !== 'object' || Array.isArray(field) || typeof field.name !== 'string') continue
    const type = field.type === 'file' ? FILE : schemaOfType(field.type)
    out[field.name] = { ...type, ...(typeof field.title === 'string' ? { title: field.title } : {}) }
  }
  return out
}

/** What a person has answered: the fields of the form, who and when, and around that what is of this kind of question alone. */
function answerOf(
  block: Block,
  before: Record<string, JsonSchema> = {},
  after: Record<string, JsonSchema> = {},
): JsonSchema {
  return objectOf({
    ...asSchema(block.params?.fields).properties,
    ...before,
    answered_by: { type: 'string' },
    answered_at: MOMENT,
    ...after,
  })
}

/** A schema with the keys of a literal value. */
function shapeOf(value: Json | undefined): JsonSchema | null {
  if (!value || typeof value !== 'object' || Array.isArray(value)) return null
  return objectOf(Object.fromEntries(Object.entries(value).map(([key, item]) => [key, shapeOf(item) ?? {}])))
}

function isRecord(value: Json | undefined): value is { [key: string]: Json } {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

function objectOf(properties: Record<string, JsonSchema>): JsonSchema {
  return { type: 'object', properties }
}

/** Texts the server leaves alone: `x-weft: literal`, and remarks. */
function isLiteral(block: Block, schema: JsonSchema | undefined, pointer: string): boolean {
  if (block.type === 'note') return true
  let at: JsonSchema | undefined = schema
  for (const part of pointer.split('/').slice(1)) {
    if (!at) return false
    if (at['x-weft'] === 'literal') return true
    at = at.properties?.[part.replaceAll('~1', '/').replaceAll('~0', '~')] ?? at.items
  }
  return at?.['x-weft'] === 'literal'
}

export type { Found, Parsed, Segment, BlockSpec }
