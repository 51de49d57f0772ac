// The first value that two runs do not have the same.

import { isObject } from '../../net/json'
import type { Json, JsonObject, NodeDiff, RunDiff, ValueDiff } from '../../api/schemas'
import type { Document } from '../../api/types'
import { nameOf } from '../../document/document'
import { isEnded, type NodeState, type RunFold } from '../../run'
import { same } from '../../run/difference'
import { short } from './changes'

export interface Difference {
  name: string
  before: string
  now: string
  /** The events that made it; null: the run has none. */
  seqs: [number | null, number | null]
}

/** The first value that is not the same: of a step of the block where they part, of that block, or of the first one that ended
 * differently; else the input, the words that were changed, or the result. */
export function firstDifference(
  diff: RunDiff,
  doc: Document | null,
  before: RunFold,
  now: RunFold,
  words: Pick<Difference, 'name' | 'before' | 'now'> | null = null,
): Difference | null {
  const { diverged } = diff
  const key = diverged?.a?.key ?? diverged?.b?.key ?? null
  const [was, is] = [before, now].map((view) => (key === null ? undefined : view.nodes.get(key)))
  const ids: Ids = [diff.a.run, diff.b.run]
  const step = was && is ? stepDifference(was, is, ids) : null
  if (step) return step
  // A call that has not ended has no value.
  const ended = diff.nodes
    .filter(({ a, b }) => !OPEN.has(a.status) && !OPEN.has(b.status))
    .map((node) => ({ ...node, output: node.output.filter((value) => !isFleeting(value, ids)) }))
    .filter((node) => node.output.length || endOf(node.a) !== endOf(node.b))
  const node = ended.find((each) => each.key === key && each.output.length) ?? ended[0]
  const seqs: Difference['seqs'] = [diverged?.a?.seq ?? null, diverged?.b?.seq ?? null]
  if (node) return { ...wordsOf(node, doc), seqs }
  if (diff.input[0]) return { ...valueWords('input', diff.input[0]), seqs }
  if (words) return { ...words, seqs }
  const output = isEnded(before.status) && isEnded(now.status) && diff.output.find((value) => !isFleeting(value, ids))
  return output ? { ...valueWords('result', output), seqs } : null
}

const valueWords = (name: string, { pointer, a, b }: ValueDiff): Pick<Difference, 'name' | 'before' | 'now'> => ({
  name: `${name}${pointed(pointer)}`,
  before: a ?? 'none',
  now: b ?? 'none',
})

const OPEN = new Set(['running', 'waiting', 'retrying'])
/** The ids of the two runs: what is made of them, such as an idempotency key, is never the same. */
export type Ids = readonly [string, string]
/** Parts of a result that no two runs have the same. */
const FLEETING = new Set(['headers', 'answered_at', 'answered_by', 'message_id'])

/** A result without the parts that no two runs have the same. */
export function lasting(value: Json, id: string): Json {
  const body = isObject(value)
    ? Object.fromEntries(Object.entries(value).filter(([name]) => !FLEETING.has(name)))
    : value
  const text = JSON.stringify(body)
  return id && text.includes(id) ? (JSON.parse(text.replaceAll(id, '')) as Json) : body
}

function isFleeting({ pointer, a, b }: ValueDiff, ids: Ids): boolean {
  if (FLEETING.has(pointer.split('/')[1] ?? '')) return true
  return a !== null && b !== null && a.replaceAll(ids[0], '') === b.replaceAll(ids[1], '')
}

/** The first step with another result; of a reply of a model, the first call with other arguments. */
function stepDifference(a: NodeState, b: NodeState, ids: Ids): Difference | null {
  let turn = 0
  for (const now of b.steps) {
    if (now.kind === 'model') turn++
    const was = a.steps.find((each) => each.n === now.n)
    if (was?.output === undefined || now.output === undefined) continue
    const [old, result] = [lasting(was.output, ids[0]), lasting(now.output, ids[1])]
    if (same(old, result)) continue
    const seqs: Difference['seqs'] = [was.to, now.to]
    if (now.kind !== 'model') return differing(now.name, old, result, seqs)
    const [before, after] = [old, result].map((reply) => (isObject(reply) ? reply : {})) as [JsonObject, JsonObject]
    for (const [i, call] of callsOf(after).entries()) {
      const other = callsOf(before)[i]
      if (other && other.name === call.name && !same(other.arguments, call.arguments))
        return differing(String(call.name), other.arguments ?? null, call.arguments ?? null, seqs)
    }
    const name = turn ? `turn ${turn}` : now.name
    const calls = [before, after].map((reply) =>
      callsOf(reply)
        .map((call) => String(call.name))
        .join(', '),
    ) as [string, string]
    if (calls[0] !== calls[1]) return { name, before: calls[0] || 'no call', now: calls[1] || 'no call', seqs }
    if (!same(before.text, after.text)) return differing(name, before.text ?? old, after.text ?? result, seqs)
  }
  return null
}

const callsOf = ({ calls }: JsonObject): JsonObject[] => (Array.isArray(calls) ? calls.filter(isObject) : [])

/** Down to the first part that is not the same in both. */
export function differing(name: string, a: Json, b: Json, seqs: Difference['seqs']): Difference {
  const lists = Array.isArray(a) && Array.isArray(b)
  if (lists || (isObject(a) && isObject(b))) {
    const [was, is] = [a, b] as unknown as [JsonObject, JsonObject]
    // A value that both have comes before one that is missing.
    const names = [...Object.keys(was).filter((each) => each in is), ...Object.keys(was), ...Object.keys(is)]
    const key = names.find((each) => !same(was[each], is[each]))
    if (key !== undefined && was[key] !== undefined && is[key] !== undefined)
      return differing(`${name}.${key}`, was[key], is[key], seqs)
    if (key !== undefined) return { name: `${name}.${key}`, before: part(was[key]), now: part(is[key]), seqs }
  }
  return { name, before: part(a), now: part(b), seqs }
}

const part = (value: Json | undefined): string => (value === undefined ? 'none' : short(value))

function wordsOf(node: NodeDiff, doc: Document | null): Pick<Difference, 'name' | 'before' | 'now'> {
  const block = node.key.split('@', 1)[0]!.replace(/:(start|end)$/, '')
  const name = doc?.blocks[block] ? nameOf(doc, block) : block
  const value = node.output[0]
  return value ? valueWords(name, value) : { name, before: endOf(node.a), now: endOf(node.b) }
}

const endOf = ({ status, route }: NodeDiff['a']): string => (route && route !== 'out' ? route : status)

/** `/amount` as `.amount`. */
const pointed = (pointer: string): string => pointer.replaceAll('/', '.')
