// The durable steps inside a block: calls of `ctx.step` and `ctx.wait` in its handler, as the events tell them. The server's
// words for this are in `executor/kernel/journal/steps.py`.

import type { Json } from '../api/schemas'
import type { ErrorInfo, EventData, WireEvent } from '../api/types'

export type StepKind = 'model' | 'tool' | 'step' | 'wait' | 'mark'
export type StepStatus = 'running' | 'retrying' | 'waiting' | 'succeeded' | 'failed' | 'lost' | 'cancelled'

/** Step `n`, as it last began; `times`: how often it did. lost: it is unknown whether it was done. retrying: it failed with
 * `error`, and begins again at `dueAt`. */
export interface StepState {
  n: number
  kind: StepKind
  name: string
  inputHash: string
  effect: string
  attempt: number
  status: StepStatus
  times: number
  startedAt: number
  endedAt: number | null
  /** The events that began and ended it. */
  from: number
  to: number | null
  /** The event that has the whole output. */
  seq: number | null
  /** undefined: none yet, or too large for the log; then `size` is set. */
  output?: Json
  size?: number
  usage: Readonly<Record<string, number>>
  /** In US dollars. */
  cost: number | null
  error: ErrorInfo | null
  /** The data of the event that began it, and of that which opened the wait that it is. */
  began: EventData
  wait?: EventData
  dueAt: number | null
}

/** The name of a step of a durable function without its module: `reserve` for `orders.reserve`. */
export const shortName = (name: string): string =>
  /^[\w.]+$/.test(name) ? name.slice(name.lastIndexOf('.') + 1) : name

/** The steps of a node after an event of one of them. */
export function stepsAfter(steps: readonly StepState[], event: WireEvent): readonly StepState[] {
  const { data } = event
  const n = data.n ?? 0
  // They are in order, there may be thousands, and most events are about one of the last.
  const at = steps.findLastIndex((step) => step.n <= n)
  const before = steps[at]?.n === n ? steps[at] : undefined
  if (event.type === 'step.started') {
    const step: StepState = {
      n,
      kind: (data.kind ?? 'step') as StepKind,
      name: data.name ?? '',
      inputHash: data.input_hash ?? '',
      effect: data.effect ?? 'write',
      attempt: event.attempt,
      status: 'running',
      times: (before?.times ?? 0) + 1,
      startedAt: event.at_ms,
      endedAt: null,
      from: event.seq,
      to: null,
      seq: null,
      usage: {},
      cost: null,
      error: null,
      began: data,
      dueAt: null,
    }
    return before ? steps.with(at, step) : steps.toSpliced(at + 1, 0, step)
  }
  if (!before) return steps
  const { output, size, truncated, blob } = data
  const change: Partial<StepState> =
    event.type === 'step.retrying'
      ? { status: 'retrying', error: data.error ?? null, dueAt: data.due_ms ?? null }
      : event.type === 'step.lost'
        ? { status: 'lost', ...(data.again ? { endedAt: event.at_ms, to: event.seq } : {}) }
        : {
            status: !data.error ? 'succeeded' : data.error.code === 'cancelled' ? 'cancelled' : 'failed',
            endedAt: event.at_ms,
            to: event.seq,
            seq: event.seq,
            usage: data.usage ?? {},
            cost: data.cost ?? null,
            error: data.error ?? null,
            dueAt: null,
            ...(truncated || blob ? (size === undefined ? {} : { size }) : output === undefined ? {} : { output }),
          }
  return steps.with(at, { ...before, ...change })
}

export function stepWaits(steps: readonly StepState[], wait: EventData): readonly StepState[] {
  return steps.map((step) => (step.n === wait.step ? { ...step, status: 'waiting', wait } : step))
}

/** The wait that this step is was not needed any more. */
export function stepDropped(steps: readonly StepState[], n: number | undefined, at: number): readonly StepState[] {
  return steps.map((step) => (step.n === n ? { ...step, status: 'cancelled', endedAt: at } : step))
}

/** The run has ended: what has no end of its own was cancelled with it. */
export function stepsEnded(steps: readonly StepState[]): readonly StepState[] {
  const open = ({ status }: StepState): boolean => ['running', 'waiting', 'retrying'].includes(status)
  return steps.some(open)
    ? steps.map((step) => (open(step) ? { ...step, status: 'cancelled', dueAt: null } : step))
    : steps
}

/** What all of them used and cost, in words: "1,203 input tokens, 80 output tokens, $0.0123". Of a model without a price:
 * "no price known". */
export function usedText(steps: readonly Pick<StepState, 'usage' | 'cost'>[]): string {
  const usage = new Map<string, number>()
  for (const step of steps)
    for (const [name, count] of Object.entries(step.usage)) usage.set(name, (usage.get(name) ?? 0) + count)
  const parts = [...usage]
    .filter(([, count]) => count)
    .map(([name, count]) => `${count.toLocaleString('en')} ${name.replaceAll('_', ' ')}`)
  return [...parts, costOf(steps)].filter(Boolean).join(', ')
}

/** In a line: "1,283 tokens, $0.0123". */
export function usedShort(steps: readonly Pick<StepState, 'usage' | 'cost'>[]): string {
  const of = (step: Pick<StepState, 'usage'>, name: string): number => step.usage[name] ?? 0
  const tokens = steps.reduce((sum, step) => sum + of(step, 'input_tokens') + of(step, 'output_tokens'), 0)
  return [tokens ? `${tokens.toLocaleString('en')} tokens` : '', costOf(steps)].filter(Boolean).join(', ')
}

/** Added as billionths of a dollar, as the server does: sums of numbers with a point are not exact. */
function costOf(steps: readonly Pick<StepState, 'usage' | 'cost'>[]): string {
  const priced = steps.filter((step) => step.cost !== null)
  const unpriced = steps.filter((step) => step.cost === null && Object.keys(step.usage).length > 0).length
  if (!priced.length) return unpriced ? 'no price known' : ''
  const cost = costText(priced.reduce((sum, step) => sum + Math.round(step.cost! * 1e9), 0) / 1e9)
  return unpriced ? `${cost} and ${unpriced} without a price` : cost
}

export const costText = (cost: number): string =>
  `$${cost >= 1 || cost === 0 ? cost.toFixed(2) : Number(cost.toPrecision(3))}`
