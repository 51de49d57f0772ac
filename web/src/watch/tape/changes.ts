// The change of an event: a variable before and after it, or the output of a block, beside that of the iteration before. And what
// a recovery found finished.

import type { Json } from '../../api/schemas'
import { isDecided, keyOf, reduce, type RunFold } from '../../run'
import type { Timeline } from '../../state/keyframes'

export interface Change {
  name: string
  /** null: there was none to compare with. */
  before: string | null
  after: string
}

const TEXT_MAX = 96

/** A value in one line. */
export function short(value: Json | undefined): string {
  const text = value === undefined ? '' : JSON.stringify(value)
  return text.length > TEXT_MAX ? `${text.slice(0, TEXT_MAX - 1)}…` : text
}

/** null: it changed no value. */
export function changeAt(timeline: Timeline, seq: number): Change | null {
  const event = timeline.log[seq - 1]
  if (!event || event.block === null) return null
  const was = timeline.seek(seq - 1)
  const now = reduce(was, event)
  if (was.variables !== now.variables) {
    const name = Object.keys(now.variables).find((each) => now.variables[each] !== was.variables[each])
    if (!name) return null
    const before = was.variables[name]
    return { name, before: before === undefined ? null : short(before), after: short(now.variables[name]) }
  }
  const key = keyOf(event.block, event.path)
  const [old, node] = [was.nodes.get(key), now.nodes.get(key)]
  const step = node?.steps.find((each) => each.to === seq)
  if (step) return step.output === undefined ? null : { name: step.name, before: null, after: short(step.output) }
  if (!node || node.output === undefined || old?.output === node.output) return null
  const earlier = outputBefore(now, event.block, event.path)
  return { name: 'Output', before: earlier === undefined ? null : short(earlier), after: short(node.output) }
}

/** The output of the same block in the iteration or branch before. */
function outputBefore(view: RunFold, block: string, path: string): Json | undefined {
  const at = /^(.*[#[])(\d+)(\]?)$/.exec(path)
  if (!at || Number(at[2]) === 0) return undefined
  return view.nodes.get(keyOf(block, `${at[1]}${Number(at[2]) - 1}${at[3]}`))?.output
}

/** `kept`: blocks and steps that were finished at a recovery. `again`: attempts that were under way, and lost. */
export function takenOver(timeline: Timeline, seq: number): { kept: number; again: number } {
  const view = timeline.seek(seq - 1)
  let [kept, again] = [0, 0]
  for (const node of view.nodes.values()) {
    if (isDecided(node)) kept += node.status === 'succeeded' || node.status === 'failed' ? 1 : 0
    else kept += node.steps.filter((step) => step.status === 'succeeded').length
    if (node.status === 'running' && !node.region) again++
  }
  return { kept, again }
}
