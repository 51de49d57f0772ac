// A form as rows: the properties of a JSON schema of an object, or the fields of a start block. What the rows do not show is
// unchanged.

import { asSchema } from '../../net/repair'
import type { Json, JsonObject } from '../../api/schemas'
import type { JsonSchema } from '../../api/types'

/** `key` is stable while the name is typed. `rest`: keywords of the schema that have no control. */
export interface Property {
  name: string
  type: PropertyType
  title: string
  description: string
  required: boolean
  fallback: Json | undefined
  choices: string[]
  rest: JsonObject
}

export const PROPERTY_TYPES = [
  'any',
  'string',
  'long',
  'number',
  'integer',
  'boolean',
  'choice',
  'date',
  'file',
  'array',
  'object',
] as const
export type PropertyType = (typeof PROPERTY_TYPES)[number]
export const TYPE_WORDS: Record<PropertyType, string> = {
  any: 'Any',
  string: 'Text',
  long: 'Long text',
  number: 'Number',
  integer: 'Whole number',
  boolean: 'True or false',
  choice: 'Choice',
  date: 'Date',
  file: 'File',
  array: 'List',
  object: 'Object',
}
/** What a start block's fields can be. */
export const FIELD_TYPES: readonly PropertyType[] = [
  'any',
  'string',
  'number',
  'integer',
  'boolean',
  'object',
  'array',
  'file',
]

export function propertiesOf(schema: JsonSchema | null | undefined): Property[] {
  const whole = asSchema(schema)
  return Object.entries(whole.properties ?? {}).map(([name, part]) => {
    const {
      type: _,
      title,
      description,
      default: fallback,
      enum: choices,
      format,
      'x-rows': rows,
      ...rest
    } = part as JsonSchema & JsonObject
    const kind = typeOf(part)
    return {
      name,
      type: kind,
      title: title ?? '',
      description: description ?? '',
      required: whole.required?.includes(name) ?? false,
      fallback,
      choices: (choices ?? []).map((each) => (typeof each === 'string' ? each : JSON.stringify(each))),
      rest: {
        ...(rest as JsonObject),
        ...(format && kind !== 'date' && kind !== 'file' ? { format } : {}),
        ...(rows && kind !== 'long' ? { 'x-rows': rows } : {}),
      },
    }
  })
}

/** The schema with these rows as its properties; undefined when nothing is left of it. */
export function schemaOf(
  before: JsonSchema | null | undefined,
  properties: readonly Property[],
): JsonSchema | undefined {
  const { properties: _, required: __, type: ___, ...rest } = before ?? {}
  if (!properties.length && !Object.keys(rest).length) return undefined
  const required = properties.filter((each) => each.required && each.name).map((each) => each.name)
  return {
    type: 'object',
    ...rest,
    properties: Object.fromEntries(properties.filter((each) => each.name).map((each) => [each.name, partOf(each)])),
    ...(required.length ? { required } : {}),
  }
}

export function fieldsOf(value: Json | undefined): Property[] {
  return (Array.isArray(value) ? value : []).flatMap((item) => {
    if (!item || typeof item !== 'object' || Array.isArray(item)) return []
    const { name, type, title, description, required, default: fallback, ...rest } = item
    const known = FIELD_TYPES.find((each) => each === type) ?? 'any'
    return [
      {
        name: String(name ?? ''),
        type: known,
        title: String(title ?? ''),
        description: String(description ?? ''),
        required: required === true,
        fallback,
        choices: [],
        rest,
      },
    ]
  })
}

export function fieldListOf(properties: readonly Property[]): Json[] {
  return properties.map(({ name, type, title, description, required, fallback, rest }) => ({
    name,
    ...(type === 'any' ? {} : { type }),
    ...(title ? { title } : {}),
    ...(description ? { description } : {}),
    ...(fallback === undefined ? {} : { default: fallback }),
    ...(required ? { required } : {}),
    ...rest,
  }))
}

/** A name that no other row has. */
export function freshProperty(properties: readonly Property[]): Property {
  const used = new Set(properties.map((each) => each.name))
  let name = 'field'
  for (let n = 2; used.has(name); n++) name = `field_${n}`
  return {
    name,
    type: 'string',
    title: '',
    description: '',
    required: false,
    fallback: undefined,
    choices: [],
    rest: {},
  }
}

function typeOf(part: JsonSchema): PropertyType {
  if (part.enum) return 'choice'
  const type = Array.isArray(part.type) ? part.type.find((each) => each !== 'null') : part.type
  if (part.format === 'file' && (type === undefined || type === 'object')) return 'file'
  if (type === 'string') return part.format === 'date' ? 'date' : (part['x-rows'] ?? 1) > 1 ? 'long' : 'string'
  return PROPERTY_TYPES.find((each) => each === type) ?? 'any'
}

function partOf({ type, title, description, fallback, choices, rest }: Property): JsonSchema {
  const kinds: Record<PropertyType, JsonSchema> = {
    any: {},
    string: { type: 'string' },
    long: { type: 'string', 'x-rows': 4 },
    number: { type: 'number' },
    integer: { type: 'integer' },
    boolean: { type: 'boolean' },
    choice: { type: 'string', enum: choices },
    date: { type: 'string', format: 'date' },
    file: { type: 'object', format: 'file' },
    array: { type: 'array' },
    object: { type: 'object' },
  }
  return {
    ...kinds[type],
    ...(title ? { title } : {}),
    ...(description ? { description } : {}),
    ...(fallback === undefined ? {} : { default: fallback }),
    ...rest,
  }
}
