// A question somebody is asked: what it is about, a form made from its schema, and buttons named by the workflow.

import { useId, useRef, useState, type ReactElement } from 'react'
import { announce } from '../a11y'
import { api, ApiError } from '../net/api'
import type { Json, WaitView } from '../net/types'
import { Button } from '../ui/Button'
import { defaultsOf, fieldsOf, readTyped, type FormField, type Typed } from '../panels/fields/form'
import { errorsOf, isOurs } from './answer'
import { messageOf, wordsOf } from '../ui/words'
import { Readable } from './parts'
import { dateTime } from '../ui/time'
import './answer.css'

export interface AnswerFormProps {
  wait: WaitView
  /** Why nobody can answer now, such as in a replay. */
  why?: string | null
  /** The wait as it is after the answer, also when somebody else was first. */
  onDone: (wait: WaitView, mine: boolean) => void
}

const BY_KEY = 'weft-by'

export function AnswerForm({ wait, why, onDone }: AnswerFormProps): ReactElement {
  const fields = fieldsOf(wait.schema)
  const [typed, setTyped] = useState<Typed>(() => defaultsOf(fields))
  const [by, setBy] = useState(rememberedName)
  const [errors, setErrors] = useState<Record<string, string>>({})
  const [trouble, setTrouble] = useState('')
  const [sending, setSending] = useState<string | null>(null)
  const id = useId()
  /** An answer was sent and nobody knows whether it was taken: the one that counts may be ours. */
  const unanswered = useRef(false)
  const actions: (string | null)[] = wait.actions.length ? wait.actions : [null]

  const send = async (action: string | null): Promise<void> => {
    if (sending !== null) return
    const { values, errors } = readTyped(fields, typed)
    setErrors(errors)
    setTrouble('')
    const wrong = Object.keys(errors)[0]
    if (wrong !== undefined) return void document.getElementById(`${id}${wrong}`)?.focus()
    setSending(action ?? '')
    rememberName(by)
    try {
      const taken = await api.answer(wait.link ?? '', action, values, by.trim() || undefined)
      announce(`${action ? wordsOf(action) : 'Answer'} recorded`)
      onDone(taken, true)
    } catch (error) {
      const over = error instanceof ApiError && error.status === 409 ? settled(wait, error) : null
      if (over) return onDone(over, unanswered.current && isOurs(over, action, values, by.trim()))
      if (error instanceof ApiError && (error.status === 0 || error.status >= 500)) unanswered.current = true
      const { byField, other } = errorsOf(error, fields)
      setErrors(byField)
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
    <form className="answer" onSubmit={(event) => (event.preventDefault(), void send(actions[0]!))} noValidate>
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
      {fields.map((field) => (
        <Field
          key={field.name}
          id={`${id}${field.name}`}
          field={field}
          value={typed[field.name] ?? ''}
          error={errors[field.name]}
          onChange={(value) => setTyped({ ...typed, [field.name]: value })}
        />
      ))}
      <div className="answer__field">
        <label htmlFor={`${id}by`}>
          Your name <span className="quiet">(optional)</span>
        </label>
        <input
          id={`${id}by`}
          type="text"
          autoComplete="name"
          maxLength={200}
          value={by}
          onChange={(event) => setBy(event.target.value)}
        />
      </div>
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

function Field({
  id,
  field,
  value,
  error,
  onChange,
}: {
  id: string
  field: FormField
  value: string
  error: string | undefined
  onChange: (value: string) => void
}): ReactElement {
  const { kind, schema, title, required } = field
  const note = error ?? schema.description
  const common = {
    id,
    'aria-invalid': error ? true : undefined,
    'aria-describedby': note ? `${id}-note` : undefined,
    'aria-required': required || undefined,
  }
  const change = (event: { target: { value: string } }): void => onChange(event.target.value)
  const below = note ? (
    <small id={`${id}-note`} className={error ? 'answer__error' : 'quiet'}>
      {note}
    </small>
  ) : null
  if (kind === 'boolean') {
    return (
      <div className="answer__field">
        <label className="answer__check">
          <input
            {...common}
            type="checkbox"
            checked={value === 'true'}
            onChange={(event) => onChange(event.target.checked ? 'true' : '')}
          />
          {title}
        </label>
        {below}
      </div>
    )
  }
  return (
    <div className="answer__field">
      <label htmlFor={id}>
        {title}
        {required ? null : <span className="quiet"> (optional)</span>}
      </label>
      {kind === 'enum' ? (
        <select {...common} value={value} onChange={change}>
          <option value="" />
          {(schema.enum ?? []).map((choice) => (
            <option key={JSON.stringify(choice)} value={JSON.stringify(choice)}>
              {typeof choice === 'string' ? choice : JSON.stringify(choice)}
            </option>
          ))}
        </select>
      ) : kind === 'long' || kind === 'json' ? (
        <textarea
          {...common}
          rows={kind === 'json' ? 5 : 4}
          className={kind === 'json' ? 'mono' : undefined}
          spellCheck={kind === 'long'}
          placeholder={kind === 'json' ? 'JSON' : undefined}
          value={value}
          onChange={change}
        />
      ) : (
        <input
          {...common}
          value={value}
          onChange={change}
          maxLength={schema.maxLength}
          type={kind === 'string' ? (INPUT_TYPES[schema.format ?? ''] ?? 'text') : 'text'}
          inputMode={kind === 'integer' ? 'numeric' : kind === 'number' ? 'decimal' : undefined}
        />
      )}
      {below}
    </div>
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
        {wait.answered_by ? ` by ${wait.answered_by}` : wait.status === 'answered' ? '' : ''}
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

const INPUT_TYPES: Record<string, string> = { email: 'email', uri: 'url', date: 'date', time: 'time' }

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
