// The answer of an agent, key by key while it is written; what its turns used; and the way back into the talk.

import type { ReactElement } from 'react'
import { useStore } from 'zustand'
import { isObject } from '../../net/json'
import type { Json, JsonObject } from '../../api/schemas'
import { isDecided, isEnded, type NodeState } from '../../run'
import { runStore } from '../../state/live'
import { Button } from '../../ui/Button'
import { Icon } from '../../ui/icons'
import { useFieldScope } from '../../forms/fields/scope'
import { openRewind } from '../../watch/tape/rewind'
import { fieldsSoFar, type Turn } from '../../run/talk'

export function Answer({
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
  const { doc } = useFieldScope()
  const shape = shapeOf(doc.blocks[id]?.params)
  const over = node !== undefined && isDecided(node)
  const content = isObject(node?.output) ? node.output.content : undefined
  const text = typeof content === 'string' ? content : (live ?? '')
  const fields: JsonObject | null = isObject(content) ? (content as JsonObject) : shape ? fieldsSoFar(live ?? '') : null
  const names = [...new Set([...(shape ?? []), ...Object.keys(fields ?? {})])]
  return (
    <>
      <div className="wsheet__bar">
        <h3>Answer</h3>
      </div>
      <div className="wsheet__scroll">
        <div className="wsheet__line answerline">
          <h4 className="wsheet__label">{over ? 'The answer' : 'Answer so far'}</h4>
          <span className="wsheet__gap" />
          {over || !node ? null : (
            <span className="takestate__pill" data-tone="wait">
              Not final
            </span>
          )}
        </div>
        <div className="answerbox" data-testid="agent-answer">
          {names.length ? (
            <dl>
              {names.map((name) => (
                <div key={name}>
                  <dt>{name}</dt>
                  <dd data-none={fields?.[name] === undefined || undefined}>
                    {fields?.[name] === undefined ? (over ? 'nothing' : 'not yet') : shown(fields[name]!)}
                  </dd>
                </div>
              ))}
            </dl>
          ) : (
            <p data-none={text === '' || undefined}>{text || (over ? 'It has no answer.' : 'not yet')}</p>
          )}
        </div>
        {shape ? <p className="wsheet__help">Shape: {shape.join(', ')}</p> : null}
        <Paid turns={turns} />
        {node && turns.length ? <Rewind block={id} turn={turns.at(-1)!} /> : null}
      </div>
    </>
  )
}

const shown = (value: Json): string => (typeof value === 'string' ? value : JSON.stringify(value))

function shapeOf(params: JsonObject | undefined): string[] | null {
  const schema = params?.output_schema
  const properties = isObject(schema) ? schema.properties : null
  return isObject(properties) ? Object.keys(properties) : null
}

/** One bar for each turn, in proportion: what was read in grey, what was written in ink. */
function Paid({ turns }: { turns: readonly Turn[] }): ReactElement | null {
  const used = turns.filter((turn) => turn.input + turn.output > 0)
  if (!used.length) return null
  const most = Math.max(...used.map((turn) => turn.input + turn.output))
  const sum = (of: (turn: Turn) => number): number => used.reduce((all, turn) => all + of(turn), 0)
  const priced = used.some((turn) => turn.step.cost !== null)
  return (
    <section aria-label="Paid so far">
      <div className="wsheet__line">
        <h4 className="wsheet__label">Paid so far</h4>
        <span className="wsheet__gap" />
        <b>{priced ? money(sum((turn) => turn.step.cost ?? 0)) : 'no price known'}</b>
      </div>
      <ul className="paid">
        {used.map((turn) => (
          <li key={turn.n}>
            <span>Turn {turn.n}</span>
            <span className="paid__bar" title={`${turn.input} in, ${turn.output} out`}>
              <i style={{ width: `${(turn.input / most) * 100}%` }} />
              <i data-out style={{ width: `${(turn.output / most) * 100}%` }} />
            </span>
            <span className="paid__cost">{turn.step.cost === null ? '' : money(turn.step.cost)}</span>
          </li>
        ))}
      </ul>
      <p className="paid__sum">
        <i /> {sum((turn) => turn.input).toLocaleString('en')} in <i data-out />{' '}
        {sum((turn) => turn.output).toLocaleString('en')} out
      </p>
    </section>
  )
}

const money = (cost: number): string => `$${cost.toFixed(4)}`

/** Go back to a turn: beside the Tape, where it can be changed and continued as a new run. */
function Rewind({ block, turn }: { block: string; turn: Turn }): ReactElement {
  const ended = useStore(runStore, (state) => isEnded(state.head.status))
  return (
    <section className="rewindbox" aria-label="Rewind">
      <h4>
        <Icon name="undo" size={14} /> Rewind
      </h4>
      <p>
        Change a word, a result or an answer of a turn and continue from there, as a new run. Earlier calls are kept and
        not paid again{ended ? '' : '; this run continues as well'}.
      </p>
      <p>
        <Button data-testid="rewind-turn" onClick={() => openRewind(block, turn)}>
          {`Rewind to turn ${turn.n}`}
        </Button>
      </p>
    </section>
  )
}
