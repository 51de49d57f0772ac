// The Tape: every durable event of the run, in order. Drag it and everything goes back to that moment.

import { useEffect, useMemo, useRef, useState, type PointerEvent, type ReactElement } from 'react'
import { useStore } from 'zustand'
import { runStore } from '../../state/live'
import { netStore } from '../../state/net'
import { isEnded } from '../../run'
import { uiStore } from '../../state/ui'
import { seqAt, tapeLayout, type Axis } from './layout'
import { HoverCard, EventFacts } from './HoverCard'
import { paint } from './paint'
import { STRIP_H, TAPE_H } from './sizes'
import { useSlider } from './slider'
import { useColours, useWidth } from './surface'
import { IDLE_MS } from './timeScale'
import { useClock } from '../../ui/useClock'

/** `strip`: folded, with a line of its own height. */
export function Tape({ axis, strip = false }: { axis: Axis; strip?: boolean }): ReactElement {
  const height = strip ? STRIP_H : TAPE_H
  const box = useRef<HTMLDivElement>(null)
  const canvas = useRef<HTMLCanvasElement>(null)
  const width = useWidth(box)
  const colours = useColours(canvas)
  const [hover, setHover] = useState<number | null>(null)
  const timeline = useStore(runStore, (s) => s.timeline)
  const length = useStore(runStore, (s) => s.head.seq)
  const cursor = useStore(runStore, (s) => s.cursor)
  const block = useStore(uiStore, (s) => (s.selection.blocks.length === 1 ? s.selection.blocks[0]! : null))
  const isOver = useStore(runStore, (s) => isEnded(s.head.status))
  const offline = useStore(netStore, (s) => s.mode === 'offline')
  const now = useClock(1000)
  const seq = cursor === 'live' ? length : Math.min(cursor, length)
  const { log } = timeline
  // In wall time the axis ends where the run is; by order the present does not matter.
  const end = axis === 'time' ? Math.max(now, log.at(-1)?.at_ms ?? 0) : 0
  const layout = useMemo(() => tapeLayout(log, width, axis, end), [timeline, length, width, axis, end])
  const since = cursor === 'live' && !isOver && log.length ? now - log.at(-1)!.at_ms : 0
  const idleMs = since > IDLE_MS && !offline ? since : 0

  useEffect(() => {
    const element = canvas.current
    const ctx = element?.getContext('2d')
    if (!element || !ctx || !colours || !width) return
    const scale = devicePixelRatio || 1
    if (element.width !== Math.round(width * scale) || element.height !== Math.round(height * scale)) {
      element.width = Math.round(width * scale)
      element.height = Math.round(height * scale)
    }
    ctx.setTransform(scale, 0, 0, scale, 0, 0)
    paint(ctx, { layout, log, seq, live: cursor === 'live', hover, block, idleMs, strip }, colours)
  }, [layout, colours, seq, cursor, hover, block, idleMs, width, log, height, strip])

  const at = (event: PointerEvent): number => seqAt(layout, event.clientX - box.current!.getBoundingClientRect().left)
  const place = (event: PointerEvent): number => {
    const x = event.clientX - box.current!.getBoundingClientRect().left
    // Beyond the last event is live.
    return x > (layout.xs.at(-1) ?? 0) + 8 ? length + 1 : at(event)
  }
  const { slider, goTo } = useSlider()
  const hovered = hover !== null ? log[hover - 1] : undefined
  return (
    <div
      ref={box}
      {...slider}
      className="tape"
      style={{ height }}
      onPointerDown={(event) => {
        if (event.button !== 0 || !length) return
        event.currentTarget.setPointerCapture(event.pointerId)
        setHover(null)
        goTo(place(event))
      }}
      onPointerMove={(event) => {
        if (event.currentTarget.hasPointerCapture(event.pointerId)) goTo(place(event))
        else setHover(length ? at(event) : null)
      }}
      onPointerLeave={() => setHover(null)}
    >
      <canvas ref={canvas} className="tape__canvas" aria-hidden="true" />
      {hover && hovered ? (
        <HoverCard x={layout.xs[hover - 1]!} width={width}>
          <EventFacts event={hovered} />
        </HoverCard>
      ) : null}
    </div>
  )
}
