// How up to date the shown run is: live, catching up 120, connection lost, viewing event 79 of 120; how it ended.

import { useEffect, useState, type ReactElement } from 'react'
import { useStore } from 'zustand'
import { reconnect, runStore, seek } from '../state/live'
import { netStore } from '../state/net'
import { Icon } from './icons'
import { Button } from './Button'
import { glyphOf, toneOf, wordOf } from './status'

export function ConnectionChip(): ReactElement | null {
  const net = useStore(netStore, (s) => s)
  const cursor = useStore(runStore, (s) => s.cursor)
  const last = useStore(runStore, (s) => s.head.seq)
  const status = useStore(runStore, (s) => s.head.status)
  const left = useSecondsTo(net.mode === 'offline' ? net.retryAt : null)
  if (net.mode === 'idle') return null
  if (cursor !== 'live') {
    return (
      <span className="chip status" data-tone="wait" data-mode="replay" data-testid="connection">
        <Icon name="back" size={14} />
        Viewing event {cursor} of {last}
        <Button kind="bare" onClick={() => seek('live')}>
          {net.mode === 'live' ? 'Live' : 'Latest'}
        </Button>
      </span>
    )
  }
  const words = {
    live: 'Live',
    ended: wordOf(status),
    catching: net.behind ? `Catching up, ${net.behind} events` : 'Catching up',
    // Nothing is tried again by itself after a refusal: what it says matters.
    offline:
      net.retryAt === null && net.error
        ? net.error
        : `Connection lost${left === null ? '' : `, retrying in ${left} s`}`,
  }
  const tones = { live: 'ok', ended: toneOf(status), catching: 'run', offline: 'err' } as const
  const icons = { live: 'running', ended: glyphOf(status) ?? 'stop', catching: 'queued', offline: 'warning' } as const
  return (
    <span
      className="chip status"
      role="status"
      data-tone={tones[net.mode]}
      data-mode={net.mode}
      data-testid="connection"
      title={net.error ?? undefined}
    >
      <Icon name={icons[net.mode]} size={14} />
      {words[net.mode]}
      {net.mode === 'offline' ? (
        <Button kind="bare" onClick={reconnect}>
          Retry now
        </Button>
      ) : null}
    </span>
  )
}

function useSecondsTo(at: number | null): number | null {
  const [now, setNow] = useState(Date.now)
  useEffect(() => {
    if (at === null) return
    setNow(Date.now())
    const timer = setInterval(() => setNow(Date.now()), 250)
    return () => clearInterval(timer)
  }, [at])
  return at === null ? null : Math.max(0, Math.ceil((at - now) / 1000))
}
