// Connections: credentials that blocks pick from a list. Admins add them and sign in to their providers; no value is ever shown.

import { useEffect, useState, type ReactElement } from 'react'
import type { ConnectionView, SignInAnswer } from '../../api/schemas'
import { TestButton, TestSteps, toneOfTest, useTester, wordsOfTest } from '../../forms/fields/ConnectionTest'
import { endSignIn } from '../../forms/fields/signIn'
import { connections } from '../../net/connections'
import { Ago } from '../../ui/Ago'
import { Button } from '../../ui/Button'
import { EmptyState } from '../../ui/EmptyState'
import { Icon, iconOf } from '../../ui/icons'
import { navigate } from '../../ui/navigation'
import { toast } from '../../ui/Toast'
import { useMayNot } from '../../ui/rights'
import { useData } from '../../ui/useData'
import { whoOf } from '../../ui/words'
import { ListState, Stale } from '../parts'
import { ConnectionDialog, KINDS } from './ConnectionDialog'
import { DeleteDialog } from './DeleteDialog'
import { refusalOf } from './EditDialog'
import { codes, Refused } from './ListPage'

const TILES = 6

type Shown =
  | { act: 'set'; connection: ConnectionView | null; provider?: string }
  | { act: 'delete'; connection: ConnectionView }

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
  const [closed, setClosed] = useState<string | null>(null)
  const close = (): void => setShown(null)
  const { reload } = stored
  useEffect(() => {
    if (closed !== null && !wrong) window.close() // a browser that keeps the window open shows what it is about
  }, [closed, wrong])
  useEffect(() => {
    const answer = answerOfProvider()
    if (!isAdmin || answer === null) return
    navigate('/settings?page=connections', { replace: true })
    void end(answer).then(({ name, error, next }) => {
      if (next === 'close') setClosed(name)
      else if (next) navigate(next.to, { replace: true })
      else if (!error) reload()
      if (error) setWrong(error)
      else toast(`Signed in to ${name}`, 'ok')
    })
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
  const add = (
    <Button kind="primary" icon="plus" changes onClick={() => setShown({ act: 'set', connection: null })}>
      New connection
    </Button>
  )
  const others = (stored.value?.providers ?? []).filter((one) => !all.some((each) => each.name === one.id))
  if (closed !== null)
    return (
      <section aria-label="Sign-in" data-testid="signed-in">
        <EmptyState icon="link" title={wrong ? `${closed} is not signed in` : `Signed in to ${closed}`}>
          <p role="status">{wrong ?? 'The workflow is in the other window.'} You can close this one.</p>
        </EmptyState>
      </section>
    )
  return (
    <section aria-labelledby="set-connections" data-testid="connections" id="connections">
      <div className="settings__head">
        <h2 id="set-connections">Connections</h2>
        {isAdmin && all.length ? add : null}
      </div>
      <p className="quiet">
        Keys and sign-ins that blocks use by name: OAuth 2, API keys, passwords and tokens. Each is sent only to its
        hosts, and a workflow never holds it.
      </p>
      <Refused error={wrong} testId="connection-wrong" />
      <Stale data={stored} />
      {all.length ? (
        <ul className="conns">
          {all.map((connection) => (
            <Row
              key={connection.name}
              connection={connection}
              isAdmin={isAdmin}
              onConnect={() => void connect(connection.name)}
              onEdit={() => setShown({ act: 'set', connection })}
              onDelete={() => setShown({ act: 'delete', connection })}
            />
          ))}
        </ul>
      ) : (
        <ListState data={stored} empty>
          <EmptyState icon="link" title="There is no connection">
            {isAdmin ? add : <p>An administrator can add one.</p>}
          </EmptyState>
        </ListState>
      )}
      {isAdmin && others.length ? (
        <>
          <h3 className="conns__next">Connect next</h3>
          <ul className="conns__tiles">
            {others.slice(0, TILES).map((one) => (
              <li key={one.id}>
                <Button
                  icon={iconOf(one.id.replace('google', 'gmail'), 'link')}
                  changes
                  onClick={() => setShown({ act: 'set', connection: null, provider: one.id })}
                >
                  {one.title}
                </Button>
              </li>
            ))}
          </ul>
        </>
      ) : null}
      {shown?.act === 'set' ? (
        <ConnectionDialog
          connection={shown.connection}
          first={shown.provider}
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

interface RowProps {
  connection: ConnectionView
  isAdmin: boolean
  onConnect: () => void
  onEdit: () => void
  onDelete: () => void
}

/** One connection: the result of its last use, and, unfolded, where it may be sent and what uses it. */
function Row({ connection, isAdmin, onConnect, onEdit, onDelete }: RowProps): ReactElement {
  const { name, kind, provider, state, problem, hosts, last_used_at_ms: used } = connection
  const [open, setOpen] = useState(false)
  const tester = useTester(name, {})
  const mayNotTest = useMayNot('editor')
  // The stored result is shown until it is tested here.
  const tested = connection.tested ?? null
  const found = tester.found ?? (tested && { of: name, result: tested.result, error: '' })
  const ready = state === 'ready'
  const tone = found ? toneOfTest(found) : !ready ? 'err' : used === null ? 'quiet' : 'ok'
  const icon = tone === 'quiet' ? null : tone === 'ok' ? 'succeeded' : 'failed'
  return (
    <li className="conn" data-testid={`connection-${name}`} data-open={open || undefined}>
      <div className="conn__row">
        <span className="plate">
          <Icon name={iconOf(provider || name, kind === 'oauth2_code' ? 'person' : 'link')} />
        </span>
        <span className="conn__name">
          <b>{name}</b>
          <span className="label">
            {kind ? KINDS[kind] : 'Unknown kind'}
            {provider ? `, ${provider}` : ''}, {hosts.join(', ')}
          </span>
        </span>
        <span className="conn__state" data-testid={`connection-state-${name}`} data-tone={tone}>
          {icon ? <Icon name={icon} size={12} /> : null}
          {found ? (
            !found.result ? (
              'Test failed'
            ) : tester.found || !tested ? (
              wordsOfTest(found)
            ) : (
              <span>
                Checked <Ago at={tested.at_ms} />: {tested.result.ok ? 'ok' : wordsOfTest(found).toLowerCase()}
              </span>
            )
          ) : ready ? (
            used === null ? (
              'Never used'
            ) : (
              <>
                Used <Ago at={used} />
              </>
            )
          ) : (
            STATES[state]
          )}
        </span>
        <span className="conn__acts">
          {ready ? (
            <TestButton
              tester={{ ...tester, found }}
              why={mayNotTest}
              testId={`test-${name}`}
              onPress={() => setOpen(true)}
            />
          ) : null}
          {isAdmin ? (
            <>
              {kind === 'oauth2_code' ? (
                <Button changes onClick={onConnect}>
                  {state === 'sign_in' ? 'Connect' : 'Reconnect'}
                </Button>
              ) : null}
              <Button kind="bare" icon="edit" iconOnly changes onClick={onEdit}>
                {`Replace ${name}`}
              </Button>
              <Button kind="bare" icon="trash" iconOnly changes onClick={onDelete}>
                {`Delete ${name}`}
              </Button>
            </>
          ) : null}
          <Button
            kind="bare"
            icon={open ? 'down' : 'chevron'}
            iconOnly
            aria-expanded={open}
            onClick={() => setOpen(!open)}
          >
            {`Details of ${name}`}
          </Button>
        </span>
      </div>
      {problem ? <p className="conn__problem">{problem}</p> : null}
      {open ? (
        <div className="conn__more">
          <dl className="readable">
            <div>
              <dt>Allowed hosts</dt>
              <dd>{codes(hosts)}</dd>
            </div>
            <div>
              <dt>Last used</dt>
              <dd>{used === null ? 'Never' : <Ago at={used} />}</dd>
            </div>
            <div>
              <dt>Made by</dt>
              <dd>
                {whoOf(connection.created_by) || 'Unknown'}, <Ago at={connection.created_at_ms} />
              </dd>
            </div>
          </dl>
          <div>
            <div className="conn__test">
              <b>Test</b>
              <span className="label mono">{connection.check}</span>
            </div>
            {found || tester.busy ? (
              <>
                {tested && !tester.found && !tester.busy ? (
                  <p className="quiet">
                    Checked <Ago at={tested.at_ms} />
                  </p>
                ) : null}
                <TestSteps tester={{ ...tester, found }} />
              </>
            ) : connection.check ? (
              <p className="quiet">Not tested yet.</p>
            ) : (
              <p className="quiet">
                No service on its hosts has a sign-in check. Replace it with an address to check, or test it in the
                block of a service.
              </p>
            )}
            {isAdmin ? <Uses name={name} /> : null}
          </div>
        </div>
      ) : null}
    </li>
  )
}

/** Ends a sign-in, and reports it to the page in which it began. */
async function end(
  answer: SignInAnswer,
): Promise<{ name: string; error: string | null; next: Awaited<ReturnType<typeof endSignIn>> }> {
  const name = answer.state.split('.')[0]!
  let error: string | null = null
  try {
    await connections.connected(answer)
  } catch (refused) {
    error = refusalOf(refused).message
  }
  return { name, error, next: await endSignIn(name, error ?? '') }
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
