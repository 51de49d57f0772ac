// The drawer below the canvas: the Tape, and under it one of Trace, Events and Problems.

import { lazy, Suspense, useEffect, useRef, useState, type ReactElement, type ReactNode } from 'react'
import { useStore } from 'zustand'
import { docStore } from '../../state/doc'
import { isLoading, runStore, type RunState } from '../../state/live'
import { unfinishedStore } from '../../state/unfinished'
import { setPanels, uiStore, type Drawer as DrawerName } from '../../state/ui'
import { Button } from '../../ui/Button'
import { Splitter } from '../../ui/Splitter'
import { useWidthBelow } from '../../ui/useWidthBelow'
import { useRunKeys } from './keys'
import { compareStore, compareWith } from './compare'
import type { Axis } from './layout'
import { rewindStore } from './rewindStore'
import { AXIS_H, LANE_H, STRIP_H, TAPE_H } from './sizes'
import { clockText, timeOfDay } from '../../ui/time'
import { useClock } from '../../ui/useClock'
import './drawer.css'

import { shortId } from '../../ui/words'

// Open on demand: the canvas is there before them.
const Trace = lazy(() => import('../trace/Trace'))
const Events = lazy(() => import('../events/Events'))
const Problems = lazy(() => import('../problems/Problems'))
const Tape = lazy(() => import('./Tape').then((page) => ({ default: page.Tape })))
const Lanes = lazy(() => import('./Lanes'))
const Compared = lazy(() => import('./Compared'))
const Rewind = lazy(() => import('./Rewind'))
const Controls = lazy(() => import('./Controls'))

const PANE_MIN = 120
/** What a pane takes at most until its height is set by hand: as much as its content, up to this. */
const PANE_FIRST = 260
/** From here on a run is shown by time. */
const TIMED_MS = 1000
const TRACE_HEAD = 40
const TRACE_ROW = 24
/** The least and the largest number of lanes that have room, until the height is set by hand. */
const LANES_LEAST = 3
const LANES_FIRST = 9
const LANES_ON_PHONES = AXIS_H + LANE_H * 8 + 4

export default function Drawer({ mode = 'edit' }: { mode?: 'edit' | 'run' }): ReactElement {
  useRunKeys()
  const [asked, setAxis] = useState<Axis | null>(null)
  // A run that took no time has an order alone.
  const took = useStore(runStore, (s) => (s.timeline.log.at(-1)?.at_ms ?? 0) - (s.timeline.log[0]?.at_ms ?? 0))
  const axis = asked ?? (took >= TIMED_MS ? 'time' : 'order')
  const open = useStore(uiStore, (s) => s.drawer)
  // On phones the page itself shows the trace, and lanes are asked for.
  const phone = useWidthBelow(600)
  const [unfolded, setUnfolded] = useState(false)
  const chosen = useStore(uiStore, (s) => (phone || s.panels.drawer < PANE_MIN ? null : s.panels.drawer))
  const box = useRef<HTMLDivElement>(null)
  // Rows that a run is going to have: room for them from the start, so that the canvas above stands still while they come.
  const rows = useStore(runStore, (s) => Object.values(s.doc?.blocks ?? {}).filter((block) => !block.parent).length)
  const compared = useStore(compareStore, (s) => s.id !== null)
  const rewinds = useStore(rewindStore, (s) => s.open) && !compared && mode === 'run'
  const runId = useStore(runStore, (s) => (s.meta ? s.id : null))
  useEffect(() => {
    if (runId === null) return
    // The page of a run has set which one comes next; in the editor none does.
    return () => (mode === 'edit' ? compareWith(null) : compareStore.setState({ other: null, error: null }))
  }, [runId, mode])
  const room = Math.min(useStore(runStore, roomForLanes), phone ? LANES_ON_PHONES : Infinity)
  const hasRun = useStore(runStore, (s) => s.id !== null)
  const unfinished = useStore(unfinishedStore, (s) => s.list)
  const problems = useStore(
    docStore,
    (s) => s.diagnostics.length + unfinished.filter((each) => each.draft === s.id && s.doc.blocks[each.block]).length,
  )
  const hasProblems = mode === 'edit'
  const pane = phone
    ? null
    : open === 'problems'
      ? hasProblems
        ? open
        : null
      : hasRun && (open === 'trace' || open === 'events')
        ? open
        : null
  const lanes = hasRun && (phone ? unfolded : open === 'tape')
  const height = useHeight(box, lanes ? 'tape' : pane, chosen)
  const shows = lanes || pane !== null
  const fits = pane === 'problems' || (pane === 'trace' && chosen === null)
  const tab = (id: Exclude<DrawerName, null>, label: ReactNode): ReactElement => (
    <button
      type="button"
      role="tab"
      id={`drawer-${id}`}
      aria-selected={lanes && id === 'tape' ? true : pane === id}
      aria-controls="drawer-pane"
      className="drawer__tab"
      onClick={() => uiStore.setState({ drawer: pane === id ? 'tape' : id })}
    >
      {label}
    </button>
  )
  return (
    <section className="drawer" aria-label="Tape and trace" data-open={pane ?? undefined}>
      {(pane || lanes) && !phone ? (
        <Splitter
          label="Height of the drawer"
          orientation="horizontal"
          panel="after"
          value={lanes ? (chosen ?? room) : height}
          min={PANE_MIN}
          max={640}
          onChange={(drawer) => setPanels({ drawer })}
        />
      ) : null}
      <div className="drawer__head">
        <Title />
        {phone && hasRun ? (
          <Button
            kind="bare"
            id="drawer-tape"
            aria-pressed={unfolded}
            data-testid="lanes"
            onClick={() => setUnfolded(!unfolded)}
          >
            Lanes
          </Button>
        ) : null}
        {hasRun ? (
          <Suspense fallback={null}>
            <Controls axis={axis} onAxis={setAxis} mode={mode} />
          </Suspense>
        ) : null}
        {phone ? null : (
          <div className="drawer__tabs" role="tablist" aria-label="Below the Tape">
            {hasRun ? tab('tape', 'Lanes') : null}
            {hasRun ? tab('trace', 'Trace') : null}
            {hasRun ? tab('events', 'Events') : null}
            {hasProblems
              ? tab(
                  'problems',
                  <>
                    Problems <span className="drawer__count">{problems || ''}</span>
                  </>,
                )
              : null}
          </div>
        )}
        {phone ? null : (
          <Button
            kind="bare"
            icon={shows ? 'down' : 'chevron'}
            iconOnly
            aria-expanded={shows}
            // Without a run there is the list of problems alone; closing it leaves the Tape to the next run.
            onClick={() => uiStore.setState({ drawer: shows !== hasRun ? 'tape' : shows ? null : 'problems' })}
          >
            {shows ? 'Close the drawer' : 'Open the drawer'}
          </Button>
        )}
      </div>
      {lanes ? (
        <div id="drawer-pane" role="tabpanel" aria-labelledby="drawer-tape" style={{ minHeight: chosen ?? room }}>
          <Suspense fallback={null}>
            {compared ? (
              <Compared />
            ) : rewinds ? (
              <Rewind axis={axis} height={chosen ?? room} />
            ) : (
              <Lanes axis={axis} height={chosen ?? room} />
            )}
          </Suspense>
        </div>
      ) : hasRun ? (
        <Suspense fallback={<div style={{ height: phone ? TAPE_H : STRIP_H }} />}>
          <Tape axis={axis} strip={!phone} />
          {phone && compared ? <Compared threads={false} /> : null}
          {phone && rewinds ? <Rewind axis={axis} height={null} /> : null}
        </Suspense>
      ) : null}
      {pane ? (
        <div
          ref={box}
          className="drawer__pane"
          id="drawer-pane"
          role="tabpanel"
          aria-labelledby={`drawer-${pane}`}
          data-fits={fits || undefined}
          style={
            !fits
              ? { height: chosen ?? PANE_FIRST }
              : {
                  maxHeight: chosen ?? PANE_FIRST,
                  minHeight: pane === 'trace' ? Math.min(PANE_FIRST, TRACE_HEAD + rows * TRACE_ROW) : undefined,
                }
          }
        >
          <Suspense fallback={null}>
            {pane === 'trace' ? <Trace /> : pane === 'events' ? <Events /> : <Problems />}
          </Suspense>
        </div>
      ) : null}
    </section>
  )
}

/** Room for the lanes that a run is going to have, so that the canvas above stands still while they come. */
function roomForLanes({ doc }: RunState): number {
  let count = 1
  for (const block of Object.values(doc?.blocks ?? {}))
    count += block.type === 'loop' || block.type === 'parallel' ? 4 : block.type === 'agent' ? 2 : 0
  return AXIS_H + LANE_H * Math.max(LANES_LEAST, Math.min(LANES_FIRST, count)) + 4
}

/** The height of the pane: as it was set, else as its content makes it. */
function useHeight(box: React.RefObject<HTMLElement | null>, pane: DrawerName, chosen: number | null): number {
  const [measured, setMeasured] = useState(PANE_FIRST)
  useEffect(() => {
    const element = box.current
    if (!element) return
    const watch = new ResizeObserver(() => setMeasured(element.offsetHeight))
    watch.observe(element)
    return () => watch.disconnect()
  }, [box, pane])
  return chosen ?? measured
}

function Title(): ReactElement {
  const id = useStore(runStore, (s) => s.id)
  const started = useStore(runStore, (s) => s.head.startedAt)
  const finished = useStore(runStore, (s) => s.head.finishedAt)
  const live = useStore(runStore, (s) => s.cursor === 'live')
  const loading = useStore(runStore, isLoading)
  const now = useClock(100)
  if (!id)
    return (
      <p className="drawer__title">
        <b>Tape</b>
        <span className="quiet">No runs yet. Run the workflow to see every step here.</span>
      </p>
    )
  return (
    <p className="drawer__title">
      <b>Tape</b>
      <span className="mono drawer__facts">
        <span title={id}>Run {shortId(id)}</span>
        <LoadingText />
        {started ? <span className="drawer__started"> · started {timeOfDay(started)}</span> : null}
        {started && !loading ? <span> · {clockText((live && finished ? finished : now) - started)}</span> : null}
      </span>
    </p>
  )
}

/** The part of an opened run that is loaded. */
function LoadingText(): ReactElement | null {
  const loading = useStore(runStore, isLoading)
  const all = useStore(runStore, (s) => s.meta?.seq ?? 0)
  const here = useStore(runStore, (s) => s.head.seq)
  if (!loading) return null
  return (
    <span role="status">
      {' · Loading'}
      {all ? ` ${here.toLocaleString('en')} of ${all.toLocaleString('en')} events` : ''}
    </span>
  )
}
