// The Tape unfolded: lanes of spans on one axis. Drag it and everything goes back to that moment; shift and drag chooses a stretch
// of time, ctrl and the wheel (or + and -) zoom.

import {
  useDeferredValue,
  useEffect,
  useMemo,
  useRef,
  useState,
  type KeyboardEvent,
  type PointerEvent,
  type ReactElement,
} from 'react'
import { useStore } from 'zustand'
import { selectNode } from '../../actions/jump'
import { isLoading, runStore } from '../../state/live'
import { netStore } from '../../state/net'
import { isEnded } from '../../run'
import { uiStore } from '../../state/ui'
import { useClock } from '../../ui/useClock'
import { HoverCard, SpanFacts, TearFacts } from './HoverCard'
import { LaneKeys } from './LaneKeys'
import { lanesOf } from './lanes'
import {
  GUTTER,
  GUTTER_NARROW,
  hit,
  paintLanes,
  tearX,
  toLayout,
  toScreen,
  type LanesPicture,
  type Window,
} from './lanesPaint'
import { seqAt, tapeLayout, type Axis } from './layout'
import { AXIS_H, LANE_H } from './sizes'
import { offerPicture } from './picture'
import { Range } from './Range'
import { useSlider } from './slider'
import { useColours, useWidth } from './surface'

const ZOOM_MAX = 400
const ZOOM_STEP = 1.25
const NARROW = 900
const PICTURE_LANES = 200
/** A pointer that moved less has pressed, and not dragged. */
const STILL_PX = 4

type Found = ReturnType<typeof hit>

export default function Lanes({ axis, height }: { axis: Axis; height: number }): ReactElement {
  const box = useRef<HTMLDivElement>(null)
  const canvas = useRef<HTMLCanvasElement>(null)
  const width = useWidth(box)
  const colours = useColours(canvas)
  const [top, setTop] = useState(0)
  const [seen, setSeen] = useState<Window>({ zoom: 1, pan: 0 })
  const [hover, setHover] = useState<{ found: Found; x: number } | null>(null)
  const [range, setRange] = useState<readonly [number, number] | null>(null)
  const [folded, setFolded] = useState<ReadonlySet<string>>(new Set())
  const press = useRef<{ x: number; y: number; chooses: boolean; touch: boolean } | null>(null)
  const [choosing, setChoosing] = useState(false)

  const head = useDeferredValue(useStore(runStore, (s) => s.head))
  const doc = useStore(runStore, (s) => s.doc)
  const timeline = useStore(runStore, (s) => s.timeline)
  const cursor = useStore(runStore, (s) => s.cursor)
  const block = useStore(uiStore, (s) => (s.selection.blocks.length === 1 ? s.selection.blocks[0]! : null))
  const isLive = useStore(netStore, (s) => s.mode === 'live')
  const loading = useStore(runStore, isLoading)
  const over = isEnded(head.status)
  const now = useClock(over ? 60_000 : 250)
  const { log } = timeline
  const length = head.seq
  const seq = cursor === 'live' ? length : Math.min(cursor, length)
  const gutter = width < NARROW ? GUTTER_NARROW : GUTTER
  const end = axis === 'time' && cursor === 'live' ? Math.max(now, log.at(-1)?.at_ms ?? 0) : (log.at(-1)?.at_ms ?? 0)
  const layout = useMemo(
    () => tapeLayout(log, Math.max(1, width - gutter), axis, end),
    [timeline, length, width, gutter, axis, end],
  )
  const lanes = useMemo(() => lanesOf(head, doc, folded, true), [head, doc, folded])
  const flag = cursor !== 'live' ? `Event ${seq}` : loading ? 'Loading' : isLive && !over ? 'Live' : ''
  const picture: LanesPicture = {
    lanes,
    layout,
    log,
    tears: head.tears,
    window: seen,
    gutter,
    width,
    height,
    top,
    seq,
    flag,
    hover: hover?.found && 'span' in hover.found ? hover.found.span : null,
    block,
    range,
  }
  const shown = useRef(picture)
  shown.current = picture

  useEffect(() => {
    const element = canvas.current
    const ctx = element?.getContext('2d')
    if (!element || !ctx || !colours || !width) return
    const scale = devicePixelRatio || 1
    const [w, h] = [Math.round(width * scale), Math.round(height * scale)]
    if (element.width !== w || element.height !== h) [element.width, element.height] = [w, h]
    ctx.setTransform(scale, 0, 0, scale, 0, 0)
    paintLanes(ctx, picture, colours)
  }, [lanes, layout, colours, seen, seq, flag, hover, block, range, width, height, top, gutter])
  useZoom(box, shown, setSeen)
  useEffect(() => {
    if (!colours || !width) return
    // All lanes, not only those that are scrolled to; more than these are no picture.
    const tall = AXIS_H + Math.min(PICTURE_LANES, lanes.length) * LANE_H + 4
    const whole = { ...picture, hover: null, range: null, top: 0, height: tall }
    return offerPicture({ width, height: tall, paper: colours.panel, paint: (ctx) => paintLanes(ctx, whole, colours) })
  }, [lanes, layout, colours, seen, seq, flag, block, width])

  const zoomTo = (from: number, to: number): void => {
    const room = width - gutter
    const zoom = Math.min(ZOOM_MAX, room / Math.max(1, to - from))
    setSeen({ zoom, pan: bounded(from * zoom, zoom, room) })
    setRange(null)
  }
  const { slider, goTo } = useSlider((event: KeyboardEvent) => {
    const centre = toScreen(picture, seq ? (layout.xs[seq - 1] ?? 0) : 0)
    if (event.key === '+' || event.key === '=') setSeen(zoomed(picture, ZOOM_STEP ** 2, centre))
    else if (event.key === '-') setSeen(zoomed(picture, ZOOM_STEP ** -2, centre))
    else if (event.key === '0') setSeen({ zoom: 1, pan: 0 })
    else if (event.key === 'Escape' && range) setRange(null)
    else return false
    return true
  })
  const local = (event: PointerEvent): [number, number] => {
    const at = box.current!.getBoundingClientRect()
    return [event.clientX - at.left, event.clientY - at.top]
  }
  const seekTo = (x: number): void => {
    const at = toLayout(picture, Math.max(gutter, x))
    goTo(at > (layout.xs.at(-1) ?? 0) + 8 ? length + 1 : seqAt(layout, at))
  }
  const onDown = (event: PointerEvent): void => {
    if (event.button !== 0 || !length) return
    const [x, y] = local(event)
    setHover(null)
    // A finger may be going to scroll the lanes: what it means is known when it moves or leaves.
    const touch = event.pointerType === 'touch'
    if (x < gutter && !touch) return foldAt(y)
    press.current = { x, y, chooses: event.shiftKey, touch }
    if (touch) return
    event.currentTarget.setPointerCapture(event.pointerId)
    setChoosing(event.shiftKey)
    if (event.shiftKey) setRange(null)
    else seekTo(x)
  }
  const foldAt = (y: number): void => {
    const lane = lanes[Math.floor((y - AXIS_H + top) / LANE_H)]
    if (lane && lane.open !== null && y >= AXIS_H) setFolded(toggled(folded, lane.id))
  }
  const onMove = (event: PointerEvent): void => {
    const [x, y] = local(event)
    if (press.current?.touch && press.current.x < gutter) return
    if (!press.current) return setHover(length ? { found: hit(picture, x, y), x } : null)
    if (!press.current.chooses) return seekTo(x)
    const ends = [press.current.x, x].map((each) => toLayout(picture, Math.max(gutter, each))) as [number, number]
    setRange(ends[0] <= ends[1] ? ends : [ends[1], ends[0]])
  }
  const onUp = (event: PointerEvent): void => {
    const [x, y] = local(event)
    const from = press.current
    press.current = null
    setChoosing(false)
    if (!from || from.chooses || Math.abs(from.x - x) > STILL_PX) return
    if (from.touch && x < gutter) return Math.abs(from.y - y) > STILL_PX ? undefined : foldAt(y)
    if (from.touch) seekTo(x)
    const found = hit(picture, x, y)
    if (found && 'span' in found) selectNode(found.span.node)
  }
  const all = AXIS_H + lanes.length * LANE_H + 4
  const { found } = hover ?? {}
  return (
    <div className="lanes" style={{ height }} data-lanes={lanes.length} data-zoom={seen.zoom.toFixed(2)}>
      <div
        ref={box}
        {...slider}
        className="lanes__scroll"
        onScroll={(event) => setTop(event.currentTarget.scrollTop)}
        onPointerDown={onDown}
        onPointerMove={onMove}
        onPointerUp={onUp}
        onPointerCancel={() => (press.current = null)}
        onPointerLeave={() => setHover(null)}
      >
        <canvas ref={canvas} className="lanes__canvas" style={{ height }} aria-hidden="true" />
        <div style={{ height: Math.max(0, all - height) }} />
      </div>
      <LaneKeys
        lanes={lanes}
        top={top}
        height={height}
        gutter={gutter}
        onScroll={(to) => box.current?.scrollTo({ top: to })}
        onFold={(lane) => setFolded(toggled(folded, lane.id))}
        onSpan={(span) => setHover(span && { found: { span }, x: toScreen(picture, layout.xs[span.from - 1] ?? 0) })}
        onEnter={(span) => {
          selectNode(span.node)
          goTo(span.from)
        }}
      />
      {found ? (
        <HoverCard x={'tear' in found ? tearX(picture, found.tear) : hover!.x} width={width}>
          {'tear' in found ? <TearFacts tear={found.tear} /> : <SpanFacts span={found.span} />}
        </HoverCard>
      ) : null}
      {range && !choosing ? (
        <Range
          range={range}
          layout={layout}
          log={log}
          x={(toScreen(picture, range[0]) + toScreen(picture, range[1])) / 2}
          onZoom={() => zoomTo(...range)}
          onClose={() => setRange(null)}
        />
      ) : null}
    </div>
  )
}

function toggled(set: ReadonlySet<string>, id: string): ReadonlySet<string> {
  const next = new Set(set)
  if (!next.delete(id)) next.add(id)
  return next
}

/** The axis fills its room, and no more. */
const bounded = (pan: number, zoom: number, room: number): number => Math.max(0, Math.min(room * (zoom - 1), pan))

/** Nearer or farther; what is under `x` stays there. */
function zoomed(p: LanesPicture, by: number, x: number): Window {
  const zoom = Math.max(1, Math.min(ZOOM_MAX, p.window.zoom * by))
  return { zoom, pan: bounded(toLayout(p, x) * zoom - (x - p.gutter), zoom, p.width - p.gutter) }
}

/** The wheel: with ctrl it zooms, sideways (or with shift) it pans, else the lanes scroll. */
function useZoom(
  box: React.RefObject<HTMLElement | null>,
  shown: React.RefObject<LanesPicture>,
  set: (next: Window) => void,
): void {
  useEffect(() => {
    const element = box.current
    if (!element) return
    const onWheel = (event: WheelEvent): void => {
      const p = shown.current
      const sideways = event.shiftKey ? event.deltaY || event.deltaX : event.deltaX
      if (event.ctrlKey || event.metaKey) {
        const x = event.clientX - element.getBoundingClientRect().left
        set(zoomed(p, event.deltaY < 0 ? ZOOM_STEP : 1 / ZOOM_STEP, Math.max(p.gutter, x)))
      } else if (sideways && p.window.zoom > 1) {
        const { zoom, pan } = p.window
        set({ zoom, pan: bounded(pan + sideways, zoom, p.width - p.gutter) })
      } else return
      event.preventDefault()
    }
    element.addEventListener('wheel', onWheel, { passive: false })
    return () => element.removeEventListener('wheel', onWheel)
  }, [box, shown, set])
}
