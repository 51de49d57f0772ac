// The numbers of runs by their creation: bars of the ended ones, the failed in red above. A brush narrows the list to a part of the time.

import { useRef, useState, type PointerEvent, type ReactElement } from 'react'
import type { RunTimes } from '../../api/schemas'
import { Button } from '../../ui/Button'
import { setQuery } from '../../ui/navigation'
import { dateTime } from '../../ui/time'
import { TimeAxis } from '../TimeAxis'

const WIDE = 1386
const HIGH = 34

export function Histogram({
  times,
  until,
  brushed,
}: {
  times: RunTimes
  until: number
  brushed: boolean
}): ReactElement {
  const element = useRef<HTMLDivElement>(null)
  const [brush, setBrush] = useState<[from: number, to: number] | null>(null)
  const all = Object.entries(times.counts)
  const parts = all[0]?.[1].length ?? 0
  const pitch = WIDE / Math.max(1, parts)
  const sums = Array.from({ length: parts }, (_, n) => all.reduce((sum, [, counts]) => sum + (counts[n] ?? 0), 0))
  const most = Math.max(1, ...sums)
  const failed = times.counts.failed ?? []
  const span = until - times.since_ms
  const placeOf = (event: PointerEvent): number => {
    const box = element.current!.getBoundingClientRect()
    return Math.max(0, Math.min(1, (event.clientX - box.left) / box.width))
  }
  const end = (): void => {
    if (brush === null) return
    const [from, to] = [Math.min(...brush), Math.max(...brush)]
    setBrush(null)
    if (to - from < 0.004) return
    setQuery({
      since: String(Math.round(times.since_ms + from * span)),
      until: String(Math.round(times.since_ms + to * span)),
    })
  }
  const total = sums.reduce((sum, count) => sum + count, 0)
  return (
    <div className="times">
      <div
        ref={element}
        className="times__bars"
        role="img"
        aria-label={`${total} runs from ${dateTime(times.since_ms)} to ${dateTime(until)}, ${failed.reduce((sum, count) => sum + count, 0)} failed`}
        onPointerDown={(event) => {
          event.currentTarget.setPointerCapture(event.pointerId)
          setBrush([placeOf(event), placeOf(event)])
        }}
        onPointerMove={(event) => brush && setBrush([brush[0], placeOf(event)])}
        onPointerUp={end}
        onPointerCancel={() => setBrush(null)}
      >
        <svg viewBox={`0 0 ${WIDE} ${HIGH}`} preserveAspectRatio="none" aria-hidden="true">
          {sums.map((sum, n) => {
            if (!sum) return null
            const height = Math.max(2, (sum / most) * HIGH)
            const red = failed[n] ? Math.max(2, ((failed[n] ?? 0) / most) * HIGH) : 0
            return (
              <g key={n}>
                <rect
                  className="times__bar"
                  x={n * pitch}
                  y={HIGH - height}
                  width={pitch - 2}
                  height={height}
                  rx="1.5"
                />
                {red ? (
                  <rect
                    className="times__red"
                    x={n * pitch}
                    y={HIGH - height}
                    width={pitch - 2}
                    height={red}
                    rx="1.5"
                  />
                ) : null}
              </g>
            )
          })}
        </svg>
        {brush ? (
          <span
            className="times__brush"
            style={{ left: `${100 * Math.min(...brush)}%`, width: `${100 * Math.abs(brush[1] - brush[0])}%` }}
          />
        ) : null}
      </div>
      <TimeAxis from={times.since_ms} to={until} {...(until > Date.now() - 60_000 ? { end: 'now' } : {})} />
      {brushed ? (
        <Button kind="bare" onClick={() => setQuery({ since: null, until: null })}>
          Show the whole day
        </Button>
      ) : null}
    </div>
  )
}
