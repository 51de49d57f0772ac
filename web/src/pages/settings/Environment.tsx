// Names of the environment that workflows read: whether each is set, and where it is used.

import { useState, type ReactElement } from 'react'
import type { EnvName, EnvUse } from '../../api/schemas'
import { api } from '../../net/api'
import { Icon } from '../../ui/icons'
import { Link } from '../../ui/navigation'
import { useData } from '../../ui/useData'
import { ListPage, type Column } from './ListPage'

const COLUMNS: readonly Column<EnvName>[] = [
  { name: 'Name', cell: ({ name }) => <code>{name}</code> },
  {
    name: 'Value',
    cell: ({ set, secret, used_by: uses }) => (
      <span className="status" data-tone={set ? 'ok' : uses.length ? 'err' : 'quiet'}>
        <Icon name={set ? 'succeeded' : 'warning'} size={14} />
        {set ? (secret ? 'Set (secret)' : 'Set') : 'Not set'}
      </span>
    ),
  },
  {
    name: 'Used by',
    cell: ({ used_by: uses }) => (uses.length ? <Uses uses={uses} /> : <span className="quiet">Not used</span>),
  },
]

export function Environment(): ReactElement {
  const env = useData(() => api.env(), [])
  return (
    <ListPage
      id="env"
      title="Environment"
      about={
        <>
          Names that workflows read as <code>{'${NAME}'}</code>. Values are set where the server is started, as{' '}
          <code>WEFT_ENV_NAME</code>, and never leave it.
        </>
      }
      data={env}
      label="Environment names"
      columns={COLUMNS}
      rows={env.value ?? []}
      keyOf={({ name }) => name}
      empty="No name is set, and no workflow reads one"
      hint={
        <p>
          Start the server with <code>WEFT_ENV_API_KEY=...</code> and read it as <code>{'${API_KEY}'}</code>.
        </p>
      }
    />
  )
}

const USES_SHOWN = 4

function Uses({ uses }: { uses: readonly EnvUse[] }): ReactElement {
  const [all, setAll] = useState(false)
  const shown = all ? uses : uses.slice(0, USES_SHOWN)
  return (
    <span className="settings__uses">
      {shown.map((use) => (
        <span key={`${use.kind} ${use.id}`}>
          {use.kind === 'draft' ? (
            <Link to={`/w/${use.id}`}>{use.name}</Link>
          ) : (
            <Link to={`/runs?workflow=${encodeURIComponent(use.name)}`}>{`${use.name} v${use.version}`}</Link>
          )}
          <span className="label"> {use.blocks.join(', ')}</span>
        </span>
      ))}
      {uses.length > shown.length ? (
        <button type="button" className="pill" onClick={() => setAll(true)}>
          and {uses.length - shown.length} more
        </button>
      ) : null}
    </span>
  )
}
