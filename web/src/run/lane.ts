// The lane of a durable function: its calls in the order in which its code made them. The server makes the same of the journal,
// in `executor/service/views/lane.py`; both are tested against tests/vectors/lanes.json.

import type { Json } from '../api/schemas'
import type { WaitKind } from '../api/types'
import { keyOf, type RunFold } from './model'
import type { StepState } from './steps'

/** The wait that a call is, or by which a person is asked whether a lost one was done. `id`: only while it is open. */
export interface LaneWait {
  kind: WaitKind
  id: string | null
  title: string
  dueAt: number | null
  child: string | null
}

/** `phase`: the block that made the call: `body`, or `undo` after a cancel. `line`, `task` (and the one above), `group`: where the
 * code makes it; `shown`: its input, of a long one the beginning of its JSON. */
export interface LaneItem extends Omit<StepState, 'wait'> {
  phase: string
  line: number
  task: number
  above: number
  group: string
  shown: Json
  wait: LaneWait | null
}

/** A task of the function, which the task `above` began. `until` is null as long as one of its calls is open. */
export interface LaneTask {
  task: number
  above: number
  from: number
  until: number | null
}

/** The place of what undoes. */
const CLEANUP = ':finally'

export function laneItems(view: RunFold, blocks: readonly string[]): LaneItem[] {
  return blocks.flatMap((phase) => {
    const node = view.nodes.get(phase) ?? view.nodes.get(keyOf(phase, CLEANUP))
    return (node?.steps ?? []).map((step) => itemOf(step, phase))
  })
}

// A step that did not change is the same item: its row is not drawn again.
const items = new WeakMap<StepState, LaneItem>()

function itemOf(step: StepState, phase: string): LaneItem {
  const known = items.get(step)
  if (known?.phase === phase) return known
  const { began, wait } = step
  const made: LaneItem = {
    ...step,
    phase,
    line: began.line ?? 0,
    task: began.task ?? 0,
    above: began.above ?? 0,
    group: began.group ?? '',
    shown: began.shown ?? null,
    wait: wait
      ? {
          kind: (wait.kind ?? 'signal') as WaitKind,
          id: step.status === 'waiting' ? (wait.wait ?? null) : null,
          title: wait.title ?? '',
          dueAt: wait.due_ms ?? null,
          child: wait.child ?? null,
        }
      : null,
  }
  items.set(step, made)
  return made
}

export const isOpen = (step: Pick<StepState, 'status'>): boolean =>
  ['running', 'retrying', 'waiting', 'lost'].includes(step.status)

export function tasksOf(items: readonly LaneItem[]): LaneTask[] {
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

/** As they are drawn: a task lasts at least as long as those that it began. */
export function threadsOf(tasks: readonly LaneTask[]): LaneTask[] {
  const found = new Map(tasks.map((each) => [each.task, { ...each }]))
  for (const each of [...found.values()].sort((a, b) => b.task - a.task)) {
    const above = each.task === 0 ? undefined : found.get(each.above)
    if (above) above.from = Math.min(above.from, each.from)
    if (above) above.until = each.until === null || above.until === null ? null : Math.max(above.until, each.until)
  }
  return [...found.values()]
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
