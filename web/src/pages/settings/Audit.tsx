// Who changed what, newest first, by person, action and time; and whether each row is as it was written. For admins.

import { useState, type ReactElement } from 'react'
import type { AuditRow, Verified } from '../../api/schemas'
import { people, type AuditWanted } from '../../net/people'
import { Ago } from '../../ui/Ago'
import { Button } from '../../ui/Button'
import { EmptyState } from '../../ui/EmptyState'
import { useData } from '../../ui/useData'
import { messageOf } from '../../ui/words'
import { ListState } from '../parts'
import { Refused, Table } from './ListPage'

const DAY_MS = 24 * 3_600_000
const TIMES = [
  ['', 'Any time'],
  ['1', 'Last day'],
  ['7', 'Last 7 days'],
  ['30', 'Last 30 days'],
] as const

/** `open`: a server without sign-in, which does not know who changes something. */
export function Audit({ open }: { open: boolean }): ReactElement {
  const [actor, setActor] = useState('')
  const [text, setText] = useState('')
  const [days, setDays] = useState('')
  const [wanted, setWanted] = useState<AuditWanted>({})
  const first = useData(() => people.audit(wanted), [wanted])
  return (
    <section aria-labelledby="set-audit" data-testid="audit">
      <h2 id="set-audit">Audit</h2>
      <p className="quiet">
        Each change that was made through the API, sign-ins, and sign-ins that were refused. Who started a run is in its
        events.
      </p>
      <form
        className="settings__session settings__add"
        onSubmit={(event) => {
          event.preventDefault()
          setWanted({
            actor: actor.trim() || undefined,
            text: text.trim() || undefined,
            since: days === '' ? undefined : Date.now() - Number(days) * DAY_MS,
          })
        }}
      >
        <input
          type="text"
          aria-label="Person or token"
          placeholder="Person, such as user:ada"
          value={actor}
          maxLength={200}
          onChange={(event) => setActor(event.target.value)}
        />
        <input
          type="text"
          aria-label="Action"
          placeholder="Action, such as PUT or /api/secrets"
          value={text}
          maxLength={200}
          onChange={(event) => setText(event.target.value)}
        />
        <select aria-label="Time" value={days} onChange={(event) => setDays(event.target.value)}>
          {TIMES.map(([value, label]) => (
            <option key={value} value={value}>
              {label}
            </option>
          ))}
        </select>
        <Button type="submit">Filter</Button>
      </form>
      {first.value?.rows.length ? (
        <Rows key={first.value.rows[0]?.n} first={first.value.rows} next={first.value.next} wanted={wanted} />
      ) : (
        <ListState data={first} empty>
          <EmptyState title={Object.values(wanted).some(Boolean) ? 'No row matches' : 'Nothing is recorded yet'}>
            {open ? (
              <p>
                This server has no sign-in (<code>WEFT_TOKEN=off</code>), so changes are not recorded.
              </p>
            ) : null}
          </EmptyState>
        </ListState>
      )}
      <Verification />
    </section>
  )
}

interface RowsProps {
  first: readonly AuditRow[]
  next: number | null
  wanted: AuditWanted
}

function Rows({ first, next, wanted }: RowsProps): ReactElement {
  const [more, setMore] = useState<{ rows: readonly AuditRow[]; next: number | null }>({ rows: [], next })
  const [error, setError] = useState<string | null>(null)
  const load = (before: number): void => {
    setError(null)
    people.audit(wanted, before).then(
      (page) => setMore({ rows: [...more.rows, ...page.rows], next: page.next }),
      (refused: unknown) => setError(messageOf(refused)),
    )
  }
  return (
    <>
      <Table
        label="Audit"
        rows={[...first, ...more.rows]}
        keyOf={({ n }) => n}
        columns={[
          {
            name: 'Who',
            cell: ({ actor, via }) => (
              <>
                <code>{actor}</code>
                <span className="label"> {via}</span>
              </>
            ),
          },
          { name: 'When', cell: ({ at_ms: at }) => <Ago at={at} /> },
          {
            name: 'What',
            className: 'settings__act',
            cell: ({ action, object, detail }) => (
              <>
                <code>{`${action.split(' ')[0]} ${object}`}</code>
                {detail === '' ? null : <span className="label"> {detail}</span>}
              </>
            ),
          },
        ]}
      />
      <Refused error={error} />
      {more.next === null ? null : <Button onClick={() => load(more.next as number)}>Show older</Button>}
    </>
  )
}

function Verification(): ReactElement {
  const [state, setState] = useState<Verified | 'checking' | string | null>(null)
  const check = (): void => {
    setState('checking')
    people.verifyAudit().then(setState, (refused: unknown) => setState(messageOf(refused)))
  }
  return (
    <div className="settings__session settings__add">
      <Button onClick={check} why={state === 'checking' ? 'The rows are being checked' : null}>
        Check all rows
      </Button>
      <span role="status">
        {state === null ? null : typeof state === 'string' ? (
          state === 'checking' ? (
            'Checking'
          ) : (
            state
          )
        ) : state.valid ? (
          <span className="status" data-tone="ok">{`${state.rows} rows, as they were written`}</span>
        ) : (
          <span className="status" data-tone="err">{`Row ${state.broken_at ?? 1} is not as it was written`}</span>
        )}
      </span>
    </div>
  )
}
