// The turn at the playhead in both futures: what the model wrote, what it called, what a person answered, and what came back.

import { useMemo, type ReactElement } from 'react'
import { useStore } from 'zustand'
import type { Json } from '../../api/schemas'
import { isObject } from '../../net/json'
import { render } from '../../refs/preview'
import type { RunFold } from '../../run'
import { argsText, bodyOf, isRefused, type Call, type Turn } from '../../run/talk'
import { runStore } from '../../state/live'
import { uiStore } from '../../state/ui'
import { momentOf, turnsOf } from './rewind'

export function BothTurns({ before }: { before: RunFold }): ReactElement | null {
  const view = useStore(runStore, (s) => s.view)
  const block = useStore(uiStore, (s) => (s.selection.blocks.length === 1 ? s.selection.blocks[0]! : null))
  const moment = useMemo(() => momentOf(view, block), [view, block])
  const was = useMemo(() => (moment ? turnsOf(before, moment.node.key) : []), [before, moment])
  const now = moment?.turn
  if (!now) return null
  return (
    <div className="bothturns" role="group" aria-label="The turn at this moment" data-testid="both-turns">
      <OneTurn title={`Turn ${now.n} before`} when="before" turn={was[now.n - 1]} />
      <OneTurn title={`Turn ${now.n} now`} when="now" turn={now} />
    </div>
  )
}

function OneTurn({ title, when, turn }: { title: string; when: string; turn: Turn | undefined }): ReactElement {
  const said = turn?.said || (turn && !turn.calls.length ? answerOf(turn.step.output) : '')
  return (
    <div className="bothturns__one" data-when={when}>
      <h3>{title}</h3>
      {turn ? (
        <>
          {said ? <p>{said}</p> : turn.step.to === null ? <p className="quiet">Thinking</p> : null}
          {turn.calls.map((call) => (
            <p key={call.id}>
              <b>{call.name}</b> {argsText(call.args)} <span className="quiet">{endOf(call)}</span>
            </p>
          ))}
        </>
      ) : (
        <p className="quiet">It did not come to this turn.</p>
      )}
    </div>
  )
}

const SHOWN = 80

function answerOf(output: Json | undefined): string {
  if (!isObject(output)) return ''
  return render(output.content ?? output.output ?? output.text)
}

/** What a person answered, and what came back. */
function endOf(call: Call): string {
  if (isRefused(call)) return 'refused'
  const { approval, step } = call
  if (approval && approval.to === null) return 'a person is asked'
  const back = step?.output === undefined ? '' : render(bodyOf(step.output))
  return [approval ? 'allowed' : '', back.length > SHOWN ? `${back.slice(0, SHOWN)}…` : back].filter(Boolean).join(', ')
}
