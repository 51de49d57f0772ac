// The lane of a durable function: its calls in the order in which its code made them. The server makes the same of the journal,
// in `executor/service/views/lane.py`; both are tested against tests/vectors/lanes.json.

import type { Document, Listing } from '../api/types'
import type { RunFold } from './model'
import type { StepState } from './steps'

/** The block type of a durable function. */
const TYPE = 'durable'

/** `phase`: the block that made the call: `body`, or `undo` after a cancel. */
export interface LaneItem extends StepState {
  phase: string
}

/** A task of the function, which the task `above` began. `until` is null as long as one of its calls is open. */
export interface LaneTask {
  task: number
  above: number
  from: number
  until: number | null
}

/** The source of the durable function that the document is, or null. Also of one whose text is not stored. */
export function durableOf(doc: Document | null): { blocks: readonly string[]; listing: Listing | null } | null {
  if (!doc) return null
  const blocks = Object.keys(doc.blocks).filter((id) => doc.blocks[id]!.type === TYPE)
  const listing = blocks.map((id) => doc.blocks[id]!.source).find((each) => each !== undefined)
  return blocks.length ? { blocks, listing: listing ?? null } : null
}

export function laneItems(view: RunFold, blocks: readonly string[]): LaneItem[] {
  return blocks.flatMap((phase) => (view.nodes.get(phase)?.steps ?? []).map((step) => ({ ...step, phase })))
}

export const isOpen = (step: StepState): boolean =>
  step.status === 'running' || step.status === 'waiting' || step.status === 'lost'

export function tasksOf(items: readonly StepState[]): LaneTask[] {
  const found = new Map<number, LaneTask>()
  for (const item of items) {
    const known = found.get(item.task)
    const last = item.to ?? item.from
    found.set(item.task, {
      task: item.task,
      above: known?.above ?? item.above,
      from: Math.min(known?.from ?? Infinity, item.from),
      until: isOpen(item) || known?.until === null ? null : Math.max(known?.until ?? 0, last),
    })
  }
  return [...found.values()].sort((a, b) => a.task - b.task)
}

/** The column of each task. One that begins takes the first that is free then, right of the task that began it. */
export function columnsOf(tasks: readonly LaneTask[]): ReadonlyMap<number, number> {
  const columns = new Map<number, number>()
  const until: number[] = []
  for (const { task, above, from, until: end } of [...tasks].sort((a, b) => a.from - b.from || a.task - b.task)) {
    let column = task === 0 ? 0 : (columns.get(above) ?? 0) + 1
    while ((until[column] ?? -1) >= from) column++
    columns.set(task, column)
    until[column] = end ?? Infinity
  }
  return columns
}
