// Test of a connection: asks the server to ask the service who is signed in, and shows what came of it, as one line or as steps.

import { useRef, useState, type ReactElement, type ReactNode } from 'react'
import type { ConnectionAsked, ConnectionTest } from '../../api/schemas'
import { connections } from '../../net/connections'
import { ApiError } from '../../net/http'
import { Button } from '../../ui/Button'
import { Icon } from '../../ui/icons'
import { messageOf, sentence } from '../../ui/words'

type Outcome = ConnectionTest['outcome']

export const OUTCOMES: Record<Outcome, string> = {
  ok: 'It works',
  refused: 'Refused',
  hosts: 'Not one of its hosts',
  not_ready: 'Needs a sign-in',
  unreachable: 'Not reached',
  timeout: 'No answer in time',
  failed: 'Not tested',
  nothing: 'Nothing to call',
}

export interface Tested {
  /** `of` identifies the settings that were tested; an error is the server's own refusal to test. */
  of: string
  result: ConnectionTest | null
  error: string
}

export interface Tester {
  /** null: not tested, or what was tested has changed. */
  found: Tested | null
  busy: boolean
  run: () => Promise<ConnectionTest | null>
  forget: () => void
}

/** `of`: what is tested, so that the result of something else is not shown. */
export function useTester(name: string, asked: Partial<ConnectionAsked>): Tester {
  const of = JSON.stringify([name, asked])
  const [found, setFound] = useState<Tested | null>(null)
  const [asking, setAsking] = useState<string | null>(null)
  const last = useRef(0)
  const run = async (): Promise<ConnectionTest | null> => {
    const turn = ++last.current
    const put = (result: ConnectionTest | null, error = ''): void => {
      if (turn === last.current) setFound({ of, result, error })
    }
    setAsking(of)
    try {
      const result = await connections.test(name, asked)
      put(result)
      return result
    } catch (error) {
      const hint = error instanceof ApiError ? error.hint : ''
      put(null, [messageOf(error), hint].filter(Boolean).map(sentence).join(' '))
      return null
    } finally {
      if (turn === last.current) setAsking(null)
    }
  }
  return { found: found?.of === of ? found : null, busy: asking === of, run, forget: () => setFound(null) }
}

export function TestButton({
  tester,
  why,
  testId,
  onPress,
}: {
  tester: Tester
  why?: string | null
  testId: string
  onPress?: () => void
}): ReactElement {
  const { found, busy } = tester
  return (
    <Button
      changes
      data-testid={testId}
      why={busy ? 'The service is being asked' : (why ?? null)}
      onClick={() => (onPress?.(), void tester.run())}
    >
      {busy ? 'Testing…' : found ? 'Test again' : 'Test'}
    </Button>
  )
}

const TONES: Record<Outcome, 'ok' | 'err' | 'wait' | 'quiet'> = {
  ok: 'ok',
  refused: 'err',
  hosts: 'err',
  not_ready: 'wait',
  unreachable: 'err',
  timeout: 'err',
  failed: 'err',
  nothing: 'quiet',
}
export const toneOfTest = (found: Tested): 'ok' | 'err' | 'wait' | 'quiet' =>
  found.result ? TONES[found.result.outcome] : 'err'

export function wordsOfTest({ result, error }: Tested): string {
  if (!result) return error
  const { outcome, who, status } = result
  if (outcome === 'ok') return who ? `Signed in as ${who}` : 'The credential is accepted'
  return status ? `${OUTCOMES[outcome]} (${status})` : OUTCOMES[outcome]
}

/** One line, with the reason below it. `brief`: what was called stands beside it already. */
export function TestLine({
  tester,
  brief,
  children,
}: {
  tester: Tester
  brief?: boolean
  children?: ReactNode
}): ReactElement | null {
  const { found, busy } = tester
  if (busy) {
    return (
      <p className="tested" data-tone="run" role="status">
        <Icon name="running" size={14} />
        <span>The service is being asked who is signed in.</span>
      </p>
    )
  }
  if (!found) return null
  const { result } = found
  const tone = toneOfTest(found)
  const why = result && !result.ok ? [result.message, result.hint].filter(Boolean).map(sentence).join(' ') : ''
  return (
    <div className="tested" data-tone={tone} data-outcome={result?.outcome ?? 'error'} role="status">
      <Icon name={tone === 'ok' ? 'succeeded' : tone === 'err' ? 'failed' : 'warning'} size={14} />
      <div>
        <b>{wordsOfTest(found)}</b>
        {why ? <p>{why}</p> : null}
        {result?.called && !brief ? (
          <p className="tested__called">
            <span className="mono">{result.called}</span>, {result.took_ms} ms
          </p>
        ) : null}
        {children}
      </div>
    </div>
  )
}

/** The steps in order; those after the one that failed were not made. */
export function TestSteps({ tester }: { tester: Tester }): ReactElement | null {
  const { found, busy } = tester
  const result = found?.result
  if (busy || !result?.called) return <TestLine tester={tester} brief />
  const host = hostIn(result.called)
  const { outcome, status, took_ms: ms } = result
  const reached = status !== null || outcome === 'ok' || outcome === 'refused'
  const at = outcome === 'ok' ? 3 : outcome === 'hosts' || outcome === 'not_ready' ? 0 : reached ? 2 : 1
  const steps = [
    outcome === 'not_ready' ? ['Has a credential', 'It needs a sign-in'] : ['May be sent there', host],
    ['The service answers', at > 1 ? `${status ?? ''}, ${ms} ms` : at === 1 ? OUTCOMES[outcome] : ''],
    ['The credential is accepted', at === 3 ? (result.who ? `as ${result.who}` : '') : ''],
  ]
  return (
    <>
      <ol className="teststeps" data-outcome={outcome} aria-label="Steps of the test">
        {steps.map(([name, detail], step) => (
          <li key={name} data-tone={step < at ? 'ok' : step === at ? 'err' : 'quiet'}>
            <Icon
              name={step < at ? 'succeeded' : step === at ? 'failed' : 'skipped'}
              size={14}
              label={step < at ? 'done' : step === at ? 'failed' : 'not done'}
            />
            <span>{name}</span>
            <span className="quiet">{detail}</span>
          </li>
        ))}
      </ol>
      <TestLine tester={tester} brief />
    </>
  )
}

function hostIn(called: string): string {
  const address = called.slice(called.indexOf(' ') + 1)
  try {
    return address.includes('://') ? new URL(address).host : address // of SSH
  } catch {
    return ''
  }
}
