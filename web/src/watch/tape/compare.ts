// Two runs side by side: the other one. It is loaded where both are shown.

import { createStore } from 'zustand/vanilla'
import type { RunDiff } from '../../api/schemas'
import type { Document } from '../../api/types'
import type { Timeline } from '../../state/keyframes'

/** The other run, as it is; `diff.a` is of it, `diff.b` of the run that is shown. */
export interface Other {
  id: string
  doc: Document | null
  timeline: Timeline
  diff: RunDiff
}

export const compareStore = createStore<{ id: string | null; other: Other | null; error: string | null }>(() => ({
  id: null,
  other: null,
  error: null,
}))

/** Compare the run that is shown with another; null: with none. */
export const compareWith = (id: string | null): void => compareStore.setState({ id, other: null, error: null })
