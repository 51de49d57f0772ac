// The shown run beside another one: one past, two futures. Dragging moves through the shown run, as on the lanes.

import { useEffect, useMemo, useRef, useState, type PointerEvent, type ReactElement } from 'react'
import { useStore } from 'zustand'
import { reducedMotion } from '../../a11y'
import type { RunFold } from '../../run'
import { futuresStore, NO_FUTURES } from '../../state/futures'
import { runStore } from '../../state/live'
import { EmptyState } from '../../ui/EmptyState'
import { shortId } from '../../ui/words'
import { compareStore, type Other } from './compare'
import {
  changedWords,
  copiedFrom,
  costOf,
  futuresOf,
  partedOf,
  sharedEvents,
  stepsOf,
  valuesOf,
  wordsChanged,
} from './differing'
import { firstDifference } from './firstDifference'
import { BothTurns } from './BothTurns'
import { FuturesTable } from './FuturesTable'
import { futuresOnAxis } from './futures'
import { heightOfFutures, paintFutures, type FuturesPicture } from './futuresPaint'
import { compareAgain, loadOther } from './other'
import { offerPicture } from './picture'
import { seqAt } from './layout'
import { rewindStore } from './rewindStore'
import { useSlider } from './slider'
import { useColours, useWidth } from './surface'

const ONLY = { before: 'Before', both: 'Both', now: 'Now' } as const

/** `threads` false: there is no room for them. */
export default function Compared({ threads = true }: { threads?: boolean }): ReactElement {
  const other = useStore(compareStore, (s) => s.other)
  const error = useStore(compareStore, (s) => s.error)
  const id = useStore(compareStore, (s) => s.id)
  const shown = useStore(runStore, (s) => (s.meta ? s.id : null))
  useEffect(() => {
    if (id !== null && shown !== null) void loadOther(id, shown)
  }, [id, shown])
  if (error) return <EmptyState icon="warning" title={error} />
  if (!other) return <EmptyState title="Loading">The other run is on its way.</EmptyState>
  return <Futures other={other} threads={threads} />
}

function Futures({ other, threads }: { other: Other; threads: boolean }): ReactElement {
  const box = useRef<HTMLDivElement>(null)
  const canvas = useRef<HTMLCanvasElement>(null)
  const width = useWidth(box)
  const colours = useColours(canvas)
  const [only, setOnly] = useState<keyof typeof ONLY>('both')
  const head = useStore(runStore, (s) => s.head)
  const timeline = useStore(runStore, (s) => s.timeline)
  const doc = useStore(runStore, (s) => s.doc)
  const id = useStore(runStore, (s) => s.id)
  const cursor = useStore(runStore, (s) => s.cursor)
  const { slider, goTo } = useSlider()
  const seq = cursor === 'live' ? head.seq : Math.min(cursor, head.seq)
  const before = other.timeline.head
  const words = useMemo(() => (doc ? wordsChanged(other, doc, head) : null), [other, doc, head])
  const difference = useMemo(
    () => firstDifference(other.diff, doc ?? other.doc, before, head, words),
    [other, doc, before, head, words],
  )
  const copied = copiedFrom(id, other, head)
  const [a, b] = sharedEvents(other.diff, other.timeline.log, timeline.log, copied, difference)
  const futures = useMemo(
    () =>
      futuresOnAxis(
        { view: before, log: other.timeline.log, doc: other.doc, split: a },
        { view: head, log: timeline.log, doc, split: b },
        width,
      ),
    [other, head, doc, width, a, b],
  )
  usePainted(other, words)
  useParting(other)
  const rows = useMemo(
    () => futuresOf(before, head, [futures.before.parted, futures.now.parted], b, doc, timeline.log),
    [before, head, futures, b, doc],
  )
  const height = heightOfFutures(futures)
  const priced = (view: RunFold): string => (costOf(stepsOf(view)) ? `, ${costOf(stepsOf(view))}` : '')
  const names = {
    before: `Before, run ${shortId(other.id)}${priced(before)}`,
    now: `Now, run ${shortId(id ?? '')}${priced(head)}`,
  }
  const parted = useParted(other.id)
  const picture: FuturesPicture = { futures, difference, names, seq, only, height, parted }

  useEffect(() => {
    const element = canvas.current
    const ctx = element?.getContext('2d')
    if (!element || !ctx || !colours || !width) return
    const scale = devicePixelRatio || 1
    element.width = Math.round(width * scale)
    element.height = Math.round(height * scale)
    ctx.setTransform(scale, 0, 0, scale, 0, 0)
    paintFutures(ctx, picture, colours)
  }, [futures, difference, seq, only, colours, width, height, parted])
  useEffect(
    () =>
      colours
        ? offerPicture({
            width,
            height,
            paper: colours.panel,
            paint: (ctx) => paintFutures(ctx, { ...picture, parted: 1 }, colours),
          })
        : undefined,
    [futures, difference, seq, only, colours, width, height],
  )

  useEffect(() => {
    // The button that was pressed is gone: the keys move the playhead.
    if (rewindStore.getState().continued) box.current?.focus({ preventScroll: true })
    rewindStore.setState({ continued: false })
  }, [])

  const drag = (event: PointerEvent): void => {
    const x = event.clientX - box.current!.getBoundingClientRect().left
    goTo(x > (futures.now.xs.at(-1) ?? 0) + 8 ? head.seq + 1 : seqAt(futures.now, x))
  }
  return (
    <div className="futures" data-testid="futures" data-split={b}>
      <div className="rewind__tape">
        <div
          hidden={!threads}
          ref={box}
          {...slider}
          className="futures__threads"
          style={{ height }}
          onPointerDown={(event) => {
            if (event.button !== 0) return
            event.currentTarget.setPointerCapture(event.pointerId)
            drag(event)
          }}
          onPointerMove={(event) => {
            if (event.currentTarget.hasPointerCapture(event.pointerId)) drag(event)
          }}
        >
          <canvas ref={canvas} className="tape__canvas" style={{ height }} aria-hidden="true" />
        </div>
        <BothTurns before={before} />
      </div>
      <section className="futures__panel" aria-label="Two futures">
        <div className="futures__bar">
          <h2>Two futures</h2>
          <span className="drawer__axis" role="group" aria-label="Which of the two">
            {(Object.keys(ONLY) as (keyof typeof ONLY)[]).map((each) => (
              <button key={each} type="button" aria-pressed={only === each} onClick={() => setOnly(each)}>
                {ONLY[each]}
              </button>
            ))}
          </span>
        </div>
        <FuturesTable rows={rows} />
        {difference ? (
          <div className="tape__change" role="group" aria-label="First difference">
            <span>
              First difference, <b>{difference.name}</b>
            </span>
            <code data-when="before">{difference.before}</code>
            <code data-when="now">{difference.now}</code>
          </div>
        ) : (
          <p className="quiet">No value differs.</p>
        )}
      </section>
    </div>
  )
}

const SETTLED_MS = 400

/** The shown run has more events: the server is asked again where the two part when no more comes, and when its state changes. */
function useParting({ diff }: Other): void {
  const status = useStore(runStore, (s) => s.head.status)
  const seq = useStore(runStore, (s) => s.head.seq)
  const asked = diff.b.seq >= seq
  useEffect(() => {
    if (asked) return
    const timer = setTimeout(() => void compareAgain(), SETTLED_MS)
    return () => clearTimeout(timer)
  }, [asked, status, seq])
}

/** The canvas: flax is what only the other run did, plum what only this one did. */
function usePainted(other: Other, words: ReturnType<typeof wordsChanged>): void {
  const head = useStore(runStore, (s) => s.head)
  const doc = useStore(runStore, (s) => s.doc)
  useEffect(() => {
    if (!doc) return
    const before = other.timeline.head
    const parted = partedOf(doc, before, head)
    futuresStore.setState({
      ...parted,
      values: valuesOf(parted.blocks, before, head, [other.diff.a.run, other.diff.b.run]),
      changed: words && {
        block: words.block,
        label: `${words.name}, changed here`,
        parts: changedWords(words.before, words.now),
      },
    })
  }, [other, head, doc, words])
  useEffect(() => () => futuresStore.setState(NO_FUTURES), [])
}

const PARTING_MS = 240

/** Parting is animated once for each other run. */
function useParted(id: string): number {
  const still = reducedMotion()
  const [parted, setParted] = useState(still ? 1 : 0)
  useEffect(() => {
    if (still) return setParted(1)
    let frame = 0
    const from = performance.now()
    const step = (now: number): void => {
      const part = Math.min(1, Math.max(0, (now - from) / PARTING_MS))
      setParted(1 - (1 - part) ** 3)
      if (part < 1) frame = requestAnimationFrame(step)
    }
    frame = requestAnimationFrame(step)
    return () => cancelAnimationFrame(frame)
  }, [id, still])
  return parted
}
