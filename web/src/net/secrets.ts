// Stored secrets: what there is, never a value. All raise ApiError.

import type { SecretSpec, SecretView } from '../api/schemas'
import * as is from '../api/checks'
import { answer, anything } from './answers'
import { enc, get, send } from './http'

const at = (name: string): string => `/api/secrets/${enc(name)}`

export const secrets = {
  list: async (): Promise<SecretView[]> => (await get('/api/secrets', answer(is.SecretList))).secrets,
  put: (name: string, spec: SecretSpec) => send('PUT', at(name), anything, spec),
  delete: (name: string) => send('DELETE', at(name), anything),
}
