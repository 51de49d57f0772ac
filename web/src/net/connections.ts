// Connections: what there is, never a credential; sign-in at their providers. All raise ApiError.

import type { ConnectionAsked, ConnectionSpec, SignInAnswer } from '../api/schemas'
import * as is from '../api/checks'
import { answer, anything } from './answers'
import { enc, get, send } from './http'

const at = (name: string): string => `/api/connections/${enc(name)}`

export const connections = {
  list: () => get('/api/connections', answer(is.ConnectionList)),
  put: (name: string, spec: ConnectionSpec) => send('PUT', at(name), anything, spec),
  uses: async (name: string) => (await get(`${at(name)}/uses`, answer(is.ConnectionUses))).used_by,
  delete: (name: string) => send('DELETE', at(name), anything),
  /** Its service reports who is signed in. `connection` of `asked`: settings that are not stored yet. */
  test: (name: string, asked: Partial<ConnectionAsked>) =>
    send('POST', `${at(name)}/test`, answer(is.ConnectionTest), asked),
  /** The address at which a person signs in. */
  connect: (name: string) => send('POST', `${at(name)}/connect`, answer(is.SignIn)),
  /** What the provider gave when it sent the browser back. */
  connected: (gave: SignInAnswer) => send('POST', '/api/oauth/code', answer(is.ConnectionView), gave),
}
