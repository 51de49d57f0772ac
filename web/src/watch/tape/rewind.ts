// Rewinding a block with steps, such as an agent: the turn at the playhead with what can be another one in it, and the changes that a
// new run is to begin with.

import type { ForkPreview, Json, JsonObject, RunAccepted } from '../../api/schemas'
import { api } from '../../net/api'
import { isObject } from '../../net/json'
import type { NodeState, RunFold, StepState } from '../../run'
import { same } from '../../run/difference'
import { bodyOf, hasBody, talkOf, type Turn } from '../../run/talk'
import { runStore, seek } from '../../state/live'
import { uiStore } from '../../state/ui'
import { navigate } from '../../ui/navigation'
import { NO_CHANGES, rewindStore, type Changes } from './rewindStore'

/** One thing of a turn. With `put` it can be changed: it adds another value to the changes. */
export interface Part {
  id: string
  label: string
  value: Json
  /** The step that it is of; null: words of the block. */
  n: number | null
  put: ((value: Json) => Changes) | null
}

/** Before a turn, or before the step after it. */
export interface Moment {
  node: NodeState
  turn: Turn | null
  turns: readonly Turn[]
}

/** The moment inside a block with steps: of the chosen one, else of the one that began last. */
export function momentOf(view: RunFold, block: string | null): Moment | null {
  let node: NodeState | null = null
  for (const each of view.nodes.values()) {
    if (!each.steps.length) continue
    if (!node || (each.block === block) > (node.block === block)) node = each
    else if (each.firstSeq > node.firstSeq && (each.block === block) === (node.block === block)) node = each
  }
  if (!node) return null
  const turns = talkOf(node)
  return { node, turn: turns.at(-1) ?? null, turns }
}

export const turnsOf = (view: RunFold, key: string): Turn[] => talkOf(view.nodes.get(key))

/** "Rewound to turn 2 of Support". */
export const momentText = ({ node, turn }: Moment, name: string): string =>
  `Rewound to ${turn ? `turn ${turn.n}` : `step ${node.steps.at(-1)!.n}`} of ${name}`

const STEPS_SHOWN = 6

/** What is shown of the moment, in the order in which it came. `words` are the instructions and the prompt that the model read. */
export function partsOf(
  { node, turn, turns }: Moment,
  words: Readonly<Record<string, string>>,
  changes: Changes,
): Part[] {
  const step = (each: StepState, label: string): Part => ({
    id: hasBody(each.output!) ? `step ${each.n} body` : `step ${each.n}`,
    label,
    value: bodyOf(each.output!),
    n: each.n,
    put: (value) => withStep(node, changes, each, hasBody(each.output!) ? { ...each.output, body: value } : value),
  })
  const ended = (each: StepState | null): boolean => each !== null && each.to !== null && each.output !== undefined
  if (!turn)
    return node.steps
      .filter(ended)
      .slice(-STEPS_SHOWN)
      .map((each) => step(each, `Result of ${each.name}`))
  const parts: Part[] = Object.entries(words).map(([name, value]) => ({
    id: `param ${name}`,
    label: name === 'system' ? 'Instructions' : 'Prompt',
    value,
    n: null,
    put: (next) => ({
      ...changes,
      params: next === value ? without(changes.params, name) : { ...changes.params, [name]: String(next) },
    }),
  }))
  const reply = turn.step
  if (!ended(reply)) {
    // The turn has just asked the model: what the turn before it brought is what this one reads.
    for (const { approval, step: result, name } of turns.at(-2)?.calls ?? []) {
      if (approval && ended(approval)) parts.push(step(approval, `Answer about ${name}, turn ${turn.n - 1}`))
      if (result && ended(result)) parts.push(step(result, `Result of ${name}, turn ${turn.n - 1}`))
    }
    return parts
  }
  const now = changes.steps[reply.n] ?? reply.output!
  if (!isObject(reply.output) || !isObject(now)) return [...parts, step(reply, `Reply of turn ${turn.n}`)]
  const put = (change: JsonObject): Changes => withStep(node, changes, reply, { ...now, ...change })
  if (turn.said)
    parts.push({
      id: `step ${reply.n} text`,
      label: `Turn ${turn.n} wrote`,
      value: turn.said,
      n: reply.n,
      put: (value) => put({ text: value }),
    })
  const asked = callsIn(reply.output)
  turn.calls.forEach((call, i) => {
    const was = asked[i]
    if (isObject(was))
      parts.push({
        id: `step ${reply.n} call ${i}`,
        label: `Calls ${call.name} with`,
        value: was.arguments ?? {},
        n: reply.n,
        put: (value) =>
          put({
            calls: callsIn(now).map((each, at) => (at === i ? { ...(each as JsonObject), arguments: value } : each)),
          }),
      })
    if (call.approval && ended(call.approval)) parts.push(step(call.approval, `Answer about ${call.name}`))
    else if (call.approval) parts.push(open(call.approval, `A person is asked about ${call.name}`, 'not answered yet'))
    if (call.step && ended(call.step)) parts.push(step(call.step, `Result of ${call.name}`))
    else if (call.step)
      parts.push(
        open(call.step, `Result of ${call.name}`, call.step.to === null ? 'not there yet' : 'too large for the log'),
      )
  })
  return parts
}

const callsIn = (reply: Json | undefined): readonly Json[] =>
  isObject(reply) && Array.isArray(reply.calls) ? (reply.calls as Json[]) : []

const open = ({ n }: StepState, label: string, value: string): Part => ({ id: `step ${n}`, label, value, n, put: null })

function without<T extends object>(record: T, name: string | number): T {
  const { [name as keyof T]: _, ...rest } = record
  return rest as T
}

/** Another result of a step: those of steps that came before it, or after it, are what they were. */
function withStep(node: NodeState, changes: Changes, step: StepState, value: Json): Changes {
  const beside = (n: string): boolean => {
    const other = node.steps.find((each) => each.n === Number(n))!
    return other !== step && other.from < step.to! && step.from < other.to!
  }
  const others = Object.fromEntries(Object.entries(changes.steps).filter(([n]) => beside(n)))
  return { ...changes, steps: same(value, step.output) ? others : { ...others, [step.n]: value } }
}

/** The value of a part as it is changed. */
export function valueNow(part: Part, changes: Changes): Json {
  if (part.n === null) return changes.params[part.id.slice('param '.length)] ?? part.value
  const other = changes.steps[part.n]
  if (other === undefined) return part.value
  const [, , field, at] = part.id.split(' ')
  if (field === 'body') return bodyOf(other)
  if (field === 'text') return (isObject(other) ? other.text : undefined) ?? part.value
  if (field !== 'call') return other
  const call = callsIn(other)[Number(at)]
  return (isObject(call) ? call.arguments : undefined) ?? part.value
}

/** Where the new run begins: with another result of a step the server knows it, else before the turn asks the model. */
export function pointOf({ node, turn }: Moment, { steps }: Changes): { node: string; step: number } | { seq: number } {
  const changed = Object.keys(steps).map(Number)
  if (changed.length) return { node: node.key, step: Math.min(...changed) }
  return { seq: Math.max(1, (turn?.step ?? node.steps.at(-1)!).from - 1) }
}

/** The new run. */
export function begin(run: string, moment: Moment, changes: Changes): Promise<RunAccepted> {
  const { key, block } = moment.node
  const params = Object.keys(changes.params).length ? { params: { [block]: { ...changes.params } } } : null
  if (Object.keys(changes.steps).length)
    return api.rewind(run, { steps: { [key]: { ...changes.steps } as Record<string, Json> }, ...params })
  const { seq } = pointOf(moment, changes) as { seq: number }
  return params ? api.rewind(run, { seq, ...params }) : api.fork(run, seq)
}

const NAMED_MAX = 4

/** What Continue would do, in words. */
export function callsText({ again, more }: Pick<ForkPreview, 'again' | 'more'>): string {
  if (!again.length) return 'What follows has not run before.'
  const outside = again.filter((call) => call.effect !== 'none')
  const names = [...new Set((outside.length ? outside : again).map((call) => call.name))]
  const named = names.slice(0, NAMED_MAX).join(', ') + (names.length > NAMED_MAX ? ' and others' : '')
  const count = `${again.length}${more ? ' or more' : ''} ${again.length === 1 ? 'step' : 'steps'} may run again`
  return outside.length ? `${count}, ${outside.length} of them outside: ${named}.` : `${count}: ${named}.`
}

/** Show the rewind, on the page of the run, at the end of a turn (or of the last one). */
export function openRewind(block: string | null, turn?: Turn): void {
  const { id, view, head, timeline } = runStore.getState()
  if (id === null) return
  const moment = momentOf(view, block)
  const last = moment?.node.steps.at(-1)
  const to = turn
    ? endOf(head.nodes.get(moment!.node.key)!, turn)
    : moment && last?.to && !moment.node.steps.some((s) => s.to === null)
      ? last.to
      : view.seq
  const chosen = block ?? moment?.node.block ?? null
  uiStore.setState({ sheet: null, drawer: 'tape' })
  if (location.pathname !== `/runs/${encodeURIComponent(id)}`) {
    const query = new URLSearchParams({ seq: String(to), rewind: '1', ...(chosen ? { block: chosen } : {}) })
    return navigate(`/runs/${id}?${query}`)
  }
  rewindStore.setState({ ...NO_CHANGES, open: true })
  seek(Math.min(to, timeline.seq))
}

/** The last event before the turn after this one asks the model. */
export function endOf(node: NodeState, turn: Turn): number {
  const ends = node.steps.filter((step) => step.n >= turn.step.n && !(step.kind === 'model' && step.n > turn.step.n))
  const next = node.steps.find((step) => step.kind === 'model' && step.n > turn.step.n)
  return next ? next.from - 1 : Math.max(...ends.map((step) => step.to ?? step.from))
}
