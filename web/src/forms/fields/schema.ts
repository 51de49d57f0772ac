// What a form reads from the schema of a param, whatever control it gets.

import type { JsonSchema } from '../../api/types'

const UNIT = / \((seconds|ms)\)$/

/** What a length of time counts in, if the title of the param says so. */
export function baseOf(schema: JsonSchema): 'ms' | 's' | null {
  const unit = UNIT.exec(schema.title ?? '')?.[1]
  return unit === undefined ? null : unit === 'ms' ? 'ms' : 's'
}

/** Types a schema allows, without null; [] is anything. */
export function typesOf(schema: JsonSchema): string[] {
  const types = Array.isArray(schema.type) ? schema.type : schema.type ? [schema.type] : []
  return types.filter((type) => type !== 'null')
}

/** `timeout_s` -> `Timeout s`: for params without a title. A unit is chosen beside the field. */
export function titleOf(name: string, schema: JsonSchema): string {
  if (schema.title) return schema.title.replace(UNIT, '')
  const words = name.replace(/_/g, ' ')
  return words.charAt(0).toUpperCase() + words.slice(1)
}

export function placeholderOf(schema: JsonSchema): string {
  if (schema.default !== undefined && schema.default !== null)
    return typeof schema.default === 'string' ? schema.default : JSON.stringify(schema.default)
  return ''
}
