// What a run is given: the form of a workflow (its `input` schema and the fields of its start block), what is wrong with what
// was filled in, and the same as a command for a shell.

import { asSchema } from '../../net/mend'
import type { Document, Json, JsonObject, JsonSchema } from '../../net/types'
import { isTrigger, nameOf, type Specs } from '../../state/document'
import { titleOf, typesOf } from '../fields/schema'

export interface Trigger {
  id: string
  name: string
}

/** Blocks a run of this document can begin with. */
export function triggersOf(doc: Document, specs: Specs): Trigger[] {
  return Object.entries(doc.blocks)
    .filter(([, block]) => isTrigger(block, specs) && block.enabled !== false)
    .map(([id]) => ({ id, name: nameOf(doc, id) }))
}

/** The schema of the form: the workflow's input united with the start block's fields. Without properties: anything goes. */
export function formSchema(doc: Document, trigger: string | null): JsonSchema {
  const block = trigger === null ? undefined : doc.blocks[trigger]
  // What a webhook begins with is a request; the workflow's input is for the others.
  if (block?.type === 'webhook') {
    const body = asSchema(block.params?.body_schema)
    return {
      type: 'object',
      properties: { body: { title: 'Body', ...body } },
      required: block.params?.body_schema ? ['body'] : [],
    }
  }
  const declared = doc.input ?? {}
  const properties: Record<string, JsonSchema> = { ...declared.properties }
  const required = new Set(declared.required ?? [])
  const fields = block?.params?.fields
  for (const field of Array.isArray(fields) ? fields : []) {
    if (!field || typeof field !== 'object' || Array.isArray(field) || typeof field.name !== 'string' || !field.name)
      continue
    const type = typeof field.type === 'string' && field.type !== 'any' ? { type: field.type } : {}
    const words = Object.fromEntries(
      (['title', 'description', 'default'] as const).flatMap((key) =>
        field[key] === undefined ? [] : [[key, field[key]]],
      ),
    )
    properties[field.name] = { ...type, ...words, ...properties[field.name] }
    if (field.required === true && field.default === undefined) required.add(field.name)
  }
  return { type: 'object', properties, required: [...required] }
}

/** What the form begins with: defaults, else the first example. */
export function startValues(schema: JsonSchema): JsonObject {
  const values: JsonObject = {}
  for (const [name, part] of Object.entries(schema.properties ?? {})) {
    const value = part.default ?? part.examples?.[0]
    if (value !== undefined) values[name] = value
  }
  return values
}

/** What is wrong, by field; '' is the whole. */
export function inputProblems(schema: JsonSchema, value: Json): Record<string, string> {
  const problems: Record<string, string> = {}
  const names = Object.keys(schema.properties ?? {})
  if (value === null || typeof value !== 'object' || Array.isArray(value))
    return names.length ? { '': 'The input must be an object.' } : {}
  for (const name of new Set([...names, ...(schema.required ?? [])])) {
    const part = schema.properties?.[name] ?? {}
    const given = value[name]
    const title = titleOf(name, part)
    if (given === undefined || given === null || given === '') {
      if (schema.required?.includes(name)) problems[name] = `${title} is required.`
      continue
    }
    const why = wrongWith(part, given)
    if (why) problems[name] = `${title} ${why}`
  }
  return problems
}

function wrongWith(schema: JsonSchema, value: Json): string | null {
  const types = typesOf(schema)
  if (types.length && !types.some((type) => fits(type, value)))
    return `must be ${types.map((type) => WORDS[type] ?? type).join(' or ')}.`
  if (schema.enum && !schema.enum.some((each) => JSON.stringify(each) === JSON.stringify(value)))
    return 'must be one of the choices.'
  if (typeof value === 'number') {
    if (schema.minimum !== undefined && value < schema.minimum) return `must be at least ${schema.minimum}.`
    if (schema.maximum !== undefined && value > schema.maximum) return `must be at most ${schema.maximum}.`
    if (schema.exclusiveMinimum !== undefined && value <= schema.exclusiveMinimum)
      return `must be more than ${schema.exclusiveMinimum}.`
  }
  if (typeof value === 'string') {
    if (schema.minLength !== undefined && value.length < schema.minLength)
      return `must have at least ${schema.minLength} characters.`
    if (schema.maxLength !== undefined && value.length > schema.maxLength)
      return `must have at most ${schema.maxLength} characters.`
    if (schema.pattern !== undefined && !matches(schema.pattern, value)) return `must look like ${schema.pattern}.`
  }
  if (Array.isArray(value)) {
    if (schema.minItems !== undefined && value.length < schema.minItems)
      return `must have at least ${schema.minItems} items.`
    if (schema.maxItems !== undefined && value.length > schema.maxItems)
      return `must have at most ${schema.maxItems} items.`
  }
  return null
}

const WORDS: Record<string, string> = {
  string: 'text',
  number: 'a number',
  integer: 'a whole number',
  boolean: 'true or false',
  array: 'a list',
  object: 'an object',
}

function fits(type: string, value: Json): boolean {
  switch (type) {
    case 'string':
      return typeof value === 'string'
    case 'number':
      return typeof value === 'number'
    case 'integer':
      return typeof value === 'number' && Number.isInteger(value)
    case 'boolean':
      return typeof value === 'boolean'
    case 'array':
      return Array.isArray(value)
    case 'object':
      return typeof value === 'object' && value !== null && !Array.isArray(value)
    default:
      return true
  }
}

function matches(pattern: string, text: string): boolean {
  try {
    return new RegExp(pattern, 'u').test(text)
  } catch {
    return true
  }
}

/** The run as a command for a POSIX shell. */
export function asCurl(origin: string, draft: string, input: Json, trigger: string | null): string {
  const body = JSON.stringify({ input, ...(trigger === null ? {} : { trigger }) })
  return [
    `curl -X POST ${quoted(`${origin}/api/drafts/${encodeURIComponent(draft)}/run`)}`,
    `  -H 'Content-Type: application/json'`,
    `  -d ${quoted(body)}`,
  ].join(' \\\n')
}

function quoted(text: string): string {
  return `'${text.replaceAll("'", `'\\''`)}'`
}
