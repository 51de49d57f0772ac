// The differences of two runs: where they part, the rows of the table, the chips at the blocks.

import { isObject } from '../../net/json'
import type { Json, RunDiff } from '../../api/schemas'
import type { Document, WireEvent } from '../../api/types'
import { indexOf, nameOf } from '../../document/document'
import { preview, render } from '../../refs/preview'
import { edgeAt, type RunFold, type StepState } from '../../run'
import { same } from '../../run/difference'
import { costText } from '../../run/steps'
import type { Future, Futures, TextPart } from '../../state/futures'
import { durationText } from '../../ui/time'
import { short } from './changes'
import type { Other } from './compare'
import { differing, lasting, type Difference, type Ids } from './firstDifference'

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

/** What stands at the blocks of the canvas: what they put out in one of the two runs, or in both where it differs. */
export function valuesOf(blocks: Futures['blocks'], before: RunFold, now: RunFold | null, ids: Ids): Futures['values'] {
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
    const [a, b] = [lasting(was.output, ids[0]), lasting(node.output, ids[1])]
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
    ['Took', took],
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
  const branch = (of: RunFold, key: string): string => of.nodes.get(key)?.route ?? ''
  for (const { key, block } of before.nodes.values()) {
    const [was, is] = [branch(before, key), branch(now, key)]
    // Most blocks have one way out: that one of the two has not left it yet is not another branch.
    if (was === is || [was, is].every((route) => !route || route === 'out')) continue
    const route = branch(view, key)
    const name = doc?.blocks[block] ? nameOf(doc, block) : block
    return route ? `${name}: ${route}` : view.nodes.has(key) ? 'not yet taken' : 'not reached'
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

/** The first instructions, or prompt, of a block that the other run had in other words: what the model read, not the references. */
export function wordsChanged(
  { doc: was, timeline }: Other,
  doc: Document,
  now: RunFold,
): { block: string; name: string; before: string; now: string } | null {
  for (const [block, { params }] of Object.entries(doc.blocks))
    for (const [param, name] of [
      ['system', 'Instructions'],
      ['prompt', 'Prompt'],
    ] as const) {
      const [a, b] = [was?.blocks[block]?.params?.[param], params?.[param]]
      if (!was || typeof a !== 'string' || typeof b !== 'string' || a === b) continue
      const filled = (text: string, view: RunFold, of: Document): string => {
        const shown = preview(text, { block }, { view, doc: of, iter: {} })
        return shown?.known ? render(shown.value) : text
      }
      return { block, name, before: filled(a, timeline.head, was), now: filled(b, now, doc) }
    }
  return null
}
