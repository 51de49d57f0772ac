// The filter of runs in the address: its tokens, saved views, and the query to the server.

import type { RunQuery } from '../../net/api'
import type { RunStatus } from '../../api/types'
import { wordOf } from '../../ui/status'
import { dateTime } from '../../ui/time'
import { shortId, whoOf } from '../../ui/words'

export const STATUSES: readonly RunStatus[] = ['running', 'waiting', 'queued', 'succeeded', 'failed', 'cancelled']
/** The parameters of a filter in an address. */
export const PARAMS = [
  ...['status', 'workflow', 'draft', 'parent', 'by', 'key', 'since', 'until', 'text'],
  ...['not_status', 'not_workflow', 'not_by', 'not_text'],
] as const
export type Param =
  | ('status' | 'workflow' | 'draft' | 'parent' | 'by' | 'key' | 'since' | 'until' | 'text')
  | ('not_status' | 'not_workflow' | 'not_by' | 'not_text')

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

/** A time as the value of a field for it, in the time zone of the browser. */
export function fieldOf(at: number): string {
  const local = new Date(at - new Date(at).getTimezoneOffset() * 60_000)
  return local.toISOString().slice(0, 16)
}

export function tokensOf(query: URLSearchParams, titleOf: (workflow: string) => string = String): Token[] {
  const words: Record<Param, (value: string) => [key: string, value: string]> = {
    status: (value) => ['status is', value === 'attention' ? wordOf('attention') : wordIn(value)],
    workflow: (value) => ['workflow is', titleOf(value)],
    draft: (value) => ['of the draft', value.slice(0, 8)],
    parent: (value) => ['started by the run', shortId(value)],
    by: (value) => ['started by', whoOf(value)],
    key: (value) => ['with the key', value],
    not_status: (value) => ['status is not', wordIn(value)],
    not_workflow: (value) => ['workflow is not', titleOf(value)],
    not_by: (value) => ['not started by', whoOf(value)],
    not_text: (value) => ['without the text', value],
    since: (value) => ['started', TIMES.find(([id]) => id === value)?.[1] ?? `from ${moment(value)}`],
    until: (value) => ['started', `before ${moment(value)}`],
    text: (value) => ['with the text', value],
  }
  return (PARAMS as readonly Param[]).flatMap((param) => {
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
  const where: Record<string, string> = {}
  for (const param of PARAMS) {
    const value = query.get(param)
    if (value && !/^(since|until)$/.test(param) && (!/status$/.test(param) || isStatus(value))) where[param] = value
  }
  const since = sinceOf(query.get('since'), now)
  const until = sinceOf(query.get('until'), now)
  return {
    ...where,
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
/** What else people call a status. */
const ALIASES: Partial<Record<RunStatus, string>> = {
  succeeded: 'done ok',
  cancelled: 'canceled stopped',
  queued: 'due',
}
const NEGATED: readonly string[] = ['status', 'workflow', 'by', 'text']
/** As in `status:failed` or `-by:ada`, and the group of choices that each name stands for. */
const NAMES: Readonly<Record<string, Param>> = {
  ...{ status: 'status', state: 'status', workflow: 'workflow', by: 'by', who: 'by', key: 'key' },
  ...{ text: 'text', error: 'text', since: 'since', started: 'since' },
}

export interface Known {
  workflows: readonly string[]
  titleOf: (workflow: string) => string
  /** Blocks at which runs of the list failed, by id. */
  failed: ReadonlyMap<string, { name: string; count: number }>
  /** Who started runs of the list, as `user:ada`. */
  people: readonly string[]
}

/** The possible meanings of the typed words, the likeliest first. "-" before them: what the runs are not. */
export function choicesOf(typed: string, { workflows: names, titleOf, failed, people }: Known): Choice[] {
  const [, minus, name = '', rest = ''] = /^(-?)(?:([a-z]+):)?(.*)$/i.exec(typed.trim())!
  const only = NAMES[name.toLowerCase()] ?? null
  const words = only ? rest.trim() : name ? `${name}:${rest}` : rest.trim()
  const asked = words.toLowerCase()
  const has = (text: string): boolean => text.toLowerCase().includes(asked)
  const found: Choice[] = []
  const push = (param: Param, value: string, words: string, group: string, count?: number): void => {
    if ((only !== null && only !== param) || (minus && !NEGATED.includes(param))) return
    const own = minus ? (`not_${param}` as Param) : param
    const of = minus ? `not: ${group}` : group
    found.push({ id: `${own} ${value}`, param: own, value, words, group: of, ...(count ? { count } : {}) })
  }
  const add = (param: Param, value: string, words: string, group: string, count?: number, more = ''): void => {
    if (has(only ? `${words} ${more}` : `${group} ${words} ${more}`)) push(param, value, words, group, count)
  }
  for (const [block, { name, count }] of [...failed].sort((a, b) => b[1].count - a[1].count).slice(0, 4))
    add('text', block, name, 'where it failed', count, block)
  for (const status of STATUSES) add('status', status, wordOf(status), 'status', undefined, ALIASES[status])
  for (const by of people.slice(0, MOST)) add('by', by, whoOf(by), 'started by')
  for (const [id, words] of TIMES) add('since', id, words, 'started')
  let workflows = 0
  for (const name of names)
    if (has(`workflow ${titleOf(name)} ${name}`) && workflows++ < MOST)
      add('workflow', name, titleOf(name), 'workflow', undefined, name)
  found.splice(MOST * 2 - 2)
  if (!asked) return found
  if (only === 'by') push('by', words.includes(':') ? words : `user:${words}`, words, 'started by')
  push('text', words, `“${words}”`, 'in the id, the key or the error')
  push('key', words, words, 'with this whole key')
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
