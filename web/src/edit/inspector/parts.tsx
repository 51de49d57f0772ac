// Pieces of the Input and Output tabs: an error, the attempts, a value that may be too large to show.

import type { ReactElement, ReactNode } from 'react'
import type { Json } from '../../api/schemas'
import type { ErrorInfo } from '../../api/types'
import type { Attempt } from '../../run'
import { endingOf } from '../../run/ending'
import { EmptyState } from '../../ui/EmptyState'
import { Icon } from '../../ui/icons'
import { Status } from '../../ui/status'
import { ValueTree } from '../../ui/ValueTree'
import { durationText } from '../../ui/time'
import { sentence } from '../../ui/words'

export function Section({
  label,
  children,
  tools,
}: {
  label: string
  children: ReactNode
  tools?: ReactNode
}): ReactElement {
  return (
    <section className="part">
      <div className="part__head">
        <h3 className="label">{label}</h3>
        {tools}
      </div>
      {children}
    </section>
  )
}

const PLAIN = new Set(['code', 'message', 'hint', 'retryable', 'block', 'traceback'])

export function ErrorCard({ error, handled = false }: { error: ErrorInfo; handled?: boolean }): ReactElement {
  const more = Object.fromEntries(
    Object.entries(error).filter(
      ([name, value]) => !PLAIN.has(name) && value !== null && value !== undefined && value !== '',
    ),
  )
  return (
    <div className="errorcard" data-handled={handled || undefined} role="group" aria-label="Error" data-testid="error">
      <p className="errorcard__message">
        <Icon name="failed" />
        {error.message}
      </p>
      {error.hint ? <p className="errorcard__hint">{sentence(error.hint)}</p> : null}
      <p className="label">
        {[error.code, error.retryable === false ? 'not retried' : '', handled ? 'handled' : '']
          .filter(Boolean)
          .join(' · ')}
      </p>
      {error.traceback ? (
        <details className="errorcard__more" data-testid="traceback">
          <summary>Traceback</summary>
          <pre className="rawvalue" tabIndex={0} aria-label="Traceback">
            {error.traceback}
          </pre>
        </details>
      ) : null}
      {Object.keys(more).length ? (
        <details className="errorcard__more">
          <summary>Details</summary>
          <ValueTree value={more as Json} label="Details of the error" height={160} />
        </details>
      ) : null}
    </div>
  )
}

/** Choosing one shows its input and error; the last one is what counts. */
export function Attempts({
  attempts,
  shown,
  onShow,
}: {
  attempts: readonly Attempt[]
  shown: number | null
  onShow: (attempt: number | null) => void
}): ReactElement | null {
  if (attempts.length < 2) return null
  const last = attempts.at(-1)!.attempt
  return (
    <Section label={`${attempts.length} attempts`}>
      <ol className="attempts">
        {attempts.map((each) => (
          <li key={each.attempt}>
            <button
              type="button"
              className="attempt"
              aria-pressed={(shown ?? last) === each.attempt}
              onClick={() => onShow(each.attempt === last ? null : each.attempt)}
            >
              <span className="mono">{each.attempt}</span>
              <Status status={endingOf(each.endedAt !== null, each.error)} />
              <span className="attempt__took mono">
                {each.endedAt === null ? '' : durationText(each.endedAt - each.startedAt)}
              </span>
              {each.error ? <span className="attempt__why">{each.error.message}</span> : null}
            </button>
          </li>
        ))}
      </ol>
    </Section>
  )
}

/** A value; of one that was cut, its beginning as text and the way to the whole. */
export function Value({
  value,
  cut,
  size,
  preview,
  href,
  base,
  name,
  label,
}: {
  value: Json | undefined
  cut: boolean
  size: number | null
  preview: string | undefined
  href: string
  base: string | undefined
  name: string
  label: string
}): ReactElement {
  if (cut) {
    return (
      <>
        <div className="part__bar">
          <span className="label">First 64 kB of {sizeText(size ?? 0)}</span>
          <a className="button" href={href} download={`${name}.json`}>
            <Icon name="download" />
            Download
          </a>
        </div>
        <pre className="rawvalue" tabIndex={0} aria-label={`${label}, beginning`}>
          {preview}
        </pre>
      </>
    )
  }
  if (value === undefined) return <EmptyState title="No value" />
  if (typeof value === 'string' && (value.length > 60 || value.includes('\n')))
    return <LongText text={value} label={label} />
  return <ValueTree value={value} {...(base ? { base } : {})} name={name} label={label} height={320} />
}

function LongText({ text, label }: { text: string; label: string }): ReactElement {
  const most = 64 * 1024
  return (
    <>
      <pre className="rawvalue" tabIndex={0} aria-label={label}>
        {text.slice(0, most)}
      </pre>
      {text.length > most ? <p className="label">First 64 kB of {sizeText(text.length)}</p> : null}
    </>
  )
}

export function sizeText(bytes: number): string {
  if (bytes < 1024) return `${bytes} B`
  return bytes < 1024 * 1024 ? `${Math.round(bytes / 1024)} kB` : `${(bytes / 1024 / 1024).toFixed(1)} MB`
}
