// One turn of a talk: the text of the model, and each call as a row that unfolds to what was asked and what came back. The question
// to a person stands where it was asked.

import { useState, type ReactElement } from 'react'
import { isObject } from '../../net/json'
import type { Json, JsonObject } from '../../api/schemas'
import type { NodeState } from '../../run'
import { Icon } from '../../ui/icons'
import { durationText } from '../../ui/time'
import { render } from '../../refs/preview'
import { Approval } from './Approval'
import { brief } from '../../run/difference'
import { argsText, isRefused, type Call, type Turn } from '../../run/talk'

export function TurnRow({ id, node, turn }: { id: string; node: NodeState; turn: Turn }): ReactElement {
  const said = turn.said || (turn.step.status === 'running' ? 'Thinking' : '')
  return (
    <div className="talk__row" data-testid={`turn-${turn.n}`}>
      <span className="talk__who">Turn {turn.n}</span>
      <div className="talk__turn">
        {said ? <p className="talk__said">{said}</p> : null}
        {turn.calls.map((call) =>
          call.approval && (call.approval.status === 'waiting' || call.approval.status === 'running') ? (
            <Approval key={call.id} id={id} node={node} call={call} reason={turn.said} />
          ) : (
            <CallRow key={call.id} call={call} />
          ),
        )}
      </div>
    </div>
  )
}

function CallRow({ call }: { call: Call }): ReactElement {
  const [open, setOpen] = useState(false)
  const { step } = call
  const refused = isRefused(call)
  const failed = refused || step?.status === 'failed'
  const going = !refused && (step === null || step.status === 'running' || step.status === 'waiting')
  const took = step && step.endedAt !== null ? durationText(step.endedAt - step.startedAt) : ''
  const tone = failed ? 'err' : going ? 'run' : 'ok'
  return (
    <div className="call" data-testid={`call-${call.name}`}>
      <button type="button" className="call__head" aria-expanded={open} onClick={() => setOpen(!open)}>
        <Icon name={open ? 'down' : 'chevron'} size={12} />
        <b>{call.name}</b>
        <span className="call__args">{argsText(call.args)}</span>
        <span className="call__mark" data-tone={tone}>
          <Icon
            name={failed ? 'failed' : going ? 'running' : 'succeeded'}
            size={13}
            label={failed ? 'failed' : going ? 'running' : 'succeeded'}
          />
        </span>
        <span className="call__took">{refused ? 'refused' : took}</span>
      </button>
      {open ? (
        <div className="call__body" tabIndex={0} role="group" aria-label={`Call of ${call.name}`}>
          <Part title="Asked" value={call.args} />
          {refused ? (
            <Part title="Refused" value={{ reason: reasonOf(call) }} />
          ) : step?.error ? (
            <Part title="Error" value={{ message: step.error.message, code: step.error.code }} />
          ) : step?.output !== undefined ? (
            <Part title="Came back" value={step.output} />
          ) : (
            <p className="wsheet__help">
              {going ? 'Nothing has come back yet.' : 'The answer is too large for the log.'}
            </p>
          )}
        </div>
      ) : null}
    </div>
  )
}

const reasonOf = (call: Call): string => {
  const answer = call.approval?.output
  const reason = isObject(answer) ? answer.reason : null
  return reason ? render(reason as Json) : 'without a reason'
}

function Part({ title, value }: { title: string; value: Json }): ReactElement {
  const fields = isObject(value) && !Array.isArray(value) ? Object.entries(value as JsonObject) : null
  return (
    <dl className="call__part">
      <dt className="call__title">{title}</dt>
      <dd />
      {fields?.length ? (
        fields.map(([name, part]) => (
          <div key={name} className="call__line">
            <dt>{name}</dt>
            <dd>
              {typeof part === 'string'
                ? part
                : isObject(part) || Array.isArray(part)
                  ? JSON.stringify(part, null, 1)
                  : brief(part)}
            </dd>
          </div>
        ))
      ) : (
        <div className="call__line">
          <dt />
          <dd>{fields ? 'nothing' : render(value)}</dd>
        </div>
      )}
    </dl>
  )
}
