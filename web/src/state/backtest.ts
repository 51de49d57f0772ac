// While a draft is edited the runs that are kept as tests are replayed with it. It waits for a pause, an edit ends what is under way,
// and what cannot be replayed (errors, no connection) shows nothing.

import { createStore } from 'zustand/vanilla'
import type { RunReplay } from '../api/schemas'
import { keptRuns, play } from '../net/backtests'
import { docStore } from './doc'

const AFTER_MS = 1200

interface BacktestState {
  /** The runs, replayed with the document as it is now, or was until the last edit. */
  runs: readonly RunReplay[]
  /** An edit came after `runs`. */
  old: boolean
}

export const backtestStore = createStore<BacktestState>(() => ({ runs: [], old: false }))

let again: ((after: number) => void) | null = null

/** Play the open draft now, if it is watched: other runs are kept. */
export const playAgain = (): void => again?.(0)

/** Play the open draft after each pause. Returns how to stop. */
export function watchDraft(): () => void {
  let timer: ReturnType<typeof setTimeout> | undefined
  let under: AbortController | null = null
  const later = (after: number): void => {
    clearTimeout(timer)
    under?.abort()
    if (backtestStore.getState().runs.length) backtestStore.setState({ old: true })
    timer = setTimeout(() => void now(), after)
  }
  const now = async (): Promise<void> => {
    const { doc, id, baseName } = docStore.getState()
    const name = baseName ?? doc.name
    if (id === null || !name) return backtestStore.setState({ runs: [], old: false })
    under = new AbortController()
    const { signal } = under
    let found: readonly RunReplay[] = []
    try {
      if ((await keptRuns(name, signal)).length) await play(name, doc, 'kept', (runs) => (found = runs), signal)
    } catch {
      found = []
    }
    if (!signal.aborted) backtestStore.setState({ runs: found, old: false })
  }
  const stop = docStore.subscribe((state, before) => {
    if (state.id !== before.id) backtestStore.setState({ runs: [], old: false })
    if (state.doc !== before.doc || state.id !== before.id) later(AFTER_MS)
  })
  later(0)
  again = later
  return () => {
    again = null
    stop()
    clearTimeout(timer)
    under?.abort()
    backtestStore.setState({ runs: [], old: false })
  }
}
