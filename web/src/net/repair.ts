// Drafts hold any JSON that was sent. `repair` returns a document that the editor can draw and lists what it left out, so that no
// other code has to check whether `notes` is a list. Valid parts stay the same object, and unknown fields stay in place.

import { isObject } from './json'
import type { Fault, Repaired, Block, Document, Edge, JsonSchema, Note } from '../api/types'

/** Findings listed for one document. */
export const FAULTS_MAX = 200
/** Schemas inside schemas: deeper ones are cut. The server refuses such depths too. */
const SCHEMA_DEPTH_MAX = 32
/** Beyond this a canvas cannot place anything. */
const PLACE_MAX = 1e7

/** The document in `raw`, whatever that is. Parts of a wrong shape are left out. */
export function repair(raw: unknown): Repaired {
  const faults: Fault[] = []
  const wrong: Wrong = (pointer, message) => {
    if (faults.length < FAULTS_MAX) faults.push({ pointer, message })
  }
  return { document: documentOf(raw, wrong), faults, original: raw }
}

/** A JSON Schema that can be read without a second look, from anything. */
export function asSchema(raw: unknown): JsonSchema {
  return schemaOf(raw, '', () => undefined, 0) ?? {}
}

type Wrong = (pointer: string, message: string) => void
/** The repaired value; undefined when no part of it is valid. */
type Part<T> = (value: unknown, pointer: string, wrong: Wrong) => T | undefined

function documentOf(raw: unknown, wrong: Wrong): Document {
  if (!isObject(raw)) {
    wrong('', 'A workflow is an object.')
    return { format: 'weft/1', blocks: {}, edges: [] }
  }
  let whole: Record<string, unknown> = raw
  for (const [name, { is, empty, message }] of Object.entries(NEEDED)) {
    if (is(raw[name])) continue
    wrong(raw[name] === undefined ? '' : `/${name}`, message)
    whole = { ...whole, [name]: empty() }
  }
  return fields(whole, '', wrong, DOCUMENT) as Document
}

/** What every document has. */
const NEEDED: Record<string, { is: (value: unknown) => boolean; empty: () => unknown; message: string }> = {
  format: {
    is: (value) => typeof value === 'string',
    empty: () => 'weft/1',
    message: 'The workflow needs "format": "weft/1".',
  },
  blocks: { is: (value) => isObject(value), empty: () => ({}), message: 'The workflow needs "blocks", an object.' },
  edges: { is: (value) => Array.isArray(value), empty: () => [], message: 'The workflow needs "edges", a list.' },
}

const text =
  (what: string): Part<string> =>
  (value, pointer, wrong) =>
    typeof value === 'string' ? value : void wrong(pointer, `${what} must be text.`)
const object =
  (what: string): Part<object> =>
  (value, pointer, wrong) =>
    isObject(value) ? value : void wrong(pointer, `${what} must be an object.`)
const flag =
  (what: string): Part<boolean> =>
  (value, pointer, wrong) =>
    typeof value === 'boolean' ? value : void wrong(pointer, `${what} must be true or false.`)
const orNull =
  <T>(part: Part<T>): Part<T | null> =>
  (value, pointer, wrong) =>
    value === null ? null : part(value, pointer, wrong)
const point =
  (what: string, min: number): Part<[number, number]> =>
  (value, pointer, wrong) => {
    const good =
      Array.isArray(value) &&
      value.length === 2 &&
      value.every((n) => typeof n === 'number' && Number.isFinite(n) && n >= min && n <= PLACE_MAX)
    return good ? (value as [number, number]) : void wrong(pointer, `${what} must be two numbers.`)
  }

const POLICY: Record<string, Part<unknown>> = {
  retry: orNull(object('retry')),
  limit: orNull(object('limit')),
  skip_if: orNull(text('skip_if')),
  group: orNull(text('group')),
}

const BLOCK: Record<string, Part<unknown>> = {
  name: text('The name'),
  parent: orNull(text('parent, the id of a container,')),
  at: point('at', -PLACE_MAX),
  size: point('size', 0),
  params: object('params'),
  policy: (value, pointer, wrong) =>
    isObject(value) ? fields(value, pointer, wrong, POLICY) : void wrong(pointer, 'policy must be an object.'),
  enabled: flag('enabled'),
  assign: orNull(text('assign')),
  description: text('The description'),
}

const NOTE: Record<string, Part<unknown>> = {
  id: text('The id of a note'),
  text: text('The text of a note'),
  at: point('at', -PLACE_MAX),
  size: point('size', 0),
  color: text('color'),
}

const blockOf: Part<Block> = (value, pointer, wrong) => {
  if (!isObject(value)) return void wrong(pointer, 'A block is an object.')
  if (typeof value.type === 'string') return fields(value, pointer, wrong, BLOCK) as Block
  wrong(pointer, 'A block needs a type.')
  return fields({ ...value, type: 'unknown' }, pointer, wrong, BLOCK) as Block
}

const edgeOf: Part<Edge> = (value, pointer, wrong) => {
  const good =
    isObject(value) &&
    typeof value.source === 'string' &&
    typeof value.target === 'string' &&
    (value.handle === undefined || typeof value.handle === 'string')
  return good ? (value as Edge) : void wrong(pointer, 'An edge has a source and a target, both ids of blocks.')
}

const noteOf: Part<Note> = (value, pointer, wrong) =>
  isObject(value) ? (fields(value, pointer, wrong, NOTE) as Note) : void wrong(pointer, 'A note is an object.')

const DOCUMENT: Record<string, Part<unknown>> = {
  name: text('The name'),
  description: text('The description'),
  input: orNull((value, pointer, wrong) => schemaOf(value, pointer, wrong, 0)),
  variables: orNull(object('variables')),
  settings: orNull(object('settings')),
  blocks: (value, pointer, wrong) => entries(value, pointer, wrong, blockOf, 'blocks must be an object.'),
  edges: (value, pointer, wrong) => items(value, pointer, wrong, edgeOf, 'edges must be a list.'),
  notes: (value, pointer, wrong) => items(value, pointer, wrong, noteOf, 'notes must be a list of objects.'),
}

function schemaOf(value: unknown, pointer: string, wrong: Wrong, depth: number): JsonSchema | undefined {
  // A schema may be just true or false; as an object the first says the same.
  if (value === true && depth) return value as unknown as JsonSchema
  if (!isObject(value) || depth > SCHEMA_DEPTH_MAX)
    return void wrong(pointer, depth ? 'A schema must be an object.' : 'input must be an object.')
  const inner: Part<JsonSchema> = (part, at, say) => schemaOf(part, at, say, depth + 1)
  const list: Part<unknown> = (part, at, say) => (Array.isArray(part) ? part : void say(at, 'This must be a list.'))
  const texts: Part<unknown> = (part, at, say) =>
    Array.isArray(part) && part.every((each) => typeof each === 'string')
      ? part
      : void say(at, 'This must be a list of texts.')
  const word: Part<unknown> = (part, at, say) => (typeof part === 'string' ? part : void say(at, 'This must be text.'))
  return fields(value, pointer, wrong, {
    type: (part, at, say) => (typeof part === 'string' ? part : texts(part, at, say)),
    title: word,
    description: word,
    format: word,
    pattern: word,
    required: texts,
    enum: list,
    examples: list,
    properties: (part, at, say) => entries(part, at, say, inner, 'properties must be an object.'),
    items: inner,
    oneOf: (part, at, say) => items(part, at, say, inner, 'oneOf must be a list.'),
    anyOf: (part, at, say) => items(part, at, say, inner, 'anyOf must be a list.'),
  }) as JsonSchema
}

/** An object with the named fields repaired, those beyond help left out. The same object when all are right. */
function fields(
  value: Record<string, unknown>,
  pointer: string,
  wrong: Wrong,
  parts: Record<string, Part<unknown>>,
): Record<string, unknown> {
  let next = value
  for (const [name, part] of Object.entries(parts)) {
    const item = value[name]
    if (item === undefined) continue
    const repaired = part(item, `${pointer}/${name}`, wrong)
    if (Object.is(repaired, item)) continue
    if (next === value) next = { ...value }
    if (repaired === undefined) delete next[name]
    else next[name] = repaired
  }
  return next
}

function entries<T>(
  value: unknown,
  pointer: string,
  wrong: Wrong,
  part: Part<T>,
  message: string,
): Record<string, T> | undefined {
  if (!isObject(value)) return void wrong(pointer, message)
  let changed = false
  const right: [string, T][] = []
  for (const [name, item] of Object.entries(value)) {
    const at = `${pointer}/${name.replaceAll('~', '~0').replaceAll('/', '~1')}`
    // The one name that cannot be assigned to an object literal.
    const repaired = name === '__proto__' ? void wrong(at, 'This name cannot be used.') : part(item, at, wrong)
    changed ||= !Object.is(repaired, item)
    if (repaired !== undefined) right.push([name, repaired])
  }
  return changed ? Object.fromEntries(right) : (value as Record<string, T>)
}

function items<T>(value: unknown, pointer: string, wrong: Wrong, part: Part<T>, message: string): T[] | undefined {
  if (!Array.isArray(value)) return void wrong(pointer, message)
  const right = value.map((item: unknown, i) => part(item, `${pointer}/${i}`, wrong))
  return right.every((item, i) => Object.is(item, value[i]))
    ? (value as T[])
    : (right.filter((item) => item !== undefined) as T[])
}
