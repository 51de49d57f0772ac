// The filter of runs in the address: its tokens, saved views, and the query to the server.

import type { RunQuery } from '../../net/api'
import type { RunStatus } from '../../api/types'
import { wordOf } from '../../ui/status'
import { dateTime } from '../../ui/time'
import { shortId } from '../../ui/words'

export const STATUSES: readonly RunStatus[] = ['running', 'waiting', 'queued', 'succeeded', 'failed', 'cancelled']
/** The parameters of a filter in an address. */
export const PARAMS = ['status', 'workflow', 'draft', 'parent', 'since', 'until', 'text'] as const
export type Param = (typeof PARAMS)[number]

const HOUR = 3_600_000
export const TIMES: readonly [id: string, words: string][] = [
  ['today', 'today'],
  ['hour', 'in the last hour'],
  ['day', 'in the last 24 hours'],
  ['week', 'in the last 7 days'],
]

export interface Token {
  param: Param
  key: string
  value: string
}

/** The beginning of a named time; a number is itself. */
export function sinceOf(text: string | null, now: number): number | undefined {
  if (!text) return undefined
  if (text === 'today') return new Date(now).setHours(0, 0, 0, 0)
  const back = { hour: HOUR, day: 24 * HOUR, week: 168 * HOUR }[text]
  if (back !== undefined) return now - back
  return /^\d{1,15}$/.test(text) ? Number(text) : undefined
}

export function tokensOf(query: URLSearchParams): Token[] {
  const words: Record<Param, (value: string) => [key: string, value: string]> = {
    status: (value) => ['status is', value === 'attention' ? wordOf('attention') : wordIn(value)],
    workflow: (value) => ['workflow is', value],
    draft: (value) => ['of the draft', value.slice(0, 8)],
    parent: (value) => ['started by the run', shortId(value)],
    since: (value) => ['started', TIMES.find(([id]) => id === value)?.[1] ?? `from ${moment(value)}`],
    until: (value) => ['started', `before ${moment(value)}`],
    text: (value) => ['with the text', value],
  }
  return PARAMS.flatMap((param) => {
    const value = query.get(param)
    if (!value) return []
    const [key, shown] = words[param](value)
    return [{ param, key, value: shown }]
  })
}

const moment = (value: string): string => (/^\d{1,15}$/.test(value) ? dateTime(Number(value)) : value)
const isStatus = (value: string | null): value is RunStatus => (STATUSES as readonly (string | null)[]).includes(value)
const wordIn = (value: string): string => (isStatus(value) ? wordOf(value) : value)

/** The query to the server. Runs that need attention are open ones: their waits show which of them. */
export function whereOf(query: URLSearchParams, now: number): RunQuery {
  const status = query.get('status')
  const [workflow, draft, parent, text] = (['workflow', 'draft', 'parent', 'text'] as const).map((name) =>
    query.get(name),
  )
  const since = sinceOf(query.get('since'), now)
  const until = sinceOf(query.get('until'), now)
  return {
    ...(isStatus(status) ? { status } : {}),
    ...(workflow ? { workflow } : {}),
    ...(draft ? { draft } : {}),
    ...(parent ? { parent } : {}),
    ...(text ? { text } : {}),
    ...(since === undefined ? {} : { since }),
    ...(until === undefined ? {} : { until }),
  }
}

export interface Choice {
  id: string
  param: Param
  value: string
  words: string
  group: string
  count?: number
}

const MOST = 6

/** The possible meanings of the typed words, the likeliest first. `failed`: blocks at which runs of the list failed. */
export function choicesOf(typed: string, names: readonly string[], failed: ReadonlyMap<string, number>): Choice[] {
  const asked = typed.trim().toLowerCase()
  const has = (text: string): boolean => text.toLowerCase().includes(asked)
  const found: Choice[] = []
  const add = (param: Param, value: string, words: string, group: string, count?: number): void => {
    if (has(`${group} ${words}`))
      found.push({ id: `${param} ${value}`, param, value, words, group, ...(count === undefined ? {} : { count }) })
  }
  for (const [block, count] of [...failed].sort((a, b) => b[1] - a[1]).slice(0, 4))
    add('text', block, block, 'where it failed', count)
  for (const status of STATUSES) add('status', status, wordOf(status), 'status')
  for (const [id, words] of TIMES) add('since', id, words, 'started')
  let workflows = 0
  for (const name of names) if (has(`workflow ${name}`) && workflows++ < MOST) add('workflow', name, name, 'workflow')
  found.splice(MOST * 2 - 1)
  if (asked)
    found.push({
      id: 'text',
      param: 'text',
      value: typed.trim(),
      words: `“${typed.trim()}”`,
      group: 'in the id, the key or the error',
    })
  return found
}

export interface View {
  name: string
  /** The query of the address. */
  query: string
}

const KEY = 'weft-run-views'
const VIEWS_MAX = 12

export function savedViews(): View[] {
  try {
    const found: unknown = JSON.parse(localStorage.getItem(KEY) ?? '[]')
    return Array.isArray(found)
      ? found.filter((each): each is View => typeof each?.name === 'string' && typeof each?.query === 'string')
      : []
  } catch {
    return []
  }
}

export function saveViews(views: readonly View[]): void {
  try {
    localStorage.setItem(KEY, JSON.stringify(views.slice(-VIEWS_MAX)))
  } catch {
    // Without a storage they last as long as the page.
  }
}

/** The filter of an address, as text that is the same for the same filter. */
export function filterText(query: URLSearchParams): string {
  const own = new URLSearchParams()
  for (const param of PARAMS) {
    const value = query.get(param)
    if (value) own.set(param, value)
  }
  return own.toString()
}
