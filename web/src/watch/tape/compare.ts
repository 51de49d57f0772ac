// Two runs side by side: another one is loaded beside the one that is shown, and the server returns where they part.

import { createStore } from 'zustand/vanilla'
import { api } from '../../net/api'
import type { RunDiff } from '../../api/schemas'
import type { Document } from '../../api/types'
import { shapeOf } from '../../run'
import { specsOf } from '../../state/doc'
import { Timeline } from '../../state/keyframes'
import { runStore } from '../../state/live'

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
export async function compareWith(id: string | null): Promise<void> {
  compareStore.setState({ id, other: null, error: null })
  const shown = runStore.getState().id
  if (id === null || shown === null) return
  const current = (): boolean => compareStore.getState().id === id && runStore.getState().id === shown
  try {
    const [diff, run] = await Promise.all([api.diff(id, shown), api.run(id)])
    const doc = await api.runDocument(run)
    const timeline = new Timeline(shapeOf(doc, specsOf()))
    for (let next: number | null = 0; next !== null && current(); ) {
      const page = await api.events(id, next)
      timeline.append(page.events)
      next = page.next !== null && page.events.length ? timeline.seq : null
    }
    if (current()) compareStore.setState({ other: { id, doc, timeline, diff } })
  } catch (error) {
    if (current()) compareStore.setState({ error: error instanceof Error ? error.message : String(error) })
  }
}

/** Ask again where the two part, as the run that is shown has more events. Until the answer comes, the last one is shown. */
export async function compareAgain(): Promise<void> {
  const { id, other } = compareStore.getState()
  const shown = runStore.getState().id
  if (id === null || shown === null || !other) return
  const diff = await api.diff(id, shown).catch(() => null)
  if (diff && compareStore.getState().other === other) compareStore.setState({ other: { ...other, diff } })
}
