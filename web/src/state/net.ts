// How up to date the shown run is, and the clock that stops when it is not: without a connection it is unknown whether a block
// is still running, so durations stop.

import { createStore } from 'zustand/vanilla'
import { serverNow } from '../net/clock'
import type { FeedStatus } from '../net/events'

export interface NetState extends FeedStatus {
  /** When the present mode began. */
  since: number
}

export const netStore = createStore<NetState>(() => ({ mode: 'idle', behind: 0, retryAt: null, error: null, since: 0 }))

export function setNet(status: FeedStatus, now = serverNow()): void {
  netStore.setState((before) => ({ ...status, since: before.mode === status.mode ? before.since : now }))
}

/** The time to count durations with: stands still while offline. */
export function clockOf(net: NetState, now = serverNow()): number {
  return net.mode === 'offline' ? net.since : now
}
