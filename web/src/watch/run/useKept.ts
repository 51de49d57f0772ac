// Keep the shown run as a test of its workflow, or no longer.

import { useStore } from 'zustand'
import { dropKept, keepRun, keptRuns } from '../../net/backtests'
import { playAgain } from '../../state/backtest'
import { runStore } from '../../state/live'
import type { MenuItem } from '../../ui/Menu'
import { useReadOnly } from '../../ui/rights'
import { toast } from '../../ui/Toast'
import { useData } from '../../ui/useData'
import { messageOf } from '../../ui/words'
import { useWhyNotKept } from './useWhyNotKept'

/** The entry of a menu. */
export function useKept(): MenuItem {
  const run = useStore(runStore, (s) => s.id)
  const workflow = useStore(runStore, (s) => s.meta?.workflow ?? null)
  const mayNot = useReadOnly()
  const whyNot = useWhyNotKept()
  const keeps = useData(async () => (workflow === null ? [] : keptRuns(workflow)), [workflow])
  const isKept = keeps.value?.some((each) => each.run === run) ?? false
  return {
    label: isKept ? 'Keep no longer' : 'Keep as test',
    icon: 'pin',
    why: mayNot ?? whyNot,
    onSelect: () => void keepShown(!isKept).then(keeps.reload),
  }
}

export async function keepShown(keep = true): Promise<void> {
  const { id, meta } = runStore.getState()
  if (id === null) return
  try {
    await (keep ? keepRun(id) : dropKept(id))
    playAgain()
    const then = 'The editor replays it after each change, and shows what would differ.'
    toast(keep ? `Kept as a test of ${meta?.workflow ?? 'its workflow'}. ${then}` : 'The run is kept no longer.', 'ok')
  } catch (error) {
    toast(messageOf(error), 'err')
  }
}
