// The sources of a tool, in tabs: a stored workflow, a block, an operation of a connector, a Python function, an MCP server.

import { useState, type ReactElement } from 'react'
import type { Json, JsonObject } from '../../api/schemas'
import { api } from '../../net/api'
import { formSchema, triggersOf } from '../../document/triggers'
import { Dialog } from '../../ui/Dialog'
import { iconOf } from '../../ui/icons'
import { fuzzy, Listbox, type ListOption } from '../../ui/Listbox'
import { Button } from '../../ui/Button'
import { useData } from '../../ui/useData'
import { isNeeded } from './kind'
import { useFieldScope } from './scope'
import { freshTool, isFillable, KIND_WORDS, TOOL_BLOCKS, withParams, type ToolKind } from './tools'

const KINDS = Object.keys(KIND_WORDS) as ToolKind[]

export function ToolPicker({
  label,
  tools,
  onChoose,
  onClose,
}: {
  label: string
  tools: readonly JsonObject[]
  onChoose: (tool: JsonObject) => void
  onClose: () => void
}): ReactElement {
  const { specs } = useFieldScope()
  const [chosen, setKind] = useState<ToolKind | null>(null)
  const [query, setQuery] = useState('')
  const stored = useData(() => api.workflows(), [])
  // Where there is something to choose.
  const kind = chosen ?? (stored.value?.length === 0 ? 'block' : 'workflow')
  const options = optionsOf()
  const shown = options
    .map((option) => ({ option, score: fuzzy(`${option.label} ${option.group ?? ''}`, query) }))
    .filter(({ score }) => score > 0)
    .map(({ option }) => option)

  function optionsOf(): ListOption[] {
    if (kind === 'workflow')
      return (stored.value ?? []).map((each) => ({ id: each.name, label: each.name, icon: 'run_workflow' }))
    if (kind === 'block')
      return TOOL_BLOCKS.flatMap((type) => {
        const spec = specs.get(type)
        return spec ? [{ id: type, label: spec.title, icon: iconOf(type, spec.icon), detail: WORDS[type] }] : []
      })
    if (kind === 'python')
      return (specs.get('python')?.params.properties?.function?.enum ?? []).map((name) => ({
        id: String(name),
        label: String(name),
        icon: 'python',
      }))
    return [...specs.values()]
      .filter((spec) => spec.category === 'connector')
      .flatMap((spec) => {
        const operation = spec.params.properties?.operation
        return (operation?.enum ?? []).map((name) => ({
          id: `${spec.type} ${String(name)}`,
          label: operation?.['x-titles']?.[String(name)] ?? String(name),
          group: spec.title,
          icon: iconOf(spec.type, spec.icon),
        }))
      })
  }

  const choose = async (option: ListOption): Promise<void> => {
    if (kind === 'workflow') return onChoose(await ofWorkflow(option.id))
    if (kind === 'block') return onChoose({ name: freshTool(tools, option.label), block: option.id, params: {} })
    if (kind === 'python') {
      const name = freshTool(tools, option.id.split('.').at(-1)!)
      return onChoose({ name, function: option.id, approve: 'write' })
    }
    const [block, operation] = option.id.split(' ') as [string, string]
    const own = specs.get(block)!.params.properties ?? {}
    const params: JsonObject = { operation }
    for (const [name, part] of Object.entries(own))
      if (isFillable(block, name) && isNeeded(part, params)) params[name] = `{{${name}}}`
    const about = `${option.label} (${option.group ?? ''}).`
    const tool = { name: freshTool(tools, operation), description: about, block, params: {}, approve: 'write' }
    return onChoose(withParams(tool, params, specs))
  }

  /** Its arguments are the input of the workflow. */
  const ofWorkflow = async (name: string): Promise<JsonObject> => {
    const tool: JsonObject = { name: freshTool(tools, name), workflow: name }
    try {
      const { document } = await api.workflow(name)
      const trigger = triggersOf(document, specs)[0]
      const input = formSchema(document, trigger?.id ?? null)
      return {
        ...tool,
        ...(document.description ? { description: document.description } : {}),
        ...(Object.keys(input.properties ?? {}).length ? { arguments: input as unknown as Json } : {}),
      }
    } catch {
      return tool // it can be chosen all the same; its arguments are then written by hand
    }
  }

  return (
    <Dialog title="Add a tool" open onClose={onClose}>
      <div className="toolpick">
        <div className="tabs" role="tablist" aria-label={`Where ${label.toLowerCase()} come from`}>
          {KINDS.map((each) => (
            <button
              key={each}
              type="button"
              role="tab"
              data-testid={`tool-tab-${each}`}
              aria-selected={kind === each}
              onClick={() => {
                setKind(each)
                setQuery('')
              }}
            >
              {KIND_WORDS[each]}
            </button>
          ))}
        </div>
        {kind === 'mcp' ? (
          <div className="toolpick__mcp">
            <p>The model is offered the tools of a server that speaks MCP over HTTP. Its address comes next.</p>
            <Button
              kind="primary"
              data-testid="tool-mcp"
              onClick={() => onChoose({ name: freshTool(tools, 'server'), mcp: {} })}
            >
              Add a server
            </Button>
          </div>
        ) : (
          <Listbox
            key={kind}
            label={KIND_WORDS[kind]}
            placeholder="Search"
            options={shown}
            query={query}
            onQuery={setQuery}
            onChoose={(option) => void choose(option)}
            autoFocus
            empty={
              query
                ? 'No results'
                : kind === 'workflow' && stored.loading
                  ? 'Asking the server'
                  : kind === 'workflow'
                    ? 'No workflow is published yet. A published one can be called as a tool.'
                    : kind === 'python'
                      ? 'This server has no Python functions.'
                      : 'None'
            }
          />
        )}
      </div>
    </Dialog>
  )
}

const WORDS: Record<(typeof TOOL_BLOCKS)[number], string> = {
  http: 'calls an address',
  sql: 'asks a database',
  redis: 'sends a command to Redis',
  function: 'runs code in the sandbox',
  email: 'sends a mail',
}
