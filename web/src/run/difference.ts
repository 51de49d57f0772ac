// Two JSON values as lines: what is in both, what only the first has, what only the second has. Parts that are equal stay closed.

import { isObject } from '../net/json'
import type { Json } from '../api/schemas'

/** `-` is how it was, `+` is how it is, `=` is in both. */
export interface DiffLine {
  id: string
  mark: '-' | '+' | '='
  depth: number
  key: string
  text: string
}

const LINES_MAX = 400
const TEXT_MAX = 160

export function difference(before: Json | undefined, after: Json | undefined): { lines: DiffLine[]; cut: boolean } {
  const lines: DiffLine[] = []
  const add = (mark: DiffLine['mark'], depth: number, key: string, text: string): void => {
    lines.push({ id: `${lines.length}`, mark, depth, key, text })
  }
  const whole = (mark: '-' | '+', value: Json, key: string, depth: number): void => {
    if (lines.length > LINES_MAX) return
    const parts = partsOf(value)
    if (!parts?.length) return add(mark, depth, key, leaf(value))
    add(mark, depth, key, '')
    for (const [name, part] of parts) whole(mark, part, name, depth + 1)
  }
  const both = (was: Json | undefined, is: Json | undefined, key: string, depth: number): void => {
    if (lines.length > LINES_MAX) return
    if (was === undefined || is === undefined) {
      if (was !== undefined) whole('-', was, key, depth)
      if (is !== undefined) whole('+', is, key, depth)
      return
    }
    if (same(was, is)) return add('=', depth, key, brief(is))
    const [old, now] = [partsOf(was), partsOf(is)]
    if (!old || !now || Array.isArray(was) !== Array.isArray(is)) {
      whole('-', was, key, depth)
      return whole('+', is, key, depth)
    }
    add('=', depth, key, '')
    const [then, here] = [new Map(old), new Map(now)]
    for (const name of new Set([...then.keys(), ...here.keys()])) both(then.get(name), here.get(name), name, depth + 1)
  }
  both(before, after, '', 0)
  // The value itself has no name: its fields stand at the border.
  const bare = lines[0]?.mark === '=' && lines[0].key === '' && lines[0].text === ''
  const shown = bare ? lines.slice(1).map((line) => ({ ...line, depth: line.depth - 1 })) : lines
  return { lines: shown.slice(0, LINES_MAX), cut: shown.length > LINES_MAX }
}

/** A value as lines, all of it. */
export function linesOf(value: Json): DiffLine[] {
  return difference(undefined, value).lines.filter((line) => line.key !== '' || line.text !== '')
}

export function same(a: Json | undefined, b: Json | undefined): boolean {
  if (a === b) return true
  if (Array.isArray(a) && Array.isArray(b)) return a.length === b.length && a.every((each, i) => same(each, b[i]))
  if (!isObject(a) || !isObject(b) || Array.isArray(a) || Array.isArray(b)) return false
  const names = Object.keys(a)
  return (
    names.length === Object.keys(b).length && names.every((name) => name in b && same(a[name] as Json, b[name] as Json))
  )
}

/** A value in a line: texts and numbers as they are, the rest by its size. */
export function brief(value: Json | undefined): string {
  if (Array.isArray(value)) return value.length === 1 ? '1 item' : `${value.length} items`
  if (isObject(value)) {
    const count = Object.keys(value).length
    return count === 1 ? '1 value' : `${count} values`
  }
  return leaf(value)
}

function leaf(value: Json | undefined): string {
  const text = value === undefined ? 'nothing' : JSON.stringify(value)
  return text.length > TEXT_MAX ? `${text.slice(0, TEXT_MAX - 1)}…` : text
}

function partsOf(value: Json): [string, Json][] | null {
  if (Array.isArray(value)) return value.map((each, i) => [String(i), each])
  return isObject(value) ? (Object.entries(value) as [string, Json][]) : null
}
