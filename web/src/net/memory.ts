// What agents remember between runs. All raise ApiError.

import type { JsonObject, MemoryHead, TurnView } from '../api/schemas'
import { list, shape, text } from '../api/check'
import * as is from '../api/checks'
import { answer, anything } from './answers'
import { enc, get, send } from './http'

export interface Message {
  role: string
  text: string
}
export interface Turn extends TurnView {
  messages: (Message & JsonObject)[]
}

const turn = shape<Turn>({ messages: list(shape<Message>({ role: text, text })) })
const turns = answer(shape<{ turns: Turn[] }>({ turns: list(turn) }))

type Conversation = Pick<MemoryHead, 'workflow' | 'scope' | 'key'>

const one = ({ workflow, scope, key }: Conversation): string =>
  `?key=${enc(key)}&${workflow ? `workflow=${enc(workflow)}` : `scope=${enc(scope)}`}`

export const memory = {
  /** Those with the latest turn first, at most 200. */
  list: async (): Promise<MemoryHead[]> => (await get('/api/memory', answer(is.MemoryList))).conversations,
  /** In their order. */
  turns: async (of: Conversation): Promise<Turn[]> => (await get(`/api/memory/turns${one(of)}`, turns)).turns,
  delete: (of: Conversation) => send('DELETE', `/api/memory${one(of)}`, anything),
}
