// The open waits of the run that is shown, with their links and forms.

import { useEffect, useState } from 'react'
import { useStore } from 'zustand'
import { api } from '../../net/api'
import type { WaitView } from '../../api/types'
import { isEnded } from '../../run'
import { runStore } from '../../state/live'

/** By id: asked again whenever the journal opens or closes one. */
export function useWaitViews(): ReadonlyMap<string, WaitView> {
  const id = useStore(runStore, (s) => s.id)
  const keys = useStore(runStore, (s) => [...s.head.waits].map(([id, wait]) => `${id} ${wait.openedAt}`).join('\n'))
  const over = useStore(runStore, (s) => isEnded(s.head.status))
  const [views, setViews] = useState<ReadonlyMap<string, WaitView>>(new Map())
  useEffect(() => {
    if (id === null || over || !keys) return setViews(new Map())
    let current = true
    let timer: ReturnType<typeof setTimeout> | undefined
    const load = (): void => {
      api.waits('pending', id).then(
        (waits) => current && setViews(new Map(waits.map((wait) => [wait.id, wait]))),
        () => current && (timer = setTimeout(load, 3000)),
      )
    }
    load()
    return () => {
      current = false
      clearTimeout(timer)
    }
  }, [id, keys, over])
  return views
}
