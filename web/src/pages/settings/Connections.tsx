// Connections: credentials that blocks pick from a list. Admins add them and sign in to their providers; no value is ever shown.

import { useEffect, useState, type ReactElement } from 'react'
import type { ConnectionView } from '../../api/schemas'
import { connections } from '../../net/connections'
import { Ago } from '../../ui/Ago'
import { Button } from '../../ui/Button'
import { EmptyState } from '../../ui/EmptyState'
import { Icon } from '../../ui/icons'
import { navigate } from '../../ui/navigation'
import { toast } from '../../ui/Toast'
import { useData } from '../../ui/useData'
import { ListState } from '../parts'
import { ConnectionDialog, KINDS } from './ConnectionDialog'
import { DeleteDialog } from './DeleteDialog'
import { refusalOf } from './form'
import './connections.css'

type Shown = { act: 'set'; connection: ConnectionView | null } | { act: 'delete'; connection: ConnectionView }

const STATES: Record<ConnectionView['state'], string> = {
  ready: 'Ready',
  sign_in: 'Not signed in',
  sign_in_again: 'Needs a new sign-in',
  unreadable: 'Cannot be opened',
}

export function Connections({ isAdmin }: { isAdmin: boolean }): ReactElement {
  const stored = useData(connections.list, [])
  const [shown, setShown] = useState<Shown | null>(null)
  const [wrong, setWrong] = useState<string | null>(null)
  const close = (): void => setShown(null)
  const { reload } = stored
  useEffect(() => {
    const said = saidByProvider()
    if (!isAdmin || said === null) return
    navigate('/settings', { replace: true })
    connections.connected(said).then(
      (made) => {
        toast(`Signed in to ${made.name}`, 'ok')
        reload()
      },
      (error: unknown) => setWrong(refusalOf(error).message),
    )
  }, [isAdmin, reload])
  const connect = async (name: string): Promise<void> => {
    try {
      const begun = await connections.connect(name)
      location.assign(begun.url)
    } catch (error) {
      setWrong(refusalOf(error).message)
    }
  }
  const all = stored.value?.connections ?? []
  return (
    <section aria-labelledby="set-connections" data-testid="connections" id="connections">
      <div className="settings__head">
        <h2 id="set-connections">Connections</h2>
        {isAdmin ? (
          <Button icon="plus" changes onClick={() => setShown({ act: 'set', connection: null })}>
            New connection
          </Button>
        ) : null}
      </div>
      <p className="quiet">
        Credentials of services that blocks use by name: OAuth 2, API keys, passwords and tokens. Each is sent only to
        its hosts.
      </p>
      {wrong ? (
        <p className="notice" data-tone="err" role="alert" data-testid="connection-wrong">
          {wrong}
        </p>
      ) : null}
      {all.length ? (
        <div className="settings__env" role="table" aria-label="Connections">
          <div role="row" className="settings__row connections__row label">
            {['Name', 'State', 'Hosts', 'Last used', 'Actions'].map((name) => (
              <span key={name} role="columnheader" className={name === 'Actions' ? 'visually-hidden' : undefined}>
                {name}
              </span>
            ))}
          </div>
          {all.map((each) => (
            <Row
              key={each.name}
              connection={each}
              isAdmin={isAdmin}
              onConnect={() => void connect(each.name)}
              onReplace={() => setShown({ act: 'set', connection: each })}
              onDelete={() => setShown({ act: 'delete', connection: each })}
            />
          ))}
        </div>
      ) : (
        <ListState data={stored} empty>
          <EmptyState title="There is no connection">
            {isAdmin ? null : <p>An administrator can add one.</p>}
          </EmptyState>
        </ListState>
      )}
      {shown?.act === 'set' ? (
        <ConnectionDialog
          connection={shown.connection}
          names={all.map((each) => each.name)}
          redirectUri={stored.value?.redirect_uri ?? ''}
          providers={stored.value?.providers ?? []}
          onDone={reload}
          onClose={close}
        />
      ) : null}
      {shown?.act === 'delete' ? (
        <DeleteDialog
          what={`the connection ${shown.connection.name}`}
          act={() => connections.delete(shown.connection.name)}
          onDone={reload}
          onClose={close}
        >
          <p>Blocks that name it fail from now on. The credential cannot be restored.</p>
          <Uses name={shown.connection.name} />
        </DeleteDialog>
      ) : null}
    </section>
  )
}

/** What stands in the address when a provider has sent the browser back. */
function saidByProvider(): { state: string; code: string; error: string; iss: string } | null {
  const query = new URLSearchParams(location.search)
  const [state, code, error] = [query.get('state'), query.get('code') ?? '', query.get('error') ?? '']
  return state && (code || error) ? { state, code, error, iss: query.get('iss') ?? '' } : null
}

interface RowProps {
  connection: ConnectionView
  isAdmin: boolean
  onConnect: () => void
  onReplace: () => void
  onDelete: () => void
}

function Row({ connection, isAdmin, onConnect, onReplace, onDelete }: RowProps): ReactElement {
  const { name, kind, hosts, state, problem, last_used_at_ms: used } = connection
  const signsIn = kind === 'oauth2_code'
  return (
    <div role="row" className="settings__row connections__row" data-testid={`connection-${name}`}>
      <span role="cell">
        <code>{name}</code>
        <span className="label connections__kind">
          {kind ? KINDS[kind] : 'Unknown kind'}
          {connection.provider ? `, ${connection.provider}` : ''}
        </span>
      </span>
      <span role="cell" data-label="State">
        <span className="status" data-tone={state === 'ready' ? 'ok' : 'err'}>
          <Icon name={state === 'ready' ? 'succeeded' : 'warning'} size={14} />
          {STATES[state]}
        </span>
        {problem ? <span className="connections__wrong">{problem}</span> : null}
      </span>
      <span role="cell" data-label="Hosts" className="connections__hosts">
        {hosts.map((host) => (
          <code key={host}>{host}</code>
        ))}
      </span>
      <span role="cell" data-label="Last used">
        {used === null ? <span className="quiet">Never</span> : <Ago at={used} />}
      </span>
      <span role="cell" className="settings__session connections__acts">
        {isAdmin ? (
          <>
            {signsIn ? (
              <Button kind={state === 'ready' ? undefined : 'primary'} changes onClick={onConnect}>
                {state === 'sign_in' ? 'Connect' : 'Reconnect'}
              </Button>
            ) : null}
            <Button icon="edit" iconOnly changes onClick={onReplace}>{`Replace ${name}`}</Button>
            <Button icon="trash" iconOnly changes onClick={onDelete}>{`Delete ${name}`}</Button>
          </>
        ) : null}
      </span>
    </div>
  )
}

function Uses({ name }: { name: string }): ReactElement {
  const uses = useData(() => connections.uses(name), [name])
  return (
    <>
      {uses.value?.length ? (
        <>
          <p>Used by:</p>
          <ul data-testid="connection-uses">
            {uses.value.map((use) => (
              <li key={`${use.kind} ${use.id}`}>
                {use.name} {use.kind === 'draft' ? '(draft)' : `v${use.version}`}{' '}
                <span className="label">{use.blocks.join(', ')}</span>
              </li>
            ))}
          </ul>
        </>
      ) : null}
      {uses.value?.length === 0 ? <p className="quiet">No workflow uses it.</p> : null}
    </>
  )
}
