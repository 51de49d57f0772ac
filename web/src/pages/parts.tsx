// Small parts that several pages share: a list that keeps itself fresh, values for people to read.

import { useEffect, useRef, type ReactElement, type ReactNode } from 'react'
import { ApiError } from '../net/api'
import type { Json } from '../api/schemas'
import { Button } from '../ui/Button'
import { EmptyState } from '../ui/EmptyState'
import { useData, type Loaded } from '../ui/useData'

/** Rounds that an answer may take: to ask again sooner would be to throw away what is on its way, again and again. */
const PATIENT_ROUNDS = 6

/** Like useData, and loaded again every `everyMs` while the page is looked at. */
export function usePolled<T>(load: () => Promise<T>, deps: readonly unknown[], everyMs = 5000): Loaded<T> {
  const data = useData(load, deps)
  const { reload } = data
  const loading = useRef(true)
  loading.current = data.loading
  useEffect(() => {
    let waited = 0
    const again = (): void => {
      if (document.hidden || (loading.current && ++waited < PATIENT_ROUNDS)) return
      waited = 0
      reload()
    }
    const timer = setInterval(again, everyMs)
    document.addEventListener('visibilitychange', again)
    return () => {
      clearInterval(timer)
      document.removeEventListener('visibilitychange', again)
    }
  }, [reload, everyMs])
  return data
}

/** What stands in place of a list: nothing yet while it loads, why it cannot be had, or what to do when it is empty. */
export function ListState({
  data,
  empty,
  children,
}: {
  data: Loaded<unknown>
  empty: boolean
  children: ReactNode
}): ReactElement | null {
  if (data.value === null && data.error) return <Unavailable error={data.error} onRetry={data.reload} />
  if (data.value === null)
    return (
      <p className="loading quiet" role="status">
        Loading
      </p>
    )
  return empty ? <>{children}</> : null
}

export function Unavailable({ error, onRetry }: { error: Error; onRetry?: () => void }): ReactElement {
  const offline = error instanceof ApiError && error.status === 0
  return (
    <EmptyState icon="warning" title={offline ? 'The server cannot be reached' : error.message}>
      {offline ? (
        <p>It may be restarting. Runs continue after the restart.</p>
      ) : error instanceof ApiError && error.hint ? (
        <p>{error.hint}</p>
      ) : null}
      {onRetry ? <Button onClick={onRetry}>Try again</Button> : null}
    </EmptyState>
  )
}

/** What is on the page is older than it looks: shown above a list whose last reload failed. */
export function Stale({ data }: { data: Loaded<unknown> }): ReactElement | null {
  if (!data.error || data.value === null) return null
  return (
    <p className="notice" data-tone="err" role="status">
      {data.error.message} This page may be out of date. <Button onClick={data.reload}>Try again</Button>
    </p>
  )
}

const DEPTH_MAX = 3
const ITEMS_MAX = 50

/** JSON for people: objects as names and values, lists as lists, texts with their line breaks. */
export function Readable({ value, depth = 0 }: { value: Json; depth?: number }): ReactElement {
  if (value !== null && typeof value === 'object' && depth < DEPTH_MAX) {
    const entries = Object.entries(value)
    const more = entries.length > ITEMS_MAX ? <p className="quiet">and {entries.length - ITEMS_MAX} more</p> : null
    if (!entries.length) return <span className="quiet">Empty</span>
    if (Array.isArray(value))
      return (
        <>
          <ol className="readable-list">
            {value.slice(0, ITEMS_MAX).map((item, i) => (
              <li key={i}>
                <Readable value={item} depth={depth + 1} />
              </li>
            ))}
          </ol>
          {more}
        </>
      )
    return (
      <>
        <dl className="readable">
          {entries.slice(0, ITEMS_MAX).map(([name, item]) => (
            <div key={name}>
              <dt>{name}</dt>
              <dd>
                <Readable value={item} depth={depth + 1} />
              </dd>
            </div>
          ))}
        </dl>
        {more}
      </>
    )
  }
  if (typeof value === 'string')
    return value ? <span className="readable-text">{value}</span> : <span className="quiet">Empty</span>
  if (typeof value === 'boolean') return <span>{value ? 'Yes' : 'No'}</span>
  if (value === null) return <span className="quiet">None</span>
  return <code>{JSON.stringify(value)}</code>
}
