// The inbox: open approvals and forms, oldest first, answered in place; below them the answers, with names. A second tab lists
// the other waits of runs.

import { useEffect, useState, type ReactElement } from 'react'
import { api } from '../net/api'
import type { WaitKind, WaitView } from '../api/types'
import { Link, useLocation } from '../ui/navigation'
import TopBar from '../edit/shell/TopBar'
import { Button } from '../ui/Button'
import { EmptyState } from '../ui/EmptyState'
import { Icon } from '../ui/icons'
import { useMayNot } from '../ui/rights'
import { Status } from '../ui/status'
import { toast } from '../ui/Toast'
import { AnswerForm, Outcome } from './AnswerForm'
import { isForPeople } from '../edit/shell/waiting'
import { titleOf, tooLate } from './answer'
import { notifiedText } from './notified'
import type { Loaded } from '../ui/useData'
import { Ago } from '../ui/Ago'
import { ListState, Stale, usePolled } from './parts'
import { CopyLink, SendSignal } from './WaitActions'
import './pages.css'
import './approvals.css'

const idOf = (wait: WaitView): string => `${wait.run} ${wait.id}`

type Group = 'people' | 'others'
const DECIDED_MAX = 200

export default function Approvals(): ReactElement {
  const { query } = useLocation()
  const data = usePolled(() => api.waits('pending'), [], 4000)
  const past = usePolled(
    async () =>
      (await api.waits('all', undefined, 1000)).filter((wait) => wait.status !== 'pending' && isForPeople(wait)),
    [],
    15_000,
  )
  const [group, setGroup] = useState<Group>(query.get('show') === 'others' ? 'others' : 'people')
  const [open, setOpen] = useState<string | null>(query.get('wait'))
  // Just decided here: stays where it was, with its outcome, until the page is left.
  const [settled, setSettled] = useState<ReadonlyMap<string, { wait: WaitView; mine: boolean }>>(new Map())
  const pending = data.value ?? []
  const isOpen = new Set(pending.map(idOf))
  const answered = [...settled.values()].map(({ wait }) => wait).filter((wait) => !isOpen.has(idOf(wait)))
  const waiting = [...pending.filter(isForPeople), ...answered].sort((a, b) => a.opened_at_ms - b.opened_at_ms)
  const others = pending.filter((wait) => !isForPeople(wait)).sort((a, b) => a.opened_at_ms - b.opened_at_ms)
  const decided = (past.value ?? [])
    .filter((wait) => !settled.has(idOf(wait)))
    .sort((a, b) => (b.answered_at_ms ?? b.opened_at_ms) - (a.answered_at_ms ?? a.opened_at_ms))
    .slice(0, DECIDED_MAX)
  const count = waiting.filter((wait) => !settled.has(idOf(wait))).length
  const shown = open ?? (waiting.length ? idOf(waiting.find((wait) => !settled.has(idOf(wait))) ?? waiting[0]!) : null)
  useEffect(() => {
    document.title = count ? `(${count}) Approvals · weft` : 'Approvals · weft'
    return () => void (document.title = 'weft')
  }, [count])
  return (
    <div className="screen">
      <TopBar approvals={count} />
      <main className="page">
        <h1>Approvals</h1>
        <div className="filters" role="group" aria-label="Filter">
          <button type="button" className="pill" aria-pressed={group === 'people'} onClick={() => setGroup('people')}>
            Approvals and forms<span className="label">{count}</span>
          </button>
          <button type="button" className="pill" aria-pressed={group === 'others'} onClick={() => setGroup('others')}>
            Other waits<span className="label">{others.length}</span>
          </button>
        </div>
        <Stale data={data} />
        {group === 'others' ? (
          <Others waits={others} data={data} />
        ) : waiting.length ? (
          <ul className="waits">
            {waiting.map((wait) => (
              <Waiting
                key={idOf(wait)}
                wait={wait}
                open={shown === idOf(wait)}
                settled={settled.get(idOf(wait))}
                onToggle={(on) => setOpen(on ? idOf(wait) : '')}
                onDone={(now, mine) => {
                  setSettled((before) => new Map(before).set(idOf(wait), { wait: now, mine }))
                  if (!mine) toast(tooLate(now), 'wait')
                }}
              />
            ))}
          </ul>
        ) : (
          <ListState data={data} empty>
            <EmptyState icon="approval" title="No pending approvals">
              <p>Runs that wait for a decision appear here.</p>
              <Link className="button" to="/">
                Try the expense approval example
              </Link>
            </EmptyState>
          </ListState>
        )}
        {group === 'people' && decided.length ? <Decided waits={decided} /> : null}
      </main>
    </div>
  )
}

const KINDS: Record<WaitKind, string> = {
  approval: 'Approval',
  form: 'Form',
  attention: 'Lost attempt',
  webhook: 'Callback',
  signal: 'Signal',
  timer: 'Timer',
  child: 'Run',
}

const kindOf = (wait: WaitView): string => (wait.request.reason === 'code' ? 'Other code' : KINDS[wait.kind])

/** What runs wait for besides people: calls, signals, times, runs they started. */
function Others({ waits, data }: { waits: readonly WaitView[]; data: Loaded<WaitView[]> }): ReactElement {
  if (!waits.length)
    return (
      <ListState data={data} empty>
        <EmptyState title="No other waits">
          <p>Runs that wait for a callback, a signal, a timer or another run appear here.</p>
        </EmptyState>
      </ListState>
    )
  return (
    <ul className="rows waits__others">
      {waits.map((wait) => (
        <li key={idOf(wait)} data-testid={`wait-${wait.id}`} data-kind={wait.kind}>
          <span className="label waits__kind">{KINDS[wait.kind] ?? wait.kind}</span>
          <span className="waits__what">
            <Link to={`/runs/${wait.run}?block=${encodeURIComponent(wait.block)}`}>{wait.workflow}</Link>
            <span>
              {`, ${wait.label}`}
              {wait.kind === 'signal' && wait.name ? `, for ${wait.name}` : ''}
            </span>
            <span className="quiet">
              {' '}
              <Ago at={wait.opened_at_ms} />
              {wait.expires_at_ms ? (
                <>
                  , {wait.kind === 'timer' ? 'ends' : 'expires'} <Ago at={wait.expires_at_ms} to />
                </>
              ) : null}
            </span>
          </span>
          {wait.kind === 'webhook' && wait.link ? <CopyLink link={wait.link} what="URL" /> : null}
          {wait.kind === 'signal' && wait.name ? <SendSignal view={wait} /> : null}
        </li>
      ))}
    </ul>
  )
}

interface WaitingProps {
  wait: WaitView
  open: boolean
  settled: { wait: WaitView; mine: boolean } | undefined
  onToggle: (open: boolean) => void
  onDone: (wait: WaitView, mine: boolean) => void
}

function Waiting({ wait, open, settled, onToggle, onDone }: WaitingProps): ReactElement {
  const mayNot = useMayNot('approver')
  return (
    <li className="waits__card" data-testid={`wait-${wait.id}`} data-status={settled?.wait.status ?? wait.status}>
      <button type="button" className="waits__head" aria-expanded={open} onClick={() => onToggle(!open)}>
        <Icon name={settled ? 'succeeded' : 'waiting'} label={settled ? 'Answered' : 'Waiting'} />
        <span className="waits__title">{titleOf(wait)}</span>
        {wait.kind === 'approval' ? null : <span className="label">{kindOf(wait)}</span>}
        <span className="label">
          <Ago at={wait.opened_at_ms} />
        </span>
        <Icon name={open ? 'down' : 'chevron'} size={14} />
      </button>
      {open ? (
        <div className="waits__body">
          <p className="quiet">
            <Link to={`/runs/${wait.run}?block=${encodeURIComponent(wait.block)}`}>{wait.workflow}</Link>
            {`, ${wait.label}`}
            {wait.expires_at_ms && !settled ? (
              <>
                , expires <Ago at={wait.expires_at_ms} to />
              </>
            ) : null}
          </p>
          {wait.notifications
            ?.filter((each) => !each.reminder)
            .map((each, i) => (
              <p key={i} className={each.status === 'failed' ? 'finding' : 'quiet'} data-severity="error">
                {notifiedText(each)}
              </p>
            ))}
          {settled ? null : <Reminder wait={wait} />}
          {settled ? (
            <>
              {settled.mine ? null : (
                <p className="notice" data-tone="wait" role="status">
                  {tooLate(settled.wait)}. Recorded answer:
                </p>
              )}
              <Outcome wait={settled.wait} />
            </>
          ) : wait.link ? (
            <AnswerForm wait={wait} onDone={onDone} />
          ) : (
            <p className="quiet">{mayNot ?? 'This question is for other people.'}</p>
          )}
        </div>
      ) : null}
    </li>
  )
}

/** When those who were notified are notified again, or were. */
function Reminder({ wait }: { wait: WaitView }): ReactElement | null {
  const reminders = wait.notifications?.filter((each) => each.reminder) ?? []
  const failed = reminders.find((each) => each.status === 'failed')
  const sent = reminders.find((each) => each.status === 'sent')?.settled_at_ms
  const due = reminders.find((each) => each.status === 'pending')?.due_at_ms
  if (failed)
    return <p className="finding" data-severity="error">{`The reminder was not sent: ${failed.error ?? ''}`}</p>
  if (!sent && !due) return null
  return (
    <p className="quiet" data-testid="reminder">
      {sent ? 'A reminder was sent ' : 'A reminder is sent '}
      <Ago at={sent ?? due!} to={!sent} />
    </p>
  )
}

const FIRST = 20

function Decided({ waits }: { waits: readonly WaitView[] }): ReactElement {
  const [all, setAll] = useState(false)
  return (
    <section aria-labelledby="decided">
      <h2 id="decided">Answered</h2>
      <ul className="rows">
        {(all ? waits : waits.slice(0, FIRST)).map((wait) => (
          <li key={idOf(wait)} className="waits__decided">
            <Status status={wait.status} />
            <span className="waits__what">
              <Link to={`/runs/${wait.run}?block=${encodeURIComponent(wait.block)}`}>{titleOf(wait)}</Link>
              <Outcome wait={wait} />
            </span>
          </li>
        ))}
      </ul>
      {waits.length > FIRST && !all ? (
        <p className="waits__more">
          <Button onClick={() => setAll(true)}>Show all {waits.length}</Button>
        </p>
      ) : null}
    </section>
  )
}
