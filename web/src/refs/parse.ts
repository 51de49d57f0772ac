// The text of references: `<draft.content[0] ?? "none">` and `${API_KEY}`. The same grammar as compiler/references.py.
// Finds, parses and rewrites; what a name means is scope.ts. Knows nothing of blocks.

import type { Json } from '../api/schemas'

// Each alternative starts with a different character, so a match never backtracks.
const HEAD = String.raw`[\p{L}\p{N}_](?:[^<>\[\]{}?"` + '`' + String.raw`\n]|\[\d{1,9}\]|\["[^"\\<>\n]*"\]|\?(?!\?))*`
const DEFAULT = String.raw`(?:"(?:[^"\\\n]|\\.)*"|'[^'\\<>\n]*'|[^<>"'` + '`' + String.raw`\n])+`
const REFERENCE = `<(${HEAD}(?:\\?\\?${DEFAULT})?)>`
const ENV = String.raw`\$\{([A-Za-z_][A-Za-z0-9_]*)\}`
const CANDIDATE = new RegExp(`${REFERENCE}|${ENV}`, 'gu')
const WHOLE_HEAD = new RegExp(`^${HEAD}$`, 'u')
const PART = /\.([^.[\]]*)|\[(\d+)\]|\["([^"]*)"\]/y
/** Text with more steps is no reference. */
const STEPS_MAX = 100
/** A path segment that can be a field; with others the text is code or prose. */
export const FIELD = /^[\p{L}\p{N}_$@][\p{L}\p{N}_$@ -]*$/u

/** `text` stands between the brackets; `start` and `end` span the whole thing. */
export interface Found {
  text: string
  start: number
  end: number
  env: boolean
}

export type Segment = string | number

/** `Draft one.content[0] ?? 0` -> segments ["Draft one", "content", 0], fallback "0" (JSON text). */
export interface Parsed {
  segments: Segment[]
  fallback: string | null
}

/** Every candidate, left to right, none overlapping. */
export function find(text: string): Found[] {
  if (!text.includes('<') && !text.includes('${')) return []
  const found: Found[] = []
  for (const match of text.matchAll(CANDIDATE)) {
    const env = match[1] === undefined
    found.push({ text: (env ? match[2] : match[1])!, start: match.index, end: match.index + match[0].length, env })
  }
  return found
}

/** null when the text (without its brackets) cannot be a reference. */
export function parse(text: string): Parsed | null {
  const mark = text.indexOf('??')
  const head = mark < 0 ? text : text.slice(0, mark)
  const fallback = mark < 0 ? null : defaultOf(text.slice(mark + 2).trim())
  if (mark >= 0 && fallback === null) return null
  const segments = segmentsOf(head.trim())
  return segments.length ? { segments, fallback } : null
}

/** How names compare: lower case, blanks and dots removed. */
export function normalize(name: string): string {
  return name.replace(/[\s.]+/gu, '').toLowerCase()
}

/** Can a block of this name be written as `<name...>`? */
export function isWritable(name: string): boolean {
  return (
    WHOLE_HEAD.test(name) &&
    !name.includes('??') &&
    !name.includes('[') &&
    normalize(name) !== '' &&
    parse(name) !== null
  )
}

/** Replace references: `change` gets each candidate and returns its new inner text, or null to leave it. */
export function rewrite(text: string, change: (found: Found) => string | null): string {
  let out = ''
  let at = 0
  for (const found of find(text)) {
    const inner = change(found)
    if (inner === null) continue
    out += text.slice(at, found.start) + (found.env ? '${' + inner + '}' : `<${inner}>`)
    at = found.end
  }
  return at ? out + text.slice(at) : text
}

/** Put `name` in front of what follows the first `used` segments of a reference text; path and default stay as written. */
export function withHead(text: string, used: number, name: string): string {
  const mark = text.indexOf('??')
  const head = mark < 0 ? text : text.slice(0, mark)
  return name + text.slice(endOfSegments(head, used))
}

/** Every text in a JSON value, depth first, with its JSON pointer. */
export function* texts(value: Json | undefined, pointer = ''): Generator<[string, string]> {
  if (typeof value === 'string') yield [pointer, value]
  else if (Array.isArray(value)) for (const [i, item] of value.entries()) yield* texts(item, `${pointer}/${i}`)
  else if (value && typeof value === 'object')
    for (const [key, item] of Object.entries(value)) yield* texts(item, `${pointer}/${escapePointer(key)}`)
}

/** A copy of a JSON value with every text mapped; the same object when nothing changed. */
export function mapTexts<T extends Json | undefined>(
  value: T,
  change: (text: string, pointer: string) => string,
  pointer = '',
): T {
  if (typeof value === 'string') return change(value, pointer) as T
  if (Array.isArray(value)) {
    const items = value.map((item, i) => mapTexts(item, change, `${pointer}/${i}`))
    return (items.some((item, i) => item !== value[i]) ? items : value) as T
  }
  if (value && typeof value === 'object') {
    let changed = false
    const entries = Object.entries(value).map(([key, item]): [string, Json] => {
      const next = mapTexts(item, change, `${pointer}/${escapePointer(key)}`)
      changed ||= next !== item
      return [key, next]
    })
    return (changed ? Object.fromEntries(entries) : value) as T
  }
  return value
}

export function escapePointer(part: string): string {
  return part.replaceAll('~', '~0').replaceAll('/', '~1')
}

function segmentsOf(head: string): Segment[] {
  const first = firstSegmentEnd(head)
  const name = head.slice(0, first).trim()
  if (!name) return []
  const segments: Segment[] = [name]
  let at = first
  while (at < head.length) {
    PART.lastIndex = at
    const match = PART.exec(head)
    if (!match || segments.length > STEPS_MAX) return []
    if (match[2] !== undefined) segments.push(Number(match[2]))
    else if (match[3] !== undefined) segments.push(match[3])
    else if (match[1]!.trim()) segments.push(match[1]!.trim())
    else return []
    at = PART.lastIndex
  }
  return segments
}

function firstSegmentEnd(head: string): number {
  const cuts = [head.indexOf('.'), head.indexOf('[')].filter((at) => at >= 0)
  return cuts.length ? Math.min(...cuts) : head.length
}

/** Where the first `used` segments of a reference head end. */
function endOfSegments(head: string, used: number): number {
  const lead = head.length - head.trimStart().length
  const trimmed = head.trim()
  let at = firstSegmentEnd(trimmed)
  for (let n = 1; n < used && at < trimmed.length; n++) {
    PART.lastIndex = at
    if (!PART.exec(trimmed)) break
    at = PART.lastIndex
  }
  return at === trimmed.length ? lead + trimmed.length : lead + at
}

function defaultOf(text: string): string | null {
  if (text.length > 1 && text.startsWith("'") && text.endsWith("'")) return JSON.stringify(text.slice(1, -1))
  try {
    return JSON.stringify(JSON.parse(text))
  } catch {
    return null
  }
}
