// Whether the worker of the shown run stopped responding. The journal does not have that: the server is asked while a run that
// has not ended adds no events.

import { useEffect, useState } from 'react'
import { useStore } from 'zustand'
import { api } from '../../net/api'
import { runStore } from '../../state/live'
import { isEnded } from '../../run'

const EVERY_MS = 5000

/** Unix ms since when, or null. */
export function useStale(): number | null {
  const meta = useStore(runStore, (s) => s.meta)
  const seq = useStore(runStore, (s) => s.head.seq)
  const status = useStore(runStore, (s) => s.head.status)
  const live = useStore(runStore, (s) => s.cursor === 'live')
  const [asked, setAsked] = useState<typeof meta>(null)
  const known = asked?.id === meta?.id ? (asked ?? meta) : meta
  // An event that came later was written by a worker that responds.
  const since = known && seq <= known.seq ? known.stale_since_ms : null
  const id = meta?.id ?? null
  const over = isEnded(status)
  const asleep = status === 'waiting' && since === null
  useEffect(() => {
    if (id === null || over || asleep) return
    let current = true
    const timer = setInterval(() => {
      if (document.hidden) return
      // The chip says when the server cannot be reached.
      api.run(id).then(
        (run) => current && setAsked(run),
        () => undefined,
      )
    }, EVERY_MS)
    return () => {
      current = false
      clearInterval(timer)
    }
  }, [id, seq, over, asleep])
  return live && !over ? since : null
}
