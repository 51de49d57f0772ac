// The present moment for durations: it ticks while something is under way, stands still while offline, and in a replay it is
// the moment that is shown.

import { useEffect, useState } from 'react'
import { runStore } from '../state/live'
import { clockOf, netStore } from '../state/net'
import { isEnded } from '../run'
import { useSelect } from '../state/store'

/** Unix ms. `everyMs`: how often it ticks. */
export function useClock(everyMs = 250): number {
  const net = useSelect(netStore, (s) => s)
  const over = useSelect(runStore, (s) => isEnded(s.head.status))
  const cursor = useSelect(runStore, (s) => s.cursor)
  const shown = useSelect(runStore, (s) => s.view.at)
  const ended = useSelect(runStore, (s) => s.head.finishedAt)
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
