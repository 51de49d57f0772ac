// Loading something once for a component: the value, the error, and a way to load again.

import { useCallback, useEffect, useState } from 'react'

export interface Loaded<T> {
  value: T | null
  error: Error | null
  loading: boolean
  reload: () => void
}

/** `load` runs when `deps` change; an older answer never replaces a newer one. */
export function useData<T>(load: () => Promise<T>, deps: readonly unknown[]): Loaded<T> {
  const [state, setState] = useState<{ value: T | null; error: Error | null; loading: boolean }>({ value: null, error: null, loading: true })
  const [turn, setTurn] = useState(0)
  useEffect(() => {
    let current = true
    setState((before) => ({ ...before, loading: true }))
    load().then(
      (value) => current && setState({ value, error: null, loading: false }),
      (error: unknown) => current && setState((before) => ({ value: before.value, error: error instanceof Error ? error : new Error(String(error)), loading: false })),
    )
    return () => {
      current = false
    }
  }, [...deps, turn])
  const reload = useCallback(() => setTurn((n) => n + 1), [])
  return { ...state, reload }
}
