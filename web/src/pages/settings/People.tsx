// Users and tokens of programs, for admins.

import { useState, type ReactElement } from 'react'
import { people, ROLES } from '../../net/people'
import { Button } from '../../ui/Button'
import { copyText } from '../../ui/copy'
import { useServerReadOnly } from '../../ui/rights'
import { useData } from '../../ui/useData'
import { messageOf } from '../../ui/words'
import { ListState } from '../parts'
import { LastUsed, Refused, Table } from './ListPage'

const FIRST_ADMIN = 'admin' // who has the token of the server

export function People(): ReactElement {
  const users = useData(people.users, [])
  const tokens = useData(people.tokens, [])
  const [error, setError] = useState<string | null>(null)
  const [made, setMade] = useState<{ what: string; value: string } | null>(null)
  const act = (work: () => Promise<unknown>, reload: () => void): void => {
    setError(null)
    work().then(reload, (refused: unknown) => setError(messageOf(refused)))
  }
  const make = (what: string, work: () => Promise<string>, reload: () => void): void =>
    act(() => work().then((value) => setMade({ what, value })), reload)
  return (
    <section aria-labelledby="set-people" data-testid="people">
      <h2 id="set-people">People</h2>
      <p className="quiet">
        Viewers see workflows and runs, approvers also answer requests, editors also change and run workflows, admins
        also decide about people. <code>weft audit</code> lists what each of them changed.
      </p>
      <Refused error={error} />
      {made === null ? null : (
        <p className="notice settings__made" role="status">
          <span>{made.what}</span>
          <code data-testid="made">{made.value}</code>
          <Button icon="copy" onClick={() => void copyText(made.value, 'Copied')}>
            Copy
          </Button>
        </p>
      )}
      {users.value === null ? (
        <ListState data={users} empty={false}>
          {null}
        </ListState>
      ) : (
        <Table
          label="Users"
          rows={users.value}
          keyOf={({ id }) => id}
          columns={[
            { name: 'User', cell: ({ id }) => <code>{id}</code> },
            {
              name: 'Role',
              cell: ({ id, role }) =>
                id === FIRST_ADMIN ? (
                  role
                ) : (
                  <RoleSelect
                    label={`Role of ${id}`}
                    value={role}
                    onChange={(next) => act(() => people.setRole(id, next), users.reload)}
                  />
                ),
            },
            {
              name: 'Seen',
              className: 'settings__session',
              cell: ({ id, seen_at_ms: seen }) => (
                <>
                  <LastUsed at={seen} />
                  <Button changes onClick={() => make(linkText(id), () => people.link(id), users.reload)}>
                    Sign-in link
                  </Button>
                  <Button
                    kind="danger"
                    why={id === FIRST_ADMIN ? 'The token of the server signs in this user' : null}
                    changes
                    onClick={() => act(() => people.remove(id), users.reload)}
                  >
                    Remove
                  </Button>
                </>
              ),
            },
          ]}
        />
      )}
      <Add
        label="User"
        hint="Lower case, such as ada"
        button="Invite"
        onAdd={(id, role) => make(linkText(id), () => people.invite(id, role), users.reload)}
      />
      <h3>Tokens of programs</h3>
      <p className="quiet">A program sends it as a bearer token. It ends after 90 days.</p>
      {tokens.value?.length ? (
        <Table
          label="Tokens of programs"
          rows={tokens.value}
          keyOf={({ id }) => id}
          columns={[
            {
              name: 'Token',
              cell: ({ name, prefix }) => (
                <>
                  {name} <code className="quiet">{prefix}</code>
                </>
              ),
            },
            { name: 'Role', cell: ({ role }) => role },
            {
              name: 'Used',
              className: 'settings__session',
              cell: ({ id, used_at_ms: used }) => (
                <>
                  <LastUsed at={used} />
                  <Button kind="danger" changes onClick={() => act(() => people.revoke(id), tokens.reload)}>
                    Revoke
                  </Button>
                </>
              ),
            },
          ]}
        />
      ) : null}
      <Add
        label="Program"
        hint="What the token is for"
        button="Create token"
        onAdd={(name, role) =>
          make('The token, which cannot be shown again:', () => people.makeToken(name, role), tokens.reload)
        }
      />
    </section>
  )
}

const linkText = (id: string): string => `Signs in ${id}, once, within 10 minutes:`

function RoleSelect({
  label,
  value,
  onChange,
}: {
  label: string
  value: string
  onChange: (role: string) => void
}): ReactElement {
  const readOnly = useServerReadOnly()
  return (
    <select
      aria-label={label}
      value={value}
      disabled={readOnly !== null}
      title={readOnly ?? undefined}
      onChange={(event) => onChange(event.target.value)}
    >
      {ROLES.map((role) => (
        <option key={role} value={role}>
          {role}
        </option>
      ))}
    </select>
  )
}

interface AddProps {
  label: string
  hint: string
  button: string
  onAdd: (name: string, role: string) => void
}

function Add({ label, hint, button, onAdd }: AddProps): ReactElement {
  const [name, setName] = useState('')
  const [role, setRole] = useState<string>('editor')
  return (
    <form
      className="settings__session settings__add"
      onSubmit={(event) => {
        event.preventDefault()
        onAdd(name.trim(), role)
        setName('')
      }}
    >
      <input
        type="text"
        required
        maxLength={100}
        aria-label={label}
        placeholder={hint}
        value={name}
        onChange={(event) => setName(event.target.value)}
      />
      <RoleSelect label={`Role of the new ${label.toLowerCase()}`} value={role} onChange={setRole} />
      <Button type="submit" changes>
        {button}
      </Button>
    </form>
  )
}
