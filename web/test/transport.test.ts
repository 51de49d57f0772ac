// What a tab does where there is no SharedWorker: one tab leads and tells the others, and without the means for that each tab has
// a connection of its own, closed while it is hidden.

import assert from 'node:assert/strict'
import { afterEach, beforeEach, test } from 'node:test'
import type { StreamMessage } from '../src/net/stream'
import { subscribe, type Subscription } from '../src/net/transport'
import type { WireEvent } from '../src/api/types'

const opened: FakeSource[] = []

class FakeSource extends EventTarget {
  onopen: (() => void) | null = null
  onerror: (() => void) | null = null
  closed = false
  readonly url: string
  constructor(url: string) {
    super()
    this.url = url
    opened.push(this)
  }
  close(): void {
    this.closed = true
  }
  say(type: string, data: unknown): void {
    this.dispatchEvent(Object.assign(new Event(type), { data: typeof data === 'string' ? data : JSON.stringify(data) }))
  }
}

const event = (seq: number, type = 'node.started'): WireEvent => ({
  run: 'r',
  seq,
  at_ms: seq,
  type,
  node: 'a',
  block: 'a',
  path: '',
  key: 'a',
  attempt: 1,
  data: {},
})
const connections = (): FakeSource[] => opened.filter((source) => !source.closed)
const soon = (ms = 40): Promise<void> => new Promise((done) => setTimeout(done, ms))
/** Messages come through the event loop, when it gets to them. */
const until = async (there: () => boolean): Promise<void> => {
  for (const end = Date.now() + 30_000; !there() && Date.now() < end; ) await soon(5)
}
const seqs = (heard: readonly StreamMessage[]): number[] =>
  heard.flatMap((message) => (message.kind === 'events' ? message.events.map((each) => each.seq) : []))

const page = Object.assign(new EventTarget(), { hidden: false })
const before = { locks: Object.getOwnPropertyDescriptor(globalThis, 'navigator'), channel: globalThis.BroadcastChannel }
let running: Subscription[] = []

function tab(seq = 0): { heard: StreamMessage[]; sub: Subscription } {
  const heard: StreamMessage[] = []
  const sub = subscribe(
    'r',
    () => seq,
    (message) => heard.push(message),
  )
  running.push(sub)
  return { heard, sub }
}

/** Web Locks as far as they are used: one holder for a name, the others in line. */
function fakeLocks(): {
  request: (name: string, options: { signal: AbortSignal }, held: () => Promise<void>) => Promise<void>
} {
  let last: Promise<unknown> = Promise.resolve()
  return {
    request(_name, { signal }, held) {
      const answer = last.then(() => (signal.aborted ? undefined : held()))
      last = answer.catch(() => undefined)
      return answer
    },
  }
}

beforeEach(() => {
  opened.length = 0
  running = []
  page.hidden = false
  Object.assign(globalThis, { EventSource: FakeSource, document: page })
  assert.equal(typeof (globalThis as { SharedWorker?: unknown }).SharedWorker, 'undefined')
})

afterEach(() => {
  for (const each of running) each.close()
  globalThis.BroadcastChannel = before.channel
  if (before.locks) Object.defineProperty(globalThis, 'navigator', before.locks)
})

function setNavigator(value: object): void {
  Object.defineProperty(globalThis, 'navigator', { value, configurable: true })
}

test('without workers and locks: a connection of its own, behind what the tab has', async () => {
  setNavigator({})
  const { heard, sub } = tab(7)
  assert.equal(connections().length, 1)
  assert.match(opened[0]!.url, /^\/api\/runs\/r\/events\?after=7&/)
  opened[0]!.onopen!()
  for (const seq of [8, 9]) opened[0]!.say('node.started', event(seq))
  await until(() => seqs(heard).length === 2)
  assert.deepEqual(heard[0], { kind: 'open', seq: 7 })
  assert.deepEqual(seqs(heard), [8, 9])
  sub.close()
  assert.equal(connections().length, 0)
})

test('a hidden tab gives its connection back, and takes it up where it is', async () => {
  setNavigator({})
  let seq = 3
  const sub = subscribe(
    'r',
    () => seq,
    () => undefined,
  )
  running.push(sub)
  page.hidden = true
  page.dispatchEvent(new Event('visibilitychange'))
  assert.equal(connections().length, 0)
  seq = 12
  page.hidden = false
  page.dispatchEvent(new Event('visibilitychange'))
  assert.equal(connections().length, 1)
  assert.match(connections()[0]!.url, /after=12&/)
})

test('a lost connection is made again, behind the last event', async () => {
  setNavigator({})
  const { heard, sub } = tab()
  opened[0]!.onopen!()
  opened[0]!.say('node.started', event(1))
  opened[0]!.onerror!()
  assert.equal(heard.at(-1)!.kind, 'down')
  assert.equal(connections().length, 0)
  sub.retry()
  assert.match(connections()[0]!.url, /after=1&/)
})

test('a message that cannot be read is ignored; the feed continues', async () => {
  setNavigator({})
  const { heard } = tab()
  for (const junk of ['not json', 'null', '[]', '{"seq": "1"}', JSON.stringify({ ...event(1), data: null })])
    opened[0]!.say('node.started', junk)
  opened[0]!.say('node.delta', '{"key": 5}')
  opened[0]!.say('node.started', event(1))
  await until(() => seqs(heard).length > 0)
  assert.deepEqual(seqs(heard), [1])
  assert.ok(heard.every((message) => message.kind !== 'delta'))
})

test('with locks and channels: one connection for all tabs, all are fed, and the next tab leads when the first goes', async () => {
  setNavigator({ locks: fakeLocks() })
  const [first, second] = [tab(), tab()]
  await soon()
  assert.equal(connections().length, 1)
  connections()[0]!.onopen!()
  connections()[0]!.say('node.started', event(1))
  await until(() => [first, second].every((each) => seqs(each.heard).length > 0))
  assert.deepEqual([seqs(first.heard), seqs(second.heard)], [[1], [1]])
  first.sub.close()
  await until(() => connections().length > 0)
  assert.equal(connections().length, 1)
  connections()[0]!.say('node.succeeded', event(2, 'node.succeeded'))
  await until(() => seqs(second.heard).at(-1) === 2)
  assert.deepEqual(seqs(second.heard).at(-1), 2)
})

test('a worker whose script does not come is a lost connection, and is made again', () => {
  class FakeWorker {
    onerror: (() => void) | null = null
    readonly said: { type: string; after?: number }[] = []
    readonly port = Object.assign(new EventTarget(), {
      start: () => undefined,
      postMessage: (message: { type: string }) => this.said.push(message),
    })
    constructor() {
      made.push(this)
    }
  }
  const made: FakeWorker[] = []
  setNavigator({})
  Object.assign(globalThis, { SharedWorker: FakeWorker, addEventListener: () => undefined })
  try {
    const { heard, sub } = tab(7)
    made[0]!.onerror!()
    assert.deepEqual(
      heard.map((message) => message.kind),
      ['down'],
    )
    sub.retry()
    assert.equal(made.length, 2)
    assert.deepEqual(made[1]!.said, [{ type: 'follow', run: 'r', after: 7 }])
    made[1]!.port.dispatchEvent(
      Object.assign(new Event('message'), { data: { run: 'r', message: { kind: 'open', seq: 7 } } }),
    )
    assert.deepEqual(heard.at(-1), { kind: 'open', seq: 7 })
    sub.close()
    made[1]!.onerror!()
    assert.equal(heard.length, 2)
  } finally {
    Reflect.deleteProperty(globalThis, 'SharedWorker')
  }
})
