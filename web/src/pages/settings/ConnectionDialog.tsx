// The form of a connection: what it asks for follows from its kind. Its values are typed again for every change.

import { useEffect, useState, type ReactElement } from 'react'
import type { ConnectionSpec, ConnectionView, KnownProvider } from '../../api/schemas'
import type { FieldIds } from '../../forms/fields/FieldShell'
import { TestButton, TestLine, useTester } from '../../forms/fields/ConnectionTest'
import { isPrivateKey } from '../../forms/fields/connecting'
import { connections } from '../../net/connections'
import { SecretInput } from '../../ui/SecretInput'
import { toast } from '../../ui/Toast'
import { EditDialog, type Refusal } from './EditDialog'
import { CodeInput, Part } from './form'

type Kind = ConnectionSpec['kind']

export const KINDS: Record<Kind, string> = {
  oauth2_code: 'OAuth 2 with a sign-in',
  oauth2_client: 'OAuth 2 client credentials',
  api_key: 'API key',
  basic: 'User name and password',
  bearer: 'Bearer token',
  ssh: 'SSH: password or private key',
}
const SECRETS: Record<Kind, string> = {
  oauth2_code: 'Client secret',
  oauth2_client: 'Client secret',
  api_key: 'API key',
  basic: 'Password',
  bearer: 'Token',
  ssh: 'Password or private key',
}
type Text =
  | 'username'
  | 'authorize_url'
  | 'token_url'
  | 'client_id'
  | 'scopes'
  | 'issuer'
  | 'prefix'
  | 'name'
  | 'check_url'
  | 'host_key'
const TEXTS: Record<Kind, readonly Text[]> = {
  oauth2_code: ['authorize_url', 'token_url', 'client_id', 'scopes', 'issuer'],
  oauth2_client: ['token_url', 'client_id', 'scopes'],
  api_key: ['name', 'prefix'],
  basic: ['username'],
  bearer: [],
  ssh: ['username', 'host_key'],
}
const LABELS: Record<Text, { label: string; about?: string; optional?: boolean }> = {
  username: { label: 'User name' },
  authorize_url: { label: 'Sign-in address', about: 'Where people sign in, such as https://id.example.com/authorize' },
  token_url: { label: 'Token address', about: 'Such as https://id.example.com/token' },
  client_id: { label: 'Client ID' },
  scopes: { label: 'Scopes', about: 'With spaces between', optional: true },
  issuer: { label: 'Issuer', about: 'Who the provider says it is in its answer, if it does', optional: true },
  host_key: {
    label: 'Host key of the server',
    about: 'SHA256:… or ssh-ed25519 AAAA…. Without it, the first run fails and shows the one of the server.',
    optional: true,
  },
  name: { label: 'Name of the header or parameter', about: 'Such as Authorization or X-Api-Key' },
  check_url: {
    label: 'Address to check',
    about: 'What a test requests, if no service on the hosts has a sign-in check: it answers only with the credential',
    optional: true,
  },
  prefix: { label: 'In front of the key', about: 'Such as Token, with a space behind it', optional: true },
}
const FIELDS = [
  'id',
  'hosts',
  'secret',
  'passphrase',
  'where',
  'client_auth',
  'pkce',
  'parameters',
  ...(Object.keys(LABELS) as Text[]),
] as const

interface Props {
  connection: ConnectionView | null
  names: readonly string[]
  redirectUri: string
  providers: readonly KnownProvider[]
  /** The provider to begin with. */
  first?: string | undefined
  onDone: () => void
  onClose: () => void
}

/** `connection` null: a new one. */
export function ConnectionDialog({
  connection,
  names,
  redirectUri,
  providers,
  first,
  onDone,
  onClose,
}: Props): ReactElement {
  const [id, setId] = useState(connection?.name ?? '')
  const [kind, setKind] = useState<Kind>(connection?.kind ?? 'oauth2_code')
  const [hosts, setHosts] = useState(connection?.hosts.join('\n') ?? '')
  const [secret, setSecret] = useState('')
  const [passphrase, setPassphrase] = useState('')
  const [where, setWhere] = useState<'header' | 'query'>('header')
  const [clientAuth, setClientAuth] = useState<'body' | 'header'>('body')
  const [parameters, setParameters] = useState('')
  const [pkce, setPkce] = useState(true)
  const [provider, setProvider] = useState<KnownProvider | null>(null)
  const [texts, setTexts] = useState<Partial<Record<Text, string>>>({ name: 'Authorization' })
  const isOAuth = kind === 'oauth2_code' || kind === 'oauth2_client'
  const textOf = (name: Text): string => texts[name] ?? ''
  const needsSecret = kind !== 'oauth2_code' || !pkce
  /** Fill in what is known of it. The name stays if it was typed. */
  const choose = (chosen: string): void => {
    const found = providers.find((each) => each.id === chosen) ?? null
    if (connection === null && found && (!id.trim() || id === provider?.id)) setId(found.id)
    setProvider(found)
    if (found === null) return
    const { authorize_url, token_url, scopes, issuer } = found
    setTexts((now) => ({ ...now, authorize_url, token_url, scopes, issuer }))
    setHosts(found.hosts.join('\n'))
    setClientAuth(found.client_auth)
    setPkce(found.pkce)
    const pairs = Object.entries(found.parameters)
    setParameters(pairs.map(([name, value]) => `${name}=${value}`).join('\n'))
  }
  useEffect(() => (first ? choose(first) : undefined), [])
  const duplicate = connection === null && names.includes(id.trim()) ? 'Another connection has this name.' : null
  const missing = TEXTS[kind].find((name) => !LABELS[name].optional && !textOf(name).trim())
  const why = !id.trim()
    ? 'Enter a name.'
    : (duplicate ??
      (missing
        ? `Enter: ${LABELS[missing].label}.`
        : !secret && needsSecret
          ? `Enter: ${SECRETS[kind]}.`
          : hosts.trim()
            ? null
            : 'Enter the hosts.'))
  const specNow = (): ConnectionSpec => {
    const named = Object.fromEntries(
      TEXTS[kind].map((name) => [name, name === 'prefix' ? textOf(name) : textOf(name).trim()]),
    ) as Partial<ConnectionSpec>
    const own = {
      ...(kind === 'api_key' ? { where } : {}),
      ...(kind === 'oauth2_code' ? { pkce, parameters: pairsOf(parameters) } : {}),
      ...(kind === 'ssh' && isPrivateKey(secret) ? { passphrase } : {}),
    }
    const auth = isOAuth ? { client_auth: clientAuth } : {}
    const listed = hosts.split(/[\s,]+/).filter(Boolean)
    return {
      kind,
      secret,
      hosts: listed,
      check_url: kind === 'ssh' ? '' : textOf('check_url').trim(),
      ...named,
      ...own,
      ...auth,
    }
  }
  const tester = useTester(id.trim() || 'new', { connection: specNow() })
  const send = async (): Promise<void> => {
    await connections.put(id.trim(), specNow())
    onDone()
    toast(`Stored the connection ${id.trim()}`, 'ok')
  }
  const area = (ids: FieldIds, name: string, value: string, set: (value: string) => void, rows = 2): ReactElement => (
    <textarea
      id={ids.control}
      className="mono"
      data-testid={`connection-${name}`}
      rows={rows}
      autoComplete="off"
      spellCheck={false}
      aria-invalid={ids.invalid || undefined}
      aria-describedby={ids.describedBy}
      value={value}
      onChange={(event) => set(event.target.value)}
    />
  )
  const part = (name: Text, found: Refusal | null): ReactElement => (
    <Part
      key={name}
      name={name}
      label={LABELS[name].label}
      about={LABELS[name].about}
      needed={!LABELS[name].optional}
      found={found}
    >
      {(ids) => (
        <CodeInput
          ids={ids}
          testId={`connection-${name}`}
          value={textOf(name)}
          onChange={(value) => setTexts((now) => ({ ...now, [name]: value }))}
        />
      )}
    </Part>
  )
  return (
    <EditDialog
      title={connection ? `Replace ${connection.name}` : 'New connection'}
      act={connection ? 'Replace' : 'Store connection'}
      testId="connection-form"
      why={why}
      fields={FIELDS}
      onSend={send}
      onClose={onClose}
    >
      {(found) => (
        <>
          {connection ? null : (
            <Part
              name="id"
              label="Name"
              needed
              found={found?.field === 'name' && kind !== 'api_key' ? { ...found, field: 'id' } : found}
              error={duplicate}
              about="Small letters, digits, _ and -"
            >
              {(ids) => <CodeInput ids={ids} testId="connection-id" value={id} onChange={setId} />}
            </Part>
          )}
          <Part name="kind" label="Kind" needed found={found}>
            {(ids) => (
              <select
                id={ids.control}
                data-testid="connection-kind"
                value={kind}
                onChange={(event) => setKind(event.target.value as Kind)}
              >
                {(Object.keys(KINDS) as Kind[]).map((each) => (
                  <option key={each} value={each}>
                    {KINDS[each]}
                  </option>
                ))}
              </select>
            )}
          </Part>
          {kind === 'oauth2_code' ? (
            <p className="quiet connections__redirect">
              Register this redirect address at the provider: <code>{redirectUri}</code>
            </p>
          ) : null}
          {kind === 'api_key' ? (
            <Part name="where" label="Sent in" needed found={found}>
              {(ids) => (
                <select
                  id={ids.control}
                  data-testid="connection-where"
                  value={where}
                  onChange={(event) => setWhere(event.target.value as 'header' | 'query')}
                >
                  <option value="header">A header</option>
                  <option value="query">A query parameter</option>
                </select>
              )}
            </Part>
          ) : null}
          {kind === 'oauth2_code' ? <ProviderPart providers={providers} chosen={provider} onChoose={choose} /> : null}
          {TEXTS[kind].map((name) => part(name, found))}
          <Part
            name="secret"
            label={SECRETS[kind]}
            needed={needsSecret}
            found={found}
            about={
              !needsSecret
                ? 'At least 8 characters, or empty for a client without one. It cannot be shown again.'
                : 'At least 8 characters. It cannot be shown again.'
            }
          >
            {(ids) => (
              <SecretInput
                ids={ids}
                testId="connection-secret"
                what={SECRETS[kind].toLowerCase()}
                value={secret}
                onChange={setSecret}
              />
            )}
          </Part>
          {kind === 'ssh' && isPrivateKey(secret) ? (
            <Part name="passphrase" label="Passphrase" found={found} about="Of the private key, if it has one">
              {(ids) => (
                <SecretInput
                  ids={ids}
                  testId="connection-passphrase"
                  what="passphrase"
                  value={passphrase}
                  onChange={setPassphrase}
                />
              )}
            </Part>
          ) : null}
          {isOAuth ? (
            <Part name="client_auth" label="Client secret is sent in" needed found={found}>
              {(ids) => (
                <select
                  id={ids.control}
                  data-testid="connection-client_auth"
                  value={clientAuth}
                  onChange={(event) => setClientAuth(event.target.value as 'body' | 'header')}
                >
                  <option value="body">The body of the request</option>
                  <option value="header">A header (Basic)</option>
                </select>
              )}
            </Part>
          ) : null}
          {kind === 'oauth2_code' ? (
            <Part name="pkce" label="PKCE" needed found={found} about="Without it, a client secret is required">
              {(ids) => (
                <select
                  id={ids.control}
                  data-testid="connection-pkce"
                  value={pkce ? 'yes' : 'no'}
                  onChange={(event) => setPkce(event.target.value === 'yes')}
                >
                  <option value="yes">Used</option>
                  <option value="no">The provider does not support it</option>
                </select>
              )}
            </Part>
          ) : null}
          {kind === 'oauth2_code' ? (
            <Part
              name="parameters"
              label="More parameters of the sign-in"
              found={found}
              about="One on each line, such as access_type=offline"
            >
              {(ids) => area(ids, 'parameters', parameters, setParameters)}
            </Part>
          ) : null}
          <Part
            name="hosts"
            label="Hosts"
            needed
            found={found}
            about={`Where it may be sent to, one on each line, such as ${kind === 'ssh' ? 'sftp.example.com:22' : 'api.example.com or *.example.com'}`}
          >
            {(ids) => area(ids, 'hosts', hosts, setHosts)}
          </Part>
          {kind === 'ssh' ? null : part('check_url', found)}
          {kind === 'ssh' ? null : isOAuth ? (
            <p className="quiet">
              It can be tested when it is stored{kind === 'oauth2_code' ? ' and signed in to' : ''}.
            </p>
          ) : (
            <div className="connections__test">
              <TestButton tester={tester} why={why} testId="connection-test" />
              <TestLine tester={tester} />
            </div>
          )}
        </>
      )}
    </EditDialog>
  )
}

interface ProviderProps {
  providers: readonly KnownProvider[]
  chosen: KnownProvider | null
  onChoose: (id: string) => void
}

function ProviderPart({ providers, chosen, onChoose }: ProviderProps): ReactElement {
  return (
    <>
      <Part name="provider" label="Provider" found={null} about="Fills in what weft knows about it">
        {(ids) => (
          <select
            id={ids.control}
            data-testid="connection-provider"
            value={chosen?.id ?? ''}
            aria-describedby={ids.describedBy}
            onChange={(event) => onChoose(event.target.value)}
          >
            <option value="">Another one</option>
            {providers.map(({ id, title }) => (
              <option key={id} value={id}>
                {title}
              </option>
            ))}
          </select>
        )}
      </Part>
      {chosen ? (
        <p className="quiet connections__redirect">
          <a href={chosen.docs} target="_blank" rel="noreferrer">{`How to register a client at ${chosen.title}`}</a>
        </p>
      ) : null}
    </>
  )
}

function pairsOf(text: string): Record<string, string> {
  const lines = text.split('\n').filter((line) => line.includes('='))
  return Object.fromEntries(
    lines.map((line) => [line.slice(0, line.indexOf('=')).trim(), line.slice(line.indexOf('=') + 1).trim()]),
  )
}
