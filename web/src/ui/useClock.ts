// The current time for durations: it ticks while something runs, stops while offline, and in a replay it is the time of the
// shown event.

import { useEffect, useState } from 'react'
import { useStore } from 'zustand'
import { runStore } from '../state/live'
import { clockOf, netStore } from '../state/net'
import { isEnded } from '../run'

/** Unix ms. `everyMs`: how often it ticks. */
export function useClock(everyMs = 250): number {
  const net = useStore(netStore, (s) => s)
  const over = useStore(runStore, (s) => isEnded(s.head.status))
  const cursor = useStore(runStore, (s) => s.cursor)
  const shown = useStore(runStore, (s) => s.view.at)
  const ended = useStore(runStore, (s) => s.head.finishedAt)
  const [, tick] = useState(0)
  const runs = cursor === 'live' && !over && net.mode !== 'offline' && net.mode !== 'idle'
  useEffect(() => {
    if (!runs) return
    const timer = setInterval(() => tick((n) => n + 1), everyMs)
    return () => clearInterval(timer)
  }, [runs, everyMs])
  if (cursor !== 'live') return shown ?? 0
  return over ? (ended ?? shown ?? 0) : clockOf(net)
}
