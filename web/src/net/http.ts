// One request to the server. Every refusal is an `ApiError` that carries the problem document; a lost connection is an
// `ApiError` with status 0, and so is an answer of an unexpected shape. Nothing is retried here.

import { ApiError, plainProblem } from '../api/core'
import { asProblem, type Read } from './answers'
import { Mismatch } from '../api/check'
import { learn } from './clock'
import { noteStatus } from './session'
import type { Problem } from '../api/types'

export { ApiError, enc, query } from '../api/core'

export const get = <T>(path: string, read: Read<T>, signal?: AbortSignal) =>
  send('GET', path, read, undefined, {}, signal)
export const post = <T>(path: string, body: unknown, read: Read<T>) => send('POST', path, read, body)

/** Raises ApiError, also when `read` cannot make a `T` of the answer. */
export async function send<T>(
  method: string,
  path: string,
  read: Read<T>,
  body?: unknown,
  headers: Record<string, string> = {},
  signal?: AbortSignal,
): Promise<T> {
  let response: Response
  let text: string
  const asked = Date.now()
  try {
    response = await fetch(path, {
      method,
      headers: {
        Accept: 'application/json',
        ...(body === undefined ? {} : { 'Content-Type': 'application/json' }),
        ...headers,
      },
      body: body === undefined ? null : JSON.stringify(body),
      signal: signal ?? null,
    })
    learn(response.headers.get('Date'), asked, Date.now())
    // The connection can be lost in the middle of an answer as well.
    text = response.ok ? await response.text() : ''
  } catch (error) {
    if (signal?.aborted) throw error
    throw new ApiError(plainProblem(0, 'unreachable', 'The server cannot be reached.'))
  }
  if (!response.ok) {
    noteStatus(response.status, path)
    throw new ApiError(await problemOf(response))
  }
  try {
    return read(text ? (JSON.parse(text) as unknown) : undefined)
  } catch (error) {
    if (!(error instanceof Mismatch || error instanceof SyntaxError)) throw error
    throw unreadable(`${method} ${path.split('?')[0]}`, error.message)
  }
}

/** An answer of another version of the server, or of something in between. */
function unreadable(what: string, why: string): ApiError {
  const problem = plainProblem(0, 'answer_unreadable', `The server's answer to ${what} cannot be read: ${why}.`)
  return new ApiError({
    ...problem,
    hint: 'Reload the page; if that does not help, the server and this page are of different versions.',
  })
}

async function problemOf(response: Response): Promise<Problem> {
  const plain = plainProblem(response.status, `http_${response.status}`, `The server answered ${response.status}.`)
  try {
    return asProblem(await response.json()) ?? plain
  } catch {
    return plain
  }
}
