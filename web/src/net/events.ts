// Following a run: all its events once each and in order, then live. Pages of history first, then the stream; whatever is
// missing in between is fetched (the gap rule), duplicates are dropped. The listener gets the state of the connection.

import { backoffMs } from '../api/core'
import { api, ApiError } from './api'
import type { StreamMessage } from './stream'
import { subscribe, type Subscribe, type Subscription } from './transport'
import type { EventPage, WireEvent } from '../api/types'

/** live: nothing is missing. catching: `behind` events to fetch. offline: tries again at `retryAt`. ended: the run is over. */
export type NetMode = 'idle' | 'live' | 'catching' | 'offline' | 'ended'

export interface FeedStatus {
  mode: NetMode
  behind: number
  retryAt: number | null
  error: string | null
}

export interface FeedListener {
  /** Contiguous, each once: the first is the one behind the last before. */
  events(events: WireEvent[]): void
  /** Live text of a running block. */
  delta(key: string, text: string): void
  status(status: FeedStatus): void
}

export interface Feed {
  close(): void
  /** Try now instead of at `retryAt`. */
  retry(): void
}

/** What a feed needs of the world; tests bring their own. */
export interface Sources {
  page(run: string, after: number, signal: AbortSignal): Promise<EventPage>
  subscribe: Subscribe
}

const SOURCES: Sources = { page: (run, after, signal) => api.events(run, after, 2000, signal), subscribe }

/** Follow `run` behind event `after` until `close`, or until the run has ended. */
export function follow(run: string, after: number, on: FeedListener, sources: Sources = SOURCES): Feed {
  const abort = new AbortController()
  let seq = after
  let ended = false
  let fetching = false
  let again = false
  let tries = 0
  /** The stream was away: what happened meanwhile is asked for before anything is called live. */
  let lost = false
  /** When the stream tries again; null while it is there. */
  let away: number | null = null
  let timer: ReturnType<typeof setTimeout> | null = null
  let subscription: Subscription | null = null

  const say = (mode: NetMode, more: Partial<FeedStatus> = {}): void =>
    on.status({ mode, behind: 0, retryAt: null, error: null, ...more })

  /** Pass on what is new; false when something is missing before it. */
  const take = (events: readonly WireEvent[]): boolean => {
    const fresh: WireEvent[] = []
    let whole = true
    for (const event of events) {
      if (event.seq <= seq) continue
      if (event.seq !== seq + 1) {
        whole = false
        break
      }
      seq = event.seq
      fresh.push(event)
    }
    if (fresh.length) on.events(fresh)
    if (fresh.at(-1)?.type === 'run.finished') finish()
    return whole
  }

  const finish = (): void => {
    ended = true
    subscription?.close()
    subscription = null
    say('ended')
  }

  const fetchPages = async (): Promise<void> => {
    if (fetching) {
      again = true
      return
    }
    fetching = true
    try {
      do {
        again = false
        for (;;) {
          const page = await sources.page(run, seq, abort.signal)
          tries = 0
          const before = seq
          if (!ended) take(page.events) // the stream may have brought the end meanwhile
          if (ended || abort.signal.aborted) return
          if (page.next === null || seq === before) break
          say('catching', { behind: Math.max(0, page.count - seq) })
        }
      } while (again)
      if (subscription) say(away === null ? 'live' : 'offline', { retryAt: away })
      else subscription = sources.subscribe(run, () => seq, hear)
    } catch (error) {
      if (ended || abort.signal.aborted) return
      const status = error instanceof ApiError ? error.status : 0
      const message = error instanceof Error ? error.message : String(error)
      if (status === 404 || status === 401 || status === 403) {
        subscription?.close()
        subscription = away = null
        lost = false
        return say('offline', { error: message })
      }
      // Asked again when the stream has tried again.
      if (subscription && away !== null) return say('offline', { retryAt: away, error: message })
      const pause = backoffMs(++tries, Math.random())
      timer = setTimeout(() => {
        timer = null
        void fetchPages()
      }, pause)
      say('offline', { retryAt: Date.now() + pause, error: message })
    } finally {
      fetching = false
    }
  }

  const hear = (message: StreamMessage): void => {
    if (ended || abort.signal.aborted) return
    switch (message.kind) {
      case 'open':
        away = null
        if (message.seq > seq || lost) {
          lost = false
          say('catching', { behind: Math.max(0, message.seq - seq) })
          void fetchPages()
        } else if (!fetching) say('live')
        return
      case 'events': {
        const last = message.events.at(-1)
        if (!take(message.events)) {
          say('catching', { behind: (last?.seq ?? seq) - seq })
          void fetchPages()
        }
        return
      }
      case 'delta':
        return on.delta(message.key, message.text)
      case 'down':
        // A stream does not say why it is refused; a page does.
        if (lost) void fetchPages()
        lost = true
        away = message.retryAt
        return say('offline', { retryAt: away })
      case 'ended':
        // This tab may be behind the stream: fetch the rest, which ends with run.finished.
        void fetchPages()
    }
  }

  say('catching')
  void fetchPages()
  return {
    close() {
      abort.abort()
      if (timer) clearTimeout(timer)
      subscription?.close()
      subscription = null
    },
    retry() {
      if (timer) {
        clearTimeout(timer)
        timer = null
        void fetchPages()
      } else if (subscription) subscription.retry()
      else void fetchPages()
    },
  }
}
