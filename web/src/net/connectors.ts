// Connectors that were added to the installation, and documents made of OpenAPI descriptions. All raise ApiError.

import type { ConnectorView, JsonObject, Offered, OpenApiImport, OpenApiImported } from '../api/schemas'
import { answer, anything } from './answers'
import { list, maybe, number, record, shape, text } from './check'
import { enc, get, post, send } from './http'

const connector = shape<ConnectorView>({
  service: text,
  type: text,
  title: text,
  operations: number,
  created_by: text,
  changed_at_ms: number,
})
const added = answer<{ connectors: ConnectorView[] }>({ connectors: list(connector) })
const offered = shape<Offered>({
  id: text,
  method: text,
  path: text,
  title: text,
  tag: maybe(text),
  problem: maybe(text),
})
const made = answer<OpenApiImported>({ operations: list(offered), connector: maybe(record) })
const at = (service: string): string => `/api/connectors/${enc(service)}`

export const connectors = {
  added: async (): Promise<ConnectorView[]> => (await get('/api/connectors', added)).connectors,
  put: (service: string, document: JsonObject) => send('PUT', at(service), anything, { document }),
  delete: (service: string) => send('DELETE', at(service), anything),
  /** The operations of an OpenAPI description, and a connector document of the chosen ones. */
  fromOpenApi: (asked: OpenApiImport) => post('/api/connectors/openapi', asked, made),
}
