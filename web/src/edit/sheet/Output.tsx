// The output of a block: of the attempt, or of the step, that is looked at; how it differs from another one; its shape; the pin.

import { useEffect, useState, type KeyboardEvent, type ReactElement } from 'react'
import { useStore } from 'zustand'
import type { Json } from '../../api/schemas'
import type { JsonSchema } from '../../api/types'
import { shownStatus, type NodeState } from '../../run'
import { endingOf } from '../../run/ending'
import { runStore } from '../../state/live'
import { Icon } from '../../ui/icons'
import { Link } from '../../ui/navigation'
import { glyphOf, Status, toneOf, wordOf } from '../../ui/status'
import { durationText } from '../../ui/time'
import { ValueTree } from '../../ui/ValueTree'
import { outputSchema, refName } from '../../refs/scope'
import { useFieldScope } from '../../forms/fields/scope'
import { ErrorCard } from '../inspector/parts'
import { useNodeDetail } from '../../watch/run/useNodeDetail'
import { Difference } from './Difference'
import { PinBox } from './PinBox'
import { comparedOf, useOthers, type Take } from './takes'

type Tab = 'value' | 'difference' | 'schema'

export function Output({
  id,
  takes,
  shown,
  onShow,
}: {
  id: string
  takes: readonly Take[]
  shown: Take | undefined
  onShow: (id: string) => void
}): ReactElement {
  const { doc, specs } = useFieldScope()
  const [tab, setTab] = useState<Tab | null>(null)
  const others = useOthers(id, takes, shown)
  const now: Tab = tab ?? (takes.length > 1 ? 'difference' : 'value')
  const pin = doc.blocks[id]!.pin
  return (
    <>
      <div className="wsheet__bar">
        <h3>Output</h3>
        <span className="wsheet__gap" />
        <span className="wsheet__seg" role="group" aria-label="What is shown of the output">
          {(['value', 'difference', 'schema'] as const).map((each) => (
            <button
              key={each}
              type="button"
              aria-pressed={now === each}
              data-testid={`output-${each}`}
              onClick={() => setTab(each)}
            >
              {WORDS[each]}
            </button>
          ))}
        </span>
      </div>
      <div className="wsheet__scroll">
        {shown ? <State take={shown} /> : null}
        {now === 'schema' ? (
          <Schema schema={outputSchema(doc, id, specs)} />
        ) : !shown ? (
          pin ? null : (
            <p className="wsheet__empty">No output yet. Run the workflow, or run this step alone.</p>
          )
        ) : now === 'difference' ? (
          <Difference value={comparedOf(shown)} title={shown.title} others={others} />
        ) : (
          <Shown id={id} take={shown} />
        )}
        {pin ? <PinBox id={id} pin={pin} /> : null}
        <Cards takes={takes} shown={shown} onShow={onShow} />
      </div>
    </>
  )
}

const WORDS = { value: 'Value', difference: 'Difference', schema: 'Schema' }

function State({ take }: { take: Take }): ReactElement {
  const status = take.error
    ? endingOf(true, take.error)
    : take.node
      ? shownStatus(take.node)
      : take.ended
        ? 'failed'
        : 'running'
  return (
    <p className="takestate">
      <span className="takestate__pill" data-tone={toneOf(status)}>
        <Status status={status} />
      </span>
      {take.node?.pinned ? <span className="pinmark">Pinned</span> : null}
      {take.took === null ? null : <span className="mono">{durationText(take.took)}</span>}
      <span className="wsheet__gap" />
      {take.step ? (
        <Link to={`/runs/${take.step.run}`}>
          Run <span className="mono">{take.step.run.slice(-8)}</span>
        </Link>
      ) : null}
    </p>
  )
}

function Shown({ id, take }: { id: string; take: Take }): ReactElement {
  const { doc } = useFieldScope()
  const live = useStore(runStore, (state) => (take.node ? state.live.get(take.node.key) : undefined))
  const text = take.step ? (take.ended ? '' : take.step.text) : live
  if (take.error) return <ErrorCard error={take.error} />
  if (take.step?.error && !take.node)
    return (
      <p className="finding" data-severity="error">
        {take.step.error}
      </p>
    )
  if (text && take.value === undefined)
    return (
      <pre className="rawvalue" aria-label="Output so far">
        {text}
        <span className="caret" />
      </pre>
    )
  if (take.value === undefined)
    return <p className="wsheet__empty">{take.ended ? 'It has no output.' : 'Nothing yet.'}</p>
  return <ValueTree value={take.value} base={refName(doc, id)} name={`${id}-output`} label="Output" height={320} />
}

/** Attempts and steps as cards: arrow keys walk them. */
function Cards({
  takes,
  shown,
  onShow,
}: {
  takes: readonly Take[]
  shown: Take | undefined
  onShow: (id: string) => void
}): ReactElement | null {
  if (takes.length < 2) return null
  const onKey = (event: KeyboardEvent<HTMLElement>): void => {
    const by = { ArrowRight: 1, ArrowLeft: -1, ArrowDown: 1, ArrowUp: -1 }[event.key]
    if (by === undefined) return
    const next = takes[(shown ? takes.indexOf(shown) : -1) + by]
    if (next) {
      onShow(next.id)
      event.currentTarget.querySelector<HTMLElement>(`[data-take="${next.id}"]`)?.focus()
    }
    event.preventDefault()
    event.stopPropagation()
  }
  return (
    <>
      <h4 className="wsheet__label">Attempts</h4>
      <div className="takes" role="radiogroup" aria-label="Attempts" onKeyDown={onKey}>
        {takes.map((take) => {
          const status = endingOf(take.ended, take.error)
          return (
            <button
              key={take.id}
              type="button"
              role="radio"
              aria-checked={take === shown}
              tabIndex={take === shown ? 0 : -1}
              data-take={take.id}
              className="take"
              data-testid={`take-${take.title}`}
              onClick={() => onShow(take.id)}
            >
              <span className="take__head" data-tone={toneOf(status)}>
                <Icon name={glyphOf(status)!} size={12} label={wordOf(status)} />
                <b>{take.title}</b>
                <span className="mono">{take.took === null ? '' : durationText(take.took)}</span>
              </span>
              <span className="take__why">{take.error?.message ?? wordOf(status)}</span>
            </button>
          )
        })}
      </div>
    </>
  )
}

function Schema({ schema }: { schema: JsonSchema | null }): ReactElement {
  const fields = Object.entries(schema?.properties ?? {})
  if (!fields.length) return <p className="wsheet__empty">The output of this block can be anything.</p>
  return (
    <dl className="schema">
      {fields.map(([name, field]) => (
        <div key={name}>
          <dt>{name}</dt>
          <dd>
            <span className="mono">{typeText(field)}</span> {field.description ?? ''}
          </dd>
        </div>
      ))}
    </dl>
  )
}

const typeText = (field: JsonSchema): string =>
  Array.isArray(field.type) ? field.type.join(' or ') : typeof field.type === 'string' ? field.type : 'anything'

/** The whole output of the node that is shown: from the log, or asked for. */
export function useWhole(node: NodeState | undefined): Json | undefined {
  const run = useStore(runStore, (state) => state.id)
  const large = node !== undefined && node.output === undefined && node.size !== undefined
  const { detail } = useNodeDetail(run, large ? node : undefined, null)
  const [, settle] = useState(0)
  useEffect(() => settle((n) => n + 1), [detail])
  return node?.output ?? detail?.output ?? undefined
}
