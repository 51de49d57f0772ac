// Keep the shown run as a test of its workflow, or no longer: an entry of menus.

import { useStore } from 'zustand'
import { dropKept, keepRun, keptRuns } from '../../net/backtests'
import { isEnded } from '../../run'
import { UNTITLED } from '../../document/document'
import { playAgain } from '../../state/backtest'
import { runStore } from '../../state/live'
import type { MenuItem } from '../../ui/Menu'
import { useReadOnly } from '../../ui/rights'
import { toast } from '../../ui/Toast'
import { useData } from '../../ui/useData'
import { messageOf } from '../../ui/words'

export function useKept(): MenuItem {
  const run = useStore(runStore, (s) => s.id)
  const workflow = useStore(runStore, (s) => s.meta?.workflow ?? null)
  const ended = useStore(runStore, (s) => isEnded(s.head.seq === 0 && s.meta ? s.meta.status : s.head.status))
  const mayNot = useReadOnly()
  const keeps = useData(async () => (workflow === null ? [] : keptRuns(workflow)), [workflow])
  const isKept = keeps.value?.some((each) => each.run === run) ?? false
  const select = async (): Promise<void> => {
    if (run === null) return
    try {
      await (isKept ? dropKept(run) : keepRun(run))
      keeps.reload()
      playAgain()
      toast(
        isKept
          ? 'The run is kept no longer.'
          : `Kept as a test of ${workflow}. The editor plays it after each change, and shows what would differ.`,
        'ok',
      )
    } catch (error) {
      toast(messageOf(error), 'err')
    }
  }
  return {
    label: isKept ? 'Keep no longer' : 'Keep as test',
    icon: 'pin',
    why: mayNot ?? whyNot(run, workflow, ended),
    onSelect: () => void select(),
  }
}

function whyNot(run: string | null, workflow: string | null, ended: boolean): string | null {
  if (run === null) return 'Run the workflow first'
  if (!ended) return 'The run has not ended'
  return workflow === UNTITLED ? 'Tests belong to a name: name the workflow and run it again' : null
}
