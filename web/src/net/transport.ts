// How a tab reads the stream of a run: through the SharedWorker; without one, one tab leads (a Web Lock) and forwards events to
// the others (a BroadcastChannel); without either, by a stream per tab, closed while the tab is hidden.

import { backoffMs } from '../api/core'
import type { TabMessage, WorkerMessage } from './events.worker'
import { RunStream, type StreamMessage } from './stream'

export interface Subscription {
  close(): void
  retry(): void
}

/** `seq` gives the last event the tab has when it is asked. */
export type Subscribe = (run: string, seq: () => number, emit: (message: StreamMessage) => void) => Subscription

export const subscribe: Subscribe = (run, seq, emit) => {
  if (typeof SharedWorker !== 'undefined') return throughWorker(run, seq, emit)
  if (typeof BroadcastChannel !== 'undefined' && navigator.locks) return throughLeader(run, seq, emit)
  return alone(run, seq, emit)
}

let worker: SharedWorker | null = null
/** One for each feed that uses the worker: called when the script of the worker could not be loaded. */
const orphans = new Set<() => void>()

function port(): MessagePort {
  if (worker) return worker.port
  const made = new SharedWorker(new URL('./events.worker.ts', import.meta.url), { type: 'module', name: 'weft-events' })
  worker = made
  made.onerror = () => {
    if (worker !== made) return
    worker = null
    for (const tell of orphans) tell()
  }
  const { port } = made
  port.start()
  const lock = `weft-tab-${Math.random().toString(36).slice(2)}`
  // Held until the tab is gone; the worker then gets it and forgets this tab.
  void navigator.locks?.request(lock, () => {
    say({ type: 'hello', lock })
    return new Promise<never>(() => undefined)
  })
  addEventListener('pagehide', (event) => {
    if (!event.persisted) say({ type: 'bye' })
  })
  return port
}

function say(message: TabMessage): void {
  worker?.port.postMessage(message)
}

function throughWorker(run: string, seq: () => number, emit: (message: StreamMessage) => void): Subscription {
  let from: MessagePort
  let tries = 0
  let timer: ReturnType<typeof setTimeout> | null = null
  const listen = ({ data }: MessageEvent<WorkerMessage>): void => {
    tries = 0
    if (data.run === run) emit(data.message)
  }
  const join = (): void => {
    timer = null
    from = port()
    from.addEventListener('message', listen)
    say({ type: 'follow', run, after: seq() })
  }
  const orphaned = (): void => {
    if (timer) clearTimeout(timer)
    const pause = backoffMs(++tries, Math.random())
    timer = setTimeout(join, pause)
    emit({ kind: 'down', retryAt: Date.now() + pause })
  }
  orphans.add(orphaned)
  join()
  return {
    close() {
      orphans.delete(orphaned)
      if (timer) clearTimeout(timer)
      from.removeEventListener('message', listen)
      say({ type: 'leave', run })
    },
    retry() {
      if (!timer) return say({ type: 'retry', run })
      clearTimeout(timer)
      join()
    },
  }
}

type Spoken = { from: 'leader'; message: StreamMessage } | { from: 'follower'; say: 'hello' | 'retry' }

function throughLeader(run: string, seq: () => number, emit: (message: StreamMessage) => void): Subscription {
  const channel = new BroadcastChannel(`weft-run-${run}`)
  const abort = new AbortController()
  let stream: RunStream | null = null
  channel.onmessage = ({ data }: MessageEvent<Spoken>) => {
    if (data.from === 'leader') return stream ? undefined : emit(data.message)
    if (data.say === 'retry') stream?.retry()
    else if (stream?.isOpen)
      channel.postMessage({ from: 'leader', message: { kind: 'open', seq: stream.seq } } satisfies Spoken)
  }
  channel.postMessage({ from: 'follower', say: 'hello' } satisfies Spoken)
  const lead = (): Promise<void> =>
    new Promise((done) => {
      if (abort.signal.aborted) return done()
      stream = new RunStream(run, seq(), (message) => {
        emit(message)
        channel.postMessage({ from: 'leader', message } satisfies Spoken)
      })
      abort.signal.addEventListener('abort', () => done())
    })
  navigator.locks.request(`weft-run-${run}`, { signal: abort.signal }, lead).catch(() => undefined) // aborted while waiting
  return {
    close() {
      abort.abort()
      stream?.close()
      channel.close()
    },
    retry: () => (stream ? stream.retry() : channel.postMessage({ from: 'follower', say: 'retry' } satisfies Spoken)),
  }
}

function alone(run: string, seq: () => number, emit: (message: StreamMessage) => void): Subscription {
  let stream: RunStream | null = null
  const turn = (): void => {
    if (document.hidden) {
      stream?.close()
      stream = null
    } else stream ??= new RunStream(run, seq(), emit)
  }
  document.addEventListener('visibilitychange', turn)
  turn()
  return {
    close() {
      document.removeEventListener('visibilitychange', turn)
      stream?.close()
    },
    retry: () => stream?.retry(),
  }
}
