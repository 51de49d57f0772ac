// When a schedule runs: one of the usual ways with its few fields, or a cron expression as text. The document has the expression.

import { useState, type ReactElement } from 'react'
import { DAYS, ordinal } from './cron'
import {
  byWeek,
  HOUR_STEPS,
  MINUTE_STEPS,
  planOf,
  PLAN_WORDS,
  readPlan,
  writePlan,
  type Plan,
  type PlanKind,
} from './plan'
import './triggers.css'

interface CronFieldProps {
  id: string
  testId: string
  value: string
  onChange: (expression: string) => void
  readonly?: boolean
  invalid?: boolean
  describedBy?: string | undefined
  /** What an expression may be, for those who write one. */
  about?: string | undefined
}

export function CronField({
  id,
  testId,
  value,
  onChange,
  readonly = false,
  invalid = false,
  describedBy,
  about = 'Minute, hour, day of the month, month, day of the week.',
}: CronFieldProps): ReactElement {
  const [isCustom, setCustom] = useState(false)
  // Weekly on all five weekdays stays weekly while it is edited.
  const [edited, setEdited] = useState<{ text: string; plan: Plan } | null>(null)
  const plan = edited?.text === value ? edited.plan : readPlan(value)
  const kind = isCustom || (plan === null && value.trim() !== '') ? 'custom' : (plan?.kind ?? '')
  const put = (next: Plan): void => {
    const text = writePlan(next)
    setEdited({ text, plan: next })
    if (text !== value) onChange(text)
  }
  const describe = { 'aria-invalid': invalid || undefined, 'aria-describedby': describedBy }
  return (
    <div className="plan" data-testid={`${testId}-plan`}>
      <select
        id={id}
        data-testid={`${testId}-kind`}
        value={kind}
        disabled={readonly}
        {...(kind === 'custom' ? {} : describe)}
        onChange={(event) => {
          const next = event.target.value
          setCustom(next === 'custom')
          if (next !== 'custom') put(planOf(next as PlanKind, plan))
        }}
      >
        {kind === '' ? <option value="">Choose when</option> : null}
        {Object.entries(PLAN_WORDS).map(([each, words]) => (
          <option key={each} value={each}>
            {words}
          </option>
        ))}
        <option value="custom">Custom (cron expression)</option>
      </select>
      {kind === 'custom' ? (
        <>
          <input
            type="text"
            className="mono"
            aria-label="Cron expression"
            data-testid={testId}
            value={value}
            placeholder="0 9 * * MON-FRI"
            readOnly={readonly}
            spellCheck={false}
            autoComplete="off"
            aria-invalid={invalid || undefined}
            aria-describedby={`${describedBy ?? ''} ${id}-cron`.trim()}
            onChange={(event) => onChange(event.target.value)}
          />
          <p className="fld__about" id={`${id}-cron`}>
            {about}
          </p>
        </>
      ) : plan ? (
        <fieldset className="plan__parts" disabled={readonly} aria-label={PLAN_WORDS[plan.kind]}>
          <Parts plan={plan} testId={testId} onChange={put} />
        </fieldset>
      ) : null}
    </div>
  )
}

function Parts({
  plan,
  testId,
  onChange,
}: {
  plan: Plan
  testId: string
  onChange: (plan: Plan) => void
}): ReactElement {
  const steps = (label: string, all: readonly number[], every: number, put: (every: number) => void): ReactElement => (
    <label>
      Every{' '}
      <select
        aria-label={`Every how many ${label}`}
        data-testid={`${testId}-every`}
        value={every}
        onChange={(event) => put(Number(event.target.value))}
      >
        {all.map((n) => (
          <option key={n}>{n}</option>
        ))}
      </select>{' '}
      {label}
    </label>
  )
  if (plan.kind === 'minutes')
    return steps('minutes', MINUTE_STEPS, plan.every, (every) => onChange({ ...plan, every }))
  if (plan.kind === 'hours') {
    return (
      <>
        {steps('hours', HOUR_STEPS, plan.every, (every) => onChange({ ...plan, every }))}
        <label>
          at minute
          <input
            type="number"
            data-testid={`${testId}-minute`}
            min={0}
            max={59}
            value={plan.minute}
            onChange={(event) =>
              onChange({ ...plan, minute: Math.max(0, Math.min(59, Math.floor(Number(event.target.value)) || 0)) })
            }
          />
        </label>
      </>
    )
  }
  return (
    <>
      {plan.kind === 'weekly' ? <Days days={plan.days} onChange={(days) => onChange({ ...plan, days })} /> : null}
      {plan.kind === 'monthly' ? (
        <label>
          on the
          <select
            data-testid={`${testId}-date`}
            value={plan.date}
            onChange={(event) =>
              onChange({ ...plan, date: event.target.value === 'L' ? 'L' : Number(event.target.value) })
            }
          >
            {Array.from({ length: 31 }, (_, i) => (
              <option key={i} value={i + 1}>
                {ordinal(i + 1)}
              </option>
            ))}
            <option value="L">last day</option>
          </select>
        </label>
      ) : null}
      <label>
        at{' '}
        <input
          type="time"
          data-testid={`${testId}-time`}
          value={plan.at}
          required
          onChange={(event) => event.target.value && onChange({ ...plan, at: event.target.value })}
        />
      </label>
      {plan.kind === 'monthly' && plan.date !== 'L' && plan.date > 28 ? (
        <p className="quiet plan__note">Months without this day are skipped.</p>
      ) : null}
    </>
  )
}

const WEEK = DAYS.map((_, n) => n).sort(byWeek)

function Days({ days, onChange }: { days: readonly number[]; onChange: (days: number[]) => void }): ReactElement {
  return (
    <span className="plan__days" role="group" aria-label="Days of the week">
      {WEEK.map((n) => {
        const on = days.includes(n)
        return (
          <button
            key={n}
            type="button"
            aria-pressed={on}
            aria-label={DAYS[n]}
            aria-disabled={(on && days.length === 1) || undefined}
            title={on && days.length === 1 ? 'At least one day' : DAYS[n]}
            onClick={() =>
              on ? days.length > 1 && onChange(days.filter((each) => each !== n)) : onChange([...days, n])
            }
          >
            {DAYS[n]!.slice(0, 2)}
          </button>
        )
      })}
    </span>
  )
}
