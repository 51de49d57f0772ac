// What a text with references would read, from the values of the run that is shown, in the iteration that is shown. A preview
// only: the server resolves references.

import type { Json } from '../api/schemas'
import type { Document } from '../api/types'
import { iterOf, keyOf, nodeAt, parsePath, pathFor, scopeText, type Iter, type RunFold } from '../run'
import { chainOf, kindOf, NO_SPECS, type Specs } from '../document/document'
import { find, type Found, type Segment } from './parse'
import { resolve, type Reader } from './scope'

/** `known` false: there is no value to show (not run yet, a secret). `value` undefined and known: it reads as null. */
export interface Previewed {
  text: string
  known: boolean
  value?: Json
}

export interface Values {
  view: RunFold
  doc: Document
  iter: Iter
  /** Input of the run. */
  input?: Json
  specs?: Specs
}

/** The value of each reference in `text`, in order. */
export function previewRefs(text: string, reader: Reader, values: Values): Previewed[] {
  return find(text).flatMap((found) => {
    const shown = readValue(found, reader, values)
    return shown ? [shown] : []
  })
}

/** The whole text as it would be resolved: one reference alone keeps its type, others are put into the text. null: no references. */
export function preview(text: string, reader: Reader, values: Values): Previewed | null {
  const found = find(text)
    .map((f) => ({ f, shown: readValue(f, reader, values) }))
    .filter((item) => item.shown !== null)
  if (!found.length) return null
  const only = found[0]!
  if (found.length === 1 && only.f.start === 0 && only.f.end === text.length) return only.shown
  let out = ''
  let at = 0
  for (const { f, shown } of found) {
    out += text.slice(at, f.start) + (shown!.known ? render(shown!.value) : text.slice(f.start, f.end))
    at = f.end
  }
  return { text, known: found.some((item) => item.shown!.known), value: out + text.slice(at) }
}

function readValue(found: Found, reader: Reader, values: Values): Previewed | null {
  const { view, doc, specs = NO_SPECS } = values
  const target = resolve(doc, found, reader, specs)
  if (!target) return null
  const text = found.env ? `\${${found.text}}` : `<${found.text}>`
  const give = (known: boolean, value?: Json): Previewed => {
    const fallback =
      'parsed' in target && target.parsed.fallback !== null ? (JSON.parse(target.parsed.fallback) as Json) : undefined
    const shown = value === undefined || value === null ? (fallback ?? value) : value
    return { text, known, ...(shown === undefined ? {} : { value: shown }) }
  }
  switch (target.kind) {
    case 'env':
      return { text, known: false }
    case 'variable':
      return give(view.seq > 0, at(view.variables[target.name], target.path))
    case 'input':
      return give(values.input !== undefined, at(values.input, target.path))
    case 'scope':
      return give(...scopeValue(target.container, target.path, reader, values))
    case 'block': {
      const node = nodeFor(target.block, reader, values)
      if (!node) return give(false)
      if (node.error && node.route === 'error')
        return give(true, at({ error: node.error as unknown as Json }, target.path))
      const path = target.path[0] === 'output' && !hasKey(node.output, 'output') ? target.path.slice(1) : target.path
      if (node.output === undefined) return give(node.status === 'skipped')
      return give(true, at(node.output, path))
    }
  }
  function nodeFor(block: string, from: Reader, { view: v, doc: d, iter: i }: Values) {
    const shared = chainOf(d, from.block)
    const feedback = shared.find((c) => kindOf(d, c, specs) === 'loop' && chainOf(d, block).includes(c))
    const now = nodeAt(v, d, block, i)
    if (!feedback || now) return now
    const here = parsePath(pathFor(v, d, block, i)).find((part) => part.container === feedback)
    return here && here.index > 0
      ? nodeAt(v, d, block, { ...i, ...iterOf(scopeText('', feedback, here.index - 1, 'loop')) })
      : now
  }
}

/** What a container goes through, in the iteration around it that is shown; null when that is not known. */
export function itemsOf(container: string, values: Values): Json[] | null {
  const source = values.doc.blocks[container]?.params?.items
  const items = typeof source === 'string' ? (preview(source, { block: container }, values)?.value ?? source) : source
  const list = typeof items === 'string' ? parsed(items) : items
  return Array.isArray(list) ? list : list && typeof list === 'object' ? Object.entries(list) : null
}

function scopeValue(container: string, path: Segment[], reader: Reader, values: Values): [boolean, Json?] {
  const { view, doc, iter } = values
  const here = parsePath(pathFor(view, doc, firstChildOf(doc, container, reader), iter)).find(
    (part) => part.container === container,
  )
  if (!here || !view.nodes.has(keyOf(container, pathFor(view, doc, container, iter)))) return [false]
  const [field, ...more] = path
  if (field === 'index' || field === 'iteration') return [true, here.index]
  if (field !== 'item' && field !== 'items' && field !== 'currentItem') return [false]
  const items = itemsOf(container, values)
  if (items === null) return [false]
  return [true, at(field === 'items' ? items : items[here.index], more)]
}

/** A block inside `container` on the way to the reader: its path tells the iteration. */
function firstChildOf(doc: Document, container: string, reader: Reader): string {
  const chain = [reader.block, ...chainOf(doc, reader.block)]
  const at = chain.indexOf(container)
  return at > 0
    ? chain[at - 1]!
    : (Object.keys(doc.blocks).find((id) => doc.blocks[id]?.parent === container) ?? container)
}

function at(value: Json | undefined, path: readonly Segment[]): Json | undefined {
  let now: Json | undefined = value
  for (const part of path) {
    if (Array.isArray(now)) now = now[Number(part)]
    else if (now && typeof now === 'object') now = now[String(part)]
    else return undefined
  }
  return now
}

/** As the server puts a value into text: objects as JSON, null as `null`, missing as nothing. */
export function render(value: Json | undefined): string {
  if (value === undefined) return ''
  return typeof value === 'string' ? value : JSON.stringify(value)
}

function hasKey(value: Json | undefined, key: string): boolean {
  return typeof value === 'object' && value !== null && !Array.isArray(value) && key in value
}

function parsed(text: string): Json | undefined {
  try {
    return JSON.parse(text) as Json
  } catch {
    return undefined
  }
}
