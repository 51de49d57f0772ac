// Why the shown run cannot be kept as a test.

import { useStore } from 'zustand'
import { UNTITLED } from '../../document/document'
import { isEnded } from '../../run'
import { runStore } from '../../state/live'

export function useWhyNotKept(): string | null {
  return useStore(runStore, ({ id, head, meta }) => {
    if (id === null) return 'Run the workflow first'
    if (!isEnded(head.seq === 0 && meta ? meta.status : head.status)) return 'The run has not ended'
    return meta?.workflow === UNTITLED ? 'Tests belong to a name: name the workflow and run it again' : null
  })
}
