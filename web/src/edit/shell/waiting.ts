// The number of open approvals and forms, for the bar. Loaded at intervals, and whenever the shown run opens or closes a wait.

import { useEffect } from 'react'
import { createStore } from 'zustand/vanilla'
import { useStore } from 'zustand'
import { api } from '../../net/api'

import type { WaitView } from '../../api/types'
import { runStore } from '../../state/live'

/** Kinds that a person answers, by their link. */
export const isForPeople = (wait: Pick<WaitView, 'kind'>): boolean =>
  wait.kind === 'approval' || wait.kind === 'form' || wait.kind === 'attention'

const EVERY_MS = 15_000
const store = createStore<{ count: number }>(() => ({ count: 0 }))

export async function countApprovals(): Promise<void> {
  try {
    const waits = await api.waits()
    store.setState({ count: waits.filter(isForPeople).length })
  } catch {
    // The number stays as it was until the server can be reached again.
  }
}

export function useApprovals(): number {
  const open = useStore(runStore, (s) => s.head.waits.size)
  useEffect(() => {
    void countApprovals()
    const timer = setInterval(() => void (document.hidden ? undefined : countApprovals()), EVERY_MS)
    return () => clearInterval(timer)
  }, [open])
  return useStore(store, (s) => s.count)
}
