// The shown run beside another one: one past, two futures. Dragging moves through the shown run, as on the lanes.

import { useEffect, useMemo, useRef, useState, type PointerEvent, type ReactElement } from 'react'
import { useStore } from 'zustand'
import { runStore } from '../../state/live'
import { EmptyState } from '../../ui/EmptyState'
import { shortId } from '../../ui/words'
import { compareStore, firstDifference, futuresOf, sharedEvents, type Other } from './compare'
import { futuresOnAxis } from './futures'
import { heightOfFutures, paintFutures, type FuturesPicture } from './futuresPaint'
import { offerPicture } from './picture'
import { seqAt } from './layout'
import { useSlider } from './slider'
import { useColours, useWidth } from './surface'

const ONLY = { before: 'Before', both: 'Both', now: 'Now' } as const

export default function Compared(): ReactElement {
  const other = useStore(compareStore, (s) => s.other)
  const error = useStore(compareStore, (s) => s.error)
  if (error) return <EmptyState icon="warning" title={error} />
  if (!other) return <EmptyState title="Loading">The other run is on its way.</EmptyState>
  return <Futures other={other} />
}

function Futures({ other }: { other: Other }): ReactElement {
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
  const [a, b] = sharedEvents(other.diff, other.timeline.log, timeline.log)
  const futures = useMemo(
    () =>
      futuresOnAxis(
        { view: before, log: other.timeline.log, doc: other.doc, split: a },
        { view: head, log: timeline.log, doc, split: b },
        width,
      ),
    [other, head, doc, width, a, b],
  )
  const difference = useMemo(() => firstDifference(other.diff, doc ?? other.doc), [other, doc])
  const rows = useMemo(
    () => futuresOf(before, head, [futures.before.parted, futures.now.parted], b, doc),
    [before, head, futures, b, doc],
  )
  const height = heightOfFutures(futures)
  const names = { before: `Before, run ${shortId(other.id)}`, now: `Now, run ${shortId(id ?? '')}` }
  const picture: FuturesPicture = { futures, difference, names, seq, only, height }

  useEffect(() => {
    const element = canvas.current
    const ctx = element?.getContext('2d')
    if (!element || !ctx || !colours || !width) return
    const scale = devicePixelRatio || 1
    element.width = Math.round(width * scale)
    element.height = Math.round(height * scale)
    ctx.setTransform(scale, 0, 0, scale, 0, 0)
    paintFutures(ctx, picture, colours)
  }, [futures, difference, seq, only, colours, width, height])
  useEffect(
    () =>
      colours
        ? offerPicture({ width, height, paper: colours.panel, paint: (ctx) => paintFutures(ctx, picture, colours) })
        : undefined,
    [futures, difference, seq, only, colours, width, height],
  )

  const drag = (event: PointerEvent): void => {
    const x = event.clientX - box.current!.getBoundingClientRect().left
    goTo(x > (futures.now.xs.at(-1) ?? 0) + 8 ? head.seq + 1 : seqAt(futures.now, x))
  }
  return (
    <div className="futures" data-testid="futures" data-split={b}>
      <div
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
        <canvas ref={canvas} className="tape__canvas" aria-hidden="true" />
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
        <table className="futures__facts">
          <thead>
            <tr>
              <td />
              <th scope="col" data-when="before">
                Before
              </th>
              <th scope="col" data-when="now">
                Now
              </th>
            </tr>
          </thead>
          <tbody>
            {rows.map(([name, was, now]) => (
              <tr key={name}>
                <th scope="row">{name}</th>
                <td title={was}>{was}</td>
                <td title={now} data-changed={was !== now || undefined}>
                  {now}
                </td>
              </tr>
            ))}
          </tbody>
        </table>
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
