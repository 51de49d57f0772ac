// What to offer while a reference is typed: after `<` the outputs a block can read, nearest first, and their fields; after
// `${` the environment names. Declared schemas are united with the keys seen in the last run.

import { isObject } from '../net/json'
import type { Json } from '../api/schemas'
import type { Document, JsonSchema } from '../api/types'
import { kindOf, nameOf, NO_SPECS, type Specs } from '../document/document'
import { normalize } from './parse'
import { aroundOf, LOOP_FIELDS, outputSchema, PARALLEL_FIELDS, reachable, refName, type Reader } from './scope'

export type Group = 'scope' | 'upstream' | 'loop' | 'earlier' | 'input' | 'variables' | 'environment'

/** `insert` replaces the whole reference that is being typed, brackets included. `more`: it has fields to go into. */
export interface Option {
  insert: string
  /** What is shown: `Draft.content`. */
  label: string
  detail: string
  group: Group
  block: string | null
  more: boolean
  /** Value of the last run, when there is one. */
  value?: Json
}

export interface CompleteContext {
  doc: Document
  reader: Reader
  specs?: Specs
  /** Last output of a block, if any; keys that no schema declares come from here. */
  lastOutput?: (block: string) => Json | undefined
  env?: readonly string[]
}

/** The reference that is being typed at `caret`: where it starts, and what is typed of it. null: none. */
export function typedAt(
  text: string,
  caret: number,
): { start: number; end: number; typed: string; env: boolean } | null {
  const before = text.slice(0, caret)
  const env = /\$\{([A-Za-z0-9_]*)$/.exec(before)
  if (env) return { start: caret - env[0].length, end: closing(text, caret, '}'), typed: env[1]!, env: true }
  const open = before.lastIndexOf('<')
  if (open < 0) return null
  const typed = before.slice(open + 1)
  if (/[<>\n{}"`]/.test(typed.replace(/\["[^"]*"?\]?/g, '')) || /^[\s=]/.test(typed)) return null
  return { start: open, end: closing(text, caret, '>'), typed, env: false }
}

/** A field is typed after a reference, `<fetch>.body`, and the reference is all there is: the text with the field inside of it.
 * Known fields are offered after the dot, others begin with their first letter. Values that have no fields keep the text. */
export function intoReference(
  text: string,
  caret: number,
  context: CompleteContext,
): { text: string; caret: number } | null {
  // Its bracket is there already, and is typed once more.
  if (/^<[^<>]+>>$/.test(text) && caret === text.length - 1) return { text: text.slice(0, -1), caret }
  const [, inner, letter] = /^<([^<>{}"`]+)>\.([\p{L}_]?)$/u.exec(text) ?? []
  if (inner === undefined || caret !== text.length) return null
  const fields = fieldsOf(inner, context)
  if (fields === 'none' || (fields === 'unknown' && !letter)) return null
  return { text: `<${inner}.${letter}>`, caret: caret - 1 }
}

function fieldsOf(inner: string, context: CompleteContext): 'known' | 'unknown' | 'none' {
  const found = complete(inner, context).find((each) => each.insert === `<${inner}>`)
  if (!found) return 'none'
  if (found.more) return 'known'
  const declared = inner.includes('.') && (found.detail === '' || found.detail === TYPE_WORDS.object)
  return declared && found.value === undefined ? 'unknown' : 'none'
}

/** Options for what is typed. "" gives everything one level deep; `Draft.` gives the fields of Draft. */
export function complete(typed: string, context: CompleteContext, env = false): Option[] {
  if (env)
    return (context.env ?? [])
      .filter((name) => matches(name, typed))
      .map((name) => option(`\${${name}}`, name, 'Environment', 'environment', null))
  const cut = Math.max(typed.lastIndexOf('.'), typed.lastIndexOf('['))
  if (cut > 0) {
    const base = typed.slice(0, cut)
    const scope = scopeFields(base, context)
    const fields = scope.length ? scope : fieldsBelow(base, context)
    const found = fields.filter((field) => matches(field.label.slice(base.length + 1), typed.slice(cut + 1)))
    if (found.length) return found
  }
  return roots(context).filter((root) => matches(root.label, typed))
}

/** Fields of a container around the reader, by `loop`, `parallel` or its own name. Around it, they hide a block of that name. */
function scopeFields(base: string, { doc, reader, specs = NO_SPECS }: CompleteContext): Option[] {
  const around = aroundOf(doc, reader)
  const wanted = normalize(base)
  const container =
    around.find((each) => kindOf(doc, each, specs) === wanted) ??
    around.find((each) => normalize(refName(doc, each)) === wanted)
  if (container === undefined) return []
  const fields: readonly string[] = kindOf(doc, container, specs) === 'parallel' ? PARALLEL_FIELDS : LOOP_FIELDS
  return fields
    .filter((field) => field !== 'iteration')
    .map((field) => option(`<${base}.${field}>`, `${base}.${field}`, SCOPE_WORDS[field] ?? '', 'scope', container))
}

/** Everything a block can read, flat to depth one: for menus and for "did you mean". */
export function roots(context: CompleteContext): Option[] {
  const { doc, reader, specs = NO_SPECS, lastOutput } = context
  const options: Option[] = []
  for (const [nth, container] of aroundOf(doc, reader).entries()) {
    const kind = kindOf(doc, container, specs)
    if (!kind) continue
    const first = aroundOf(doc, reader).findIndex((other) => kindOf(doc, other, specs) === kind) === nth
    const name = first ? kind : refName(doc, container)
    for (const field of kind === 'loop' ? LOOP_FIELDS : PARALLEL_FIELDS) {
      if (field !== 'iteration')
        options.push(option(`<${name}.${field}>`, `${name}.${field}`, SCOPE_WORDS[field] ?? '', 'scope', container))
    }
  }
  for (const { block, mode } of reachable(doc, reader, specs)) {
    const name = refName(doc, block)
    const group: Group = mode === 'current' ? 'upstream' : mode === 'last' ? 'loop' : 'earlier'
    const more = fieldNames(outputSchema(doc, block, specs), lastOutput?.(block)).length > 0
    const type = doc.blocks[block]?.type ?? ''
    const detail =
      mode === 'previous'
        ? 'Previous iteration'
        : mode === 'last'
          ? 'Last iteration'
          : type === 'start' && !more
            ? 'has no input fields yet'
            : type
    const value = lastOutput?.(block)
    options.push({
      ...option(`<${name}>`, name, detail, group, block, more),
      ...(value === undefined ? {} : { value }),
    })
  }
  for (const [name, schema] of Object.entries(doc.input?.properties ?? {}))
    options.push(option(`<input.${name}>`, `input.${name}`, typeOf(schema), 'input', null))
  for (const [name, value] of Object.entries(doc.variables ?? {})) {
    options.push({
      ...option(`<workflow.${name}>`, `workflow.${name}`, 'variable', 'variables', null, isObject(value)),
      value,
    })
  }
  return options
}

/** The nearest known name, or null: for "did you mean". */
export function suggest(name: string, known: Iterable<string>): string | null {
  const wanted = normalize(name)
  let best: string | null = null
  let least = Math.max(1, Math.floor(wanted.length * 0.4)) + 1
  for (const other of known) {
    const distance = editDistance(wanted, normalize(other), least)
    if (distance < least) [best, least] = [other, distance]
  }
  return best
}

function fieldsBelow(base: string, context: CompleteContext): Option[] {
  const { doc, specs = NO_SPECS, lastOutput } = context
  const options: Option[] = []
  const wanted = normalize(base)
  const root = roots(context)
    .filter((r) => wanted.startsWith(normalize(r.label)))
    .sort((a, b) => normalize(b.label).length - normalize(a.label).length)[0]
  if (!root) return []
  let schema: JsonSchema | null | undefined =
    root.block && root.group !== 'scope' ? outputSchema(doc, root.block, specs) : null
  let value: Json | undefined = root.block && root.group !== 'scope' ? lastOutput?.(root.block) : root.value
  const rest = base.slice(lengthOf(base, normalize(root.label).length))
  for (const part of rest.split(/[.[\]"]+/).filter(Boolean)) {
    schema = /^\d+$/.test(part) ? schema?.items : schema?.properties?.[part]
    value = Array.isArray(value)
      ? value[Number(part)]
      : isObject(value)
        ? (value as Record<string, Json>)[part]
        : undefined
  }
  for (const name of fieldNames(schema, value)) {
    const plain = /^[\p{L}\p{N}_$@][\p{L}\p{N}_$@-]*$/u.test(name)
    const label = plain ? `${base}.${name}` : `${base}["${name}"]`
    const inner = isObject(value) ? (value as Record<string, Json>)[name] : undefined
    const declared = schema?.properties?.[name]
    const more = fieldNames(declared, inner).length > 0
    const detail = declared ? typeOf(declared) : 'From the last run'
    options.push({
      ...option(`<${label}>`, label, detail, root.group, root.block, more),
      ...(inner === undefined ? {} : { value: inner }),
    })
  }
  return options
}

const SCOPE_WORDS: Record<string, string> = {
  index: 'Number, from 0',
  item: 'Current item',
  items: 'All items',
  results: 'Results so far',
  break: 'True after a break',
}

function fieldNames(schema: JsonSchema | null | undefined, value: Json | undefined): string[] {
  const seen = isObject(value) ? Object.keys(value as Record<string, Json>) : []
  return [...new Set([...Object.keys(schema?.properties ?? {}), ...seen])]
}

const TYPE_WORDS: Readonly<Record<string, string>> = {
  string: 'Text',
  number: 'Number',
  integer: 'Whole number',
  boolean: 'True or false',
  array: 'List',
  object: 'Object',
  null: 'nothing',
}

function typeOf(schema: JsonSchema): string {
  const types = Array.isArray(schema.type) ? schema.type : schema.type ? [schema.type] : []
  return schema.title ?? types.map((type) => TYPE_WORDS[type] ?? type).join(' or ')
}

function option(
  insert: string,
  label: string,
  detail: string,
  group: Group,
  block: string | null,
  more = false,
): Option {
  return { insert, label, detail, group, block, more }
}

/** Letters of `typed` occur in `text` in order. */
function matches(text: string, typed: string): boolean {
  const wanted = normalize(typed)
  let at = 0
  for (const char of normalize(text)) if (char === wanted[at]) at++
  return at === wanted.length
}

/** Length of the part of `text` that has `count` characters when normalized. */
function lengthOf(text: string, count: number): number {
  for (let n = 0, at = 0; at < text.length; at++) {
    if (n === count) return at
    n += normalize(text[at]!).length
  }
  return text.length
}

function closing(text: string, caret: number, mark: string): number {
  const rest = /^[\p{L}\p{N}_.[\]" -]*/u.exec(text.slice(caret))![0]
  return text[caret + rest.length] === mark ? caret + rest.length + 1 : caret
}

function editDistance(a: string, b: string, most: number): number {
  if (Math.abs(a.length - b.length) >= most) return most
  let row = Array.from({ length: b.length + 1 }, (_, i) => i)
  for (let i = 1; i <= a.length; i++) {
    const next = [i]
    for (let j = 1; j <= b.length; j++)
      next[j] = Math.min(next[j - 1]! + 1, row[j]! + 1, row[j - 1]! + (a[i - 1] === b[j - 1] ? 0 : 1))
    row = next
  }
  return row[b.length]!
}

export { nameOf }
