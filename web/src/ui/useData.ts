// Loading something once for a component: the value, the error, and a way to load again.

import { useCallback, useEffect, useState } from 'react'

export interface Loaded<T> {
  value: T | null
  error: Error | null
  loading: boolean
  reload: () => void
}

/** `load` runs when `deps` change; an older answer never replaces a newer one. What is known stays while it is asked for again, and
 * when that fails; what is known of other `deps` does not outlast a failure. */
export function useData<T>(load: () => Promise<T>, deps: readonly unknown[]): Loaded<T> {
  const [state, setState] = useState<{
    value: T | null
    of: readonly unknown[]
    error: Error | null
    loading: boolean
  }>({ value: null, of: deps, error: null, loading: true })
  const [turn, setTurn] = useState(0)
  useEffect(() => {
    let current = true
    setState((before) => ({ ...before, loading: true }))
    load().then(
      (value) => current && setState({ value, of: deps, error: null, loading: false }),
      (error: unknown) =>
        current &&
        setState(({ value, of }) => ({
          value: of.every((each, i) => Object.is(each, deps[i])) ? value : null,
          of,
          error: error instanceof Error ? error : new Error(String(error)),
          loading: false,
        })),
    )
    return () => {
      current = false
    }
  }, [...deps, turn])
  const reload = useCallback(() => setTurn((n) => n + 1), [])
  return { ...state, reload }
}
