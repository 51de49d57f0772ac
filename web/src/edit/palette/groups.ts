// How block types are grouped for people, in the palette and the picker.

import type { BlockSpec } from '../../api/types'
import type { IconName } from '../../ui/icons'
import { fuzzy } from '../../ui/Listbox'

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

/** Other words for what a type does: what people look for who do not know its name yet. */
const ALSO: Readonly<Record<string, string>> = {
  response: 'end return result answer reply output finish',
  set: 'edit fields map transform value',
  variables: 'store remember count',
  function: 'code script javascript python',
  http: 'api call fetch url rest get post request',
  condition: 'if else branch compare',
  router: 'switch branch case',
  loop: 'for each repeat while',
  parallel: 'fan out at once',
  wait: 'sleep delay pause timer',
  approval: 'human person ask confirm decide review',
  form: 'human person ask input question',
  start: 'manual trigger by hand',
  webhook: 'event http trigger incoming',
  schedule: 'cron timer every trigger',
  agent: 'ai llm model prompt chat gpt claude',
  sql: 'database postgres sqlite',
  run_workflow: 'call child subflow',
}

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

const starts = (words: string, query: string): boolean =>
  query.trim() !== '' && ` ${words}`.includes(` ${query.trim().toLowerCase()}`)

/** Those that fit what is typed, best first. */
export function search(specs: readonly BlockSpec[], query: string): BlockSpec[] {
  const score = (spec: BlockSpec): number =>
    Math.max(
      fuzzy(spec.title, query),
      fuzzy(spec.type, query) - 1,
      starts(ALSO[spec.type] ?? '', query) ? 600 : 0,
      fuzzy(spec.description, query) > 650 ? 100 : 0,
    )
  return specs
    .map((spec) => ({ spec, score: score(spec) }))
    .filter((each) => each.score > 0)
    .sort((a, b) => b.score - a.score)
    .map((each) => each.spec)
}
