// The name of a stored connection: one of those that may be sent to the host of the block, or a new one, made here. It is tested, and
// signed in to, where it is chosen. What is not there stays as it is written.

import { useEffect, useRef, useState, type ReactElement } from 'react'
import { connections } from '../../net/connections'
import { Button } from '../../ui/Button'
import { Link } from '../../ui/navigation'
import { useMayNot } from '../../ui/rights'
import { useData } from '../../ui/useData'
import { messageOf, sentence } from '../../ui/words'
import { ConnectDialog } from './ConnectDialog'
import { fits, hostOf, offered, providerFor } from './connecting'
import { TestButton, TestLine, useTester } from './ConnectionTest'
import type { ControlProps } from './control'
import { useFieldScope } from './scope'
import { openWindow, signIn } from './signIn'

export function ConnectionField({ value, onChange, ids, path, hint, params }: ControlProps): ReactElement {
  const { readonly, specs, block, doc } = useFieldScope()
  const stored = useData(connections.list, [])
  const mayNot = useMayNot('admin')
  const mayNotTest = useMayNot('editor')
  const [making, setMaking] = useState(false)
  const name = typeof value === 'string' ? value : ''
  const all = stored.value?.connections ?? []
  const chosen = all.find((each) => each.name === name)
  const missing = name !== '' && !chosen && stored.value !== null
  const host = hostOf(params ?? {}, hint.auth)
  const baseUrl = plainUrl(params?.base_url)
  const others = all.length - offered(all, host, name).length
  const tester = useTester(name, { service: hint.auth?.service ?? '', base_url: baseUrl })
  // A connection that was just made is tested at once.
  const [fresh, setFresh] = useState('')
  useEffect(() => {
    if (fresh === '' || fresh !== name) return
    setFresh('')
    void tester.run()
  }, [fresh, name])
  const needsSignIn = chosen?.kind === 'oauth2_code' && chosen.state !== 'ready' && chosen.state !== 'unreadable'
  const problem = missing
    ? 'No connection has this name yet: New makes it.'
    : chosen && chosen.state !== 'ready'
      ? chosen.state === 'unreadable'
        ? 'This server cannot open it.'
        : 'It needs a sign-in.'
      : chosen && host !== null && !fits(chosen.hosts, host)
        ? `It is sent only to ${chosen.hosts.join(', ')}, and not to ${host}.`
        : (stored.error && sentence(stored.error.message)) || null
  const service = (block !== null && specs.get(doc.blocks[block]?.type ?? '')?.title) || 'a service'
  const done = (made: string): void => {
    setMaking(false)
    stored.reload()
    onChange(made)
    setFresh(made)
  }
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
        {readonly || !chosen || chosen.state === 'unreadable' ? null : needsSignIn ? (
          <SignInButton name={name} block={block} path={path} why={mayNot} onDone={done} />
        ) : (
          <TestButton tester={tester} why={mayNotTest} testId={`test-${path}`} />
        )}
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
      ) : tester.found || tester.busy ? null : (
        <p className="connect__about">
          {chosen
            ? `Sent only to ${chosen.hosts.join(', ')}`
            : others
              ? `${others} ${others === 1 ? 'other is' : 'others are'} not for ${host}.`
              : ''}
        </p>
      )}
      <TestLine tester={tester}>
        {tester.found?.result?.outcome === 'nothing' ? (
          <p>
            An administrator can give it an address to check in <Link to="/settings?page=connections">Settings</Link>.
          </p>
        ) : null}
      </TestLine>
      {making ? (
        <ConnectDialog
          service={hint.auth ? service : (host ?? 'a service')}
          auth={hint.auth}
          host={host}
          baseUrl={baseUrl}
          reads={(params?.method ?? 'GET') === 'GET' ? plainUrl(params?.url) : ''}
          block={block}
          provider={providerFor(stored.value?.providers ?? [], hint.auth, host)}
          redirectUri={stored.value?.redirect_uri ?? ''}
          names={all.map((each) => each.name)}
          wanted={missing ? name : ''}
          onClose={() => setMaking(false)}
          onStored={(made) => {
            stored.reload()
            onChange(made)
          }}
          onDone={done}
        />
      ) : null}
    </>
  )
}

/** Begins the sign-in in a window of its own, and continues here when it has ended. */
function SignInButton({
  name,
  block,
  path,
  why,
  onDone,
}: {
  name: string
  block: string | null
  path: string
  why: string | null
  onDone: (name: string) => void
}): ReactElement {
  const [wrong, setWrong] = useState('')
  const left = useRef<AbortController | null>(null)
  useEffect(() => () => left.current?.abort(), [])
  const begin = async (): Promise<void> => {
    setWrong('')
    left.current?.abort()
    const { signal } = (left.current = new AbortController())
    try {
      const error = await signIn(name, openWindow(), signal, block)
      if (signal.aborted) return
      if (error) setWrong(error)
      else onDone(name)
    } catch (error) {
      setWrong(sentence(messageOf(error)))
    }
  }
  return (
    <Button changes data-testid={`sign-in-${path}`} why={why} title={wrong || undefined} onClick={() => void begin()}>
      {wrong ? 'Sign in again' : 'Sign in'}
    </Button>
  )
}

/** An address without references: others have a value in a run only. */
const plainUrl = (value: unknown): string =>
  typeof value === 'string' && /^https?:\/\/[^<>{}\s]+$/.test(value) ? value : ''
