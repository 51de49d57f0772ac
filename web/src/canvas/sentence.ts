// The one sentence on a card, from the block type's template: "if `<start.amount> > 500`". Pure.
//
// Templates hold `{path}` for params: `{cases[0].when}`, `{fields[].name}` for all items. Of several with ` | ` between them the
// first one with nothing empty in it counts.

import type { Json } from '../api/schemas'
import type { Block, BlockSpec, JsonSchema } from '../api/types'
import { find } from '../refs/parse'

/** `code` is set on a chip: a reference, or code and addresses without blanks. */
export interface Part {
  text: string
  code: boolean
}

const SLOT = /\{([^{}]+)\}/g
const LENGTH_MAX = 160

export function sentenceOf(block: Block, spec: BlockSpec | undefined): Part[] {
  const template = templateOf(block, spec)
  const wishes = template.split(' | ')
  for (const wish of wishes) {
    const parts = fill(wish, block, spec)
    if (parts) return cut(join(parts))
  }
  return [{ text: spec?.description ?? block.type, code: false }]
}

/** As plain text, for lists and screen readers. */
export function sentenceText(block: Block, spec: BlockSpec | undefined): string {
  return sentenceOf(block, spec)
    .map((part) => part.text)
    .join('')
}

function templateOf(block: Block, spec: BlockSpec | undefined): string {
  const cases = block.params?.cases
  // One case and an else is a question; with more, the rows below say it.
  if (block.type === 'condition' && Array.isArray(cases) && cases.filter(hasWhen).length > 1)
    return 'First case that matches'
  const template = (spec as { sentence?: unknown } | undefined)?.sentence
  return typeof template === 'string' && template ? template : (spec?.description ?? block.type)
}

function hasWhen(item: Json): boolean {
  return !!item && typeof item === 'object' && !Array.isArray(item) && typeof item.when === 'string' && item.when !== ''
}

function fill(wish: string, block: Block, spec: BlockSpec | undefined): Part[] | null {
  const parts: Part[] = []
  let at = 0
  for (const match of wish.matchAll(SLOT)) {
    parts.push({ text: wish.slice(at, match.index), code: false })
    const shown = show(match[1]!, block, spec)
    if (!shown.length) return null
    parts.push(...shown)
    at = match.index + match[0].length
  }
  parts.push({ text: wish.slice(at), code: false })
  return parts
}

function show(path: string, block: Block, spec: BlockSpec | undefined): Part[] {
  const steps = path.split(/\.|(?=\[)/)
  if (!counts(spec?.params.properties?.[steps[0]!], block, spec)) return []
  const values = lookUp(block.params ?? {}, steps, spec?.params)
  const schema = schemaAt(spec?.params, steps)
  const parts: Part[] = []
  for (const value of values) {
    const shown = showValue(value, schema)
    if (!shown.length) continue
    if (parts.length) parts.push({ text: ', ', code: false })
    parts.push(...shown)
  }
  return parts
}

/** A field of another mode may keep its value; it says nothing then. */
function counts(field: JsonSchema | undefined, block: Block, spec: BlockSpec | undefined): boolean {
  return Object.entries(field?.['x-when'] ?? {}).every(([name, values]) => {
    const chosen = block.params?.[name] ?? spec?.params.properties?.[name]?.default
    return chosen === undefined || values.includes(chosen)
  })
}

function lookUp(value: Json | undefined, steps: readonly string[], schema: JsonSchema | undefined): Json[] {
  const [step, ...rest] = steps
  if (value === undefined || value === null)
    return schema?.default !== undefined && !steps.length ? [schema.default] : []
  if (step === undefined) return Array.isArray(value) ? value : [value]
  if (step === '[]')
    return Array.isArray(value)
      ? value.flatMap((item) => lookUp(item, rest, schema?.items as JsonSchema | undefined))
      : []
  const index = /^\[(\d+)\]$/.exec(step)
  if (index)
    return Array.isArray(value) ? lookUp(value[Number(index[1])], rest, schema?.items as JsonSchema | undefined) : []
  const inner = schema?.properties?.[step]
  if (typeof value !== 'object' || Array.isArray(value)) return []
  const found = value[step]
  return found === undefined || found === null
    ? !rest.length && inner?.default !== undefined
      ? [inner.default]
      : []
    : lookUp(found, rest, inner)
}

function schemaAt(schema: JsonSchema | undefined, steps: readonly string[]): JsonSchema | undefined {
  let at = schema
  for (const step of steps) at = step.startsWith('[') ? (at?.items as JsonSchema | undefined) : at?.properties?.[step]
  return at
}

function showValue(value: Json, schema: JsonSchema | undefined): Part[] {
  if (typeof value === 'number' || typeof value === 'boolean') return [{ text: String(value), code: true }]
  if (value === null || value === '') return []
  if (Array.isArray(value)) return [{ text: `${value.length} items`, code: false }]
  if (typeof value === 'object') {
    const keys = Object.keys(value)
    return keys.length ? [{ text: `{ ${keys.join(', ')} }`, code: true }] : []
  }
  if (schema?.enum) return [{ text: value.replace(/_/g, ' '), code: false }]
  const kind = schema?.['x-weft']
  const text = kind === 'code' ? firstLine(value) : value.replace(/\s+/g, ' ').trim()
  if (!text) return []
  if (kind === 'code') return [{ text, code: true }]
  const refs = find(text)
  if (kind === 'expression' && !refs.length) return [{ text, code: true }]
  // Prose keeps its words and shows references as chips; anything without blanks is one chip.
  if (kind !== 'expression' && !text.replace(/<[^<>]*>/g, '').includes(' '))
    return refs.length || !/^\p{L}+$/u.test(text) ? [{ text, code: true }] : [{ text, code: false }]
  const parts: Part[] = []
  let at = 0
  for (const ref of refs) {
    parts.push({ text: text.slice(at, ref.start), code: false }, { text: text.slice(ref.start, ref.end), code: true })
    at = ref.end
  }
  parts.push({ text: text.slice(at), code: false })
  return parts
}

/** Of JavaScript and Python. */
const COMMENT = /^(\/\/|#)/

/** The line that says most: the first that is no comment; `return` is left out. */
function firstLine(code: string): string {
  const lines = code
    .split('\n')
    .map((line) => line.trim())
    .filter((line) => line && !COMMENT.test(line))
  const line = lines.find((each) => each.startsWith('return')) ?? lines[0] ?? ''
  return line.replace(/^return\s+/, '').replace(/;$/, '')
}

/** Without what is empty; "1 times" is 1 time. */
function join(parts: readonly Part[]): Part[] {
  const filled = parts.filter((part) => part.text !== '')
  return filled.map((part, i) =>
    filled[i - 1]?.text === '1' ? { ...part, text: part.text.replace(/^ times\b/, ' time') } : part,
  )
}

function cut(parts: readonly Part[]): Part[] {
  const out: Part[] = []
  let left = LENGTH_MAX
  for (const part of parts) {
    if (left <= 0) break
    out.push(part.text.length > left ? { ...part, text: `${part.text.slice(0, left)}…` } : part)
    left -= part.text.length
  }
  return out
}
