// When a schedule is due: the expression in words, and its next times in its own time zone and relative to now.

import type { ReactElement } from 'react'
import { Ago } from '../../ui/Ago'
import { cronWords } from './cron'

export function CronWords({ cron, tz }: { cron: string; tz: string }): ReactElement {
  const words = cronWords(cron)
  return (
    <span className="cron">
      {words ? <span>{words} </span> : null}
      <code>{cron}</code>
      <span className="quiet"> {tz}</span>
    </span>
  )
}

/** The next times, soonest first. */
export function Moments({ times, tz }: { times: readonly number[]; tz: string }): ReactElement {
  return (
    <ol className="moments" aria-label="Next runs">
      {times.map((at) => (
        <li key={at}>
          <span className="mono">{momentIn(at, tz)}</span>{' '}
          <span className="quiet">
            <Ago at={at} to />
          </span>
        </li>
      ))}
    </ol>
  )
}

/** Fri 27 Nov 2026, 09:00 in the time zone of the schedule; a zone that this browser does not know is UTC. */
export function momentIn(at: number, tz: string): string {
  const how: Intl.DateTimeFormatOptions = {
    weekday: 'short',
    day: 'numeric',
    month: 'short',
    year: 'numeric',
    hour: '2-digit',
    minute: '2-digit',
    hourCycle: 'h23',
  }
  try {
    return new Date(at).toLocaleString(undefined, { ...how, timeZone: tz })
  } catch {
    return new Date(at).toLocaleString(undefined, { ...how, timeZone: 'UTC', timeZoneName: 'short' })
  }
}
