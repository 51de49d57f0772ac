// The card of an agent below its head: the last thought on a ground of two lines that never grows, its tools, and what it has used.

import type { ReactElement } from 'react'
import { useStore } from 'zustand'
import type { Block } from '../api/types'
import { specsOf } from '../state/doc'
import { futuresStore, type TextPart } from '../state/futures'
import { Icon, type IconName } from '../ui/icons'
import { fittingTools, memoryOf, modelOf, toolsOf, turnsMax, useOf, type AgentTool } from './agent'
import type { Paint } from './paint'
import { reasonOf } from './reason'

const KINDS: Readonly<Record<AgentTool['kind'], IconName>> = { workflow: 'run_workflow', block: 'http', server: 'job' }
const WORDS: Readonly<Record<AgentTool['state'], string>> = {
  idle: 'not called',
  running: 'is called now',
  waiting: 'waits for an approval',
  done: 'was called',
  failed: 'failed',
}

export function ModelLine({ block }: { block: Block }): ReactElement {
  const { model, more } = modelOf(block)
  return (
    <p className="card__sentence card__sentence--one" title={[model, more].filter(Boolean).join(', ')}>
      {model ? <code>{model}</code> : 'No model chosen'}
      {more ? `, ${more}` : ''}
    </p>
  )
}

export function AgentBody({ id, block, paint }: { id: string; block: Block; paint: Paint }): ReactElement {
  const tools = toolsOf(block, paint.node)
  const changed = useStore(futuresStore, (s) => (s.changed?.block === id && s.changed.parts.length ? s.changed : null))
  const { shown, left } = fittingTools(tools)
  return (
    <>
      {changed ? <Changed label={changed.label} parts={changed.parts} /> : <Thought block={block} paint={paint} />}
      <ul className="agent__tools" aria-label="Tools">
        {shown.map((tool) => (
          <Tool key={tool.name} tool={tool} />
        ))}
        {left ? (
          <li
            className="tool"
            title={tools
              .slice(-left)
              .map((tool) => tool.name)
              .join(', ')}
          >
            +{left}
          </li>
        ) : null}
        {tools.length ? null : <li className="agent__none">No tools</li>}
      </ul>
      <Used block={block} paint={paint} />
    </>
  )
}

/** The words that you changed, from the first of them on. */
function Changed({ label, parts }: { label: string; parts: readonly TextPart[] }): ReactElement {
  return (
    <p
      className="agent__thought agent__changed"
      title={parts.map(({ text }) => text).join('')}
      data-testid="changed-words"
    >
      <small>{label}</small>
      <span>
        {parts.map(({ text, changed }, i) =>
          changed ? <mark key={i}>{text}</mark> : <span key={i}>{i ? text : tail(text, NEAR)}</span>,
        )}
      </span>
    </p>
  )
}

/** From far away. */
export function Strokes({ block, paint }: { block: Block; paint: Paint }): ReactElement {
  return (
    <div className="agent__strokes">
      {toolsOf(block, paint.node)
        .slice(0, 3)
        .map(({ name, state }) => (
          <i key={name} data-state={state} />
        ))}
    </div>
  )
}

function Tool({ tool: { name, kind, asks, calls, state } }: { tool: AgentTool }): ReactElement {
  return (
    <li
      className="tool"
      data-state={state}
      data-testid={`tool-${name}`}
      title={`${name} ${WORDS[state]}${calls > 1 ? `, ${calls} times` : ''}${asks ? '. A person is asked first.' : ''}`}
    >
      <Icon name={asks ? 'approval' : KINDS[kind]} size={13} />
      <span className="tool__name">{name}</span>
      {calls ? <span className="tool__calls">{calls}</span> : null}
      {asks && !calls ? <span className="tool__asks">asks first</span> : null}
    </li>
  )
}

/** The text that it writes, its last question or answer, or the reason for its failure. */
function Thought({ block, paint }: { block: Block; paint: Paint }): ReactElement {
  const { node, status, text } = paint
  const error = status === 'failed' || status === 'handled' ? node?.error?.message : undefined
  if (error)
    return (
      <p className="agent__thought foot--error" title={error}>
        <span>{reasonOf(error)}</span>
      </p>
    )
  if (text)
    return (
      <p className="agent__thought" data-streaming data-testid="ticker">
        <span>{tail(text)}</span>
      </p>
    )
  const said = node?.said ?? answerOf(node?.output)
  if (said)
    return (
      <p className="agent__thought" title={said}>
        <span>{status === 'running' ? tail(said) : said}</span>
      </p>
    )
  const prompt = typeof block.params?.prompt === 'string' ? block.params.prompt : ''
  return (
    <p className="agent__thought" data-quiet title={prompt}>
      <span>{status === 'running' ? 'Thinking' : prompt || 'No prompt yet'}</span>
    </p>
  )
}

function answerOf(output: unknown): string {
  const content = output && typeof output === 'object' && 'content' in output ? output.content : undefined
  return typeof content === 'string' ? content : content === undefined ? '' : JSON.stringify(content)
}

/** Two lines of letters, so that what is new is always seen. */
const SHOWN = 104
/** Before a changed word. */
const NEAR = 28

function tail(text: string, most = SHOWN): string {
  const line = text.replace(/\s+/g, ' ').trimStart()
  if (line.length <= most) return line
  const cut = line.slice(-most)
  return `…${cut.slice(cut.indexOf(' ') + 1)}`
}

function Used({ block, paint }: { block: Block; paint: Paint }): ReactElement {
  const { turn, input, output, cost } = useOf(paint.node)
  const most = turnsMax(block, specsOf().get(block.type))
  return (
    <p className="agent__foot">
      <span className="agent__memory">
        <Icon name="sql" size={13} />
        {memoryOf(block)}
      </span>
      <span>{turn ? `Turn ${turn}${most ? ` of ${most}` : ''}` : most ? `Up to ${most} turns` : null}</span>
      {input || output ? (
        <>
          <span className="agent__in">{input.toLocaleString('en')} in</span>
          <span>{output.toLocaleString('en')} out</span>
          {cost === null ? null : <span>${cost.toFixed(4)}</span>}
        </>
      ) : null}
    </p>
  )
}
