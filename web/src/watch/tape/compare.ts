// Two runs side by side: another one is loaded beside the one that is shown, and the server returns where they part.

import { createStore } from 'zustand/vanilla'
import { api } from '../../net/api'
import type { NodeDiff, RunDiff } from '../../api/schemas'
import type { Document, WireEvent } from '../../api/types'
import { nameOf } from '../../document/document'
import { Timeline } from '../../state/keyframes'
import { specsOf } from '../../state/doc'
import { runStore } from '../../state/live'
import { shapeOf, type RunFold, type StepState } from '../../run'
import { costText } from '../../run/steps'
import { durationText } from '../../ui/time'
import { short } from './changes'

/** The other run, as it is; `diff.a` is of it, `diff.b` of the run that is shown. */
export interface Other {
  id: string
  doc: Document | null
  timeline: Timeline
  diff: RunDiff
}

export const compareStore = createStore<{ id: string | null; other: Other | null; error: string | null }>(() => ({
  id: null,
  other: null,
  error: null,
}))

/** Compare the run that is shown with another; null: with none. */
export async function compareWith(id: string | null): Promise<void> {
  compareStore.setState({ id, other: null, error: null })
  const shown = runStore.getState().id
  if (id === null || shown === null) return
  const current = (): boolean => compareStore.getState().id === id && runStore.getState().id === shown
  try {
    const [diff, run] = await Promise.all([api.diff(id, shown), api.run(id)])
    const doc = await api.runDocument(run)
    const timeline = new Timeline(shapeOf(doc, specsOf()))
    for (let next: number | null = 0; next !== null && current(); ) {
      const page = await api.events(id, next)
      timeline.append(page.events)
      next = page.next !== null && page.events.length ? timeline.seq : null
    }
    if (current()) compareStore.setState({ other: { id, doc, timeline, diff } })
  } catch (error) {
    if (current()) compareStore.setState({ error: error instanceof Error ? error.message : String(error) })
  }
}

/** The number of events that both begin with, in each of them. */
export function sharedEvents(diff: RunDiff, a: readonly WireEvent[], b: readonly WireEvent[]): [number, number] {
  if (!diff.diverged) return [a.length, b.length]
  return [(diff.diverged.a?.seq ?? a.length + 1) - 1, (diff.diverged.b?.seq ?? b.length + 1) - 1]
}

export interface Difference {
  name: string
  before: string
  now: string
  /** The events that made it; null: the run has none. */
  seqs: [number | null, number | null]
}

/** The first value that is not the same: of the block where they part, else of the first one that ended differently. */
export function firstDifference(diff: RunDiff, doc: Document | null): Difference | null {
  const { diverged } = diff
  const key = diverged?.a?.key ?? diverged?.b?.key ?? null
  const node = diff.nodes.find((each) => each.key === key && each.output.length) ?? diff.nodes[0]
  const seqs: Difference['seqs'] = [diverged?.a?.seq ?? null, diverged?.b?.seq ?? null]
  if (!node) {
    const value = diff.input[0] ?? diff.output[0]
    return value
      ? { name: `input${pointed(value.pointer)}`, before: value.a ?? 'none', now: value.b ?? 'none', seqs }
      : null
  }
  return { ...wordsOf(node, doc), seqs }
}

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
  found.push(['Shared', '', `${shared} ${shared === 1 ? 'event' : 'events'}`])
  return found.filter(([, a, b]) => a || b)
}

const count = (n: number): string => (n ? n.toLocaleString('en') : '')
const stepsOf = (view: RunFold): StepState[] => [...view.nodes.values()].flatMap((node) => [...node.steps])

function costOf(steps: readonly StepState[]): string {
  const priced = steps.filter((step) => step.cost !== null)
  return priced.length ? costText(priced.reduce((sum, step) => sum + step.cost!, 0)) : ''
}

/** The branch that `view` took at the first block whose branch differs in the two runs. */
function branchOf(view: RunFold, before: RunFold, now: RunFold, doc: Document | null): string {
  for (const node of before.nodes.values()) {
    const other = now.nodes.get(node.key)
    if (!other || other.route === node.route || (!node.route && !other.route)) continue
    const route = view.nodes.get(node.key)?.route
    return route ? `${doc?.blocks[node.block] ? nameOf(doc, node.block) : node.block}: ${route}` : 'not taken'
  }
  return ''
}
