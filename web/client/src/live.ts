// What a program shows of a run while it goes: the same as `executor/live.py`.

import type { Json } from '../../src/api/schemas.js'
import type { RunEvent } from './events.js'

/** A piece of text that a model has just written. It is in no journal, and missing for readers that came later. */
export interface TextDelta {
  type: 'text'
  run: string
  key: string
  text: string
}

/** An agent calls a tool, as step `n` of the node. `arguments`: as the model gave them, or null if that was not read. */
export interface ToolStarted {
  type: 'tool_started'
  run: string
  seq: number
  key: string
  n: number
  tool: string
  arguments: Json
}

/** The tool has returned `output`, or failed with `error`. */
export interface ToolFinished {
  type: 'tool_finished'
  run: string
  seq: number
  key: string
  n: number
  tool: string
  output: Json
  error: string | null
}

/** The run waits for an answer, a signal or a callback. `wait` is its id among the `waits` of the run, which have links. */
export interface WaitOpened {
  type: 'wait'
  run: string
  seq: number
  key: string
  wait: string
  kind: string
  title: string
  /** What a person sees beside the title, such as the arguments of a call; of much its beginning, as text. */
  show: Json
}

/** The wait is over: `answered`, `expired`, `cancelled`, … */
export interface WaitClosed {
  type: 'wait_closed'
  run: string
  seq: number
  key: string
  wait: string
  outcome: string
}

export interface RunFinished {
  type: 'finished'
  run: string
  seq: number
  status: string
  output: Json
  error: Json
}

export type Live = TextDelta | ToolStarted | ToolFinished | WaitOpened | WaitClosed | RunFinished

const LISTING = 'tools of ' // the name of a step that lists the tools of a server begins so

interface Called {
  name: string
  arguments?: Json
}

/** Reads the events of one run, in their order. */
export class Reading {
  private readonly models = new Set<string>() // steps under way
  private readonly tools = new Map<string, string>()
  private readonly waits = new Set<string>() // that are open
  private readonly asked = new Map<string, Called[]>() // by node: what its models want called, not begun yet

  /** What the event shows, if anything. */
  take({ run, seq, type, key: node, attempt, data }: RunEvent): Live | null {
    const key = node ?? ''
    const n = data.n as number
    const step = `${key} ${n}`
    switch (type) {
      case 'node.delta':
        return { type: 'text', run, key, text: String(data.text) }
      case 'step.started':
        return this.started(run, seq, key, n, data)
      case 'step.finished': {
        const tool = this.tools.get(step)
        this.tools.delete(step)
        if (this.models.delete(step)) this.ask(key, data.output)
        if (tool === undefined) return null
        const error = (data.error ?? null) as { message: string } | null
        return {
          type: 'tool_finished',
          run,
          seq,
          key,
          n,
          tool,
          output: data.output ?? null,
          error: error?.message ?? null,
        }
      }
      case 'wait.opened': {
        const kind = String(data.kind)
        if (kind === 'child' || kind === 'timer') return null // they end by themselves
        this.waits.add(String(data.wait))
        return {
          type: 'wait',
          run,
          seq,
          key,
          wait: String(data.wait),
          kind,
          title: String(data.title ?? ''),
          show: data.show ?? null,
        }
      }
      case 'wait.closed': {
        const wait = `${key}!${attempt}`
        return this.waits.delete(wait)
          ? { type: 'wait_closed', run, seq, key, wait, outcome: String(data.outcome ?? '') }
          : null
      }
      case 'run.finished': {
        const { status, output = null, error = null } = data
        return { type: 'finished', run, seq, status: String(status), output, error }
      }
    }
    return null
  }

  private started(run: string, seq: number, key: string, n: number, data: RunEvent['data']): Live | null {
    const [step, kind, tool] = [`${key} ${n}`, data.kind, String(data.name)]
    if (kind === 'model') this.models.add(step)
    if (this.tools.has(step) || (kind !== 'tool' && kind !== 'wait')) return null // it is tried again, or is no tool
    const asked = this.asked.get(key) ?? []
    const at = asked.findIndex((call) => call.name === tool)
    if (at < 0 && (kind === 'wait' || tool.startsWith(LISTING))) return null
    const fromModel = at < 0 ? null : (asked.splice(at, 1)[0]!.arguments ?? null)
    this.tools.set(step, tool)
    return { type: 'tool_started', run, seq, key, n, tool, arguments: data.shown ?? fromModel }
  }

  private ask(key: string, reply: Json | undefined): void {
    const { calls = [] } = (reply ?? {}) as { calls?: Called[] }
    const again = new Set(calls.map((call) => call.name))
    const left = (this.asked.get(key) ?? []).filter((call) => !again.has(call.name)) // those were refused
    this.asked.set(key, [...left, ...calls])
  }
}
