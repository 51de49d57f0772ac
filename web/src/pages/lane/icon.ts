// The icon of a call: that of the block that does the same.

import type { LaneItem } from '../../run/lane'
import type { IconName } from '../../ui/icons'
import { STEP_ICONS } from '../../ui/steps'

const WAITS: Readonly<Record<string, IconName>> = {
  timer: 'wait',
  signal: 'signal',
  webhook: 'callback',
  form: 'form',
  child: 'run_workflow',
  attention: 'warning',
}

export const iconOfItem = (item: LaneItem): IconName => (item.wait && WAITS[item.wait.kind]) ?? STEP_ICONS[item.kind]
