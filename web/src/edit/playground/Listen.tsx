// "Listen for a test event": an address of the webhook for some minutes, which runs the draft. The countdown survives a reload,
// and a restart of the server, which keeps nothing of it.

import { useEffect, useRef, useState, type ReactElement } from 'react'
import { flushSync } from 'react-dom'
import { asEvent } from '../../forms/triggers/curl'
import { copyText } from '../../ui/copy'
import { api } from '../../net/api'
import { serverNow } from '../../net/clock'
import type { DraftAddress } from '../../api/schemas'
import { flush } from '../../state/doc'
import { Button } from '../../ui/Button'
import { useReadOnly } from '../../ui/rights'
import { clockText } from '../../ui/time'
import { messageOf } from '../../ui/words'
import type { Talk, Turn } from './talk'

const EVERY_MS = 1000
/** The maximum by which the estimate of the server's clock is ahead of it. */
const CLOCK_MS = 1500

export function Listen({
  draft,
  trigger,
  listening,
  known,
  onListen,
  onTurn,
}: {
  draft: string
  trigger: string
  listening: Talk['listening']
  /** Runs that are turns already. */
  known: readonly string[]
  onListen: (listening: Talk['listening']) => void
  onTurn: (turn: Turn) => void
}): ReactElement {
  const [now, setNow] = useState(serverNow)
  const [trouble, setTrouble] = useState('')
  const why = useReadOnly()
  const own = listening?.trigger === trigger ? listening : undefined
  const left = own ? own.address.until_ms - now : 0
  useEffect(() => {
    if (!own || left <= 0) return
    let asking = false
    const timer = setInterval(() => {
      setNow(serverNow())
      if (asking || document.hidden) return
      asking = true
      void arrived(draft, trigger, own.since, known)
        .then((turn) => turn && onTurn(turn))
        .catch(() => undefined) // asked again a second later
        .finally(() => (asking = false))
    }, EVERY_MS)
    return () => clearInterval(timer)
  }, [own?.address.url, left <= 0, known.length])

  // The button that was pressed gives way to others: the keyboard goes to the first of them.
  const box = useRef<HTMLDivElement>(null)
  const change = (next: Talk['listening']): void => {
    flushSync(() => onListen(next))
    box.current?.querySelector<HTMLElement>('.button')?.focus({ preventScroll: true })
  }
  const listen = async (): Promise<void> => {
    setTrouble('')
    try {
      await flush()
      const address = await api.listen(draft, trigger)
      setNow(serverNow())
      change({ trigger, since: serverNow() - CLOCK_MS, address })
    } catch (error) {
      setTrouble(messageOf(error))
    }
  }
  if (!own || left <= 0)
    return (
      <div ref={box} className="talk__listen" data-testid="listen-idle">
        {own ? <p className="quiet">The test address has ended.</p> : null}
        {trouble ? <p role="alert">{trouble}</p> : null}
        <Button data-testid="listen" icon="webhook" why={why} onClick={() => void listen()}>
          {own ? 'Listen again' : 'Listen for a test event'}
        </Button>
      </div>
    )
  return (
    <div ref={box} className="talk__listen" data-testid="listening">
      <p>
        Listening, <span className="mono">{clockText(left).replace(/\.\d+$/, '')}</span> left. Requests to this address
        run the draft:
      </p>
      <Copied label="URL" text={own.address.url} />
      <p className="quiet">{PROOF[own.address.auth]}</p>
      {own.address.secret_env === null ? (
        <Button
          icon="copy"
          onClick={() => void copyText(asEvent(own.address.url, own.address.auth, own.address.secret), 'Copied curl')}
        >
          Copy as curl
        </Button>
      ) : null}
      {own.address.secret ? <Copied label="Secret" text={own.address.secret} /> : null}
      {own.address.secret_env ? (
        <p className="quiet">
          The secret is that of <code>{own.address.secret_env}</code>.
        </p>
      ) : null}
      <Button kind="bare" onClick={() => change(undefined)}>
        Stop listening
      </Button>
    </div>
  )
}

const PROOF: Readonly<Record<DraftAddress['auth'], string>> = {
  none: 'Without authentication, as the webhook has none.',
  token: 'Send the secret as a bearer token.',
  hmac: 'Each request is signed with the secret. The curl command does it.',
  github: 'Enter the secret in the settings of the webhook at GitHub.',
}

function Copied({ label, text }: { label: string; text: string }): ReactElement {
  return (
    <p className="talk__copied">
      <code data-testid={`listen-${label.toLowerCase()}`}>{text}</code>
      <Button kind="bare" icon="copy" iconOnly onClick={() => void copyText(text, `Copied ${label}`)}>
        {`Copy ${label}`}
      </Button>
    </p>
  )
}

/** The newest run of the draft, if a request started it since then. */
async function arrived(draft: string, trigger: string, since: number, known: readonly string[]): Promise<Turn | null> {
  const [run] = (await api.runs({ draft, limit: 1, counts: 0 })).runs
  if (!run || run.created_at_ms < since || known.includes(run.id)) return null
  return { run: run.id, input: (await api.run(run.id)).input ?? null, trigger }
}
