// The calls of the API by route, and what is more than one call: runs until they end, their events, files.

import { ApiError, backoffMs, enc, freshKey, plainProblem, query, tokenOf, type Refusal } from '../../src/api/core.js'
import { KEYED, type Operations } from '../../src/api/operations.js'
import type { FileValue, Json, JsonObject, PublicWait, RunAccepted, RunDetail } from '../../src/api/schemas.js'
import { eventOf, type RunEvent } from './events.js'
import { Reading, type Live } from './live.js'
import { framesOf } from './sse.js'

export interface Options {
  /** The address of the server. Default: WEFT_URL, or http://127.0.0.1:8765. */
  url?: string
  /** Default: WEFT_TOKEN. */
  token?: string
  /** How long in all a call is tried again while the server is away or refuses it for now. Default: a minute. */
  patienceMs?: number
  /** In place of the global `fetch`. */
  fetch?: typeof fetch
}

type Without<T> = keyof T extends never ? true : false
type Optional<T> = Record<never, never> extends T ? true : false
type Path<T> = Without<T> extends true ? { path?: never } : { path: T }
type Query<T> = Without<T> extends true ? { query?: never } : Optional<T> extends true ? { query?: T } : { query: T }
type Body<T> = [T] extends [undefined] ? { body?: never } : undefined extends T ? { body?: T } : { body: T }

/** What a route needs. `key`: its Idempotency-Key; `rev`: the revision that is to be changed; `signal` ends the call. */
export type Request<Name extends keyof Operations> = Path<Operations[Name]['path']> &
  Query<Operations[Name]['query']> &
  Body<Operations[Name]['body']> & { key?: string; rev?: number; signal?: AbortSignal }
type Asked<Name extends keyof Operations> =
  Record<never, never> extends Request<Name> ? [request?: Request<Name>] : [request: Request<Name>]

export interface Start {
  trigger?: string
  version?: number
  stopAfter?: string
  /** From -10 to 10, in place of that of the workflow. */
  priority?: number
  /** The same key is the same run, also of a program that starts again. Default: a new one for each call. */
  key?: string
  signal?: AbortSignal
}

export interface Follow {
  /** The `seq` of the last event that is known. */
  after?: number
  /** Text of models while it is written, calls of tools, and waits, instead of the events. */
  text?: boolean
  signal?: AbortSignal
}

/** A resume link, its token, or a wait that has one. */
export type Link = string | { link?: string | null } | null | undefined

/** `run` has failed or was cancelled. */
export class RunFailed extends Error {
  readonly run: RunDetail

  constructor(run: RunDetail) {
    const why = run.error ? `: ${run.error.message}` : ''
    super(`The run ${run.id} ${run.status === 'cancelled' ? 'was cancelled' : 'failed'}${why}`)
    this.name = 'RunFailed'
    this.run = run
  }
}

const PATIENCE_MS = 60_000
const LOOK_S = 20 // of one request that waits: proxies cut what is silent for longer
const AGAIN_MS = 1_000 // between two looks at a run that waits for a time that is far off
const SILENCE_MS = 60_000 // the server pings every 15 s
const AS_IT_IS = new Set(['GET /healthz', 'GET /readyz']) // a refusal is what one asks for
const PASSING = new Set([429, 502, 503, 504])
const ENDED = new Set(['succeeded', 'failed', 'cancelled'])

interface Sent {
  method: string
  path: string
  headers?: Record<string, string>
  body?: BodyInit
  signal?: AbortSignal | undefined
  /** Sending it twice is the same as sending it once. */
  safe: boolean
}

export class Weft {
  readonly url: string
  private readonly headers: Record<string, string>
  private readonly patienceMs: number
  private readonly fetch: typeof fetch
  private hasAnswered = false

  constructor(options: Options = {}) {
    const environ = (globalThis as { process?: { env?: Record<string, string | undefined> } }).process?.env ?? {}
    const token = options.token ?? environ.WEFT_TOKEN ?? ''
    this.url = (options.url ?? (environ.WEFT_URL || 'http://127.0.0.1:8765')).replace(/\/+$/, '')
    this.headers = token && token !== 'off' ? { Authorization: `Bearer ${token}` } : {}
    this.patienceMs = options.patienceMs ?? PATIENCE_MS
    this.fetch = options.fetch ?? ((...request) => fetch(...request))
  }

  /** Any route: `weft.call('GET /api/runs/{id}', { path: { id } })`. Raises ApiError. A GET, a PUT, and what has a key
   * is sent again after a lost connection and a refusal that passes; what may have been done already is not. */
  async call<Name extends keyof Operations>(
    name: Name,
    ...[request]: Asked<Name>
  ): Promise<Operations[Name]['answer']> {
    const {
      path,
      query: params,
      body,
      key,
      rev,
      signal,
    } = (request ?? {}) as {
      path?: Record<string, string>
      query?: object
      body?: unknown
      key?: string
      rev?: number
      signal?: AbortSignal
    }
    const [method, template] = name.split(' ') as [string, string]
    const headers: Record<string, string> = { Accept: 'application/json, text/plain;q=0.9' }
    const keyed = key ?? (KEYED.has(name) ? freshKey() : undefined)
    if (keyed !== undefined) headers['Idempotency-Key'] = keyed
    if (rev !== undefined) headers['If-Match'] = `"${rev}"`
    if (body !== undefined) headers['Content-Type'] = 'application/json'
    const sent: Sent = {
      method,
      path: template.replace(/\{(\w+)\}/g, (_, part: string) => enc(path?.[part] ?? '')) + query(params ?? {}),
      headers,
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
      signal,
      safe: (method === 'GET' && !AS_IT_IS.has(name)) || method === 'PUT' || keyed !== undefined,
    }
    return this.answered(sent, async (response) => {
      const text = await response.text()
      const isJson = response.headers.get('Content-Type')?.includes('json')
      return (isJson ? JSON.parse(text) : text) as Operations[Name]['answer']
    })
  }

  /** Start a run of a stored workflow by its name, or of a document. A lost answer never starts a second run. */
  async start(workflow: string | JsonObject, input?: Json, options: Start = {}): Promise<RunAccepted> {
    const { trigger, version, stopAfter: stop_after, priority, key, signal } = options
    const body = {
      input: input ?? null,
      trigger: trigger ?? null,
      stop_after: stop_after ?? null,
      priority: priority ?? null,
    }
    const more = { key: key ?? freshKey(), ...(signal ? { signal } : {}) }
    const accepted =
      typeof workflow === 'string'
        ? await this.call('POST /api/workflows/{name}/runs', {
            path: { name: workflow },
            body: { ...body, version: version ?? null },
            ...more,
          })
        : await this.call('POST /api/runs', { body: { ...body, document: workflow }, ...more })
    return accepted as RunAccepted // the other answer goes with `wait`
  }

  /** Start a run and wait for it, as `waitFor` does. */
  async run(
    workflow: string | JsonObject,
    input?: Json,
    options: Start & { timeoutMs?: number } = {},
  ): Promise<RunDetail> {
    const started = await this.start(workflow, input, options)
    return this.waitFor(started.run, options)
  }

  /** The run when it has succeeded, or when only an answer or a signal can move it (its `waits` have the links), or
   * after `timeoutMs`: `status` says which. Raises RunFailed when it failed or was cancelled. */
  async waitFor(run: string, options: { timeoutMs?: number; signal?: AbortSignal } = {}): Promise<RunDetail> {
    const until = Date.now() + (options.timeoutMs ?? Infinity)
    for (;;) {
      const began = Date.now()
      const wait = Math.max(0, Math.min(LOOK_S, (until - began) / 1000))
      const more = options.signal ? { signal: options.signal } : {}
      const view = await this.call('GET /api/runs/{id}', { path: { id: run }, query: { wait }, ...more })
      if (view.status === 'succeeded') return view
      if (ENDED.has(view.status)) throw new RunFailed(view)
      if (Date.now() >= until || isStanding(view)) return view
      if (Date.now() - began < AGAIN_MS / 2) await pause(Math.min(AGAIN_MS, until - Date.now()), options.signal)
    }
  }

  /** The events of a run behind `after`, then live, each once and in order, until it has ended; with `text` what a
   * program shows of it instead. A lost connection is taken up again after the last event. Raises ApiError. */
  follow(run: string, options: Follow & { text: true }): AsyncGenerator<Live, void, void>
  follow(run: string, options?: Follow & { text?: false }): AsyncGenerator<RunEvent, void, void>
  follow(run: string, options: Follow = {}): AsyncGenerator<RunEvent | Live, void, void> {
    return options.text ? this.live(run, options) : this.events(run, options)
  }

  private async *live(run: string, options: Follow): AsyncGenerator<Live, void, void> {
    const reading = new Reading()
    for await (const event of this.events(run, options)) {
      const shown = reading.take(event)
      if (shown) yield shown
    }
  }

  private async *events(run: string, options: Follow): AsyncGenerator<RunEvent, void, void> {
    let after = options.after ?? 0
    let left = this.patienceMs
    let tries = 0
    for (;;) {
      const silence = new AbortController()
      const leave = (): void => silence.abort()
      options.signal?.addEventListener('abort', leave)
      let timer = setTimeout(leave, SILENCE_MS)
      try {
        options.signal?.throwIfAborted()
        const response = await this.fetch(`${this.url}/api/runs/${enc(run)}/events`, {
          headers: { ...this.headers, Accept: 'text/event-stream', 'Last-Event-ID': String(after) },
          signal: silence.signal,
        })
        if (response.status === 204) return
        if (!response.ok) throw new ApiError(await problemOf(response))
        left = this.patienceMs
        const heard = response.body!.pipeThrough(
          new TransformStream<Uint8Array, Uint8Array>({
            transform(piece, to) {
              clearTimeout(timer)
              timer = setTimeout(leave, SILENCE_MS)
              to.enqueue(piece)
            },
          }),
        )
        for await (const frame of framesOf(heard)) {
          if (frame.id === null && !(options.text && frame.event === 'node.delta')) continue
          const event = eventOf(frame.data)
          if (frame.id !== null && event.seq <= after) continue
          if (frame.id !== null) after = event.seq
          tries = 0
          yield event
          if (event.type === 'run.finished') return
        }
      } catch (error) {
        options.signal?.throwIfAborted()
        if (error instanceof ApiError ? !PASSING.has(error.status) : !isLost(error)) throw error
        if (left <= 0) throw error instanceof ApiError ? error : unreachable(this.url)
      } finally {
        clearTimeout(timer)
        options.signal?.removeEventListener('abort', leave)
        leave()
      }
      const ms = backoffMs(++tries, Math.random())
      left -= ms
      await pause(ms, options.signal)
    }
  }

  /** What a resume link asks for; its token or its wait will do. */
  readLink(link: Link): Promise<PublicWait> {
    return this.call('GET /api/resume/{token}', { path: { token: tokenIn(link) } })
  }

  /** Answer a wait by its link, once; its token, or the wait itself, will do. ApiError 409: already answered; 422: the fields do not fit. */
  answer(link: Link, action?: string | null, fields: JsonObject = {}, by?: string): Promise<PublicWait> {
    const body = { action: action ?? null, fields, by: by ?? null }
    return this.call('POST /api/resume/{token}', { path: { token: tokenIn(link) }, body })
  }

  /** Store a file: the value that an input, an answer or a signal names it by. */
  async upload(content: Blob | Uint8Array<ArrayBuffer> | string, name: string, mediaType?: string): Promise<FileValue> {
    const sent: Sent = {
      method: 'POST',
      path: `/api/files${query({ name, media_type: mediaType })}`,
      headers: { Accept: 'application/json', 'Content-Type': 'application/octet-stream' },
      body: typeof content === 'string' ? new TextEncoder().encode(content) : content,
      safe: true, // a file that no run has is deleted by itself
    }
    return this.answered(sent, async (response) => (await response.json()) as FileValue)
  }

  /** The file with this id: `response.body` as it comes, or all of it with `response.arrayBuffer()`. */
  download(file: string, signal?: AbortSignal): Promise<Response> {
    const sent: Sent = { method: 'GET', path: `/api/files/${enc(file)}`, signal, safe: true }
    return this.answered(sent, (response) => Promise.resolve(response))
  }

  /** What `read` makes of a 2xx answer, after as many tries as the patience allows. 429 is tried again always: the server
   * did nothing. */
  private async answered<T>(sent: Sent, read: (response: Response) => Promise<T>): Promise<T> {
    let left = this.patienceMs
    for (let tries = 1; ; tries++) {
      let refused: ApiError
      let ms = backoffMs(tries, Math.random())
      try {
        const response = await this.fetch(this.url + sent.path, {
          method: sent.method,
          headers: { ...this.headers, ...sent.headers },
          ...(sent.body === undefined ? {} : { body: sent.body }),
          ...(sent.signal ? { signal: sent.signal } : {}),
        })
        this.hasAnswered = true
        if (response.ok) return await read(response)
        refused = new ApiError(await problemOf(response))
        const said = response.headers.get('Retry-After')
        if (said && /^\d+$/.test(said)) ms = Math.max(100, Number(said) * 1000)
        if (response.status !== 429 && !(sent.safe && PASSING.has(response.status))) throw refused
      } catch (error) {
        sent.signal?.throwIfAborted()
        if (!isLost(error)) throw error
        refused = unreachable(this.url)
        if (!sent.safe || !this.hasAnswered) throw refused
      }
      if (ms > left) throw refused
      left -= ms
      await pause(ms, sent.signal)
    }
  }
}

function tokenIn(link: Link): string {
  const text = typeof link === 'string' ? link : link?.link
  if (text) return tokenOf(text)
  throw new Error('The wait has no link: it is over, or the token of this client has the role viewer.')
}

/** Nothing but an answer or a signal moves it: no timer is set, no retry is due, no child works. */
function isStanding(run: RunDetail): boolean {
  if (run.status !== 'waiting' || run.children_active || run.unread) return false
  const below = run.child_waits
  const waits = [...run.waits.filter((wait) => wait.kind !== 'child' || !below.length), ...below]
  const pending = waits.filter((wait) => wait.status === 'pending')
  if (run.nodes.some((node) => node.status === 'retrying')) return false
  return pending.length > 0 && pending.every((wait) => wait.kind !== 'timer')
}

/** `fetch` raises TypeError when a connection could not be made or broke, and AbortError after a silence. */
function isLost(error: unknown): boolean {
  return error instanceof TypeError || (error instanceof Error && error.name === 'AbortError')
}

function unreachable(url: string): ApiError {
  const problem = plainProblem(0, 'unreachable', `No weft server answers at ${url}.`)
  return new ApiError({ ...problem, hint: 'Start one with `weft serve`, or set WEFT_URL to where it runs.' })
}

async function problemOf(response: Response): Promise<Refusal> {
  const plain = plainProblem(response.status, `http_${response.status}`, `The server answered ${response.status}.`)
  try {
    const said = (await response.json()) as Partial<Refusal>
    return said && typeof said === 'object' ? { ...plain, ...said } : plain
  } catch {
    return plain
  }
}

function pause(ms: number, signal?: AbortSignal): Promise<void> {
  return new Promise((done, failed) => {
    const stop = (): void => {
      clearTimeout(timer)
      failed(signal?.reason as Error)
    }
    const timer = setTimeout(() => {
      signal?.removeEventListener('abort', stop)
      done()
    }, ms)
    signal?.addEventListener('abort', stop, { once: true })
  })
}
