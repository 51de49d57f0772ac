// The call that is chosen: a step of a selected block, so that trace, inspector and lane show the same.

import type { LaneItem } from '../../run/lane'
import { select, showStep, uiStore } from '../../state/ui'
import { useStore } from 'zustand'
import { idOf } from './rows'

export function choose(item: Pick<LaneItem, 'phase' | 'n'>): void {
  select({ blocks: [item.phase] })
  showStep(item.n)
}

/** Its id, or null. */
export function useChosen(): string | null {
  return useStore(uiStore, ({ selection, step }) =>
    step !== null && selection.blocks.length === 1 ? idOf({ phase: selection.blocks[0]!, n: step }) : null,
  )
}
