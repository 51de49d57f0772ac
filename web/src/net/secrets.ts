// Stored secrets: what there is, never a value. All raise ApiError.

import type { SecretSpec, SecretView } from '../api/schemas'
import { answer, anything } from './answers'
import { flag, list, maybe, number, shape, text } from './check'
import { enc, get, send } from './http'

const secret = shape<SecretView>({
  name: text,
  version: number,
  hosts: list(text),
  places: list(text),
  created_by: text,
  created_at_ms: number,
  last_used_at_ms: maybe(number),
  readable: flag,
  in_environment: flag,
})
const stored = answer<{ secrets: SecretView[] }>({ secrets: list(secret) })
const at = (name: string): string => `/api/secrets/${enc(name)}`

export const secrets = {
  list: async (): Promise<SecretView[]> => (await get('/api/secrets', stored)).secrets,
  put: (name: string, spec: SecretSpec) => send('PUT', at(name), anything, spec),
  delete: (name: string) => send('DELETE', at(name), anything),
}
