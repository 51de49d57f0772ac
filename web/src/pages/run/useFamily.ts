// The runs around the shown one: who started it, what it started, what those wait for. The journal tells when a block starts a run
// or hears of its end; what happens inside those runs is asked for now and then while any is open, also behind the end of this one.

import { useEffect } from 'react'
import { useStore } from 'zustand'
import { api } from '../../net/api'
import { runStore } from '../../state/live'
import { isEnded } from '../../run'

const EVERY_MS = 4000

/** Keeps children, their waits and the version in `runStore.meta` fresh. */
export function useFamily(): void {
  const id = useStore(runStore, (s) => (s.meta ? s.id : null))
  const open = useStore(runStore, (s) =>
    [...s.head.waits.values()]
      .filter((wait) => wait.kind === 'child')
      .map((wait) => wait.id)
      .join('\n'),
  )
  const over = useStore(runStore, (s) => isEnded(s.head.status))
  const any = useStore(runStore, (s) => (s.meta?.children?.length ?? 0) > 0)
  useEffect(() => {
    if (id === null || (!open && !any)) return
    let current = true
    let timer: ReturnType<typeof setTimeout> | undefined
    const load = async (): Promise<void> => {
      if (document.hidden) return // until it is looked at
      let again = true
      try {
        const now = await api.run(id)
        const { meta } = runStore.getState()
        if (current && meta?.id === id)
          runStore.setState({
            meta: {
              ...meta,
              children: now.children ?? [],
              child_waits: now.child_waits ?? [],
              children_active: now.children_active ?? 0,
            },
          })
        again = (open !== '' && !over) || (now.children ?? []).some((child) => !isEnded(child.status))
      } catch {
        // The chip says when the server cannot be reached; what is shown stays.
      }
      clearTimeout(timer)
      if (current && again) timer = setTimeout(() => void load(), EVERY_MS)
    }
    const look = (): void => void load()
    look()
    document.addEventListener('visibilitychange', look)
    return () => {
      current = false
      clearTimeout(timer)
      document.removeEventListener('visibilitychange', look)
    }
  }, [id, open, over, any])
}
