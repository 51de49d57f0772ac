// Questions that wait for a person come first, as tickets that are answered in place: the stub has the buttons and the deadline, and
// slides off when the answer is recorded. A question with fields that must be filled in is answered on its own page.

import { useState, type ReactElement } from 'react'
import { announce } from '../../a11y'
import { api, ApiError } from '../../net/api'
import type { WaitView } from '../../api/types'
import { Ago } from '../../ui/Ago'
import { Button } from '../../ui/Button'
import { Icon } from '../../ui/icons'
import { Link, navigate } from '../../ui/navigation'
import { useMayNot } from '../../ui/rights'
import { toast } from '../../ui/Toast'
import { messageOf, wordsOf } from '../../ui/words'
import { titleOf, tooLate } from '../answer'

const SHOWN = 2
const SLIDE_MS = 160
const ACTIONS_MAX = 2

const idOf = (wait: WaitView): string => `${wait.run} ${wait.id}`

export function Tickets({ waits, onDone }: { waits: readonly WaitView[]; onDone: () => void }): ReactElement | null {
  const [gone, setGone] = useState<ReadonlySet<string>>(new Set())
  const open = waits.filter((wait) => !gone.has(idOf(wait)))
  if (!open.length) return null
  const rest = open.length - SHOWN
  return (
    <section aria-labelledby="home-waits" className="tickets">
      <div className="home__head">
        <h2 id="home-waits">Waiting for you</h2>
        <span className="count">{open.length}</span>
        <span className="home__fill" />
        {rest > 0 ? <Link to="/approvals">{rest} more</Link> : null}
      </div>
      <ul className="tickets__list">
        {open.slice(0, SHOWN).map((wait) => (
          <Ticket
            key={idOf(wait)}
            wait={wait}
            onGone={() => {
              setGone((before) => new Set(before).add(idOf(wait)))
              onDone()
            }}
          />
        ))}
      </ul>
    </section>
  )
}

function Ticket({ wait, onGone }: { wait: WaitView; onGone: () => void }): ReactElement {
  const mayNot = useMayNot('approver')
  const [sending, setSending] = useState<string | null>(null)
  const [answered, setAnswered] = useState(false)
  const { actions } = wait
  const mustFill = (wait.schema?.required ?? []).length > 0
  const inPlace = Boolean(wait.link) && !mustFill && actions.length > 0 && actions.length <= ACTIONS_MAX
  const there = `/approvals?wait=${encodeURIComponent(idOf(wait))}`
  const leave = (): void => {
    setAnswered(true)
    const still = matchMedia('(prefers-reduced-motion: reduce)').matches
    setTimeout(onGone, still ? 0 : SLIDE_MS)
  }
  const send = async (action: string): Promise<void> => {
    if (sending !== null) return
    setSending(action)
    try {
      await api.answer(wait, action, {})
      announce(`${wordsOf(action)} recorded`)
      leave()
    } catch (error) {
      setSending(null)
      const over = error instanceof ApiError && error.status === 409
      toast(over ? tooLate({ ...wait, status: 'answered' }) : messageOf(error), over ? 'wait' : 'err')
      if (over) leave()
    }
  }
  const text = ['text', 'description', 'message']
    .map((name) => wait.request[name])
    .find((each) => typeof each === 'string')
  return (
    <li className="ticket" data-testid={`ticket-${wait.id}`} data-answered={answered || undefined}>
      <div className="ticket__main">
        <p className="ticket__who">
          <Icon name="waiting" size={13} />
          <Link to={`/runs/${wait.run}?block=${encodeURIComponent(wait.block)}`}>{wait.workflow}</Link>, asked{' '}
          <Ago at={wait.opened_at_ms} />
        </p>
        <Link className="ticket__title" to={there}>
          {titleOf(wait)}
        </Link>
        <p className="ticket__text">{typeof text === 'string' && text ? text : wait.label || wait.block}</p>
      </div>
      <div className="ticket__stub">
        <div className="ticket__actions">
          {inPlace ? (
            actions.map((action, n) => (
              <Button
                key={action}
                kind={n === 0 ? 'primary' : 'plain'}
                changes
                why={mayNot ?? (sending === null ? null : 'Sending')}
                onClick={() => void send(action)}
              >
                {wordsOf(action)}
              </Button>
            ))
          ) : (
            <Button kind="primary" onClick={() => navigate(there)}>
              {wait.link ? 'Answer' : 'Look'}
            </Button>
          )}
        </div>
        <p className="ticket__until">
          {wait.expires_at_ms ? (
            <>
              Expires <Ago at={wait.expires_at_ms} to />
            </>
          ) : (
            'No deadline'
          )}
        </p>
      </div>
    </li>
  )
}
