// The steps of an agent as a talk: each call of the model is a turn, with its text and the tools that it called.

import { isObject } from '../net/json'
import type { Json, JsonObject } from '../api/schemas'
import type { NodeState } from './model'
import type { StepState } from './steps'
import { brief } from './difference'

export interface Call {
  id: string
  name: string
  /** As the model asked, with what a person changed. */
  args: JsonObject
  /** The question to a person about it. */
  approval: StepState | null
  /** A tool, or the wait for a workflow. */
  step: StepState | null
}

export interface Turn {
  /** From 1. */
  n: number
  step: StepState
  said: string
  calls: Call[]
  input: number
  output: number
}

export function talkOf(node: NodeState | undefined): Turn[] {
  const turns: Turn[] = []
  let after: StepState[] = []
  const close = (): void => {
    const turn = turns.at(-1)
    if (turn) turn.calls = callsOf(turn.step, after)
    after = []
  }
  for (const step of node?.steps ?? []) {
    if (step.kind !== 'model') {
      after.push(step)
      continue
    }
    close()
    turns.push({
      n: turns.length + 1,
      step,
      said: textOf(step.output, 'text'),
      calls: [],
      input: step.usage.input_tokens ?? 0,
      output: step.usage.output_tokens ?? 0,
    })
  }
  close()
  return turns
}

function callsOf(model: StepState, after: readonly StepState[]): Call[] {
  const left = [...after]
  const take = (fits: (step: StepState) => boolean): StepState | null => {
    const at = left.findIndex(fits)
    return at < 0 ? null : left.splice(at, 1)[0]!
  }
  const asked = isObject(model.output) && Array.isArray(model.output.calls) ? model.output.calls : []
  const calls = asked.flatMap((call, nth): Call[] => {
    if (!isObject(call)) return []
    const name = String(call.name ?? '')
    const approval = take((step) => step.kind === 'wait' && step.name === `approve ${name}`)
    const edited = isObject(approval?.output) ? approval.output : {}
    const wanted = isObject(call.arguments) ? call.arguments : {}
    const args = Object.fromEntries(Object.entries(wanted).map(([key, value]) => [key, edited[key] ?? value]))
    const refused = textOf(approval?.output, 'action') === 'reject'
    const step = refused
      ? null
      : take(({ kind, name: other }) => (kind === 'tool' || kind === 'wait') && other === name)
    return [{ id: String(call.id ?? nth), name, args: args as JsonObject, approval, step }]
  })
  // A reply too large for the log: its calls are known by their steps alone.
  const others = left.filter((step) => step.kind === 'tool' && !step.name.startsWith('tools of '))
  return [...calls, ...others.map((step) => ({ id: `${step.n}`, name: step.name, args: {}, approval: null, step }))]
}

export function textOf(value: Json | undefined, name: string): string {
  const found = isObject(value) ? value[name] : undefined
  return typeof found === 'string' ? found : ''
}

export const argsText = (args: JsonObject): string =>
  Object.entries(args)
    .map(([name, value]) => `${name} ${typeof value === 'string' ? value : brief(value)}`)
    .join(', ')

export const isRefused = (call: Call): boolean => textOf(call.approval?.output, 'action') === 'reject'

/** The fields of a JSON object that is still being written: those that can be read so far. */
export function fieldsSoFar(text: string): JsonObject | null {
  const from = text.indexOf('{')
  if (from < 0) return null
  const closers: string[] = []
  let inText = false
  let body = text.slice(from)
  for (let i = 0; i < body.length; i++) {
    const letter = body[i]!
    if (inText) {
      if (letter === '\\') i++
      else if (letter === '"') inText = false
    } else if (letter === '"') inText = true
    else if (letter === '{') closers.push('}')
    else if (letter === '[') closers.push(']')
    else if (letter === '}' || letter === ']') {
      closers.pop()
      if (!closers.length) body = body.slice(0, i + 1)
    }
  }
  const end = closers.reverse().join('')
  const open = inText ? `${body.replace(/\\$/, '')}"` : body
  // A name without its value, a comma at the end: both are not there yet.
  for (const cut of [open, open.replace(/,?\s*"[^"]*"\s*:?\s*$/, ''), open.replace(/[,:]\s*$/, '')]) {
    try {
      const read = JSON.parse(cut + end) as Json
      if (isObject(read)) return read as JsonObject
    } catch {
      // The next cut may do.
    }
  }
  return null
}

/** The body of an answer over HTTP; the value itself, if it is no such answer. */
export const bodyOf = (value: Json): Json => (hasBody(value) ? value.body! : value)

export const hasBody = (value: Json): value is JsonObject =>
  isObject(value) && 'status' in value && 'headers' in value && value.body !== undefined
