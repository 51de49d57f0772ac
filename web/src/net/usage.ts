// Models: which there are, what they used and cost. All raise ApiError.

import type { Offer, UsagePage } from '../api/schemas'
import * as is from '../api/checks'
import { answer } from './answers'
import { enc, get } from './http'

/** Days in UTC, both part of it. */
export interface Period {
  from: string
  to: string
  workflow: string | null
}

export const usage = (by: UsagePage['by'], { from, to, workflow }: Period): Promise<UsagePage> =>
  get(
    `/api/usage?by=${by}&from=${enc(from)}&to=${enc(to)}${workflow ? `&workflow=${enc(workflow)}` : ''}`,
    answer(is.UsagePage),
  )

/** The endpoints of models that this server has, and the models whose prices are known. */
export const offeredModels = async (): Promise<Offer[]> => (await get('/api/models', answer(is.Models))).endpoints
