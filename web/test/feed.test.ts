import assert from 'node:assert/strict'
import { test } from 'node:test'
import { follow, type FeedStatus, type Sources } from '../src/net/events'
import { ApiError } from '../src/net/http'
import { backoffMs } from '../src/api/core'
import type { StreamMessage } from '../src/net/stream'
import type { WireEvent } from '../src/api/types'
import { random, recorded } from './help'

const { events } = recorded('nested')
const settle = () => new Promise((done) => setTimeout(done, 0))

/** A server that has `stored` events and a stream that says what the test tells it to. */
function world(stored: number) {
  const seen: number[] = []
  const modes: string[] = []
  const behind: number[] = []
  let emit: ((message: StreamMessage) => void) | null = null
  let pages = 0
  let failing = 0
  let refusal = 0
  const state = { stored }
  const sources: Sources = {
    page: (_run, after) => {
      pages++
      if (failing-- > 0) return Promise.reject(new Error('down'))
      if (refusal)
        return Promise.reject(new ApiError({ type: '', title: '', status: refusal, code: 'x', detail: 'no such run' }))
      const rest = events.slice(after, state.stored)
      const page = rest.slice(0, 7)
      return Promise.resolve({ events: page, count: state.stored, next: page.length === 7 ? page.at(-1)!.seq : null })
    },
    subscribe: (_run, _seq, hear) => {
      emit = hear
      return { close: () => (emit = null), retry: () => undefined }
    },
  }
  let last: FeedStatus | null = null
  const feed = follow(
    'r',
    0,
    {
      events: (batch) => seen.push(...batch.map((e) => e.seq)),
      delta: () => undefined,
      status: (s: FeedStatus) => (modes.push(s.mode), behind.push(s.behind), (last = s)),
    },
    sources,
  )
  return {
    feed,
    seen,
    modes,
    behind,
    state,
    say: (message: StreamMessage) => emit?.(message),
    connected: () => emit !== null,
    pages: () => pages,
    fail: (n: number) => (failing = n),
    refuse: (status: number) => (refusal = status),
    last: () => last,
  }
}

const upTo = (n: number): number[] => Array.from({ length: n }, (_, i) => i + 1)
const part = (from: number, to: number): WireEvent[] => events.slice(from - 1, to)

test('history in pages, then live', async () => {
  const w = world(20)
  await settle()
  assert.deepEqual(w.seen, upTo(20))
  assert.deepEqual(w.behind, [0, 13, 6], 'what is missing still, after each page')
  w.say({ kind: 'open', seq: 20 })
  w.say({ kind: 'events', events: part(21, 24) })
  assert.deepEqual(w.seen, upTo(24))
  assert.equal(w.modes.at(-1), 'live')
  w.feed.close()
})

test('a gap is fetched, what comes twice is dropped', async () => {
  const w = world(10)
  await settle()
  w.say({ kind: 'open', seq: 10 })
  w.state.stored = 30
  w.say({ kind: 'events', events: part(15, 18) })
  assert.equal(w.modes.at(-1), 'catching')
  await settle()
  w.say({ kind: 'events', events: part(25, 32) })
  await settle()
  assert.deepEqual(w.seen, upTo(32))
  assert.equal(w.modes.at(-1), 'live')
  w.feed.close()
})

test('a stream that is ahead when it opens is caught up with', async () => {
  const w = world(10)
  await settle()
  w.state.stored = 12
  w.say({ kind: 'open', seq: 12 })
  await settle()
  assert.deepEqual(w.seen, upTo(12))
  w.feed.close()
})

test('down is offline; the end is the end', async () => {
  const w = world(10)
  await settle()
  w.say({ kind: 'down', retryAt: 5 })
  assert.equal(w.modes.at(-1), 'offline')
  w.say({ kind: 'open', seq: 10 })
  assert.equal(w.modes.at(-1), 'catching', 'what happened meanwhile is not known yet')
  await settle()
  assert.equal(w.modes.at(-1), 'live')
  w.say({ kind: 'events', events: part(11, events.length) })
  assert.equal(w.modes.at(-1), 'ended')
  assert.equal(w.connected(), false)
  assert.deepEqual(w.seen, upTo(events.length))
})

test('the end stays the end when a page comes later, or not at all', async () => {
  for (const fails of [0, 1]) {
    const w = world(10)
    await settle()
    w.say({ kind: 'down', retryAt: 5 })
    w.state.stored = events.length
    w.fail(fails)
    w.say({ kind: 'open', seq: 10 })
    w.say({ kind: 'events', events: part(11, events.length) })
    await settle()
    assert.equal(w.modes.at(-1), 'ended')
    assert.deepEqual(w.seen, upTo(events.length))
  }
})

test('nothing is called live while the stream is away', async () => {
  const w = world(10)
  await settle()
  w.say({ kind: 'down', retryAt: 5 })
  w.say({ kind: 'open', seq: 10 })
  w.say({ kind: 'down', retryAt: 6 }) // before the page has come that the stream's return asked for
  await settle()
  assert.deepEqual([w.modes.at(-1), w.last()!.retryAt], ['offline', 6])
  w.say({ kind: 'open', seq: 10 })
  await settle()
  assert.equal(w.modes.at(-1), 'live')
  w.feed.close()
})

test('a stream that is refused is asked about: the run is gone, or a login is needed', async () => {
  const w = world(10)
  await settle()
  w.say({ kind: 'open', seq: 10 })
  w.refuse(404)
  w.say({ kind: 'down', retryAt: 5 })
  w.say({ kind: 'down', retryAt: 6 })
  await settle()
  assert.deepEqual(w.last(), { mode: 'offline', behind: 0, retryAt: null, error: 'no such run' })
  assert.equal(w.connected(), false)
  w.refuse(0)
  w.feed.retry()
  await settle()
  w.say({ kind: 'open', seq: 10 })
  assert.equal(w.modes.at(-1), 'live')
  w.feed.close()
})

test('while the server is away one thing tries again, not two', async () => {
  const w = world(10)
  await settle()
  w.say({ kind: 'down', retryAt: 5 })
  w.fail(1)
  w.say({ kind: 'down', retryAt: 6 })
  await settle()
  assert.deepEqual([w.modes.at(-1), w.last()!.retryAt], ['offline', 6])
  w.feed.close()
})

test('a run that has ended needs no stream', async () => {
  const w = world(events.length)
  await settle()
  assert.equal(w.modes.at(-1), 'ended')
  assert.equal(w.connected(), false)
})

test('any order of delivery gives every event once and in order', async () => {
  for (let seed = 1; seed <= 50; seed++) {
    const rnd = random(seed)
    const w = world(5)
    await settle()
    while (w.seen.length < events.length) {
      w.state.stored = Math.min(events.length, w.state.stored + Math.floor(rnd() * 10))
      const from = 1 + Math.floor(rnd() * w.state.stored)
      if (rnd() < 0.2) w.say({ kind: 'open', seq: w.state.stored })
      else w.say({ kind: 'events', events: part(from, Math.min(w.state.stored, from + Math.floor(rnd() * 8))) })
      if (rnd() < 0.5) await settle()
    }
    assert.deepEqual(w.seen, upTo(events.length), `seed ${seed}`)
    w.feed.close()
  }
})

test('pauses double from half a second to eight', () => {
  assert.deepEqual(
    [1, 2, 3, 4, 5, 6, 20].map((n) => backoffMs(n, 0)),
    [500, 1000, 2000, 4000, 8000, 8000, 8000],
  )
  assert.equal(backoffMs(1, 1), 625)
})
