// The value on an edge in the shown run: the part of the source's output that the target reads, short enough for the edge.

import type { Json } from '../api/schemas'
import type { Document } from '../api/types'
import { indexOf, type Specs } from '../document/document'
import { previewRefs } from '../refs/preview'
import { referencesOf } from '../refs/scope'
import { nodeAt } from '../run'
import { specsOf } from '../state/doc'
import type { RunState } from '../state/live'

export interface EdgeValue {
  /** The field that is read; '' when it is all of the output. */
  name: string
  short: string
  whole: string
}

const SHORT = 16
const WHOLE = 400

/** Null when nothing went along it, or nothing that can be written shortly. */
export function edgeValue(
  { doc, view, meta }: Pick<RunState, 'doc' | 'view' | 'meta'>,
  source: string,
  handle: string,
  target: string,
  iter: Readonly<Record<string, number>>,
): EdgeValue | null {
  if (!doc?.blocks[source] || !doc.blocks[target] || view.seq === 0 || handle === 'body') return null
  const node = nodeAt(view, doc, source, iter)
  if (!node || node.output === undefined || node.status !== 'succeeded') return null
  const read = readBy(doc, source, target)
  if (read) {
    const input = meta?.input
    const values = { view, doc, iter, specs: specsOf(), ...(input === undefined ? {} : { input }) }
    const [shown] = previewRefs(`<${read.text}>`, { block: target }, values)
    return shown?.known && shown.value !== undefined && shown.value !== null
      ? chipOf(read.name, shown.value as Json)
      : null
  }
  // A branch has its name there. A value that is not read is written once, and not on every edge that leaves the block.
  if (handle !== 'out') return null
  const first = indexOf(doc).outOf.get(source)?.[0]
  if (first?.target !== target || first.handle !== handle) return null
  return wholeOf(node.output)
}

const reads = new WeakMap<Document, Map<string, { text: string; name: string } | null>>()

/** The first reference of the target to the source, and the last name in it. */
function readBy(doc: Document, source: string, target: string): { text: string; name: string } | null {
  let known = reads.get(doc)
  if (!known) reads.set(doc, (known = new Map()))
  const key = `${source}>${target}`
  let read = known.get(key)
  if (read === undefined) known.set(key, (read = firstRead(doc, source, target, specsOf())))
  return read
}

function firstRead(doc: Document, source: string, target: string, specs: Specs): { text: string; name: string } | null {
  for (const { found, target: to } of referencesOf(doc, target, specs)) {
    if (to?.kind !== 'block' || to.block !== source) continue
    const name = to.path.findLast((part) => typeof part === 'string')
    return { text: found.text, name: typeof name === 'string' && name !== 'result' ? name : '' }
  }
  return null
}

function wholeOf(output: Json): EdgeValue | null {
  if (output && typeof output === 'object' && !Array.isArray(output)) {
    const [only, ...more] = Object.keys(output)
    if (only === undefined) return null
    return only === 'result' && !more.length ? wholeOf(output.result!) : chipOf('', output)
  }
  return output === null ? null : chipOf('', output)
}

/** An object of one field is written as that field. */
function chipOf(name: string, value: Json): EdgeValue {
  const names = value && typeof value === 'object' && !Array.isArray(value) ? Object.keys(value) : []
  const only = names.length === 1 ? names[0]! : null
  const inner = only === null ? null : (value as Record<string, Json>)[only]
  if (only !== null && inner !== null && typeof inner !== 'object') return chipOf(only, inner!)
  const whole = typeof value === 'string' ? value : JSON.stringify(value, null, 1)
  return { name: cut(name, SHORT), short: shortOf(value, name), whole: cut(whole, WHOLE) }
}

function shortOf(value: Json, name: string): string {
  const room = Math.max(6, SHORT - name.length)
  if (typeof value === 'string') return `"${cut(value.replace(/\s+/g, ' ').trim(), room - 2)}"`
  if (Array.isArray(value)) return value.length === 1 ? '1 item' : `${value.length} items`
  if (value && typeof value === 'object') {
    const names = Object.keys(value)
    return names.length === 1 ? `{ ${cut(names[0]!, room - 4)} }` : `${names.length} fields`
  }
  return cut(String(value), room)
}

const cut = (text: string, most: number): string =>
  text.length > most ? `${text.slice(0, Math.max(1, most - 1))}…` : text
