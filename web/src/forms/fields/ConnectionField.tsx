// The name of a stored connection: one of those there are. What is not there stays as it is written.

import type { ReactElement } from 'react'
import { connections } from '../../net/connections'
import { useData } from '../../ui/useData'
import { Link } from '../../ui/navigation'
import { sentence } from '../../ui/words'
import type { ControlProps } from './control'
import { useFieldScope } from './scope'

export function ConnectionField({ value, onChange, ids, path }: ControlProps): ReactElement {
  const { readonly } = useFieldScope()
  const stored = useData(connections.list, [])
  const name = typeof value === 'string' ? value : ''
  const all = stored.value?.connections ?? []
  const chosen = all.find((each) => each.name === name)
  const missing = name !== '' && !chosen && stored.value !== null
  return (
    <>
      <select
        id={ids.control}
        data-testid={`field-${path}`}
        disabled={readonly}
        value={name}
        aria-describedby={ids.describedBy}
        aria-invalid={ids.invalid || missing || undefined}
        onChange={(event) => onChange(event.target.value || undefined)}
      >
        <option value="">None</option>
        {name === '' || chosen ? null : <option value={name}>{missing ? `${name} (not there)` : name}</option>}
        {all.map((each) => (
          <option key={each.name} value={each.name}>
            {each.name}
          </option>
        ))}
      </select>
      {chosen?.state === 'ready' ? <p className="fld__about">Sent only to {chosen.hosts.join(', ')}</p> : null}
      {chosen && chosen.state !== 'ready' ? (
        <p className="ref__wrong">
          {chosen.state === 'unreadable' ? 'This server cannot open it.' : 'It needs a sign-in.'}{' '}
          <Link to="/settings">Settings</Link>
        </p>
      ) : null}
      {missing ? <p className="ref__wrong">No connection has this name.</p> : null}
      {stored.error ? <p className="ref__wrong">{sentence(stored.error.message)}</p> : null}
      {!name && stored.value?.connections.length === 0 ? (
        <p className="fld__about">
          There is no connection yet. An administrator adds them in <Link to="/settings">Settings</Link>.
        </p>
      ) : null}
    </>
  )
}
