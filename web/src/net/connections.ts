// Connections: what there is, never a credential; sign-in at their providers. All raise ApiError.

import type {
  ConnectionList,
  ConnectionSpec,
  ConnectionUses,
  ConnectionView,
  KnownProvider,
  SignIn,
  SignInAnswer,
} from '../api/schemas'
import { answer, anything } from './answers'
import { flag, list, maybe, number, record, shape, text } from './check'
import { enc, get, send } from './http'

const connection = {
  name: text,
  kind: maybe(text),
  hosts: list(text),
  state: text,
  problem: text,
  provider: text,
  expires_at_ms: maybe(number),
  created_by: text,
  created_at_ms: number,
  last_used_at_ms: maybe(number),
}
const known = {
  id: text,
  title: text,
  authorize_url: text,
  token_url: text,
  hosts: list(text),
  docs: text,
  scopes: text,
  issuer: text,
  client_auth: text,
  pkce: flag,
  parameters: record,
}
const stored = answer<ConnectionList>({
  connections: list(shape<ConnectionView>(connection)),
  redirect_uri: text,
  providers: list(shape<KnownProvider>(known)),
})
const uses = answer<ConnectionUses>({ used_by: list(record) })
const begun = answer<SignIn>({ url: text, redirect_uri: text, until_ms: number })
const ended = answer<ConnectionView>(connection)
const at = (name: string): string => `/api/connections/${enc(name)}`

export const connections = {
  list: () => get('/api/connections', stored),
  put: (name: string, spec: ConnectionSpec) => send('PUT', at(name), anything, spec),
  uses: async (name: string) => (await get(`${at(name)}/uses`, uses)).used_by,
  delete: (name: string) => send('DELETE', at(name), anything),
  /** The address at which a person signs in. */
  connect: (name: string) => send('POST', `${at(name)}/connect`, begun),
  /** What the provider gave when it sent the browser back. */
  connected: (said: SignInAnswer) => send('POST', '/api/oauth/code', ended, said),
}
