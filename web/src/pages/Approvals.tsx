// The inbox: what waits for a person, oldest first, to be decided in place; below it what was decided, and by whom.

import { useEffect, useState, type ReactElement } from 'react'
import { api } from '../net/api'
import type { WaitView } from '../net/types'
import { Link, useLocation } from '../routes'
import TopBar from '../panels/shell/TopBar'
import { Button } from '../ui/Button'
import { EmptyState } from '../ui/EmptyState'
import { Icon } from '../ui/icons'
import { Status } from '../ui/status'
import { toast } from '../ui/Toast'
import { AnswerForm, Outcome } from './AnswerForm'
import { isForPeople, titleOf } from './answer'
import { Ago, ListState, Stale, usePolled } from './parts'
import './pages.css'
import './approvals.css'

const idOf = (wait: WaitView): string => `${wait.run} ${wait.id}`

export default function Approvals(): ReactElement {
  const { query } = useLocation()
  const data = usePolled(() => api.waits('all'), [], 4000)
  const [open, setOpen] = useState<string | null>(query.get('wait'))
  // Just decided here: stays where it was, with its outcome, until the page is left.
  const [settled, setSettled] = useState<ReadonlyMap<string, { wait: WaitView; mine: boolean }>>(new Map())
  const people = (data.value ?? []).filter(isForPeople)
  const waiting = people.filter((wait) => wait.status === 'pending' || settled.has(idOf(wait))).sort((a, b) => a.opened_at_ms - b.opened_at_ms)
  const decided = people.filter((wait) => wait.status !== 'pending' && !settled.has(idOf(wait))).sort((a, b) => (b.answered_at_ms ?? b.opened_at_ms) - (a.answered_at_ms ?? a.opened_at_ms))
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
        <Stale data={data} />
        {waiting.length ? (
          <ul className="waits">
            {waiting.map((wait) => (
              <Waiting
                key={idOf(wait)} wait={wait} open={shown === idOf(wait)} settled={settled.get(idOf(wait))} onToggle={(on) => setOpen(on ? idOf(wait) : '')}
                onDone={(now, mine) => {
                  setSettled(new Map(settled).set(idOf(wait), { wait: now, mine }))
                  if (!mine) toast('Somebody was first', 'wait')
                }}
              />
            ))}
          </ul>
        ) : (
          <ListState data={data} empty>
            <EmptyState icon="approval" title="Nobody is waiting for you">
              <p>Approval blocks ask here, and by the link in their message.</p>
              <Link className="button" to="/">Try the expense approval example</Link>
            </EmptyState>
          </ListState>
        )}
        {decided.length ? <Decided waits={decided} /> : null}
      </main>
    </div>
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
  return (
    <li className="waits__card" data-testid={`wait-${wait.id}`} data-status={settled?.wait.status ?? wait.status}>
      <button type="button" className="waits__head" aria-expanded={open} onClick={() => onToggle(!open)}>
        <Icon name={settled ? 'succeeded' : 'waiting'} label={settled ? 'decided' : 'waiting'} />
        <span className="waits__title">{titleOf(wait)}</span>
        <span className="label"><Ago at={wait.opened_at_ms} /></span>
        <Icon name={open ? 'down' : 'chevron'} size={14} />
      </button>
      {open ? (
        <div className="waits__body">
          <p className="quiet">
            <Link to={`/runs/${wait.run}?block=${encodeURIComponent(wait.block)}`}>{wait.workflow}</Link>
            {` asks at ${wait.label}`}
            {wait.expires_at_ms && !settled ? <>, open until <Ago at={wait.expires_at_ms} to /></> : null}
          </p>
          {settled ? (
            <>
              {settled.mine ? null : <p className="notice" data-tone="wait" role="status">Somebody had decided before your answer came in. This is what counts:</p>}
              <Outcome wait={settled.wait} />
            </>
          ) : wait.link ? <AnswerForm wait={wait} onDone={onDone} /> : <p className="quiet">This server can not give out its link.</p>}
        </div>
      ) : null}
    </li>
  )
}

const FIRST = 20

function Decided({ waits }: { waits: readonly WaitView[] }): ReactElement {
  const [all, setAll] = useState(false)
  return (
    <section aria-labelledby="decided">
      <h2 id="decided">Decided</h2>
      <ul className="rows">
        {(all ? waits : waits.slice(0, FIRST)).map((wait) => (
          <li key={idOf(wait)} className="waits__decided">
            <Status status={wait.status} />
            <span className="waits__what"><Link to={`/runs/${wait.run}?block=${encodeURIComponent(wait.block)}`}>{titleOf(wait)}</Link><Outcome wait={wait} /></span>
          </li>
        ))}
      </ul>
      {waits.length > FIRST && !all ? <p className="waits__more"><Button onClick={() => setAll(true)}>Show all {waits.length}</Button></p> : null}
    </section>
  )
}
