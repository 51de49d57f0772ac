// The Tape: every durable event of the run, in order. Drag it and everything goes back to that moment.

import { useEffect, useMemo, useRef, useState, type KeyboardEvent, type PointerEvent, type ReactElement } from 'react'
import { useStore } from 'zustand'
import { keyOfEvent } from '../../keys'
import { runStore, seek, stepBy } from '../../state/live'
import { netStore } from '../../state/net'
import { isEnded } from '../../run'
import { uiStore } from '../../state/ui'
import { describe } from '../events/describe'
import { seqAt, tapeLayout, type Axis } from './layout'
import { coloursOf, paint, STRIP_H, TAPE_H, type Colours } from './paint'
import { pause, togglePlay } from './play'
import { IDLE_MS } from './timeScale'
import { timeOfDay } from '../../ui/time'
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
  const doc = useStore(runStore, (s) => s.doc)
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
  const goTo = (to: number): void => {
    pause()
    seek(to >= length ? (isOver || to > length ? 'live' : to) : to)
  }
  const drag = (event: PointerEvent): void => {
    const x = event.clientX - box.current!.getBoundingClientRect().left
    // Beyond the last event is live.
    goTo(x > (layout.xs.at(-1) ?? 0) + 8 ? length + 1 : at(event))
  }
  const onKey = (event: KeyboardEvent): void => {
    if (event.ctrlKey || event.metaKey || event.altKey) return
    const page = Math.max(1, Math.round(length / 10))
    const unit = event.shiftKey ? 'block' : 'event'
    const means = keyOfEvent(event.nativeEvent, ['canvas'])
    if (event.key === 'ArrowRight' || event.key === 'ArrowUp') stepBy(1, unit)
    else if (event.key === 'ArrowLeft' || event.key === 'ArrowDown') stepBy(-1, unit)
    else if (means === 'nextEvent' || means === 'nextBlock') stepBy(1, means === 'nextBlock' ? 'block' : 'event')
    else if (means === 'previousEvent' || means === 'previousBlock')
      stepBy(-1, means === 'previousBlock' ? 'block' : 'event')
    else if (event.key === 'PageUp') goTo(seq + page)
    else if (event.key === 'PageDown') goTo(Math.max(0, seq - page))
    else if (event.key === 'Home') goTo(0)
    else if (event.key === 'End') seek('live')
    else if (event.key === ' ') togglePlay()
    else return
    event.preventDefault()
    event.stopPropagation()
  }
  const shown = log[seq - 1]
  const text = shown ? `Event ${seq} of ${length}, ${describe(shown, doc)}` : 'Before the first event'
  const pointed = hover !== null ? log[hover - 1] : undefined
  return (
    <div
      ref={box}
      role="slider"
      tabIndex={0}
      data-testid="tape"
      className="tape"
      aria-label="Tape"
      aria-valuemin={0}
      aria-valuemax={length}
      aria-valuenow={seq}
      aria-valuetext={text}
      aria-orientation="horizontal"
      onKeyDown={onKey}
      style={{ height }}
      onPointerDown={(event) => {
        if (event.button !== 0 || !length) return
        event.currentTarget.setPointerCapture(event.pointerId)
        setHover(null)
        drag(event)
      }}
      onPointerMove={(event) => {
        if (event.currentTarget.hasPointerCapture(event.pointerId)) drag(event)
        else setHover(length ? at(event) : null)
      }}
      onPointerLeave={() => setHover(null)}
    >
      <canvas ref={canvas} className="tape__canvas" aria-hidden="true" />
      {pointed ? (
        <Hint x={layout.xs[hover! - 1]!} width={width}>{`${timeOfDay(pointed.at_ms)}  ${describe(pointed, doc)}`}</Hint>
      ) : null}
    </div>
  )
}

function Hint({ x, width, children }: { x: number; width: number; children: string }): ReactElement {
  const style = x > width / 2 ? { right: Math.max(8, width - x - 40) } : { left: Math.max(8, x - 40) }
  return (
    <div className="tape__hint" style={style} aria-hidden="true">
      {children}
    </div>
  )
}

function useWidth(ref: React.RefObject<HTMLElement | null>): number {
  const [width, setWidth] = useState(0)
  useEffect(() => {
    const watch = new ResizeObserver(([entry]) => setWidth(Math.floor(entry!.contentRect.width)))
    watch.observe(ref.current!)
    return () => watch.disconnect()
  }, [ref])
  return width
}

/** The colours of the theme, read again when it changes and when the font has come. */
function useColours(ref: React.RefObject<HTMLElement | null>): Colours | null {
  const theme = useStore(uiStore, (s) => s.theme)
  const [colours, setColours] = useState<Colours | null>(null)
  useEffect(() => {
    const read = (): void => {
      if (ref.current) setColours(coloursOf(ref.current))
    }
    // After the theme is on the page: it is put there by another listener of the same store.
    const frame = requestAnimationFrame(read)
    const dark = matchMedia('(prefers-color-scheme: dark)')
    dark.addEventListener('change', read)
    void document.fonts.ready.then(read)
    return () => {
      cancelAnimationFrame(frame)
      dark.removeEventListener('change', read)
    }
  }, [ref, theme])
  return colours
}
