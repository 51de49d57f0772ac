// A store is a value with listeners. Components read a part of it with `useSelect` and are drawn again only when that part
// changes. Everything under src/state besides this file's hook is free of React.

import { useCallback, useRef, useSyncExternalStore } from 'react'

export interface Store<S> {
  get(): S
  /** Replace fields, or compute them from the state. Listeners run once, and only when something changed. */
  set(change: Partial<S> | ((state: S) => Partial<S>)): void
  subscribe(listener: () => void): () => void
}

export function createStore<S extends object>(initial: S): Store<S> {
  let state = initial
  const listeners = new Set<() => void>()
  return {
    get: () => state,
    set(change) {
      const patch = typeof change === 'function' ? change(state) : change
      const keys = Object.keys(patch) as (keyof S)[]
      if (keys.every((key) => Object.is(patch[key], state[key]))) return
      state = { ...state, ...patch }
      for (const listener of [...listeners]) listener()
    },
    subscribe(listener) {
      listeners.add(listener)
      return () => listeners.delete(listener)
    },
  }
}

export type Equal<T> = (a: T, b: T) => boolean

/** A part of the state. `select` may make a new object each time when `equal` (such as `shallow`) is given. */
export function useSelect<S, T>(store: Store<S>, select: (state: S) => T, equal: Equal<T> = Object.is): T {
  const last = useRef<{ value: T } | null>(null)
  const read = useCallback(() => {
    const value = select(store.get())
    if (last.current && equal(last.current.value, value)) return last.current.value
    last.current = { value }
    return value
  }, [store, select, equal])
  return useSyncExternalStore(store.subscribe, read)
}

/** Equal when all fields or items are the same. */
export function shallow<T>(a: T, b: T): boolean {
  if (Object.is(a, b)) return true
  if (typeof a !== 'object' || typeof b !== 'object' || a === null || b === null) return false
  const left = Object.entries(a)
  if (left.length !== Object.keys(b).length) return false
  return left.every(([key, value]) => key in b && Object.is(value, (b as Record<string, unknown>)[key]))
}
