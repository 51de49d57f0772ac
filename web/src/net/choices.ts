// What a field of a connector can be, asked of its service. Raises ApiError.

import type { ChoiceList, ChoicesAsked } from '../api/schemas'
import * as is from '../api/checks'
import { answer } from './answers'
import { enc, post } from './http'

export const choicesOf = (type: string, asked: ChoicesAsked): Promise<ChoiceList> =>
  post(`/api/blocks/${enc(type)}/choices`, asked, answer(is.ChoiceList))
