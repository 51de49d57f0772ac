// Playing a run back: the cursor goes from event to event with the pauses between them as they were, but never longer than
// a second, and a long run never takes longer than a minute.

import { createStore } from 'zustand/vanilla'
import { runStore, seek } from '../../state/live'
import type { WireEvent } from '../../api/types'

export const SPEEDS = [1, 2, 4, 8] as const

export const playStore = createStore<{ playing: boolean; speed: (typeof SPEEDS)[number] }>(() => ({
  playing: false,
  speed: 1,
}))

const PAUSE_MIN_MS = 60
const PAUSE_MAX_MS = 1000
const WHOLE_MAX_MS = 60_000

let frame = 0
let last = 0
let owed = 0
/** Where playing put the cursor; when it is elsewhere, it was moved by hand. */
let played = 0

/** Play from the cursor, or from the start when it is at the end. Again: pause. */
export function togglePlay(): void {
  if (playStore.getState().playing) return pause()
  const { timeline, cursor } = runStore.getState()
  if (!timeline.seq) return
  if (cursor === 'live' || cursor >= timeline.seq) seek(0)
  playStore.setState({ playing: true })
  last = performance.now()
  owed = 0
  const now = runStore.getState().cursor
  played = now === 'live' ? 0 : now
  frame = requestAnimationFrame(step)
}

export function pause(): void {
  cancelAnimationFrame(frame)
  playStore.setState({ playing: false })
}

export function nextSpeed(): void {
  playStore.setState(({ speed }) => ({ speed: SPEEDS[(SPEEDS.indexOf(speed) + 1) % SPEEDS.length]! }))
}

/** Pauses between events, in ms, at single speed. */
export function pauseAfter(log: readonly WireEvent[], seq: number): number {
  const dt = (log[seq]?.at_ms ?? 0) - (log[seq - 1]?.at_ms ?? log[seq]?.at_ms ?? 0)
  const most = Math.min(PAUSE_MAX_MS, WHOLE_MAX_MS / Math.max(1, log.length))
  return Math.max(Math.min(PAUSE_MIN_MS, most), Math.min(most, dt))
}

function step(now: number): void {
  const { playing, speed } = playStore.getState()
  const { timeline, cursor, id } = runStore.getState()
  if (!playing) return
  if (id === null || cursor !== played) return pause()
  owed += (now - last) * speed
  last = now
  let seq: number = cursor
  while (seq < timeline.seq) {
    const cost = pauseAfter(timeline.log, seq)
    if (owed < cost) break
    owed -= cost
    seq++
  }
  if (seq !== cursor) seek((played = seq))
  if (seq >= timeline.seq) {
    seek('live')
    return pause()
  }
  frame = requestAnimationFrame(step)
}
