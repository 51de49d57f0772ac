// A chosen stretch of the Tape: how long it is, what happened in it, and a way to look closer.

import type { ReactElement } from 'react'
import type { WireEvent } from '../../api/types'
import { Button } from '../../ui/Button'
import { durationText } from '../../ui/time'
import { firstFrom } from './paint'
import type { TapeLayout } from './layout'

export function Range({
  range: [from, to],
  layout,
  log,
  x,
  onZoom,
  onClose,
}: {
  range: readonly [number, number]
  layout: TapeLayout
  log: readonly WireEvent[]
  /** Its middle, in pixels. */
  x: number
  onZoom: () => void
  onClose: () => void
}): ReactElement | null {
  const first = firstFrom(layout.xs, from)
  let last = firstFrom(layout.xs, to)
  if (layout.xs[last]! > to) last--
  const [a, b] = [log[first], log[last]]
  const count = Math.max(0, last - first + 1)
  return (
    <div className="lanes__range" role="group" aria-label="Chosen stretch" style={{ left: x }}>
      <span role="status">
        {a && b && count ? `${durationText(b.at_ms - a.at_ms)}, ` : ''}
        {count === 1 ? '1 event' : `${count} events`}
      </span>
      <Button kind="bare" onClick={onZoom}>
        Zoom in
      </Button>
      <Button kind="bare" icon="close" iconOnly onClick={onClose}>
        Clear
      </Button>
    </div>
  )
}
