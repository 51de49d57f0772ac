// Requests that make something (a run, a signal), each with an Idempotency-Key: when it is sent again, after a
// lost answer or a second press of a button, the same request makes the same run.

import { ApiError, freshKey } from '../api/core'

/** How long an unanswered request is thought to be meant when it is made again. */
const MEANT_MS = 120_000

interface Asked {
  key: string
  at: number
  /** The answer that is awaited; null: none came. */
  under: Promise<unknown> | null
}

const asked = new Map<string, Asked>()

/** `what` names the request in full. While it is under way a second one is the same promise; one that was not answered is
 * sent again with its key; one that was, whatever the answer, is over. */
export function once<T>(what: unknown, send: (key: string) => Promise<T>, now = Date.now()): Promise<T> {
  const name = JSON.stringify(what)
  const before = asked.get(name)
  if (before?.under) return before.under as Promise<T>
  const request: Asked = { key: before && now - before.at < MEANT_MS ? before.key : freshKey(), at: now, under: null }
  asked.set(name, request)
  const under = send(request.key).then(
    (answer) => {
      asked.delete(name)
      return answer
    },
    (error: unknown) => {
      request.under = null
      // A refused request made nothing. One without an answer may have made a run, so its key stays.
      if (error instanceof ApiError && error.status > 0 && error.status < 500) asked.delete(name)
      throw error
    },
  )
  request.under = under
  return under
}
