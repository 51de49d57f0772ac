// One block over all runs: how often it ran, how long it took, how often it failed.

import { memo, type ReactElement, type SVGProps } from 'react'
import type { LoomRun } from '../../api/schemas'
import { STUB } from '../../geometry/silhouette'
import { Icon, iconOf } from '../../ui/icons'
import { durationText } from '../../ui/time'
import { CARD, type Place } from './place'
import { distribution, quantile, type BlockTotal, type Cell } from './totals'

const PITCH = 9.6
const SQUARE = 8
const BINS = 24
const BARS = 24 // height in pixels

export const LoomCard = memo(function LoomCard({
  place,
  name,
  icon,
  total,
  times,
  split,
  cells,
  chosen,
  onFailures,
  onOpen,
}: {
  place: Place
  name: string
  icon: string | undefined
  total: BlockTotal | undefined
  /** Ascending, in milliseconds. */
  times: readonly number[]
  /** The number of runs that left a block that chooses by each of its handles. */
  split: readonly { title: string; runs: number }[]
  cells: readonly Cell[]
  /** The runs in which it failed are listed. */
  chosen: boolean
  onFailures: (block: string) => void
  onOpen: (run: LoomRun) => void
}): ReactElement {
  const { shape, w, h, block } = place
  const container = shape === 'container'
  const tone = total?.failed ? 'err' : total?.open ? 'wait' : total ? 'ok' : 'none'
  // The left side of a trigger is round.
  const inset = shape === 'trigger' ? 36 : 12
  const room = w - (shape === 'ticket' ? STUB : shape === 'flow' ? 24 : 12)
  return (
    <g
      className="loomcard"
      data-block={place.id}
      data-tone={tone}
      data-shape={shape}
      data-chosen={chosen || undefined}
      transform={`translate(${place.x} ${place.y})`}
      {...(total?.failed
        ? pressable(`${name}, ${wordsOf(total)}: show the runs that failed here`, () => onFailures(place.id))
        : {})}
    >
      <title>{`${name}, ${wordsOf(total)}`}</title>
      <path className="loomcard__outline" d={place.outline} />
      {container ? <rect className="loomcard__inner" x="3.5" y="3.5" width={w - 7} height={h - 7} rx="9" /> : null}
      <g className="loomcard__plate" transform="translate(12 10)">
        <rect width={28} height={28} rx={shape === 'trigger' ? 14 : 7} />
        <g transform="translate(6 6)">
          <Icon name={iconOf(block.type, icon)} size={16} />
        </g>
      </g>
      <text className="loomcard__name" x={48} y={22}>
        {cut(name, room - 48)}
      </text>
      <text className="loomcard__count" x={48} y={38}>
        {cut(wordsOf(total), room - 48)}
      </text>
      {shape === 'ticket' ? (
        <>
          <path className="loomcard__tear" d={`M${w - STUB} 10V${h - 10}`} />
          {total?.open ? (
            <text className="loomcard__stub" x={w - STUB / 2} y={h / 2 + 4}>
              {`${total.open} open`}
            </text>
          ) : null}
        </>
      ) : null}
      {container ? (
        <Cells place={place} cells={cells} onOpen={onOpen} />
      ) : split.length > 1 ? (
        <Split split={split} inset={inset} width={room - 24 - inset} />
      ) : times.length ? (
        <Bars times={times} inset={inset} width={room - 12 - inset} />
      ) : null}
    </g>
  )
})

/** The ways that the runs took: the most frequent ones, in ink and lighter. */
function Split({
  split,
  inset,
  width,
}: {
  split: readonly { title: string; runs: number }[]
  inset: number
  width: number
}): ReactElement {
  const all = Math.max(
    1,
    split.reduce((sum, way) => sum + way.runs, 0),
  )
  let x = 0
  return (
    <g transform={`translate(${inset} ${CARD - 44})`}>
      {split.map((way, at) => {
        const from = x
        const wide = (way.runs / all) * width
        x += wide
        return (
          <g
            key={way.title}
            className="loomcard__way"
            transform={`translate(${from} 0)`}
            opacity={1 - Math.min(0.7, at * 0.35)}
          >
            <rect width={Math.max(0, wide - 2)} height={8} rx={2} />
          </g>
        )
      })}
      <text className="loomcard__times" y={26}>
        {cut(split.map((way) => `${Math.round((way.runs / all) * 100)} % ${way.title}`).join(', '), width)}
      </text>
    </g>
  )
}

function Bars({ times, inset, width }: { times: readonly number[]; inset: number; width: number }): ReactElement {
  const { counts, median } = distribution(times, BINS)
  const most = Math.max(...counts)
  const step = width / BINS
  return (
    <g transform={`translate(${inset} ${CARD - 22})`}>
      {counts.map((count, at) =>
        count ? (
          <rect
            key={at}
            className="loomcard__bar"
            data-median={at === median || undefined}
            x={at * step}
            y={-(count / most) * BARS}
            width={step - 1}
            height={(count / most) * BARS}
          />
        ) : null,
      )}
      <path className="loomcard__base" d={`M0 .5H${width}`} />
      <text className="loomcard__times" y={14}>
        {`half within ${durationText(quantile(times, 0.5))}`}
      </text>
    </g>
  )
}

/** As many of the newest iterations as there is room for, each a square: paler is faster. */
function Cells({
  place,
  cells,
  onOpen,
}: {
  place: Place
  cells: readonly Cell[]
  onOpen: (run: LoomRun) => void
}): ReactElement | null {
  const grid = place.grid!
  const columns = Math.floor(grid.w / PITCH)
  const shown = cells.slice(-columns * Math.max(0, Math.floor(grid.h / PITCH)))
  if (!shown.length) return null
  const slowest = Math.log1p(Math.max(...shown.map((cell) => cell.ms)))
  return (
    <g transform={`translate(${grid.x} ${grid.y})`}>
      {shown.map((cell, at) => (
        <rect
          key={at}
          className="loomcell"
          data-state={cell.state}
          x={(at % columns) * PITCH}
          y={Math.floor(at / columns) * PITCH}
          width={SQUARE}
          height={SQUARE}
          rx={2}
          fillOpacity={cell.state === 0 ? 0.3 + 0.7 * (slowest ? Math.log1p(cell.ms) / slowest : 0) : 1}
          onClick={(event) => {
            event.stopPropagation() // the card lists its failures
            onOpen(cell.run)
          }}
        >
          <title>{`${cell.run.key ?? cell.run.id.slice(-8)}, ${['succeeded', 'failed', 'open'][cell.state]}, ${durationText(cell.ms)}`}</title>
        </rect>
      ))}
      <text className="loomcard__times" y={place.h - grid.y - 10}>
        {shown.length < cells.length
          ? `The last ${shown.length.toLocaleString('en')} of ${cells.length.toLocaleString('en')}, paler is faster`
          : 'One square is one pass, paler is faster'}
      </text>
    </g>
  )
}

/** What makes a part of a picture a button. */
export function pressable(label: string, press: () => void): SVGProps<SVGGElement> {
  return {
    role: 'button',
    tabIndex: 0,
    'aria-label': label,
    onClick: press,
    onKeyDown: (event) => {
      if (event.key !== 'Enter' && event.key !== ' ') return
      event.preventDefault()
      press()
    },
  }
}

/** Text as wide as this, in pixels: SVG does not cut it. */
function cut(text: string, width: number): string {
  const fits = Math.max(4, Math.floor(width / 6.6))
  return text.length <= fits ? text : `${text.slice(0, fits - 1).trimEnd()}…`
}

function wordsOf(total: BlockTotal | undefined): string {
  if (!total) return 'no runs'
  const number = total.runs.toLocaleString('en')
  const runs = `${number} ${total.runs === 1 ? 'run' : 'runs'}`
  const failed = total.failed ? `, ${total.failed.toLocaleString('en')} failed` : ''
  return runs + failed + (total.open ? `, ${total.open.toLocaleString('en')} open` : '')
}
