// How the kinds of durable steps look.

import type { IconName } from './icons'
import type { StepKind } from '../run'

export const STEP_ICONS: Readonly<Record<StepKind, IconName>> = {
  model: 'agent',
  tool: 'block',
  step: 'function',
  wait: 'approval',
  mark: 'compare',
}
