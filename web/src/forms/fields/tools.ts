// The tools of an agent as a form sees them: what kind each is, and the arguments that follow from what was chosen.

import type { Json, JsonObject } from '../../api/schemas'
import type { JsonSchema } from '../../api/types'
import { freshId, type Specs } from '../../document/document'
import { isObject } from '../../net/json'
import { asSchema } from '../../net/repair'
import { iconOf, type IconName } from '../../ui/icons'

export type ToolKind = 'workflow' | 'block' | 'connector' | 'python' | 'mcp'

export const KIND_WORDS: Record<ToolKind, string> = {
  workflow: 'Workflow',
  block: 'Block',
  connector: 'Connector',
  python: 'Function',
  mcp: 'MCP server',
}

/** Blocks that can be tools, beside connectors: `BLOCKS` of executor/blocks/types/agent/tools.py. */
export const TOOL_BLOCKS = ['http', 'sql', 'redis', 'function', 'email'] as const
/** The fields of a connector that the author fills in and never the model. */
const FIXED = new Set(['operation', 'credential', 'connection', 'base_url', 'pages_max', 'region', 'timeout_s'])
const PLACE = /\{\{\s*([A-Za-z_][A-Za-z0-9_-]*)\s*\}\}/g

export function kindOfTool(tool: JsonObject): ToolKind {
  if (typeof tool.block === 'string') return tool.block.startsWith('connector.') ? 'connector' : 'block'
  if (typeof tool.function === 'string') return 'python'
  return isObject(tool.mcp) ? 'mcp' : 'workflow'
}

/** `HTTP request, GET`; `Slack: Send a message`; `refunds`. */
export function toolWords(tool: JsonObject, specs: Specs): string {
  const kind = kindOfTool(tool)
  if (kind === 'workflow') return tool.workflow ? `Workflow: ${String(tool.workflow)}` : 'Workflow'
  if (kind === 'python') return `Function: ${String(tool.function)}`
  if (kind === 'mcp') {
    const url = isObject(tool.mcp) ? String(tool.mcp.url ?? '') : ''
    return `MCP: ${/^\w+:\/\/([^/?#]+)/.exec(url)?.[1] ?? 'no address yet'}`
  }
  const spec = specs.get(String(tool.block))
  const params = isObject(tool.params) ? tool.params : {}
  const titles = spec?.params.properties?.operation?.['x-titles']
  const operation = kind === 'connector' ? (titles?.[String(params.operation)] ?? null) : null
  return `${kind === 'block' ? 'Block: ' : ''}${spec?.title ?? String(tool.block)}${operation ? `: ${operation}` : ''}`
}

export function toolIcon(tool: JsonObject, specs: Specs): IconName {
  const kind = kindOfTool(tool)
  if (kind === 'workflow') return 'run_workflow'
  if (kind === 'mcp') return 'link'
  if (kind === 'python') return 'python'
  return iconOf(String(tool.block), specs.get(String(tool.block))?.icon)
}

/** The condition under which a person is asked, in two words for its row. */
export function asksWords(tool: JsonObject): string {
  const words: Record<string, string> = { always: 'asks first', write: 'asks before changes', if: 'asks if' }
  return words[String(tool.approve)] ?? ''
}

/** May the model fill in this param? */
export function isFillable(block: string, param: string): boolean {
  return block.startsWith('connector.') ? !FIXED.has(param) : false
}

export function freshTool(tools: readonly JsonObject[], base: string): string {
  const plain = base
    .toLowerCase()
    .replace(/[^a-z0-9_]+/g, '_')
    .replace(/^[^a-z]+|_+$/g, '')
    .slice(0, 60)
  return freshId((name) => tools.some((tool) => tool.name === name), plain || 'tool')
}

/** The tool with other params: its arguments are the places in them. The description of an argument stays. */
export function withParams(tool: JsonObject, params: JsonObject, specs: Specs): JsonObject {
  const block = String(tool.block)
  const next: JsonObject = { ...tool, params }
  if (block === 'function') return next
  const before = placesIn(isObject(tool.params) ? tool.params : {})
  const now = placesIn(params)
  const schema = asSchema(tool.arguments as JsonSchema)
  const old = Object.entries(schema.properties ?? {}).filter(([name]) => now.has(name) || !before.has(name))
  const fresh = [...now].filter(([name]) => !schema.properties?.[name])
  const required = new Set([
    ...(schema.required ?? []).filter((name) => old.some(([each]) => each === name)),
    ...fresh.filter(([, param]) => !isOptional(block, param, specs)).map(([name]) => name),
  ])
  const properties = Object.fromEntries([
    ...old,
    ...fresh.map(([name, param]) => [name, typeOfPlace(block, param, specs)] as const),
  ])
  if (!Object.keys(properties).length) {
    const { arguments: _, ...rest } = next
    return rest
  }
  return { ...next, arguments: { ...schema, type: 'object', properties, required: [...required] } as unknown as Json }
}

/** Names of places, and the param in which each stands first. */
function placesIn(params: JsonObject): Map<string, string> {
  const found = new Map<string, string>()
  const look = (value: Json, param: string): void => {
    if (typeof value === 'string')
      for (const match of value.matchAll(PLACE)) found.set(match[1]!, found.get(match[1]!) ?? param)
    else if (Array.isArray(value)) for (const each of value) look(each, param)
    else if (isObject(value)) for (const each of Object.values(value)) look(each as Json, param)
  }
  for (const [param, value] of Object.entries(params)) if (value !== undefined) look(value as Json, param)
  return found
}

/** The schema of the service for the field that the model fills in. */
function typeOfPlace(block: string, param: string, specs: Specs): JsonSchema {
  const part = block.startsWith('connector.') ? specs.get(block)?.params.properties?.[param] : undefined
  if (!part) return { type: 'string' }
  const { type, description, enum: choices, items, title } = part
  const about = [title, description].filter(Boolean).join('. ')
  return {
    ...(type === undefined ? {} : { type }),
    ...(about ? { description: about } : {}),
    ...(choices ? { enum: choices } : {}),
    ...(items ? { items } : {}),
  }
}

function isOptional(block: string, param: string, specs: Specs): boolean {
  const part = specs.get(block)?.params.properties?.[param]
  return block.startsWith('connector.') && part?.default !== undefined
}
