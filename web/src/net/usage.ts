// What models used and cost. All raise ApiError.

import type { SpentView, UsagePage } from '../api/schemas'
import { answer } from './answers'
import { list, maybe, number, shape, text } from './check'
import { enc, get } from './http'

const spent = shape<SpentView>({
  key: text,
  calls: number,
  unpriced: number,
  input_tokens: number,
  cached_tokens: number,
  cache_write_tokens: number,
  output_tokens: number,
  reasoning_tokens: number,
  cost: maybe(text),
})
const page = answer<UsagePage>({ from: text, to: text, prices: list(text), total: spent, items: list(spent) })

/** Days in UTC, both part of it. */
export interface Period {
  from: string
  to: string
  workflow: string | null
}

export const usage = (by: UsagePage['by'], { from, to, workflow }: Period): Promise<UsagePage> =>
  get(`/api/usage?by=${by}&from=${enc(from)}&to=${enc(to)}${workflow ? `&workflow=${enc(workflow)}` : ''}`, page)
