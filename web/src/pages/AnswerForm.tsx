// A question of a run: what it is about, a form made from its schema, and buttons named by the workflow.

import { useEffect, useRef, useState, type ReactElement } from 'react'
import { announce } from '../a11y'
import { api, ApiError } from '../net/api'
import { people } from '../net/people'
import type { Json } from '../api/schemas'
import type { WaitView } from '../api/types'
import { Button } from '../ui/Button'
import { FieldShell } from '../forms/fields/FieldShell'
import { defaultsOf, fieldsOf, readTyped, type Typed } from '../forms/fields/form'
import { focusField, SchemaForm } from '../forms/fields/SchemaForm'
import { errorsOf, isOurs } from './answer'
import { messageOf, wordsOf } from '../ui/words'
import { Readable } from './parts'
import { dateTime } from '../ui/time'
import './answer.css'

export interface AnswerFormProps {
  wait: WaitView
  /** Why it cannot be answered now, such as in a replay. */
  why?: string | null
  /** The wait as it is after the answer; `mine` is false when another answer came first. */
  onDone: (wait: WaitView, mine: boolean) => void
}

const BY_KEY = 'weft-by'

export function AnswerForm({ wait, why, onDone }: AnswerFormProps): ReactElement {
  const fields = fieldsOf(wait.schema)
  const [typed, setTyped] = useState<Typed>(() => defaultsOf(fields))
  const [by, setBy] = useName()
  const { values, errors } = readTyped(fields, typed)
  /** What the server found wrong with the answer that was sent last, by field. */
  const [refused, setRefused] = useState<Record<string, string>>({})
  const [sent, setSent] = useState(false)
  const [trouble, setTrouble] = useState('')
  const [sending, setSending] = useState<string | null>(null)
  const element = useRef<HTMLFormElement>(null)
  /** An answer was sent and its outcome is unknown: the one that counts may be ours. */
  const unanswered = useRef(false)
  const actions: (string | null)[] = wait.actions.length ? wait.actions : [null]

  const send = async (action: string | null): Promise<void> => {
    if (sending !== null) return
    setSent(true)
    setTrouble('')
    const wrong = Object.keys(errors)[0]
    if (wrong !== undefined) return focusField(element.current, wrong)
    setRefused({})
    setSending(action ?? '')
    rememberName(by)
    try {
      const answered = await api.answer(wait, action, values, by.trim() || undefined)
      announce(`${action ? wordsOf(action) : 'Answer'} recorded`)
      onDone(answered, true)
    } catch (error) {
      const over = error instanceof ApiError && error.status === 409 ? settled(wait, error) : null
      if (over) return onDone(over, unanswered.current && isOurs(over, action, values, by.trim()))
      if (error instanceof ApiError && (error.status === 0 || error.status >= 500)) unanswered.current = true
      const { byField, other } = errorsOf(error, fields)
      setRefused(byField)
      setTrouble(other)
    } finally {
      setSending(null)
    }
  }

  const texts = ['text', 'description', 'message'].flatMap((name) =>
    typeof wait.request[name] === 'string' ? [wait.request[name]] : [],
  )
  const show = wait.request.show
  return (
    <form
      ref={element}
      className="answer"
      onSubmit={(event) => (event.preventDefault(), void send(actions[0]!))}
      noValidate
    >
      {texts.map((text) => (
        <p key={text} className="readable-text">
          {text}
        </p>
      ))}
      {show === undefined || show === null ? null : (
        <div className="answer__show">
          <Readable value={show} />
        </div>
      )}
      <SchemaForm
        fields={fields}
        typed={typed}
        onChange={(next) => {
          setTyped(next)
          setRefused(Object.fromEntries(Object.entries(refused).filter(([name]) => next[name] === typed[name])))
        }}
        errors={{ ...refused, ...errors }}
        sent={sent}
      />
      <FieldShell label="Your name">
        {(ids) => (
          <input
            id={ids.control}
            type="text"
            autoComplete="name"
            maxLength={200}
            value={by}
            onChange={(event) => setBy(event.target.value)}
          />
        )}
      </FieldShell>
      {trouble ? (
        <p className="notice" data-tone="err" role="alert">
          {trouble}
        </p>
      ) : null}
      <div className="answer__actions">
        {actions.map((action, i) => (
          <Button
            key={action ?? ''}
            kind={i === 0 ? 'primary' : 'plain'}
            changes
            why={why ?? (sending !== null ? 'Sending' : null)}
            onClick={() => void send(action)}
          >
            {sending === (action ?? '') ? 'Sending' : action ? wordsOf(action) : 'Send'}
          </Button>
        ))}
      </div>
    </form>
  )
}

/** What became of a wait: "approve by Ada, 21 Nov 2026". */
export function Outcome({ wait }: { wait: WaitView }): ReactElement {
  const answer =
    wait.response && typeof wait.response === 'object' && !Array.isArray(wait.response) ? wait.response : {}
  const { action, answered_by: _by, answered_at: _at, ...rest } = answer
  const words =
    wait.status === 'answered'
      ? typeof action === 'string'
        ? wordsOf(action)
        : 'Answered'
      : wait.status === 'expired'
        ? 'Expired without an answer'
        : 'Withdrawn because the run ended'
  return (
    <div className="outcome">
      <p>
        <b>{words}</b>
        {wait.answered_by ? ` by ${wait.answered_by}` : ''}
        {wait.answered_at_ms ? <span className="quiet">, {dateTime(wait.answered_at_ms)}</span> : null}
      </p>
      {Object.keys(rest).length ? <Readable value={rest as Json} /> : null}
    </div>
  )
}

/** The wait is over: the refusal says what became of it, and who was first, when, with what. null: it says nothing like that. */
function settled(wait: WaitView, error: ApiError): WaitView | null {
  const { wait_status, answered_by, answered_at_ms, answer } = error.problem as Partial<Record<string, unknown>>
  if (typeof wait_status !== 'string' || wait_status === 'pending') return null
  return {
    ...wait,
    status: wait_status as WaitView['status'],
    answered_by: (answered_by as string | null | undefined) ?? null,
    answered_at_ms: (answered_at_ms as number | null | undefined) ?? null,
    response: (answer as Json | undefined) ?? null,
  }
}

/** The name that was typed last, else that of the user who is signed in. */
function useName(): [string, (name: string) => void] {
  const [typed, setTyped] = useState<string | null>(() => rememberedName() || null)
  const [own, setOwn] = useState('')
  useEffect(() => {
    people.me().then(
      (me) => setOwn(me.user === null ? '' : me.name),
      () => undefined,
    )
  }, [])
  return [typed ?? own, setTyped]
}

function rememberedName(): string {
  try {
    return localStorage.getItem(BY_KEY) ?? ''
  } catch {
    return ''
  }
}

function rememberName(name: string): void {
  try {
    localStorage.setItem(BY_KEY, name)
  } catch (error) {
    console.debug(messageOf(error))
  }
}
