// Answering a wait: the fields of its schema, and what was typed read as JSON. The same rules as the server's plain form, so
// that both ways give the same answer.

import type { Json, JsonSchema, WaitView } from '../net/types'
import { ApiError } from '../net/api'

export type FieldKind = 'string' | 'long' | 'integer' | 'number' | 'boolean' | 'enum' | 'json'

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

export function fieldsOf(schema: JsonSchema | null): FormField[] {
  return Object.entries(schema?.properties ?? {}).map(([name, field]) => ({
    name,
    schema: field,
    kind: kindOf(field),
    title: field.title ?? name,
    required: schema?.required?.includes(name) ?? false,
  }))
}

export function defaultsOf(fields: readonly FormField[]): Typed {
  return Object.fromEntries(
    fields.map(({ name, kind, schema }) => [name, schema.default === undefined ? '' : textOf(kind, schema.default)]),
  )
}

/** The fields as JSON; what was left empty is left out. */
export function readTyped(
  fields: readonly FormField[],
  typed: Typed,
): { values: Record<string, Json>; errors: Record<string, string> } {
  const values: Record<string, Json> = {}
  const errors: Record<string, string> = {}
  for (const field of fields) {
    const text = typed[field.name] ?? ''
    if (field.kind === 'boolean') values[field.name] = text === 'true'
    else if (text.trim()) {
      const [value, error] = read(field, text)
      if (error !== null) errors[field.name] = error
      else values[field.name] = value
    } else if (field.required) errors[field.name] = 'Required'
  }
  return { values, errors }
}

/** Where the messages of a refused answer belong: by field, and the rest. */
export function errorsOf(
  error: unknown,
  fields: readonly FormField[],
): { byField: Record<string, string>; other: string } {
  const byField: Record<string, string> = {}
  if (!(error instanceof ApiError)) return { byField, other: error instanceof Error ? error.message : String(error) }
  const found = Array.isArray(error.problem.errors)
    ? (error.problem.errors as { pointer?: string; message?: string }[])
    : []
  let placed = 0
  for (const { pointer = '', message = '' } of found) {
    const name = pointer.split('/')[1]?.replace(/~1/g, '/').replace(/~0/g, '~')
    if (name === undefined || !fields.some((field) => field.name === name)) continue
    byField[name] ??= message
    placed++
  }
  return { byField, other: placed && placed === found.length ? '' : error.message }
}

/** Is what counts for `wait` the answer that was sent from here? */
export function isOurs(wait: WaitView, action: string | null, fields: Record<string, Json>, by: string): boolean {
  const answer = wait.response
  if (
    wait.status !== 'answered' ||
    (wait.answered_by ?? '') !== by ||
    typeof answer !== 'object' ||
    answer === null ||
    Array.isArray(answer)
  )
    return false
  return (
    (answer.action ?? null) === action &&
    Object.entries(fields).every(([name, value]) => JSON.stringify(answer[name]) === JSON.stringify(value))
  )
}

/** What is said to somebody whose answer does not count. */
export const tooLate = (wait: WaitView): string =>
  wait.status === 'answered' ? 'This was already answered' : 'This question is closed'

export function titleOf(wait: WaitView): string {
  if (wait.title) return wait.title
  return typeof wait.request.title === 'string' && wait.request.title ? wait.request.title : wait.label || wait.block
}

/** Kinds that a person answers, by their link. */
export const isForPeople = (wait: Pick<WaitView, 'kind'>): boolean =>
  wait.kind === 'approval' || wait.kind === 'form' || wait.kind === 'attention'

function kindOf(schema: JsonSchema): FieldKind {
  if (Array.isArray(schema.enum)) return 'enum'
  const types = (Array.isArray(schema.type) ? schema.type : [schema.type]).filter((type) => type !== 'null')
  const type = types.length === 1 ? types[0] : undefined
  if (type === 'string')
    return schema.format === 'textarea' || schema.format === 'multiline' || (schema.maxLength ?? 0) > LONG_TEXT
      ? 'long'
      : 'string'
  return type === 'integer' || type === 'number' || type === 'boolean' ? type : 'json'
}

function textOf(kind: FieldKind, value: Json): string {
  if (kind === 'boolean') return value === true ? 'true' : ''
  return typeof value === 'string' && (kind === 'string' || kind === 'long') ? value : JSON.stringify(value)
}

function read({ kind, schema }: FormField, text: string): [Json, null] | [null, string] {
  if (kind === 'string' || kind === 'long') return [text, null]
  if (kind === 'integer' || kind === 'number') {
    const value = Number(text.trim().replace(',', '.'))
    if (!Number.isFinite(value)) return [null, 'Enter a number.']
    if (kind === 'integer' && !Number.isSafeInteger(value)) return [null, 'Enter a whole number.']
    if (schema.minimum !== undefined && value < schema.minimum) return [null, `At least ${schema.minimum}.`]
    if (schema.maximum !== undefined && value > schema.maximum) return [null, `At most ${schema.maximum}.`]
    return [value, null]
  }
  try {
    return [JSON.parse(text) as Json, null]
  } catch {
    return [null, kind === 'enum' ? 'Choose one of the options.' : 'Enter valid JSON.']
  }
}
