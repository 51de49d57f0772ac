// A connection for the block that is open: only what its service asks for. The credential is masked, and leaves the browser once.

import { useState, type ReactElement } from 'react'
import { ApiError } from '../../net/http'
import { connections } from '../../net/connections'
import { Button } from '../../ui/Button'
import { Dialog } from '../../ui/Dialog'
import { Link } from '../../ui/navigation'
import { messageOf, sentence } from '../../ui/words'
import { specOf, type SecretKind } from './connecting'
import { FieldShell } from './FieldShell'
import type { ServiceAuth } from './kind'

const KINDS: Record<SecretKind, string> = {
  bearer: 'Bearer token',
  api_key: 'API key in a header',
  basic: 'User name and password',
}
const SECRETS: Record<SecretKind, string> = { bearer: 'Token', api_key: 'Key', basic: 'Password' }

interface Props {
  service: string
  auth: ServiceAuth | undefined
  host: string | null
  names: readonly string[]
  onDone: (name: string) => void
  onClose: () => void
}

export function ConnectDialog({ service, auth, host, names, onDone, onClose }: Props): ReactElement {
  const [name, setName] = useState(() => nameFor(auth ? service : (host ?? 'connection'), names))
  const [kind, setKind] = useState<SecretKind>(
    auth?.kind === 'basic' ? 'basic' : auth?.kind === 'header' || auth?.kind === 'query' ? 'api_key' : 'bearer',
  )
  const [username, setUsername] = useState('')
  const [secret, setSecret] = useState('')
  const [hosts, setHosts] = useState(host ?? '')
  const [busy, setBusy] = useState(false)
  const [refused, setRefused] = useState<string | null>(null)
  const duplicate = names.includes(name.trim()) ? 'Another connection has this name.' : null
  const why = !name.trim()
    ? 'Enter a name'
    : (duplicate ??
      (kind === 'basic' && !username
        ? 'Enter the user name'
        : !secret
          ? 'Enter the secret'
          : hosts.trim()
            ? null
            : 'Enter the host'))
  const send = async (): Promise<void> => {
    if (why || busy) return
    setBusy(true)
    setRefused(null)
    try {
      await connections.put(name.trim(), specOf(kind, { secret, username, hosts }, auth))
      onDone(name.trim())
    } catch (error) {
      const hint = error instanceof ApiError ? error.hint : ''
      setRefused([messageOf(error), hint].filter(Boolean).map(sentence).join(' '))
      setBusy(false)
    }
  }
  const line = (id: string, label: string, value: string, set: (text: string) => void, about = ''): ReactElement => (
    <FieldShell label={label} description={about} required error={id === 'name' ? duplicate : null}>
      {(ids) => (
        <input
          id={ids.control}
          type={id === 'secret' ? 'password' : 'text'}
          data-testid={`connect-${id}`}
          autoComplete={id === 'secret' ? 'new-password' : 'off'}
          spellCheck={false}
          aria-describedby={ids.describedBy}
          value={value}
          onChange={(event) => set(event.target.value)}
        />
      )}
    </FieldShell>
  )
  return (
    <Dialog
      title={`Connect ${service}`}
      open
      onClose={onClose}
      foot={
        <>
          <Button kind="bare" onClick={onClose}>
            Cancel
          </Button>
          <Button
            kind="primary"
            changes
            data-testid="connect-send"
            why={busy ? 'It is being stored' : why}
            onClick={() => void send()}
          >
            Connect
          </Button>
        </>
      }
    >
      {auth ? null : (
        <FieldShell label="Kind" required>
          {(ids) => (
            <select
              id={ids.control}
              data-testid="connect-kind"
              value={kind}
              onChange={(event) => setKind(event.target.value as SecretKind)}
            >
              {Object.entries(KINDS).map(([each, words]) => (
                <option key={each} value={each}>
                  {words}
                </option>
              ))}
            </select>
          )}
        </FieldShell>
      )}
      {kind === 'basic' ? line('username', 'User name', username, setUsername) : null}
      {line(
        'secret',
        auth?.title ?? SECRETS[kind],
        secret,
        setSecret,
        'It is stored encrypted. No one can read it again.',
      )}
      {host === null || !auth ? line('hosts', 'Host', hosts, setHosts, 'It is sent nowhere else.') : null}
      {line('name', 'Name', name, setName, 'Small letters, digits, _ and -')}
      <p className="connect__about">
        {host ? `It is sent only to ${hosts}. ` : ''}There is no test for it: the first run of the block shows if it
        works. A sign-in by OAuth begins in <Link to="/settings">Settings</Link>.
      </p>
      {refused ? (
        <p className="ref__wrong" role="alert">
          {refused}
        </p>
      ) : null}
    </Dialog>
  )
}

function nameFor(service: string, names: readonly string[]): string {
  const plain =
    service
      .toLowerCase()
      .replace(/[^a-z0-9_-]+/g, '-')
      .replace(/^[^a-z]+|-+$/g, '')
      .slice(0, 50) || 'connection'
  for (let n = 1; ; n++) {
    const name = n === 1 ? plain : `${plain}-${n}`
    if (!names.includes(name)) return name
  }
}
