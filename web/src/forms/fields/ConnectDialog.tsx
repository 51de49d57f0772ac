// A connection for the block that is open: only what its service asks for. It is tested before it is stored, and a sign-in at a
// provider begins here and comes back here. The credential is covered, and leaves the browser once.

import { useEffect, useRef, useState, type ReactElement } from 'react'
import type { ConnectionSpec, KnownProvider } from '../../api/schemas'
import { ApiError } from '../../net/http'
import { connections } from '../../net/connections'
import { Button } from '../../ui/Button'
import { Dialog } from '../../ui/Dialog'
import { Icon } from '../../ui/icons'
import { Link } from '../../ui/navigation'
import { SecretInput } from '../../ui/SecretInput'
import { messageOf, sentence } from '../../ui/words'
import { isPrivateKey, KEY_HEADER, specOf, specOfProvider, type SecretKind } from './connecting'
import { TestButton, TestLine, useTester } from './ConnectionTest'
import { FieldShell } from './FieldShell'
import type { ServiceAuth } from './kind'
import { openWindow, signIn } from './signIn'

type Way = SecretKind | 'oauth'

const KINDS: Record<SecretKind, string> = {
  bearer: 'Bearer token',
  api_key: 'API key in a header',
  basic: 'User name and password',
  ssh: 'SSH: password or private key',
}
const SECRETS: Record<Way, string> = {
  bearer: 'Token',
  api_key: 'Key',
  basic: 'Password',
  ssh: 'Password or private key',
  oauth: 'Client secret',
}

const HOST_KEY =
  'Of the server: SHA256:… or ssh-ed25519 AAAA…. Without it, the first run fails and shows the one of the server.'

interface Props {
  service: string
  auth: ServiceAuth | undefined
  host: string | null
  /** The address that the block names in place of the service's own. */
  baseUrl: string
  /** The address that a block without a service reads, which a test may read, too; else empty. */
  reads: string
  block: string | null
  provider: KnownProvider | undefined
  redirectUri: string
  names: readonly string[]
  /** The name in the block, of a connection that is not there; else empty. */
  wanted: string
  /** `used`: it is the connection of the block from now on, though no one has signed in yet. */
  onStored: (name: string) => void
  onDone: (name: string) => void
  onClose: () => void
}

export function ConnectDialog(props: Props): ReactElement {
  const { service, auth, host, baseUrl, provider, names, onStored, onDone, onClose } = props
  const [name, setName] = useState(() => props.wanted || nameFor(auth ? service : (host ?? 'connection'), names))
  const own: SecretKind =
    auth?.kind === 'basic' || auth?.kind === 'ssh'
      ? auth.kind
      : auth?.kind === 'header' || auth?.kind === 'query'
        ? 'api_key'
        : 'bearer'
  const [way, setWay] = useState<Way>(own)
  const [username, setUsername] = useState('')
  const [secret, setSecret] = useState('')
  const [hosts, setHosts] = useState(host ?? '')
  const [checkUrl, setCheckUrl] = useState(auth?.service ? '' : props.reads)
  const [header, setHeader] = useState(KEY_HEADER)
  const [hostKey, setHostKey] = useState('')
  const [passphrase, setPassphrase] = useState('')
  const [clientId, setClientId] = useState('')
  const [scopes, setScopes] = useState(auth?.scopes ?? provider?.scopes ?? '')
  const [state, setState] = useState<'typing' | 'storing' | 'away'>('typing')
  const [refused, setRefused] = useState<string | null>(null)
  const left = useRef<AbortController | null>(null)
  useEffect(() => () => left.current?.abort(), [])
  // What was stored when a sign-in began has this name now.
  const [stored, setStored] = useState<string | null>(null)
  const oauth = way === 'oauth' && provider !== undefined
  const isTaken = names.includes(name.trim()) && name.trim() !== stored
  const duplicate = isTaken ? 'Another connection has this name.' : null
  const needsSecret = !oauth || !provider.pkce
  const named = way === 'api_key' && !auth
  const why = !name.trim()
    ? 'Enter a name'
    : (duplicate ??
      (oauth && !clientId.trim()
        ? 'Enter the client ID'
        : (way === 'basic' || way === 'ssh') && !username
          ? 'Enter the user name'
          : needsSecret && !secret
            ? 'Enter the secret'
            : !header.trim() && named
              ? 'Enter the header'
              : hosts.trim() || oauth
                ? null
                : 'Enter the host'))
  const typed = { secret, username, hosts, header, hostKey, passphrase }
  const spec: ConnectionSpec = oauth
    ? specOfProvider(provider, { secret, clientId: clientId.trim(), scopes }, host)
    : { ...specOf(way === 'oauth' ? own : way, typed, auth), check_url: way === 'ssh' ? '' : checkUrl.trim() }
  const tester = useTester(name.trim() || 'new', { service: auth?.service ?? '', base_url: baseUrl, connection: spec })
  const send = async (): Promise<void> => {
    if (why || state === 'storing') return
    left.current?.abort()
    const { signal } = (left.current = new AbortController())
    const other = oauth ? openWindow() : null
    setState('storing')
    setRefused(null)
    try {
      await connections.put(name.trim(), spec)
      if (oauth) {
        setStored(name.trim())
        onStored(name.trim())
        setState('away')
        const error = await signIn(name.trim(), other, signal, props.block)
        if (signal.aborted) return
        if (error) throw new Error(error)
      }
      onDone(name.trim())
    } catch (error) {
      other?.close()
      const hint = error instanceof ApiError ? error.hint : ''
      setRefused([messageOf(error), hint].filter(Boolean).map(sentence).join(' '))
      setState('typing')
    }
  }
  const line = (
    id: string,
    label: string,
    value: string,
    set: (text: string) => void,
    about = '',
    required = true,
  ): ReactElement => (
    <FieldShell label={label} description={about} required={required} error={id === 'name' ? duplicate : null}>
      {(ids) =>
        id === 'secret' || id === 'passphrase' ? (
          <SecretInput
            ids={ids}
            testId={`connect-${id}`}
            what={label.toLowerCase()}
            value={value}
            onChange={(text) => set(text)}
          />
        ) : (
          <input
            id={ids.control}
            type="text"
            data-testid={`connect-${id}`}
            autoComplete="off"
            spellCheck={false}
            aria-describedby={ids.describedBy}
            value={value}
            onChange={(event) => set(event.target.value)}
          />
        )
      }
    </FieldShell>
  )
  const ways: [Way, string][] = [
    ...(auth ? ([[own, auth.title]] as [Way, string][]) : (Object.entries(KINDS) as [Way, string][])),
    ...(provider ? ([['oauth', `Sign in with ${provider.title}`]] as [Way, string][]) : []),
  ]
  return (
    <Dialog
      title={`Connect ${service}`}
      className="connecting"
      open
      onClose={onClose}
      foot={
        <>
          <Button kind="bare" onClick={onClose}>
            Cancel
          </Button>
          {oauth ? null : <TestButton tester={tester} why={why} testId="connect-test" />}
          <Button
            kind="primary"
            changes
            data-testid="connect-send"
            why={state === 'storing' ? 'It is being stored' : why}
            onClick={() => void send()}
          >
            {state === 'away' ? 'Open again' : oauth ? 'Sign in' : 'Connect'}
          </Button>
        </>
      }
    >
      {ways.length > 1 ? (
        <FieldShell label="Kind" required>
          {(ids) => (
            <select
              id={ids.control}
              data-testid="connect-kind"
              value={way}
              onChange={(event) => (tester.forget(), setWay(event.target.value as Way))}
            >
              {ways.map(([each, words]) => (
                <option key={each} value={each}>
                  {words}
                </option>
              ))}
            </select>
          )}
        </FieldShell>
      ) : null}
      {oauth ? (
        <>
          <p className="connect__about connect__register">
            Register a client at {provider.title} (
            <a href={provider.docs} target="_blank" rel="noreferrer">
              how
            </a>
            ) with this redirect address: <code>{props.redirectUri}</code>
          </p>
          {line('client', 'Client ID', clientId, setClientId)}
        </>
      ) : null}
      {named ? line('header', 'Header', header, setHeader, 'Such as X-Api-Key or Authorization') : null}
      {way === 'basic' || way === 'ssh' ? line('username', 'User name', username, setUsername) : null}
      {line(
        'secret',
        oauth ? SECRETS.oauth : (auth?.title ?? SECRETS[way]),
        secret,
        setSecret,
        'It is stored encrypted. No one can read it again.',
        needsSecret,
      )}
      {way === 'ssh' && isPrivateKey(secret)
        ? line('passphrase', 'Passphrase', passphrase, setPassphrase, 'Of the private key, if it has one', false)
        : null}
      {way === 'ssh' ? line('host-key', 'Host key', hostKey, setHostKey, HOST_KEY, false) : null}
      {oauth ? line('scopes', 'Scopes', scopes, setScopes, `What ${provider.title} is asked to permit`, false) : null}
      {!oauth && (host === null || !auth) ? line('hosts', 'Host', hosts, setHosts, 'It is sent nowhere else.') : null}
      {oauth || way === 'ssh' || auth?.service
        ? null
        : line(
            'check',
            'Address to check',
            checkUrl,
            setCheckUrl,
            'A test requests it. It answers only with the credential, such as https://api.example.com/me',
            false,
          )}
      {line('name', 'Name', name, setName, 'Small letters, digits, _ and -')}
      <p className="connect__about">
        It is sent only to {oauth ? spec.hosts.join(', ') : hosts || 'its host'}.
        {auth || provider ? null : (
          <>
            {' '}
            A sign-in by OAuth begins in <Link to="/settings?page=connections">Settings</Link>.
          </>
        )}
      </p>
      {state === 'away' ? (
        <p className="tested" data-tone="run" role="status">
          <Icon name="running" size={14} />
          <span>Sign in in the window of {provider?.title}. This dialog continues when it is done.</span>
        </p>
      ) : null}
      {oauth ? null : (
        <div className="connecting__test">
          <TestLine tester={tester} />
        </div>
      )}
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
      .replace(/^https?:\/\//, '')
      .replace(/[^a-z0-9_-]+/g, '-')
      .replace(/^[^a-z]+|-+$/g, '')
      .slice(0, 50) || 'connection'
  for (let n = 1; ; n++) {
    const name = n === 1 ? plain : `${plain}-${n}`
    if (!names.includes(name)) return name
  }
}
