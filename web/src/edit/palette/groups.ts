// How block types are grouped for people, in the palette and the picker.

import type { BlockSpec } from '../../api/types'
import type { IconName } from '../../ui/icons'

const GROUPS: Readonly<Record<BlockSpec['category'], string>> = {
  trigger: 'Triggers',
  action: 'Actions',
  data: 'Actions',
  connector: 'Connectors',
  flow: 'Flow',
  people: 'People',
  annotation: 'Notes',
}
const ORDER = ['Triggers', 'Actions', 'Connectors', 'Flow', 'People', 'Notes']
export const GROUP_ICONS: Readonly<Record<string, IconName>> = {
  Triggers: 'start',
  Actions: 'function',
  Connectors: 'slack',
  Flow: 'condition',
  People: 'approval',
  Notes: 'note',
}
/** Within a group the everyday ones come first. */
const FIRST = [
  'start',
  'webhook',
  'schedule',
  'chat_trigger',
  'form_trigger',
  'function',
  'http',
  'email',
  'set',
  'variables',
  'condition',
  'router',
  'loop',
  'parallel',
  'wait',
  'signal',
]

export const groupOf = (spec: BlockSpec): string => GROUPS[spec.category] ?? 'Actions'

export function grouped(specs: readonly BlockSpec[]): { group: string; specs: BlockSpec[] }[] {
  const rank = (spec: BlockSpec): number => FIRST.indexOf(spec.type) + 1 || 100
  return ORDER.map((group) => ({
    group,
    specs: specs
      .filter((spec) => groupOf(spec) === group)
      .sort((a, b) => rank(a) - rank(b) || a.title.localeCompare(b.title)),
  })).filter(({ specs: found }) => found.length)
}
