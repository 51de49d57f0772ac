// JSON as people write it: short lists of plain values, and short objects inside lists, stand on one line.

import type { Json } from '../../api/schemas'

const LINE = 96
const INDENT = '  '

export function printJson(value: Json): string {
  return print(value, '', false)
}

function print(value: Json, indent: string, inList: boolean): string {
  if (value === null || typeof value !== 'object') return JSON.stringify(value)
  const list = Array.isArray(value)
  const items = list ? value : Object.values(value)
  if (!items.length) return list ? '[]' : '{}'
  if ((list || inList) && items.every(isPlain)) {
    const line = oneLine(value)
    if (indent.length + line.length <= LINE) return line
  }
  const inner = indent + INDENT
  if (list) return `[\n${value.map((item) => inner + print(item, inner, true)).join(',\n')}\n${indent}]`
  return `{\n${Object.entries(value)
    .filter(([, item]) => item !== undefined)
    .map(([key, item]) => `${inner}${JSON.stringify(key)}: ${print(item, inner, false)}`)
    .join(',\n')}\n${indent}}`
}

function oneLine(value: Json): string {
  if (value === null || typeof value !== 'object') return JSON.stringify(value)
  if (Array.isArray(value)) return `[${value.map(oneLine).join(', ')}]`
  return `{${Object.entries(value)
    .map(([key, item]) => `${JSON.stringify(key)}: ${oneLine(item)}`)
    .join(', ')}}`
}

function isPlain(value: Json): boolean {
  return value === null || typeof value !== 'object'
}
