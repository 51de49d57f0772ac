// What agents remember between runs. All raise ApiError.

import type { MemoryHead } from '../api/schemas'
import { answer, anything } from './answers'
import { list, number, shape, text } from './check'
import { enc, get, send } from './http'

export interface Message {
  role: string
  text: string
}
export interface Turn {
  run: string
  at_ms: number
  messages: Message[]
}

const head = shape<MemoryHead>({
  workflow: text,
  scope: text,
  key: text,
  turns: number,
  bytes: number,
  last_at_ms: number,
})
const said = shape<Message>({ role: text, text })
const turn = shape<Turn>({ run: text, at_ms: number, messages: list(said) })
const heads = answer<{ conversations: MemoryHead[] }>({ conversations: list(head) })
const turns = answer<{ turns: Turn[] }>({ turns: list(turn) })

type Conversation = Pick<MemoryHead, 'workflow' | 'scope' | 'key'>

const one = ({ workflow, scope, key }: Conversation): string =>
  `?key=${enc(key)}&${workflow ? `workflow=${enc(workflow)}` : `scope=${enc(scope)}`}`

export const memory = {
  /** Those with the latest turn first, at most 200. */
  list: async (): Promise<MemoryHead[]> => (await get('/api/memory', heads)).conversations,
  /** In their order. */
  turns: async (of: Conversation): Promise<Turn[]> => (await get(`/api/memory/turns${one(of)}`, turns)).turns,
  delete: (of: Conversation) => send('DELETE', `/api/memory${one(of)}`, anything),
}
