// The name of a stored connection: one of those that may be sent to the host of the block, or a new one, made here. What is not there
// stays as it is written.

import { useState, type ReactElement } from 'react'
import { connections } from '../../net/connections'
import { Button } from '../../ui/Button'
import { Link } from '../../ui/navigation'
import { useMayNot } from '../../ui/rights'
import { useData } from '../../ui/useData'
import { sentence } from '../../ui/words'
import { ConnectDialog } from './ConnectDialog'
import { fits, hostOf, offered } from './connecting'
import type { ControlProps } from './control'
import { useFieldScope } from './scope'

export function ConnectionField({ value, onChange, ids, path, hint, params }: ControlProps): ReactElement {
  const { readonly, specs, block, doc } = useFieldScope()
  const stored = useData(connections.list, [])
  const mayNot = useMayNot('admin')
  const [making, setMaking] = useState(false)
  const name = typeof value === 'string' ? value : ''
  const all = stored.value?.connections ?? []
  const chosen = all.find((each) => each.name === name)
  const missing = name !== '' && !chosen && stored.value !== null
  const host = hostOf(params ?? {}, hint.auth)
  const others = all.length - offered(all, host, name).length
  const problem = missing
    ? 'No connection has this name.'
    : chosen && chosen.state !== 'ready'
      ? chosen.state === 'unreadable'
        ? 'This server cannot open it.'
        : 'It needs a sign-in.'
      : chosen && host !== null && !fits(chosen.hosts, host)
        ? `It is sent only to ${chosen.hosts.join(', ')}, and not to ${host}.`
        : (stored.error && sentence(stored.error.message)) || null
  const service = (block !== null && specs.get(doc.blocks[block]?.type ?? '')?.title) || 'a service'
  return (
    <>
      <div className="connect">
        <select
          id={ids.control}
          data-testid={`field-${path}`}
          disabled={readonly}
          value={name}
          aria-describedby={ids.describedBy}
          aria-invalid={ids.invalid || problem ? true : undefined}
          onChange={(event) => onChange(event.target.value || undefined)}
        >
          <option value="">None</option>
          {name === '' || chosen ? null : <option value={name}>{missing ? `${name} (not there)` : name}</option>}
          {offered(all, host, name).map((each) => (
            <option key={each.name} value={each.name}>
              {each.name}
            </option>
          ))}
        </select>
        {readonly ? null : (
          <Button changes data-testid={`connect-${path}`} why={mayNot} onClick={() => setMaking(true)}>
            New
          </Button>
        )}
      </div>
      {problem ? (
        <p className="ref__wrong">
          {problem} <Link to="/settings">Settings</Link>
        </p>
      ) : (
        <p className="connect__about">
          {chosen
            ? `Sent only to ${chosen.hosts.join(', ')}`
            : others
              ? `${others} ${others === 1 ? 'other is' : 'others are'} not for ${host}.`
              : ''}
        </p>
      )}
      {making ? (
        <ConnectDialog
          service={hint.auth ? service : (host ?? 'a service')}
          auth={hint.auth}
          host={host}
          names={all.map((each) => each.name)}
          onClose={() => setMaking(false)}
          onDone={(made) => {
            setMaking(false)
            stored.reload()
            onChange(made)
          }}
        />
      ) : null}
    </>
  )
}
