// The run that the shown one is compared with: its events, and where the server finds that the two part.

import { api } from '../../net/api'
import { shapeOf } from '../../run'
import { specsOf } from '../../state/doc'
import { Timeline } from '../../state/keyframes'
import { runStore } from '../../state/live'
import { compareStore } from './compare'

/** Load the run that the shown one is compared with. */
export async function loadOther(id: string, shown: string): Promise<void> {
  const current = (): boolean => compareStore.getState().id === id && runStore.getState().id === shown
  try {
    const [diff, run] = await Promise.all([api.diff(id, shown), api.run(id)])
    const doc = await api.runDocument(run.id)
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
