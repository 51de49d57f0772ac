// The run that is shown: its log, where the Tape stands, and what the canvas paints. One at a time for a tab.

import { createStore } from 'zustand/vanilla'
import { placed } from './placed'
import { api } from '../net/api'
import { follow, type Feed } from '../net/events'
import type { Document, RunView, WireEvent } from '../api/types'
import { Timeline } from './keyframes'
import { setNet } from './net'
import { emptyFold, isDecided, shapeOf, type RunFold } from '../run'
import { specsOf } from './doc'

export interface RunState {
  id: string | null
  /** The run as the server described it when it was opened; null while that is loading. */
  meta: RunView | null
  /** The document the run is pinned to. */
  doc: Document | null
  timeline: Timeline
  /** 'live', or the seq the Tape was dragged to. */
  cursor: 'live' | number
  /** The fold at the cursor: what everything paints. */
  view: RunFold
  /** The fold of all events: where `live` is. */
  head: RunFold
  /** Live text by node key; gone when the block has ended. */
  live: ReadonlyMap<string, string>
  error: string | null
}

/** Events that the run had when it was opened are still on their way: what is shown is not how it is. */
export function isLoading({ id, meta, head, error }: RunState): boolean {
  return id !== null && error === null && (meta === null || head.seq < meta.seq)
}

const LIVE_TEXT_MAX = 64 * 1024

export const runStore = createStore<RunState>(closedRun)

let feed: Feed | null = null
/** Counts what was opened and closed: an answer that comes later belongs to something that is shown no more. */
let generation = 0

/** Show a run: load what it is, then follow it. `doc`: when the caller has the document it runs. */
export async function openRun(id: string, options: { doc?: Document | null; seq?: number } = {}): Promise<void> {
  closeRun()
  const opened = generation
  runStore.setState({ ...closedRun(), id, doc: options.doc ?? null, cursor: options.seq ?? 'live' })
  try {
    const meta = await api.run(id)
    const stored = options.doc ?? (await api.runDocument(meta.id))
    const doc = stored && placed(stored, specsOf())
    if (opened !== generation) return
    const timeline = new Timeline(shapeOf(doc, specsOf()))
    runStore.setState({ meta, doc, timeline, view: timeline.head, head: timeline.head })
  } catch (error) {
    if (opened === generation) runStore.setState({ error: error instanceof Error ? error.message : String(error) })
    return
  }
  feed = follow(id, 0, { events: ingest, delta: addText, status: setNet })
}

/** Show no run. */
export function closeRun(): void {
  generation++
  feed?.close()
  feed = null
  setNet({ mode: 'idle', behind: 0, retryAt: null, error: null })
  runStore.setState(closedRun())
}

/** Try to connect now. */
export function reconnect(): void {
  feed?.retry()
}

/** Put the Tape's cursor on an event, or back to live. The whole picture follows. */
export function seek(to: number | 'live'): void {
  const { timeline } = runStore.getState()
  if (to === 'live') return runStore.setState({ cursor: 'live', view: timeline.head })
  const seq = Math.max(0, Math.min(Math.round(to), timeline.seq))
  runStore.setState({ cursor: seq, view: timeline.seek(seq) })
}

/** Move the cursor: by events, or by `block` to the next one that starts or ends a block. */
export function stepBy(by: 1 | -1, unit: 'event' | 'block' = 'event'): void {
  const { timeline, cursor } = runStore.getState()
  let at = (cursor === 'live' ? timeline.seq : cursor) + by
  const isBoundary = (event: WireEvent | undefined): boolean =>
    !!event && /^(node\.(started|succeeded|failed)|region\.exited|wait\.)/.test(event.type)
  if (unit === 'block') while (at > 0 && at < timeline.seq && !isBoundary(timeline.log[at - 1])) at += by
  seek(at >= timeline.seq && by > 0 ? 'live' : at)
}

/** Take events in: contiguous, as `follow` gives them. */
export function ingest(events: WireEvent[]): void {
  const { timeline, cursor, live } = runStore.getState()
  timeline.append(events)
  const head = timeline.head
  let texts: Map<string, string> | null = null
  for (const event of events) {
    if (event.key === null || !live.has(event.key)) continue
    const node = head.nodes.get(event.key)
    // The next attempt may have begun with the same events: its text is another one.
    if (!node || isDecided(node) || node.status === 'retrying' || event.type === 'retry.scheduled')
      (texts ??= new Map(live)).delete(event.key)
  }
  runStore.setState({ head, ...(texts ? { live: texts } : {}), view: cursor === 'live' ? head : timeline.seek(cursor) })
}

function addText(key: string, text: string): void {
  runStore.setState(({ live }) => {
    const next = new Map(live)
    next.set(key, ((live.get(key) ?? '') + text).slice(-LIVE_TEXT_MAX))
    return { live: next }
  })
}

function closedRun(): RunState {
  const view = emptyFold()
  return {
    id: null,
    meta: null,
    doc: null,
    timeline: new Timeline(),
    cursor: 'live',
    view,
    head: view,
    live: new Map(),
    error: null,
  }
}
