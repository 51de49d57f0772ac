// A JSON Schema as a form: its fields, their first text, typed text as JSON, and what is wrong with a value. The same rules as
// the server's form without JavaScript (server/pages/forms.py), so that both give the same answer; tests/vectors/forms.json
// holds both to that. Bounds and patterns are checked here alone: there the server checks them when the form is sent.

import { fileIn } from '../../net/files'
import type { Json, JsonObject } from '../../api/schemas'
import type { JsonSchema } from '../../api/types'
import { titleOf, typesOf } from './schema'

export type FieldKind = 'string' | 'long' | 'integer' | 'number' | 'boolean' | 'enum' | 'file' | 'json'

export interface FormField {
  name: string
  schema: JsonSchema
  kind: FieldKind
  title: string
  required: boolean
}

/** What was typed; checkboxes are 'true' or ''. */
export type Typed = Readonly<Record<string, string>>

const LONG_TEXT = 120
const REQUIRED = 'Enter a value.'
const NO_FILE = 'Choose a file.'

export function fieldsOf(schema: JsonSchema | null): FormField[] {
  return Object.entries(schema?.properties ?? {}).map(([name, field]) => ({
    name,
    schema: field,
    kind: fieldKindOf(field),
    title: field.title || name,
    required: schema?.required?.includes(name) ?? false,
  }))
}

/** The title; without one the name as words: `unit_price` -> `Unit price`. */
export const labelOf = ({ name, schema }: FormField): string => schema.title || titleOf(name, {})

/** Defaults as text. */
export function defaultsOf(fields: readonly FormField[]): Typed {
  return typedOf(
    fields,
    Object.fromEntries(
      fields.flatMap(({ name, schema }) => (schema.default === undefined ? [] : [[name, schema.default]])),
    ),
  )
}

/** A value as text: what `readTyped` reads back, if `isFormValue`. Fields that it lacks are empty. */
export function typedOf(
  fields: readonly FormField[],
  value: JsonObject,
  print: (value: Json) => string = JSON.stringify,
): Typed {
  return Object.fromEntries(
    fields.map(({ name, kind }) => [name, value[name] === undefined ? '' : textOf(kind, value[name], print)]),
  )
}

/** Can the form show this value without changing it? A text in a field for numbers is none that it can show. */
export function isFormValue(fields: readonly FormField[], value: Json): value is JsonObject {
  if (value === null || typeof value !== 'object' || Array.isArray(value)) return false
  return fields.every(({ name, kind }) => {
    const part = value[name]
    if (part === undefined) return true
    if (kind === 'boolean') return typeof part === 'boolean'
    const text = textOf(kind, part, JSON.stringify)
    const read = text.trim() ? readText(kind, text) : null
    return read !== null && 'value' in read && JSON.stringify(read.value) === JSON.stringify(part)
  })
}

/** Defaults as values, else the first example. */
export function startValues(schema: JsonSchema): JsonObject {
  const values: JsonObject = {}
  for (const [name, part] of Object.entries(schema.properties ?? {})) {
    const value = part.default ?? part.examples?.[0]
    if (value !== undefined) values[name] = value
  }
  return values
}

/** The fields as JSON; empty ones are left out. */
export function readTyped(
  fields: readonly FormField[],
  typed: Typed,
): { values: Record<string, Json>; errors: Record<string, string> } {
  const values: Record<string, Json> = {}
  const errors: Record<string, string> = {}
  for (const { name, kind, schema, required } of fields) {
    const text = typed[name] ?? ''
    if (kind === 'boolean') values[name] = text === 'true'
    else if (text.trim()) {
      const read = readText(kind, text)
      const why = 'error' in read ? read.error : wrongWith(schema, read.value)
      if ('error' in read) errors[name] = read.error
      else if (why) errors[name] = why
      else values[name] = read.value
    } else if (required) errors[name] = kind === 'file' ? NO_FILE : REQUIRED
  }
  return { values, errors }
}

/** What is wrong with a value, by field; '' is the whole. */
export function valueProblems(schema: JsonSchema, value: Json): Record<string, string> {
  const problems: Record<string, string> = {}
  const names = Object.keys(schema.properties ?? {})
  if (value === null || typeof value !== 'object' || Array.isArray(value))
    return names.length ? { '': 'The input must be an object.' } : {}
  for (const name of new Set([...names, ...(schema.required ?? [])])) {
    const part = schema.properties?.[name] ?? {}
    const field = value[name]
    if (field === undefined || field === null || field === '') {
      if (schema.required?.includes(name)) problems[name] = REQUIRED
      continue
    }
    const why = wrongWith(part, field)
    if (why) problems[name] = why
  }
  return problems
}

function fieldKindOf(schema: JsonSchema): FieldKind {
  if (Array.isArray(schema.enum)) return 'enum'
  const types = typesOf(schema)
  const type = types.length === 1 ? types[0] : undefined
  if (schema.format === 'file' && (!types.length || type === 'object')) return 'file'
  if (type === 'string')
    return schema.format === 'textarea' || schema.format === 'multiline' || (schema.maxLength ?? 0) > LONG_TEXT
      ? 'long'
      : 'string'
  return type === 'integer' || type === 'number' || type === 'boolean' ? type : 'json'
}

function textOf(kind: FieldKind, value: Json, print: (value: Json) => string): string {
  if (kind === 'boolean') return value === true ? 'true' : ''
  if (typeof value === 'string' && (kind === 'string' || kind === 'long')) return value
  return kind === 'json' ? print(value) : JSON.stringify(value)
}

function readText(kind: FieldKind, text: string): { value: Json } | { error: string } {
  switch (kind) {
    case 'string':
    case 'long':
      return { value: text }
    case 'integer': {
      if (!/^\s*[+-]?\d+\s*$/.test(text)) return { error: 'Enter a whole number.' }
      const value = Number(text)
      return Number.isSafeInteger(value) ? { value } : { error: 'This number is too large.' }
    }
    case 'number': {
      const value = readJson(text.replace(',', '.'))
      return typeof value === 'number' ? { value } : { error: 'Enter a number.' }
    }
    case 'file': {
      const value = readJson(text)
      return value !== undefined && fileIn(value) ? { value } : { error: NO_FILE }
    }
    default: {
      const value = readJson(text)
      return value !== undefined
        ? { value }
        : { error: kind === 'enum' ? 'Choose one of the options.' : 'Enter valid JSON.' }
    }
  }
}

function readJson(text: string): Json | undefined {
  try {
    return JSON.parse(text) as Json
  } catch {
    return undefined
  }
}

function wrongWith(schema: JsonSchema, value: Json): string | null {
  const types = typesOf(schema)
  if (types.length && !types.some((type) => fits(type, value)))
    return `Must be ${types.map((type) => WORDS[type] ?? type).join(' or ')}.`
  if (schema.enum && !schema.enum.some((each) => JSON.stringify(each) === JSON.stringify(value)))
    return 'Choose one of the options.'
  if (typeof value === 'number') {
    if (schema.minimum !== undefined && value < schema.minimum) return `Must be at least ${schema.minimum}.`
    if (schema.maximum !== undefined && value > schema.maximum) return `Must be at most ${schema.maximum}.`
    if (schema.exclusiveMinimum !== undefined && value <= schema.exclusiveMinimum)
      return `Must be more than ${schema.exclusiveMinimum}.`
  }
  if (typeof value === 'string') {
    if (schema.minLength !== undefined && value.length < schema.minLength)
      return `Must have at least ${schema.minLength} characters.`
    if (schema.maxLength !== undefined && value.length > schema.maxLength)
      return `Must have at most ${schema.maxLength} characters.`
    if (schema.pattern !== undefined && !matches(schema.pattern, value)) return `Must look like ${schema.pattern}.`
  }
  if (Array.isArray(value)) {
    if (schema.minItems !== undefined && value.length < schema.minItems)
      return `Must have at least ${schema.minItems} items.`
    if (schema.maxItems !== undefined && value.length > schema.maxItems)
      return `Must have at most ${schema.maxItems} items.`
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
