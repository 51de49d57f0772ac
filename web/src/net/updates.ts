// Updates of durable functions. All raise ApiError.

import type { Json } from '../api/schemas'
import * as is from '../api/checks'
import { answer } from './answers'
import { enc, post } from './http'

/** The signal of an update is this and its name. */
const SIGNAL = 'weft:update:'
const WAIT_S = 10

/** The name of the update that a wait for this signal takes; null: it takes a signal. */
export const updateOf = (signal: string): string | null =>
  signal.startsWith(SIGNAL) ? signal.slice(SIGNAL.length) : null

/** `answered` is false when the run took longer than the request waits: the answer is in its journal then. */
export const sendUpdate = (run: string, name: string, value: Json) =>
  post(`/api/runs/${enc(run)}/updates/${enc(name)}?wait=${WAIT_S}`, { value }, answer(is.UpdateAnswer))
