// What differs in two runs: where they part, the first value, and what stands in the table and at the blocks.

import { isObject } from '../../net/json'
import type { Json, JsonObject, NodeDiff, RunDiff } from '../../api/schemas'
import type { Document, WireEvent } from '../../api/types'
import { indexOf, nameOf } from '../../document/document'
import { render } from '../../refs/preview'
import { edgeAt, type NodeState, type RunFold, type StepState } from '../../run'
import { same } from '../../run/difference'
import { costText } from '../../run/steps'
import type { Future, Futures, TextPart } from '../../state/futures'
import { durationText } from '../../ui/time'
import { short } from './changes'
import type { Other } from './compare'

/** The number of events that both begin with, in each of them. `copied`: so many of them one has from the other; other params
 * change what is recorded of a call that is reused, but not the call. */
export function sharedEvents(
  diff: RunDiff,
  a: readonly WireEvent[],
  b: readonly WireEvent[],
  copied: number | null = null,
  difference: Difference | null = null,
): [number, number] {
  const { diverged } = diff
  if (copied !== null && (!diverged?.a || diverged.a.type === 'step.started' || diverged.a.seq > copied)) {
    const changed = difference?.seqs[0] ?? Infinity
    const split = changed <= copied && diverged?.a?.seq !== changed ? changed - 1 : copied
    return [Math.min(split, a.length), Math.min(split, b.length)]
  }
  if (!diverged) return [a.length, b.length]
  return [(diverged.a?.seq ?? a.length + 1) - 1, (diverged.b?.seq ?? b.length + 1) - 1]
}

/** The number of events that one of the two has from the other; null: neither did. */
export function copiedFrom(id: string | null, other: Other, now: RunFold): number | null {
  if (now.forkedFrom?.run === other.id) return now.forkedFrom.seq
  const { forkedFrom } = other.timeline.head
  return forkedFrom && forkedFrom.run === id ? forkedFrom.seq : null
}

export interface Difference {
  name: string
  before: string
  now: string
  /** The events that made it; null: the run has none. */
  seqs: [number | null, number | null]
}

/** The first value that is not the same: of a step of the block where they part, of that block, or of the first one that ended
 * differently. */
export function firstDifference(diff: RunDiff, doc: Document | null, before: RunFold, now: RunFold): Difference | null {
  const { diverged } = diff
  const key = diverged?.a?.key ?? diverged?.b?.key ?? null
  const [was, is] = [before, now].map((view) => (key === null ? undefined : view.nodes.get(key)))
  const step = was && is ? stepDifference(was, is) : null
  if (step) return step
  // What has not ended yet has no value.
  const ended = diff.nodes.filter(({ a, b }) => !OPEN.has(a.status) && !OPEN.has(b.status))
  const node = ended.find((each) => each.key === key && each.output.length) ?? ended[0]
  const seqs: Difference['seqs'] = [diverged?.a?.seq ?? null, diverged?.b?.seq ?? null]
  if (!node) {
    const value = diff.input[0] ?? diff.output[0]
    return value
      ? { name: `input${pointed(value.pointer)}`, before: value.a ?? 'none', now: value.b ?? 'none', seqs }
      : null
  }
  return { ...wordsOf(node, doc), seqs }
}

const OPEN = new Set(['running', 'waiting', 'retrying'])
/** Parts of a result that no two runs have the same. */
const FLEETING = new Set(['headers', 'answered_at', 'answered_by'])
const fleeting = (value: Json): Json =>
  isObject(value) ? Object.fromEntries(Object.entries(value).filter(([name]) => !FLEETING.has(name))) : value

/** The first step with another result; of a reply of a model, the first call with other arguments. */
function stepDifference(a: NodeState, b: NodeState): Difference | null {
  let turn = 0
  for (const now of b.steps) {
    if (now.kind === 'model') turn++
    const was = a.steps.find((each) => each.n === now.n)
    if (was?.output === undefined || now.output === undefined) continue
    const [old, result] = [fleeting(was.output), fleeting(now.output)]
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
function differing(name: string, a: Json, b: Json, seqs: Difference['seqs']): Difference {
  const lists = Array.isArray(a) && Array.isArray(b)
  if (lists || (isObject(a) && isObject(b))) {
    const [was, is] = [a, b] as unknown as [JsonObject, JsonObject]
    // What both have comes before what one of them lacks.
    const names = [...Object.keys(was).filter((each) => each in is), ...Object.keys(was), ...Object.keys(is)]
    const key = names.find((each) => !same(was[each], is[each]))
    if (key !== undefined && was[key] !== undefined && is[key] !== undefined)
      return differing(`${name}.${key}`, was[key], is[key], seqs)
    if (key !== undefined) return { name: `${name}.${key}`, before: part(was[key]), now: part(is[key]), seqs }
  }
  return { name, before: part(a), now: part(b), seqs }
}

const part = (value: Json | undefined): string => (value === undefined ? 'none' : short(value))

/** What stands at the blocks of the canvas: what they put out in one of the two runs, or in both where it differs. */
export function valuesOf(blocks: Futures['blocks'], before: RunFold, now: RunFold | null): Futures['values'] {
  const values = new Map<string, { before: string; now: string }>()
  const out = (view: RunFold | null, block: string): string => chipText(view?.nodes.get(block)?.output)
  for (const [block, side] of blocks)
    values.set(
      block,
      side === 'before' ? { before: out(before, block), now: '' } : { before: '', now: out(now, block) },
    )
  for (const node of now?.nodes.values() ?? []) {
    const was = before.nodes.get(node.key)
    if (node.path || blocks.has(node.block) || was?.output === undefined || node.output === undefined) continue
    const [a, b] = [fleeting(was.output), fleeting(node.output)]
    if (same(a, b)) continue
    const found = differing('', a, b, [null, null])
    const name = found.name.split('.').findLast((each) => !/^\d*$/.test(each)) ?? ''
    values.set(node.block, { before: cut(`${name} ${found.before}`.trim()), now: cut(`${name} ${found.now}`.trim()) })
  }
  return values
}

const CHIP_MAX = 28

/** A value as short as a chip: of an object the first field that is not one itself. */
function chipText(value: Json | undefined): string {
  const plain = isObject(value)
    ? Object.entries(value).find(([, each]) => each === null || typeof each !== 'object')
    : null
  return cut(plain ? `${plain[0]} ${render(plain[1])}` : render(value))
}

const cut = (text: string): string => (text.length > CHIP_MAX ? `${text.slice(0, CHIP_MAX - 1)}…` : text)

function wordsOf(node: NodeDiff, doc: Document | null): Pick<Difference, 'name' | 'before' | 'now'> {
  const block = node.key.split('@', 1)[0]!.replace(/:(start|end)$/, '')
  const name = doc?.blocks[block] ? nameOf(doc, block) : block
  const value = node.output[0]
  if (value) return { name: `${name}${pointed(value.pointer)}`, before: value.a ?? 'none', now: value.b ?? 'none' }
  const end = ({ status, route }: NodeDiff['a']): string => (route && route !== 'out' ? route : status)
  return { name, before: end(node.a), now: end(node.b) }
}

/** `/amount` as `.amount`. */
const pointed = (pointer: string): string => pointer.replaceAll('/', '.')

/** The rows of the comparison: what, before, now. A row with no value for either is left out. */
export function futuresOf(
  before: RunFold,
  now: RunFold,
  parted: readonly [number, number],
  shared: number,
  doc: Document | null,
  log: readonly WireEvent[] = [],
): [string, string, string][] {
  const took = (view: RunFold): string =>
    durationText(Math.max(0, (view.finishedAt ?? view.at ?? 0) - parted[view === before ? 0 : 1]))
  const rows: [string, (view: RunFold) => string][] = [
    [
      'Result',
      (view) => (view.error ? view.error.message : view.output === undefined ? view.status : short(view.output)),
    ],
    ['Branch', (view) => branchOf(view, before, now, doc)],
    [shared ? 'Took since' : 'Took', took],
    ['Turns', (view) => count(stepsOf(view).filter((step) => step.kind === 'model').length)],
    [
      'Tokens',
      (view) =>
        count(
          stepsOf(view).reduce((sum, { usage }) => sum + (usage.input_tokens ?? 0) + (usage.output_tokens ?? 0), 0),
        ),
    ],
    ['Cost', (view) => costOf(stepsOf(view))],
  ]
  const found = rows.map(([name, of]): [string, string, string] => [name, of(before), of(now)])
  if (now.forkedFrom) found.push(['Reused', '', reusedOf(now, log)])
  found.push(['Shared', '', `${shared} ${shared === 1 ? 'event' : 'events'}`])
  return found.filter(([, a, b]) => a || b)
}

/** The steps of a fork that the run before it has paid. */
function reusedOf(now: RunFold, log: readonly WireEvent[]): string {
  const steps = stepsOf(now).filter((step) => step.to !== null).length
  const reused = log.filter((event) => event.type === 'step.finished' && event.data.from_run !== undefined).length
  return steps ? `${reused} of ${steps}, unpaid` : ''
}

const count = (n: number): string => (n ? n.toLocaleString('en') : '')
export const stepsOf = (view: RunFold): StepState[] => [...view.nodes.values()].flatMap((node) => [...node.steps])

export function costOf(steps: readonly StepState[]): string {
  const priced = steps.filter((step) => step.cost !== null)
  return priced.length ? costText(priced.reduce((sum, step) => sum + step.cost!, 0)) : ''
}

/** The branch that `view` took at the first block whose branch differs in the two runs. */
function branchOf(view: RunFold, before: RunFold, now: RunFold, doc: Document | null): string {
  for (const node of before.nodes.values()) {
    const other = now.nodes.get(node.key)
    if (!other || other.route === node.route || (!node.route && !other.route)) continue
    const route = view.nodes.get(node.key)?.route
    return route ? `${doc?.blocks[node.block] ? nameOf(doc, node.block) : node.block}: ${route}` : 'not copied'
  }
  return ''
}

export function partedOf(doc: Document, before: RunFold, now: RunFold): Pick<Futures, 'blocks' | 'edges'> {
  const blocks = new Map<string, Future>()
  for (const block of Object.keys(doc.blocks)) {
    const [was, is] = [ran(before, block), ran(now, block)]
    if (was !== is) blocks.set(block, was ? 'before' : 'you')
  }
  const edges = new Map<string, Future>()
  for (const edge of indexOf(doc).edges) {
    const [was, is] = [before, now].map(
      (view) => edgeAt(view, doc, { source: edge.source, target: edge.target, handle: edge.handle }, {}).live > 0,
    )
    if (was !== is) edges.set(edge.id, was ? 'before' : 'you')
  }
  return { blocks, edges }
}

function ran(view: RunFold, block: string): boolean {
  const { skipped: _, ...counts } = view.totals.get(block) ?? {}
  return Object.values(counts).some((count) => count > 0)
}

/** The words of `now`, with those marked that `was` does not have: all between what both begin and end with. */
export function changedWords(was: string, now: string): TextPart[] {
  const [a, b] = [was, now].map((text) => text.split(/(\s+)/)) as [string[], string[]]
  let from = 0
  while (from < Math.min(a.length, b.length) && a[from] === b[from]) from++
  let end = 0
  while (end < Math.min(a.length, b.length) - from && a[a.length - 1 - end] === b[b.length - 1 - end]) end++
  const parts = [
    { text: b.slice(0, from).join(''), changed: false },
    { text: b.slice(from, b.length - end).join(''), changed: true },
    { text: b.slice(b.length - end).join(''), changed: false },
  ]
  return parts.filter((part) => part.text)
}
