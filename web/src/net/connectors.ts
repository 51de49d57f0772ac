// Connectors that were added to the installation, and documents made of OpenAPI descriptions. All raise ApiError.

import type { ConnectorView, JsonObject, OpenApiImport } from '../api/schemas'
import * as is from '../api/checks'
import { answer, anything } from './answers'
import { enc, get, post, send } from './http'

const at = (service: string): string => `/api/connectors/${enc(service)}`

export const connectors = {
  added: async (): Promise<ConnectorView[]> => (await get('/api/connectors', answer(is.ConnectorList))).connectors,
  put: (service: string, document: JsonObject) => send('PUT', at(service), anything, { document }),
  delete: (service: string) => send('DELETE', at(service), anything),
  /** The operations of an OpenAPI description, and a connector document of the chosen ones. */
  fromOpenApi: (asked: OpenApiImport) => post('/api/connectors/openapi', asked, answer(is.OpenApiImported)),
}
