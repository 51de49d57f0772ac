// Who you are, users, and tokens of programs, as functions. All raise ApiError.

import * as is from '../api/checks'
import type { AuditPage, Session, Token, User } from '../api/schemas'
import { answer, anything } from './answers'
import { enc, get, post, send } from './http'

export const ROLES = ['viewer', 'approver', 'editor', 'admin'] as const
export type Role = (typeof ROLES)[number]

export interface AuditWanted {
  actor?: string | undefined
  text?: string | undefined
  since?: number | undefined
}
const at = (id: string): string => `/api/users/${enc(id)}`

export const people = {
  me: () => get('/api/me', answer(is.Me)),
  users: async (): Promise<User[]> => (await get('/api/users', answer(is.UserList))).users,
  /** The link that signs them in, once. */
  invite: async (id: string, role: string): Promise<string> =>
    (await post('/api/users', { id, role }, answer(is.Invited))).url,
  link: async (id: string): Promise<string> => (await post(`${at(id)}/link`, {}, answer(is.SignInLink))).url,
  setRole: (id: string, role: string) => send('PUT', `${at(id)}/role`, anything, { role }),
  remove: (id: string) => send('DELETE', at(id), anything),
  tokens: async (): Promise<Token[]> => (await get('/api/tokens', answer(is.TokenList))).tokens,
  /** The token, which is shown this once. */
  makeToken: async (name: string, role: string): Promise<string> =>
    (await post('/api/tokens', { name, role }, answer(is.TokenMade))).token,
  revoke: (id: string) => send('DELETE', `/api/tokens/${enc(id)}`, anything),
  sessions: async (): Promise<Session[]> => (await get('/api/sessions', answer(is.SessionList))).sessions,
  ownSessions: async (): Promise<Session[]> => (await get('/api/me/sessions', answer(is.SessionList))).sessions,
  endSession: (id: string) => send('DELETE', `/api/sessions/${enc(id)}`, anything),
  endOwnSession: (id: string) => send('DELETE', `/api/me/sessions/${enc(id)}`, anything),
  /** Newest first, below the row `before`. */
  audit: (wanted: AuditWanted, before?: number): Promise<AuditPage> => {
    const query = new URLSearchParams({ limit: '50' })
    for (const [name, value] of Object.entries({ ...wanted, before }))
      if (value !== undefined) query.set(name, String(value))
    return get(`/api/audit?${query}`, answer(is.AuditPage))
  },
  verifyAudit: () => get('/api/audit/verification', answer(is.Verified)),
  /** Sign out of all your browsers. */
  endOwn: () => send('DELETE', '/api/me/sessions', anything),
}
