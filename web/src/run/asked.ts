// The arguments with which an agent called a tool, from the reply of the model. Pure.

import type { Json, JsonObject } from '../api/schemas'
import { isObject } from '../net/json'
import type { StepState } from './steps'

/** `steps` in order, as a node has them. Undefined: it is no call of a tool, or the reply is too large for the log. */
export function askedOf(steps: readonly StepState[], step: StepState): JsonObject | undefined {
  if (step.kind !== 'tool') return undefined
  let calls: readonly Json[] = []
  let before = 0
  for (const each of steps) {
    if (each.n >= step.n) break
    if (each.kind === 'model') {
      calls = isObject(each.output) && Array.isArray(each.output.calls) ? each.output.calls : []
      before = 0
    } else if (each.kind === 'tool' && each.name === step.name) before++
  }
  const call = calls.filter((each) => isObject(each) && each.name === step.name)[before]
  if (!isObject(call)) return undefined
  return isObject(call.arguments) ? call.arguments : {}
}
