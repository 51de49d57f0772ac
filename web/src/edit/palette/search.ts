// Block types by what is typed: their names, other words for what they do, and their descriptions.

import type { BlockSpec } from '../../api/types'
import { fuzzy } from '../../ui/Listbox'

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
  'event.feed': 'rss atom news blog poll trigger',
  'event.mail': 'imap inbox email poll trigger',
  'event.file': 'folder directory drop watch poll trigger',
  'event.sftp': 'ssh folder directory drop watch poll trigger',
  'event.rows': 'database sql postgres mysql sqlite poll trigger',
  agent: 'ai llm model prompt chat gpt claude',
  sql: 'database postgres mysql mariadb sqlite',
  redis: 'database valkey cache key value queue publish',
  sftp: 'ssh ftp upload download server folder',
  run_workflow: 'call child subflow',
}

/** A whole word is worth more than letters in the middle of a name ("if" is no Shopify), the start of one less. */
function fits(words: string, query: string): number {
  const wanted = query.trim().toLowerCase()
  if (!wanted || !` ${words}`.includes(` ${wanted}`)) return 0
  return ` ${words} `.includes(` ${wanted} `) ? 710 : 600
}

/** Those that fit what is typed, best first. */
export function search(specs: readonly BlockSpec[], query: string): BlockSpec[] {
  const score = (spec: BlockSpec): number =>
    Math.max(
      fuzzy(spec.title, query),
      fuzzy(spec.type, query) - 1,
      fits(ALSO[spec.type] ?? '', query),
      fuzzy(spec.description, query) > 650 ? 100 : 0,
    )
  return specs
    .map((spec) => ({ spec, score: score(spec) }))
    .filter((each) => each.score > 0)
    .sort((a, b) => b.score - a.score)
    .map((each) => each.spec)
}
