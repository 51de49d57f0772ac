// The lanes for the keyboard and a screen reader, one stop of Tab after the slider. Up and down choose a lane, right and left open
// and close it or go along its spans, Enter goes to the beginning of the span.

import { useEffect, useState, type KeyboardEvent, type ReactElement } from 'react'
import { announce } from '../../a11y'
import { wordOf } from '../../ui/status'
import { shownStatus } from '../../run'
import type { Lane, Span } from './lanes'
import { AXIS_H, LANE_H } from './sizes'

interface LaneKeysProps {
  lanes: readonly Lane[]
  /** How far the lanes are scrolled, the height of what is seen, and the width of the names. */
  top: number
  height: number
  gutter: number
  onScroll: (top: number) => void
  onFold: (lane: Lane) => void
  /** The span that is gone to, or none. */
  onSpan: (span: Span | null) => void
  onEnter: (span: Span) => void
}

export function LaneKeys(props: LaneKeysProps): ReactElement {
  const { lanes, top, height, gutter, onScroll, onFold, onSpan, onEnter } = props
  const [at, setAt] = useState(0)
  const [nth, setNth] = useState(-1)
  const lane = lanes[Math.min(at, lanes.length - 1)]
  const here = Math.max(0, lanes.indexOf(lane!))
  useEffect(() => setNth(-1), [at])
  const goTo = (index: number): void => {
    const next = Math.max(0, Math.min(lanes.length - 1, index))
    const y = next * LANE_H
    const room = height - AXIS_H - LANE_H
    if (y < top || y > top + room) onScroll(y < top ? y : y - room)
    setAt(next)
    onSpan(null)
  }
  const show = (index: number): void => {
    const span = lane?.spans[index]
    setNth(span ? index : -1)
    onSpan(span ?? null)
    if (span) announce(`${span.label}, ${wordOf(shownStatus(span.node))}, ${index + 1} of ${lane!.spans.length}`)
  }
  const onKey = (event: KeyboardEvent): void => {
    if (!lane || event.ctrlKey || event.metaKey || event.altKey) return
    if (event.key === 'ArrowDown') goTo(here + 1)
    else if (event.key === 'ArrowUp') goTo(here - 1)
    else if (event.key === 'Home') goTo(0)
    else if (event.key === 'End') goTo(lanes.length - 1)
    else if (event.key === 'ArrowRight')
      lane.open === false ? onFold(lane) : show(Math.min(nth + 1, lane.spans.length - 1))
    else if (event.key === 'ArrowLeft') nth < 0 && lane.open ? onFold(lane) : show(nth - 1)
    else if (event.key === 'Enter' && lane.spans[nth]) onEnter(lane.spans[nth])
    else if ((event.key === 'Enter' || event.key === ' ') && lane.open !== null) onFold(lane)
    else return
    event.preventDefault()
    event.stopPropagation()
  }
  const first = Math.floor(top / LANE_H)
  const seen = lanes.slice(first, first + Math.ceil(height / LANE_H) + 1)
  return (
    <div
      role="tree"
      tabIndex={0}
      aria-label="Lanes"
      aria-activedescendant={`lane-${here}`}
      className="lanes__keys"
      data-testid="lane-keys"
      style={{ width: gutter, top: AXIS_H, height: height - AXIS_H }}
      onKeyDown={onKey}
      onBlur={() => onSpan(null)}
    >
      {seen.map((each, i) => (
        <div
          key={each.id}
          id={`lane-${first + i}`}
          role="treeitem"
          aria-level={each.depth + 1}
          aria-expanded={each.open ?? undefined}
          aria-selected={first + i === here}
          aria-label={`${each.label || 'More'}, ${each.spans.length} ${each.spans.length === 1 ? 'span' : 'spans'}`}
          style={{ top: (first + i) * LANE_H - top, height: LANE_H }}
        />
      ))}
    </div>
  )
}
