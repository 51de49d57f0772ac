// "Listen for a test event": the next event runs the draft. A webhook has an address for some minutes; a source that is polled
// is asked every few seconds. The countdown survives a reload, and a restart of the server, which keeps nothing of it.

import { useEffect, useRef, useState, type ReactElement } from 'react'
import { flushSync } from 'react-dom'
import { asEvent } from '../../forms/triggers/curl'
import { copyText } from '../../ui/copy'
import { api, ApiError } from '../../net/api'
import { serverNow } from '../../net/clock'
import type { DraftAddress, DraftEvent } from '../../api/schemas'
import { flush } from '../../state/doc'
import { Button } from '../../ui/Button'
import { useReadOnly } from '../../ui/rights'
import { clockText } from '../../ui/time'
import { messageOf } from '../../ui/words'
import type { Listening, Turn } from './talk'

const EVERY_MS = 1000
const POLL_MS = 4000
/** The maximum by which the estimate of the server's clock is ahead of it. */
const CLOCK_MS = 1500

export function Listen({
  draft,
  trigger,
  polled,
  listening,
  known,
  onListen,
  onTurn,
}: {
  draft: string
  trigger: string
  /** It is a source that is asked, and no webhook. */
  polled: boolean
  listening: Listening | undefined
  /** Runs that are turns already. */
  known: readonly string[]
  onListen: (listening: Listening | undefined) => void
  onTurn: (turn: Turn) => void
}): ReactElement {
  const [now, setNow] = useState(serverNow)
  const [trouble, setTrouble] = useState('')
  const [asking, setAsking] = useState(false)
  const mayNot = useReadOnly()
  const why = mayNot ?? (asking ? 'Reading the source' : null)
  const own = listening?.trigger === trigger ? listening : undefined
  const left = own ? own.until_ms - now : 0
  const ended = left <= 0
  useEffect(() => {
    if (!own || ended) return
    const timer = setInterval(() => setNow(serverNow()), EVERY_MS)
    return () => clearInterval(timer)
  }, [own?.since, ended])
  useEffect(() => {
    if (!own || ended || asking) return
    const every = polled ? POLL_MS : EVERY_MS
    let gone = false
    const ask = async (): Promise<void> => {
      try {
        // A source is asked while the page is hidden, too: the person makes the event elsewhere.
        const event = polled ? await api.pollDraft(draft, trigger, own.after) : null
        const turn = event
          ? turnOf(event, trigger)
          : document.hidden
            ? null
            : await arrived(draft, trigger, own.since, known)
        if (event?.run) onListen(undefined)
        else if (event && !gone) onListen({ ...own, after: event.after ?? '' })
        if (turn) onTurn(turn)
        if (!gone) setTrouble('')
      } catch (error) {
        if (polled && !gone) setTrouble(messageOf(error))
        if (error instanceof ApiError && error.code === 'listening_ended' && !gone) onListen(undefined)
      }
      if (!gone) timer = setTimeout(ask, every)
    }
    let timer = setTimeout(ask, every)
    return () => {
      gone = true
      clearTimeout(timer)
    }
  }, [own?.since, own?.after, ended, asking, known.length])

  // The button that was pressed gives way to others: the keyboard goes to the first of them.
  const box = useRef<HTMLDivElement>(null)
  const change = (next: Listening | undefined): void => {
    flushSync(() => onListen(next))
    box.current?.querySelector<HTMLElement>('.button')?.focus({ preventScroll: true })
  }
  const attempt = async (what: () => Promise<void>): Promise<void> => {
    setTrouble('')
    setAsking(true)
    try {
      await flush()
      await what()
    } catch (error) {
      setTrouble(messageOf(error))
    } finally {
      setAsking(false)
    }
  }
  const listen = (): Promise<void> =>
    attempt(async () => {
      const begun = polled ? await api.pollDraft(draft, trigger, '') : null
      const address = polled ? undefined : await api.listen(draft, trigger)
      const until_ms = address?.until_ms ?? begun?.until_ms ?? 0
      setNow(serverNow())
      change({
        trigger,
        since: serverNow() - CLOCK_MS,
        until_ms,
        ...(address ? { address } : { after: begun?.after ?? '', newest: begun?.newest ?? false }),
      })
    })
  const takeNewest = (): Promise<void> =>
    attempt(async () => {
      const turn = turnOf(await api.pollDraft(draft, trigger), trigger)
      change(undefined)
      if (turn) onTurn(turn)
    })
  const shown = trouble ? <p role="alert">{trouble}</p> : null
  if (!own || ended)
    return (
      <div ref={box} className="talk__listen" data-testid="listen-idle">
        {own ? <p className="quiet">{polled ? 'No event has come.' : 'The test address has ended.'}</p> : null}
        {shown}
        <Button data-testid="listen" icon="webhook" why={why} onClick={() => void listen()}>
          {own ? 'Listen again' : 'Listen for a test event'}
        </Button>
      </div>
    )
  return (
    <div ref={box} className="talk__listen" data-testid="listening">
      <p>
        <b>Listening…</b> <span className="mono">{clockText(left).replace(/\.\d+$/, '')}</span> left.{' '}
        {own.address ? 'Requests to this address run the draft:' : 'The next event at the source runs the draft.'}
      </p>
      {shown}
      {own.address ? <Address {...own.address} /> : null}
      <div className="talk__choices">
        {own.newest ? (
          <Button data-testid="newest-event" icon="play" why={why} onClick={() => void takeNewest()}>
            Use the newest one
          </Button>
        ) : null}
        <Button kind="bare" onClick={() => change(undefined)}>
          Cancel
        </Button>
      </div>
    </div>
  )
}

function Address({ url, auth, secret, secret_env }: DraftAddress): ReactElement {
  return (
    <>
      <Copied label="URL" text={url} />
      <p className="quiet">{PROOF[auth]}</p>
      {secret_env === null ? (
        <Button icon="copy" onClick={() => void copyText(asEvent(url, auth, secret), 'Copied curl')}>
          Copy as curl
        </Button>
      ) : null}
      {secret ? <Copied label="Secret" text={secret} /> : null}
      {secret_env ? (
        <p className="quiet">
          The secret is that of <code>{secret_env}</code>.
        </p>
      ) : null}
    </>
  )
}

function turnOf({ run, input }: DraftEvent, trigger: string): Turn | null {
  return run === null ? null : { run, input: input ?? null, trigger }
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
