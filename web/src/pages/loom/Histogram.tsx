// The runs in time below the picture; a part of that time is chosen by dragging, or with the two sliders.

import { useRef, type PointerEvent, type ReactElement } from 'react'
import { binsOf, type Bin } from './totals'
import type { LoomRun } from '../../api/schemas'
import { moment } from '../ticks'
import { TimeAxis } from '../TimeAxis'

const BINS = 120

export type Brush = readonly [number, number] | null

export function Histogram({
  runs,
  brush,
  onBrush,
}: {
  runs: readonly LoomRun[]
  brush: Brush
  onBrush: (brush: Brush) => void
}): ReactElement | null {
  const bins = binsOf(runs, BINS)
  const from = useRef<number | null>(null)
  if (!bins.length) return null
  const most = Math.max(...bins.map((bin) => bin.ended + bin.failed + bin.open))
  const binAt = (event: PointerEvent<HTMLElement>): number => {
    const area = event.currentTarget.getBoundingClientRect()
    return Math.min(BINS - 1, Math.max(0, Math.floor(((event.clientX - area.left) / area.width) * BINS)))
  }
  const choose = (a: number, b: number): void => onBrush([bins[Math.min(a, b)]!.from, bins[Math.max(a, b)]!.to])
  const first = brush
    ? Math.max(
        0,
        bins.findIndex((bin) => bin.to > brush[0]),
      )
    : 0
  const last = brush
    ? Math.max(
        first,
        bins.findLastIndex((bin) => bin.from < brush[1]),
      )
    : BINS - 1
  return (
    <div className="loomtime">
      <div
        className="loomtime__bars"
        onPointerDown={(event) => {
          event.currentTarget.setPointerCapture(event.pointerId)
          from.current = binAt(event)
        }}
        onPointerMove={(event) => from.current !== null && choose(from.current, binAt(event))}
        onPointerUp={(event) => {
          if (from.current === binAt(event) && brush) onBrush(null)
          else if (from.current !== null) choose(from.current, binAt(event))
          from.current = null
        }}
      >
        {bins.map((bin, at) => (
          <i key={bin.from} data-in={(at >= first && at <= last) || undefined}>
            <b data-tone="run" style={{ height: `${(bin.open / most) * 100}%` }} />
            <b data-tone="err" style={{ height: `${(bin.failed / most) * 100}%` }} />
            <b data-tone="ok" style={{ height: `${(bin.ended / most) * 100}%` }} />
          </i>
        ))}
        {brush ? (
          <span
            className="loomtime__brush"
            style={{ left: `${(first / BINS) * 100}%`, width: `${((last + 1 - first) / BINS) * 100}%` }}
          />
        ) : null}
      </div>
      <TimeAxis from={bins[0]!.from} to={bins.at(-1)!.to} />
      <div className="visually-hidden">
        <Slider label="Runs from" bins={bins} at={first} onChange={(at) => choose(at, Math.max(at, last))} />
        <Slider label="Runs until" bins={bins} at={last} onChange={(at) => choose(Math.min(first, at), at)} />
      </div>
    </div>
  )
}

function Slider({
  label,
  bins,
  at,
  onChange,
}: {
  label: string
  bins: readonly Bin[]
  at: number
  onChange: (at: number) => void
}): ReactElement {
  return (
    <input
      type="range"
      aria-label={label}
      aria-valuetext={moment(bins[at]!.from, bins[at]!.to - bins[at]!.from, bins.at(-1)!.to - bins[0]!.from)}
      min={0}
      max={bins.length - 1}
      value={at}
      onChange={(event) => onChange(Number(event.target.value))}
    />
  )
}
