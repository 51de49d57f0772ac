// A time as how long ago it was, or how far ahead it is.

import { useEffect, useState, type ReactElement } from 'react'
import { serverNow } from '../net/clock'
import { dateTime, roughly } from './time'

/** "4 m ago", with the whole moment as its tooltip. `to` true: "in 4 m". */
export function Ago({ at, to = false }: { at: number; to?: boolean }): ReactElement {
  const [now, setNow] = useState(serverNow)
  useEffect(() => {
    const timer = setInterval(() => setNow(serverNow()), 10_000)
    return () => clearInterval(timer)
  }, [])
  const ms = to ? at - now : now - at
  const text = to ? (ms > 0 ? `in ${roughly(ms)}` : 'now') : ms < 5000 ? 'just now' : `${roughly(ms)} ago`
  return (
    <time dateTime={new Date(at).toISOString()} title={dateTime(at)}>
      {text}
    </time>
  )
}
