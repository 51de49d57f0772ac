// Connections: credentials that blocks pick from a list. Admins add them and sign in to their providers; no value is ever shown.

import { useEffect, useState, type ReactElement } from 'react'
import type { ConnectionView } from '../../api/schemas'
import { connections } from '../../net/connections'
import { Button } from '../../ui/Button'
import { Icon } from '../../ui/icons'
import { navigate } from '../../ui/navigation'
import { toast } from '../../ui/Toast'
import { useData } from '../../ui/useData'
import { ConnectionDialog, KINDS } from './ConnectionDialog'
import { DeleteDialog } from './DeleteDialog'
import { refusalOf } from './EditDialog'
import { ACTIONS, codes, LastUsed, ListPage, Refused, type Column } from './ListPage'

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
    const answer = answerOfProvider()
    if (!isAdmin || answer === null) return
    navigate('/settings', { replace: true })
    connections.connected(answer).then(
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
  const columns: Column<ConnectionView>[] = [
    {
      name: 'Name',
      cell: ({ name, kind, provider }) => (
        <>
          <code>{name}</code>
          <span className="label connections__kind">
            {kind ? KINDS[kind] : 'Unknown kind'}
            {provider ? `, ${provider}` : ''}
          </span>
        </>
      ),
    },
    {
      name: 'State',
      cell: ({ state, problem }) => (
        <>
          <span className="status" data-tone={state === 'ready' ? 'ok' : 'err'}>
            <Icon name={state === 'ready' ? 'succeeded' : 'warning'} size={14} />
            {STATES[state]}
          </span>
          {problem ? <span className="settings__wrong">{problem}</span> : null}
        </>
      ),
    },
    { name: 'Hosts', className: 'settings__lines', cell: ({ hosts }) => codes(hosts) },
    { name: 'Last used', cell: ({ last_used_at_ms: used }) => <LastUsed at={used} /> },
    {
      name: ACTIONS,
      cell: (connection) =>
        isAdmin ? (
          <>
            {connection.kind === 'oauth2_code' ? (
              <Button
                kind={connection.state === 'ready' ? undefined : 'primary'}
                changes
                onClick={() => void connect(connection.name)}
              >
                {connection.state === 'sign_in' ? 'Connect' : 'Reconnect'}
              </Button>
            ) : null}
            <Button icon="edit" iconOnly changes onClick={() => setShown({ act: 'set', connection })}>
              {`Replace ${connection.name}`}
            </Button>
            <Button icon="trash" iconOnly changes onClick={() => setShown({ act: 'delete', connection })}>
              {`Delete ${connection.name}`}
            </Button>
          </>
        ) : null,
    },
  ]
  return (
    <ListPage
      id="connections"
      title="Connections"
      about="Credentials of services that blocks use by name: OAuth 2, API keys, passwords and tokens. Each is sent only to its hosts."
      add={
        isAdmin ? (
          <Button icon="plus" changes onClick={() => setShown({ act: 'set', connection: null })}>
            New connection
          </Button>
        ) : null
      }
      notice={<Refused error={wrong} testId="connection-wrong" />}
      data={stored}
      label="Connections"
      widths="connections__row"
      columns={columns}
      rows={all}
      keyOf={({ name }) => name}
      testIdOf={({ name }) => `connection-${name}`}
      empty="There is no connection"
      hint={isAdmin ? null : <p>An administrator can add one.</p>}
    >
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
    </ListPage>
  )
}

/** What stands in the address when a provider has sent the browser back. */
function answerOfProvider(): { state: string; code: string; error: string; iss: string } | null {
  const query = new URLSearchParams(location.search)
  const [state, code, error] = [query.get('state'), query.get('code') ?? '', query.get('error') ?? '']
  return state && (code || error) ? { state, code, error, iss: query.get('iss') ?? '' } : null
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
