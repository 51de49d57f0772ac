// Users and tokens of programs, for admins.

import { useState, type ReactElement, type ReactNode } from 'react'
import { people, ROLES, type Token, type User } from '../../net/people'
import { Ago } from '../../ui/Ago'
import { Button } from '../../ui/Button'
import { copyText } from '../../ui/copy'
import { useServerReadOnly } from '../../ui/rights'
import { useData } from '../../ui/useData'
import { messageOf } from '../../ui/words'
import { ListState } from '../parts'

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
      {error === null ? null : (
        <p className="notice" data-tone="err" role="alert">
          {error}
        </p>
      )}
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
        <div className="settings__env" role="table" aria-label="Users">
          <Head names={['User', 'Role', 'Seen']} />
          {users.value.map((each) => (
            <UserRow
              key={each.id}
              user={each}
              onRole={(role) => act(() => people.setRole(each.id, role), users.reload)}
              onLink={() =>
                make(`Signs in ${each.id}, once, within 10 minutes:`, () => people.link(each.id), users.reload)
              }
              onRemove={() => act(() => people.remove(each.id), users.reload)}
            />
          ))}
        </div>
      )}
      <Add
        label="User"
        hint="Lower case, such as ada"
        button="Invite"
        onAdd={(id, role) =>
          make(`Signs in ${id}, once, within 10 minutes:`, () => people.invite(id, role), users.reload)
        }
      />
      <h3>Tokens of programs</h3>
      <p className="quiet">A program sends it as a bearer token. It ends after 90 days.</p>
      {tokens.value?.length ? (
        <div className="settings__env" role="table" aria-label="Tokens of programs">
          <Head names={['Token', 'Role', 'Used']} />
          {tokens.value.map((each) => (
            <TokenRow key={each.id} token={each} onRevoke={() => act(() => people.revoke(each.id), tokens.reload)} />
          ))}
        </div>
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

function Head({ names }: { names: readonly string[] }): ReactElement {
  return (
    <div role="row" className="settings__row label">
      {names.map((name) => (
        <span key={name} role="columnheader">
          {name}
        </span>
      ))}
    </div>
  )
}

function Row({
  name,
  role,
  seen,
  children,
}: {
  name: ReactNode
  role: ReactNode
  seen: number | null
  children: ReactNode
}): ReactElement {
  return (
    <div role="row" className="settings__row">
      <span role="cell">{name}</span>
      <span role="cell">{role}</span>
      <span role="cell" className="settings__session">
        {seen === null ? <span className="quiet">Never</span> : <Ago at={seen} />}
        {children}
      </span>
    </div>
  )
}

interface UserActions {
  user: User
  onRole: (role: string) => void
  onLink: () => void
  onRemove: () => void
}

function UserRow({ user, onRole, onLink, onRemove }: UserActions): ReactElement {
  const first = user.id === FIRST_ADMIN ? 'The token of the server signs in this user' : null
  const role = first ? user.role : <RoleSelect label={`Role of ${user.id}`} value={user.role} onChange={onRole} />
  return (
    <Row name={<code>{user.id}</code>} role={role} seen={user.seen_at_ms}>
      <Button changes onClick={onLink}>
        Sign-in link
      </Button>
      <Button kind="danger" why={first} changes onClick={onRemove}>
        Remove
      </Button>
    </Row>
  )
}

function TokenRow({ token, onRevoke }: { token: Token; onRevoke: () => void }): ReactElement {
  const name = (
    <>
      {token.name} <code className="quiet">{token.prefix}</code>
    </>
  )
  return (
    <Row name={name} role={token.role} seen={token.used_at_ms}>
      <Button kind="danger" changes onClick={onRevoke}>
        Revoke
      </Button>
    </Row>
  )
}

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
