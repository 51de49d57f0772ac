// The content of an agent's card: its tools, how often each was called, and what the run has used so far. Pure.

import type { Json } from '../api/schemas'
import type { Block, BlockSpec } from '../api/types'
import type { NodeState, StepState } from '../run'

export interface AgentTool {
  name: string
  kind: 'workflow' | 'block' | 'server'
  /** A person decides about its calls, always or sometimes. */
  asks: boolean
  calls: number
  state: 'idle' | 'running' | 'waiting' | 'done' | 'failed'
}

export interface AgentUse {
  turn: number
  input: number
  output: number
  cost: number | null
}

export function toolsOf({ params }: Block, node: NodeState | undefined): AgentTool[] {
  const list = Array.isArray(params?.tools) ? params.tools : []
  return list.flatMap((item): AgentTool[] => {
    const tool = item && typeof item === 'object' && !Array.isArray(item) ? item : {}
    const name = typeof tool.name === 'string' ? tool.name : ''
    if (!name) return []
    const kind = tool.workflow ? 'workflow' : tool.mcp ? 'server' : 'block'
    const calls = (node?.steps ?? []).filter((step) => isCall(step, name, kind))
    const asked = (node?.steps ?? []).filter((step) => step.kind === 'wait' && step.name === `approve ${name}`)
    const open = asked.some((step) => step.status === 'waiting' || step.status === 'running')
    return [
      {
        name,
        kind,
        asks: typeof tool.approve === 'string' && tool.approve !== 'never',
        calls: calls.length,
        state: open ? 'waiting' : stateOf(calls),
      },
    ]
  })
}

/** The tools of a server have its name before their own; a workflow is waited for. */
function isCall({ kind, name }: StepState, tool: string, of: AgentTool['kind']): boolean {
  if (of === 'workflow') return kind === 'wait' && name === tool
  return kind === 'tool' && (name === tool || (of === 'server' && name.startsWith(`${tool}_`)))
}

function stateOf(calls: readonly StepState[]): AgentTool['state'] {
  if (calls.some((step) => step.status === 'running' || step.status === 'waiting')) return 'running'
  const last = calls.at(-1)
  return !last ? 'idle' : last.status === 'failed' ? 'failed' : 'done'
}

/** At most so many calls of the model, as the server reads it; null: a reference decides. */
export function turnsMax({ params }: Block, spec: BlockSpec | undefined): number | null {
  const most = Number(params?.max_rounds ?? spec?.params.properties?.max_rounds?.default)
  return most > 0 ? most : null
}

export function useOf(node: NodeState | undefined): AgentUse {
  const models = (node?.steps ?? []).filter((step) => step.kind === 'model')
  const sum = (name: string): number => models.reduce((all, step) => all + (step.usage[name] ?? 0), 0)
  const priced = models.filter((step) => step.cost !== null)
  return {
    turn: models.length,
    input: sum('input_tokens'),
    output: sum('output_tokens'),
    cost: priced.length ? priced.reduce((all, step) => all + step.cost!, 0) : null,
  }
}

/** The model and what it was set to, for the line below the name. */
export function modelOf({ params }: Block): { model: string; more: string } {
  const shown = (value: Json | undefined): string =>
    typeof value === 'string' || typeof value === 'number' ? String(value) : ''
  const temperature = shown(params?.temperature)
  return { model: shown(params?.model), more: temperature && `temperature ${temperature}` }
}

export function memoryOf({ params }: Block): string {
  if (params?.memory === undefined || params.memory === '') return 'No memory'
  return `Last ${typeof params.memory_messages === 'number' ? params.memory_messages : 20} messages`
}

/** Letters of 12 px and what stands around them. */
const CHIP = 34
const LETTER = 5.9
const ROOM = 368

/** As many tools as have room in one row, and the number of the others. */
export function fittingTools(tools: readonly AgentTool[]): { shown: readonly AgentTool[]; left: number } {
  let used = 0
  for (const [at, tool] of tools.entries()) {
    const letters = tool.name.length + (tool.asks ? 11 : 0) + (tool.calls ? 2 : 0)
    used += CHIP + 6 + Math.min(letters, 28) * LETTER
    if (used > ROOM - (at < tools.length - 1 ? 40 : 0)) return { shown: tools.slice(0, at), left: tools.length - at }
  }
  return { shown: tools, left: 0 }
}
