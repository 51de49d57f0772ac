// What holds the shown run up beside what its blocks wait for: its worker stopped responding, or no process has a function that it
// needs. The journal does not have that: the server is asked while a run that has not ended adds no events.

import { useEffect, useState } from 'react'
import { useStore } from 'zustand'
import { api } from '../../net/api'
import { runStore } from '../../state/live'
import { isEnded } from '../../run'

const EVERY_MS = 5000
/** Of a run that waits, which is seldom held up. */
const ASLEEP_MS = 15_000

interface HeldUp {
  /** Unix ms since when its worker does not respond, or null. */
  since: number | null
  /** What the run needs and the process that answered does not have, or null. */
  lacks: string | null
}

const NOTHING: HeldUp = { since: null, lacks: null }

export function useHeldUp(): HeldUp {
  const meta = useStore(runStore, (s) => s.meta)
  const seq = useStore(runStore, (s) => s.head.seq)
  const status = useStore(runStore, (s) => s.head.status)
  const live = useStore(runStore, (s) => s.cursor === 'live')
  const [asked, setAsked] = useState<typeof meta>(null)
  const known = asked?.id === meta?.id ? (asked ?? meta) : meta
  // An event that came later was written by a worker that responds and has what the run needs.
  const held = known && seq <= known.seq ? { since: known.stale_since_ms, lacks: known.lacks ?? null } : NOTHING
  const id = meta?.id ?? null
  const over = isEnded(status)
  const every = status === 'waiting' && held.since === null && held.lacks === null ? ASLEEP_MS : EVERY_MS
  useEffect(() => {
    if (id === null || over) return
    let current = true
    const timer = setInterval(() => {
      if (document.hidden) return
      // The chip says when the server cannot be reached.
      api.run(id).then(
        (run) => current && setAsked(run),
        () => undefined,
      )
    }, every)
    return () => {
      current = false
      clearInterval(timer)
    }
  }, [id, seq, over, every])
  return live && !over ? held : NOTHING
}
