// Who you are, users, and tokens of programs, as functions. All raise ApiError.

import { answer, anything } from './answers'
import { flag, list, maybe, number, shape, text } from './check'
import { enc, get, post, send } from './http'

export const ROLES = ['viewer', 'approver', 'editor', 'admin'] as const
export type Role = (typeof ROLES)[number]

export interface Me {
  actor: string
  role: string
  user: string | null
  name: string
}
export interface User {
  id: string
  name: string
  role: string
  sessions: number
  seen_at_ms: number | null
}
export interface Token {
  id: string
  prefix: string
  name: string
  user: string | null
  role: string
  expires_at_ms: number
  used_at_ms: number | null
}

export interface SessionOf {
  id: string
  user: string
  seen_at_ms: number
  current: boolean
  device: string
}
export interface AuditRow {
  n: number
  at_ms: number
  actor: string
  via: string
  action: string
  object: string
  detail: string
}
export interface AuditPage {
  rows: AuditRow[]
  next: number | null
}
export interface AuditWanted {
  actor?: string | undefined
  text?: string | undefined
  since?: number | undefined
}
export interface Verified {
  valid: boolean
  rows: number
  broken_at: number | null
}

const me = answer<Me>({ actor: text, role: text, user: maybe(text), name: text })
const user = { id: text, name: text, role: text, sessions: number, seen_at_ms: maybe(number) }
const token = {
  id: text,
  prefix: text,
  name: text,
  user: maybe(text),
  role: text,
  expires_at_ms: number,
  used_at_ms: maybe(number),
}
const made = answer<{ url: string }>({ url: text })
const users = answer<{ users: User[] }>({ users: list(shape<User>(user)) })
const tokens = answer<{ tokens: Token[] }>({ tokens: list(shape<Token>(token)) })
const shown = answer<{ token: string }>({ token: text })
const session = { id: text, user: text, seen_at_ms: number, current: flag, device: text }
const sessions = answer<{ sessions: SessionOf[] }>({ sessions: list(shape<SessionOf>(session)) })
const row = { n: number, at_ms: number, actor: text, via: text, action: text, object: text, detail: text }
const audit = answer<AuditPage>({ rows: list(shape<AuditRow>(row)), next: maybe(number) })
const verified = answer<Verified>({ valid: flag, rows: number, broken_at: maybe(number) })
const at = (id: string): string => `/api/users/${enc(id)}`

export const people = {
  me: () => get('/api/me', me),
  users: async (): Promise<User[]> => (await get('/api/users', users)).users,
  /** The link that signs them in, once. */
  invite: async (id: string, role: string): Promise<string> => (await post('/api/users', { id, role }, made)).url,
  link: async (id: string): Promise<string> => (await post(`${at(id)}/link`, {}, made)).url,
  setRole: (id: string, role: string) => send('PUT', `${at(id)}/role`, anything, { role }),
  remove: (id: string) => send('DELETE', at(id), anything),
  tokens: async (): Promise<Token[]> => (await get('/api/tokens', tokens)).tokens,
  /** The token, which is shown this once. */
  makeToken: async (name: string, role: string): Promise<string> =>
    (await post('/api/tokens', { name, role }, shown)).token,
  revoke: (id: string) => send('DELETE', `/api/tokens/${enc(id)}`, anything),
  sessions: async (): Promise<SessionOf[]> => (await get('/api/sessions', sessions)).sessions,
  ownSessions: async (): Promise<SessionOf[]> => (await get('/api/me/sessions', sessions)).sessions,
  endSession: (id: string) => send('DELETE', `/api/sessions/${enc(id)}`, anything),
  endOwnSession: (id: string) => send('DELETE', `/api/me/sessions/${enc(id)}`, anything),
  /** Newest first, below the row `before`. */
  audit: (wanted: AuditWanted, before?: number): Promise<AuditPage> => {
    const query = new URLSearchParams({ limit: '50' })
    for (const [name, value] of Object.entries({ ...wanted, before }))
      if (value !== undefined) query.set(name, String(value))
    return get(`/api/audit?${query}`, audit)
  },
  verifyAudit: (): Promise<Verified> => get('/api/audit/verification', verified),
  /** Sign out of all your browsers. */
  endOwn: () => send('DELETE', '/api/me/sessions', anything),
}
