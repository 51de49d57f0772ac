// An agent in full: its tools and model at the left, the talk in the middle, the answer and what it cost at the right, and a Tape
// of the agent alone in the foot.

import { useEffect, useMemo, useRef, type ReactElement } from 'react'
import { useStore } from 'zustand'
import { isObject } from '../../net/json'
import type { Json, JsonObject } from '../../api/schemas'
import { nodeAt, shownStatus, type NodeState } from '../../run'
import { dispatch } from '../../state/doc'
import { runStore } from '../../state/live'
import { uiStore } from '../../state/ui'
import { toolsOf, turnsMax, type AgentTool } from '../../canvas/agent'
import { Button } from '../../ui/Button'
import { Icon, iconOf, type IconName } from '../../ui/icons'
import { Status, toneOf } from '../../ui/status'
import { useWidthBelow } from '../../ui/useWidthBelow'
import { escapePointer } from '../../refs/parse'
import { Field } from '../../forms/fields/Field'
import { useFieldScope } from '../../forms/fields/scope'
import { useKept } from '../../watch/run/useKept'
import { useNodeDetail } from '../../watch/run/useNodeDetail'
import type { Mode } from '../inspector/useScope'
import { AgentTape } from './AgentTape'
import { Answer } from './Answer'
import { Columns } from './Columns'
import { Frame } from './Frame'
import { Head, turnIteration } from './Head'
import { TurnRow } from './TurnRow'
import { talkOf, type Turn } from '../../run/talk'
import './agent.css'
import '../inspector/inspector.css'

const COLUMNS = { tools: 'Tools', talk: 'Conversation', answer: 'Answer' }

export function AgentSheet({ id, mode, onSettings }: { id: string; mode: Mode; onSettings: () => void }): ReactElement {
  const { doc, specs } = useFieldScope()
  const view = useStore(runStore, (state) => state.view)
  const iter = useStore(uiStore, (state) => state.iter)
  const block = doc.blocks[id]!
  const node = useMemo(() => nodeAt(view, doc, id, iter), [view, doc, id, iter])
  const turns = useMemo(() => talkOf(node), [node])
  const live = useStore(runStore, (state) => (node ? state.live.get(node.key) : undefined))
  const status = node ? shownStatus(node) : null
  const most = turnsMax(block, specs.get(block.type))
  return (
    <Frame
      label={`Agent ${block.name?.trim() || id}`}
      testId="agent-sheet"
      onKey={(event) => (event.key === '[' || event.key === ']') && turnIteration(id, event.key === '[' ? -1 : 1)}
    >
      <Head
        id={id}
        node={node}
        {...(turns.length ? { detail: `turn ${turns.length}${most ? ` of ${most}` : ''}` } : {})}
      >
        {status ? (
          <span className="takestate__pill" data-tone={toneOf(status)}>
            <Status status={status} />
          </span>
        ) : null}
        <span className="wsheet__seg" role="group" aria-label="What is shown of the agent">
          <button type="button" aria-pressed="true" data-first>
            This talk
          </button>
          <button type="button" aria-pressed="false" data-testid="agent-settings" onClick={onSettings}>
            Settings
          </button>
        </span>
        <KeepRun />
      </Head>
      <Columns titles={COLUMNS} className="agentcolumns">
        {(column) =>
          column === 'tools' ? (
            <Tools id={id} node={node} onSettings={mode === 'edit' ? onSettings : null} />
          ) : column === 'talk' ? (
            <Talk id={id} node={node} turns={turns} live={live} />
          ) : (
            <Answer id={id} node={node} turns={turns} live={live} />
          )
        }
      </Columns>
      {node?.steps.length ? <AgentTape node={node} turns={turns} /> : null}
    </Frame>
  )
}

function KeepRun(): ReactElement {
  const { label, icon, why, onSelect } = useKept()
  return (
    <Button {...(icon ? { icon } : {})} why={why} onClick={onSelect}>
      {label}
    </Button>
  )
}

const ASKED: Record<AgentTool['state'], string> = {
  idle: 'not called',
  running: 'called now',
  waiting: 'asks now',
  done: '',
  failed: 'failed',
}

function Tools({
  id,
  node,
  onSettings,
}: {
  id: string
  node: NodeState | undefined
  onSettings: (() => void) | null
}): ReactElement {
  const { doc, specs } = useFieldScope()
  const block = doc.blocks[id]!
  const tools = toolsOf(block, node)
  const declared = Array.isArray(block.params?.tools) ? block.params.tools : []
  const spec = specs.get(block.type)
  const params = block.params ?? {}
  return (
    <>
      <div className="wsheet__bar">
        <h3>Tools</h3>
        <span className="wsheet__gap" />
        <span className="quiet">{tools.length}</span>
      </div>
      <div className="wsheet__scroll agenttools">
        {tools.map((tool) => {
          const own = declared.find((each) => isObject(each) && each.name === tool.name) as JsonObject | undefined
          return (
            <div key={tool.name} className="agenttool" data-state={tool.state} data-testid={`sheet-tool-${tool.name}`}>
              <p>
                <span className="agenttool__plate">
                  <Icon name={toolIcon(tool, own)} size={14} />
                </span>
                <b>{tool.name}</b>
                <span className="wsheet__gap" />
                <span className="agenttool__state">
                  {tool.state === 'done' || (tool.calls > 0 && tool.state === 'idle')
                    ? `${tool.calls} ${tool.calls === 1 ? 'call' : 'calls'}`
                    : ASKED[tool.state]}
                </span>
              </p>
              <p className="agenttool__about">
                {aboutTool(own, (type) => specs.get(type)?.title ?? type)}
                {tool.asks ? '. Asks a person first' : ''}
              </p>
            </div>
          )
        })}
        {tools.length ? null : <p className="wsheet__empty">This agent has no tools.</p>}
        {onSettings ? (
          <Button kind="bare" icon="plus" className="agenttools__add" onClick={onSettings}>
            Add a tool
          </Button>
        ) : null}
        {['model', 'system'].map((name) =>
          spec?.params.properties?.[name] ? (
            <Field
              key={name}
              type={block.type}
              name={name}
              schema={spec.params.properties[name]}
              value={params[name]}
              params={params}
              path={name}
              pointer={`/blocks/${escapePointer(id)}/params/${name}`}
              onChange={(value: Json | undefined) =>
                dispatch({ type: 'setParam', id, path: [name], value }, `param ${id} ${name}`)
              }
            />
          ) : null,
        )}
      </div>
    </>
  )
}

const toolIcon = (tool: AgentTool, own: JsonObject | undefined): IconName =>
  tool.kind === 'workflow' ? 'run_workflow' : tool.kind === 'server' ? 'job' : iconOf(String(own?.block ?? ''))

function aboutTool(own: JsonObject | undefined, title: (type: string) => string): string {
  if (!own) return ''
  if (own.workflow)
    return `Workflow: ${String(own.workflow)}${typeof own.version === 'number' ? `, version ${own.version}` : ''}`
  if (own.function) return `Function: ${String(own.function)}`
  if (isObject(own.mcp)) return `MCP: ${String(own.mcp.url ?? own.mcp.server ?? '')}`
  const params = isObject(own.params) ? own.params : {}
  const where = [params.method ?? (params.url ? 'GET' : ''), params.url ?? params.to ?? ''].filter(Boolean).join(' ')
  return `Block: ${title(String(own.block ?? ''))}${where ? `, ${where}` : ''}`
}

function Talk({
  id,
  node,
  turns,
  live,
}: {
  id: string
  node: NodeState | undefined
  turns: readonly Turn[]
  live: string | undefined
}): ReactElement {
  const run = useStore(runStore, (state) => state.id)
  const { detail } = useNodeDetail(run, node, null)
  const end = useRef<HTMLDivElement>(null)
  const narrow = useWidthBelow(760)
  const asked = questionOf(detail?.input)
  useEffect(() => {
    if (!narrow) end.current?.scrollIntoView({ block: 'nearest' })
  }, [turns.length, live, narrow])
  return (
    <>
      <div className="wsheet__bar">
        <h3>Conversation</h3>
      </div>
      <div className="wsheet__scroll talk" role="log" aria-label="Conversation" tabIndex={0} data-testid="talk">
        {node ? null : (
          <p className="wsheet__empty">
            The agent has not run yet. Run the workflow: its turns and calls are shown here.
          </p>
        )}
        {asked ? (
          <div className="talk__row">
            <span className="talk__who">Asked</span>
            <div className="talk__asked">
              <p className="talk__bubble">{asked}</p>
            </div>
          </div>
        ) : null}
        {turns.map((turn) => (
          <TurnRow key={turn.n} id={id} node={node!} turn={turn} />
        ))}
        {live && node?.status === 'running' ? (
          <div className="talk__row">
            <span className="talk__who">Writes</span>
            <p className="talk__said" aria-live="off">
              {live}
              <span className="caret" />
            </p>
          </div>
        ) : null}
        {node?.error ? (
          <p className="finding" data-severity="error">
            {node.error.message}
          </p>
        ) : null}
        <div ref={end} />
      </div>
    </>
  )
}

function questionOf(input: Json | undefined): string {
  if (!isObject(input)) return ''
  const { prompt } = input
  if (typeof prompt === 'string') return prompt
  return prompt === undefined || prompt === null ? '' : JSON.stringify(prompt)
}
