// One message and what came of it: while it runs from the run that is shown, then from the server.

import { useState, type ReactElement } from 'react'
import { useStore } from 'zustand'
import { api } from '../../net/api'
import { keepRun } from '../../net/backtests'
import { isObject } from '../../net/json'
import type { Json } from '../../api/schemas'
import type { RunView } from '../../api/types'
import { isEnded } from '../../run'
import { openRun, runStore } from '../../state/live'
import { Button } from '../../ui/Button'
import { Icon } from '../../ui/icons'
import { useReadOnly } from '../../ui/rights'
import { Status } from '../../ui/status'
import { toast } from '../../ui/Toast'
import { useData } from '../../ui/useData'
import type { Turn } from './talk'

export function TurnView({ turn, chat }: { turn: Turn; chat: boolean }): ReactElement {
  const shown = useStore(runStore, (s) => s.id === turn.run)
  const live = useStore(runStore, (s) => (s.id === turn.run && s.head.seq ? s.head.status : null))
  const stored = useData(() => api.run(turn.run), [turn.run, live !== null && isEnded(live)])
  const status = live ?? stored.value?.status ?? 'queued'
  const ended = isEnded(status)
  return (
    <li className="talk__turn" data-testid={`turn-${turn.run}`} data-status={status} data-shown={shown || undefined}>
      {chat ? (
        <p className="talk__mine">{messageOf(turn.input)}</p>
      ) : (
        <pre className="talk__event mono">{JSON.stringify(turn.input)}</pre>
      )}
      <Tools run={turn.run} view={stored.value} />
      {stored.error ? (
        <p className="talk__theirs" data-tone="err">
          {stored.error.message}
        </p>
      ) : ended ? (
        <Answer view={stored.value} />
      ) : shown ? (
        <Streaming />
      ) : null}
      <p className="talk__foot">
        <Status status={status} />
        {shown ? null : (
          <Button kind="bare" onClick={() => void openRun(turn.run)}>
            Show on the canvas
          </Button>
        )}
        {ended ? <Keep run={turn.run} /> : null}
      </p>
    </li>
  )
}

/** A turn becomes a test: the draft is replayed against it from then on. */
function Keep({ run }: { run: string }): ReactElement {
  const [done, setDone] = useState(false)
  const why = useReadOnly()
  const keep = async (): Promise<void> => {
    try {
      await keepRun(run)
      setDone(true)
    } catch (error) {
      toast(error instanceof Error ? error.message : String(error), 'err')
    }
  }
  return done ? (
    <span className="quiet">Kept as a test</span>
  ) : (
    <Button kind="bare" why={why} onClick={() => void keep()}>
      Keep as test
    </Button>
  )
}

function messageOf(input: Json): string {
  return isObject(input) && typeof input.message === 'string' ? input.message : JSON.stringify(input)
}

/** The tools that agents called, each on a line: as they are called, or as the output lists them. */
function Tools({ run, view }: { run: string; view: RunView | null }): ReactElement | null {
  const nodes = useStore(runStore, (s) => (s.id === run ? s.head.nodes : null))
  const calls =
    nodes !== null
      ? [...nodes.values()].flatMap((node) => node.steps.filter((step) => step.kind === 'tool'))
      : calledIn(view?.output).map((name) => ({ name, status: 'succeeded' as const }))
  if (!calls.length) return null
  return (
    <ul className="talk__tools">
      {calls.map((call, i) => (
        <li key={i} data-running={call.status === 'running' || undefined}>
          <Icon name="settings" size={12} /> {call.name}
        </li>
      ))}
    </ul>
  )
}

function calledIn(output: Json | undefined): string[] {
  const calls = isObject(output) && Array.isArray(output.tool_calls) ? output.tool_calls : []
  return calls.flatMap((call) => (isObject(call) && typeof call.tool === 'string' ? [call.tool] : []))
}

/** The answer that is being written, or a note that the run waits. */
function Streaming(): ReactElement | null {
  const text = useStore(runStore, (s) => [...s.live.values()].at(-1) ?? '')
  const waits = useStore(runStore, (s) => s.view.waits.size)
  if (waits) return <p className="talk__waits">Waits for an answer: the question is above the canvas.</p>
  return text ? (
    <p className="talk__theirs" aria-live="polite">
      {text}
      <span className="talk__caret" aria-hidden="true" />
    </p>
  ) : null
}

function Answer({ view }: { view: RunView | null }): ReactElement | null {
  if (!view || !isEnded(view.status)) return null
  if (view.error)
    return (
      <p className="talk__theirs" data-tone="err" role="alert">
        {view.error.message}
      </p>
    )
  return <p className="talk__theirs">{answerOf(view)}</p>
}

/** As a chat page shows it: the body of the response, the reply of the agent at the end, or the output. */
function answerOf(view: RunView): string {
  const { response, output } = view
  const said = isObject(response) && response.body !== undefined ? response.body : output
  const value = isObject(said) && 'content' in said && 'rounds' in said ? said.content : said
  if (value === null || value === undefined) return 'It ended without an answer.'
  return typeof value === 'string' ? value : JSON.stringify(value, null, 2)
}
