// The MCP server of a tool: its fields, and a button that asks it which tools it has, so that they are chosen and not typed.

import { useState, type ReactElement } from 'react'
import type { Json, JsonObject, OfferedTool, ToolServerAsked } from '../../api/schemas'
import { ApiError } from '../../net/http'
import { isObject, withKey } from '../../net/json'
import { checkToolServer } from '../../net/toolServers'
import { Button } from '../../ui/Button'
import { messageOf, sentence } from '../../ui/words'
import { GroupField, type GroupProps } from './GroupField'
import { useFieldScope } from './scope'

/** What a check found, of the server as it was when it was asked. */
interface Found {
  of: string
  tools: readonly OfferedTool[] | null
  error: string
}

export function ToolServerField(props: GroupProps): ReactElement {
  const { value, onChange, path } = props
  return (
    <GroupField {...props}>
      {isObject(value) ? (
        <ToolCheck server={value} path={path} onChoose={(tools) => onChange(withKey(value, 'tools', tools))} />
      ) : null}
    </GroupField>
  )
}

function ToolCheck({
  server,
  path,
  onChoose,
}: {
  server: JsonObject
  path: string
  onChoose: (tools: string[] | undefined) => void
}): ReactElement | null {
  const { readonly } = useFieldScope()
  const [found, setFound] = useState<Found | null>(null)
  const [asking, setAsking] = useState<string | null>(null)
  const asked = askedOf(server)
  const now = JSON.stringify(asked)
  const shown = found?.of === now ? found : null
  const busy = asking === now
  if (readonly) return null
  const check = (): void => {
    setAsking(now)
    checkToolServer(asked)
      .then(
        (tools) => setFound({ of: now, tools, error: '' }),
        (error: unknown) => setFound({ of: now, tools: null, error: wrong(error) }),
      )
      .finally(() => setAsking((of) => (of === now ? null : of)))
  }
  return (
    <div className="toolcheck" aria-live="polite">
      <Button
        changes
        data-testid={`check-${path}`}
        why={asked.url.trim() ? (busy ? 'The server is being asked' : null) : 'Enter the URL of the server'}
        onClick={check}
      >
        {busy ? 'Checking…' : 'Check'}
      </Button>
      {shown?.error ? <p className="ref__wrong">{shown.error}</p> : null}
      {shown?.tools ? (
        <Offered tools={shown.tools} chosen={namesOf(server.tools)} onChoose={onChoose} path={path} />
      ) : null}
    </div>
  )
}

/** All tools are offered to the model until one is chosen. */
function Offered({
  tools,
  chosen,
  onChoose,
  path,
}: {
  tools: readonly OfferedTool[]
  chosen: readonly string[]
  onChoose: (tools: string[] | undefined) => void
  path: string
}): ReactElement {
  const missing = chosen.filter((name) => !tools.some((tool) => tool.name === name))
  const choose = (name: string, on: boolean): void => {
    const next = on ? [...chosen, name] : chosen.filter((other) => other !== name)
    onChoose(next.length ? next : undefined)
  }
  return (
    <>
      <p className="fld__about">
        {tools.length === 0
          ? 'The server answers, and has no tools.'
          : chosen.length
            ? 'The model is offered the tools that are ticked.'
            : 'The model is offered all of these. Tick some to offer only those.'}
      </p>
      {tools.length ? (
        <ul className="toolcheck__tools" data-testid={`tools-${path}`}>
          {tools.map((tool) => (
            <li key={tool.name}>
              <label>
                <input
                  type="checkbox"
                  checked={chosen.includes(tool.name)}
                  onChange={(event) => choose(tool.name, event.target.checked)}
                />
                <span className="mono">{tool.name}</span>
                {tool.reads ? <span className="toolcheck__reads">only reads</span> : null}
              </label>
              {tool.description ? <p>{tool.description}</p> : null}
            </li>
          ))}
        </ul>
      ) : null}
      {missing.length ? <p className="ref__wrong">The server has no tool {missing.join(', ')}.</p> : null}
    </>
  )
}

function askedOf(server: JsonObject): ToolServerAsked {
  const headers = isObject(server.headers) ? Object.entries(server.headers) : []
  return {
    url: typeof server.url === 'string' ? server.url : '',
    headers: Object.fromEntries(
      headers.flatMap(([name, text]) =>
        text === null || text === undefined || isObject(text) || Array.isArray(text) ? [] : [[name, String(text)]],
      ),
    ),
    ...(typeof server.connection === 'string' && server.connection ? { connection: server.connection } : {}),
  }
}

const namesOf = (tools: Json | undefined): string[] =>
  Array.isArray(tools) ? tools.filter((name): name is string => typeof name === 'string' && name !== '') : []

function wrong(error: unknown): string {
  const hint = error instanceof ApiError ? error.hint : ''
  return [messageOf(error), hint].filter(Boolean).map(sentence).join(' ')
}
