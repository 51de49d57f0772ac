// The HTTP API of a weft server, typed from its OpenAPI document.

export { ApiError } from '../../src/api/core.js'
export type { Operations } from '../../src/api/operations.js'
export type * from '../../src/api/schemas.js'
export { RunFailed, Weft, type Follow, type Link, type Options, type Request, type Start } from './client.js'
export type { RunEvent } from './events.js'
export type { Live, RunFinished, TextDelta, ToolFinished, ToolStarted, WaitClosed, WaitOpened } from './live.js'
