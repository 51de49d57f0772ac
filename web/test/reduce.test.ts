import assert from 'node:assert/strict'
import { test } from 'node:test'
import { KEYFRAME_EVERY, Timeline } from '../src/state/keyframes'
import { LayeredMap } from '../src/run/layered'
import type { WireEvent } from '../src/api/types'
import {
  edgeAt,
  emptyFold,
  firstError,
  fold,
  iterOf,
  nodeAt,
  pathFor,
  reduce,
  scopesAt,
  shapeOf,
  shownStatus,
  statusAt,
} from '../src/run'
import { plain, random, recorded, RUNS, specs } from './help'
import { longDocument, longJournal } from './long'

for (const name of RUNS) {
  const { document, run, graph, events } = recorded(name)
  const shape = shapeOf(document, specs)
  const whole = fold(emptyFold(shape), events)

  test(`${name}: what the journal folds to is what the server says`, () => {
    assert.equal(whole.status, run.status)
    assert.equal(whole.seq, run.seq)
    assert.deepEqual(whole.variables, run.variables)
    assert.deepEqual(whole.output ?? null, run.output)
    for (const node of run.nodes) {
      if (node.node !== node.block) continue
      const ours = whole.nodes.get(node.key)
      assert.ok(ours, node.key)
      assert.equal(ours.status, node.status, node.key)
      assert.equal(ours.attempt, node.attempt, node.key)
      if (node.status === 'succeeded') assert.deepEqual(ours.output ?? null, node.output ?? null, node.key)
      if (node.error && node.status === 'failed') assert.equal(ours.error?.message, node.error.message)
    }
    for (const node of run.nodes.filter((n) => n.node.endsWith(':end'))) {
      const ours = whole.nodes.get(node.path ? `${node.block}@${node.path}` : node.block)
      assert.equal(ours?.status, node.status, node.key)
      assert.deepEqual(ours?.output ?? null, node.output ?? null, node.key)
    }
  })

  test(`${name}: every container closes what it opened`, () => {
    for (const node of whole.nodes.values()) {
      if (!node.region) continue
      assert.equal(node.region.closed, node.region.opened, node.key)
      assert.equal(node.region.opened, node.region.count, node.key)
    }
    for (const scope of whole.scopes.values()) {
      assert.notEqual(scope.finishedAt, null, scope.path)
      assert.equal(scope.running, 0, scope.path)
    }
  })

  test(`${name}: edges count live and dead like the server`, () => {
    for (const edge of graph.edges) {
      const plain = document.edges.find(
        (e) => e.source === edge.source && e.target === edge.target && (e.handle ?? 'out') === edge.handle,
      )
      if (!plain) continue
      const ours = edgeAt(whole, document, plain, {})
      assert.deepEqual(
        [ours.live, ours.dead],
        [edge.counts?.live ?? 0, edge.counts?.dead ?? 0],
        `${edge.source} -> ${edge.target}`,
      )
    }
  })

  test(`${name}: any chunking folds to the same`, () => {
    for (let seed = 1; seed <= 20; seed++) {
      const rnd = random(seed)
      let view = emptyFold(shape)
      for (let at = 0; at < events.length; ) {
        const size = 1 + Math.floor(rnd() * 40)
        view = fold(view, events.slice(at, at + size))
        at += size
      }
      assert.deepEqual(plain(view), plain(whole))
    }
    assert.deepEqual(plain(events.reduce(reduce, emptyFold(shape))), plain(whole))
  })

  test(`${name}: a fold is not changed by what comes after it`, () => {
    const half = Math.floor(events.length / 2)
    const before = fold(emptyFold(shape), events.slice(0, half))
    const copy = structuredClone(plain(before))
    fold(before, events.slice(half))
    assert.deepEqual(plain(before), copy)
  })

  test(`${name}: seeking is folding`, () => {
    const timeline = new Timeline(shape)
    assert.ok(timeline.append(events))
    const rnd = random(7)
    const places = [
      0,
      1,
      events.length,
      KEYFRAME_EVERY - 1,
      KEYFRAME_EVERY,
      KEYFRAME_EVERY + 1,
      ...Array.from({ length: 30 }, () => Math.floor(rnd() * (events.length + 1))),
    ]
    for (const seq of places.filter((at) => at <= events.length)) {
      assert.deepEqual(plain(timeline.seek(seq)), plain(fold(emptyFold(shape), events.slice(0, seq))), `seq ${seq}`)
    }
    for (let seq = 1; seq <= Math.min(60, events.length); seq++) assert.equal(timeline.seek(seq).seq, seq)
  })
}

test('events that come twice are ignored, a gap stops', () => {
  const { document, events } = recorded('nested')
  const timeline = new Timeline(shapeOf(document))
  assert.equal(timeline.append(events.slice(0, 10)), true)
  assert.equal(timeline.append(events.slice(4, 12)), true)
  assert.equal(timeline.seq, 12)
  assert.equal(timeline.append(events.slice(14, 20)), false)
  assert.equal(timeline.seq, 12)
  assert.equal(timeline.append(events.slice(12)), true)
  assert.deepEqual(plain(timeline.head), plain(fold(emptyFold(shapeOf(document)), events)))
  assert.equal(timeline.log.length, events.length)
})

test('an event of an unknown type moves seq and nothing else', () => {
  const { document, events } = recorded('nested')
  const view = fold(emptyFold(shapeOf(document)), events.slice(0, 20))
  const after = reduce(view, { ...events[20]!, type: 'something.new' })
  assert.deepEqual(plain({ ...after, seq: view.seq, at: view.at }), plain(view))
  assert.equal(after.seq, 21)
})

test('the iteration that is looked at decides what a block shows', () => {
  const { document, events } = recorded('nested')
  const view = fold(emptyFold(shapeOf(document, specs)), events)
  assert.equal(pathFor(view, document, 'play', {}), 'teams[2]/rounds#2')
  assert.equal(pathFor(view, document, 'play', { teams: 0, rounds: 1 }), 'teams[0]/rounds#1')
  assert.deepEqual(nodeAt(view, document, 'play', iterOf('teams[1]/rounds#0'))?.output, {
    result: { team: 'green', round: 1, points: 5 },
    stdout: '',
  })
  assert.equal(scopesAt(view, document, 'teams', {}).scopes.length, 3)
  assert.equal(scopesAt(view, document, 'rounds', { teams: 1 }).path, 'teams[1]')
})

test('a block whose way is open but that has not started is queued', () => {
  const { document, events } = recorded('parallel-fanout')
  const shape = shapeOf(document, specs)
  const ready = events.findIndex((e) => e.type === 'node.succeeded' && e.block === 'start')
  const view = fold(emptyFold(shape), events.slice(0, ready + 1))
  assert.equal(statusAt(view, document, 'fan', {}), 'queued')
  assert.equal(statusAt(view, document, 'join', {}), 'idle')
})

test('the first error is the innermost one that was not caught', () => {
  const { document, events } = recorded('failing')
  const view = fold(emptyFold(shapeOf(document, specs)), events)
  assert.equal(firstError(view)?.key, 'last')
  assert.deepEqual(view.failures, ['last'])
  const { scopes } = scopesAt(view, document, 'fan', {})
  assert.deepEqual(
    scopes.map((scope) => scope?.status),
    ['succeeded', 'failed', 'succeeded', 'failed'],
  )
})

for (const kind of ['loop', 'parallel'] as const) {
  test(`a long ${kind}: pages, single events and jumps fold to the same`, () => {
    const events = longJournal(kind, 6000)
    const shape = shapeOf(longDocument(kind), specs)
    const whole = plain(fold(emptyFold(shape), events))
    const timeline = new Timeline(shape)
    for (let at = 0; at < events.length; at += 700) timeline.append(events.slice(at, at + 700))
    assert.deepEqual(plain(timeline.head), whole)
    assert.deepEqual(plain(events.reduce(reduce, emptyFold(shape))), whole)
    for (const seq of [1, 511, 2049, 5000, 100])
      assert.deepEqual(plain(timeline.seek(seq)), plain(fold(emptyFold(shape), events.slice(0, seq))), `seq ${seq}`)
  })

  test(`fifty thousand events of a ${kind} fold in a blink, and so does each event that comes to them`, () => {
    const events = longJournal(kind, 50_000)
    const timeline = new Timeline(shapeOf(longDocument(kind), specs))
    // CPU time, not wall time: the machine may be busy with other things.
    const cpu = (act: () => void): number => {
      const start = process.cpuUsage()
      act()
      return process.cpuUsage(start).user / 1000
    }
    const load = cpu(() => {
      for (let at = 0; at < events.length - 2000; at += 2000)
        timeline.append(events.slice(at, Math.min(at + 2000, events.length - 2000)))
    })
    assert.ok(load < 1200, `${load} ms to load`)
    const live = cpu(() => {
      for (let at = events.length - 2000; at < events.length; at += 5) timeline.append(events.slice(at, at + 5))
    })
    assert.ok(live < 600, `${live} ms for 400 batches`)
    assert.equal(timeline.seq, events.length)
  })
}

test('a layered map is a map: same entries, same order, and versions do not change', () => {
  for (let seed = 1; seed <= 30; seed++) {
    const rnd = random(seed)
    const real = new Map<string, number>()
    let layered: ReadonlyMap<string, number> = LayeredMap.edit(new Map<string, number>()).seal()
    for (let round = 0; round < 40; round++) {
      const before = layered
      const copy = [...before]
      const next = LayeredMap.edit(layered)
      for (let i = Math.floor(rnd() * 60); i > 0; i--) {
        const key = `k${Math.floor(rnd() * 900)}`
        const value = Math.floor(rnd() * 1e6)
        real.set(key, value)
        next.set(key, value)
      }
      layered = next.seal()
      assert.deepEqual([...layered], [...real])
      assert.equal(layered.size, real.size)
      assert.deepEqual([...before], copy)
    }
    assert.deepEqual([[...layered.keys()], [...layered.values()]], [[...real.keys()], [...real.values()]])
    assert.equal(layered.get('none'), undefined)
    for (const key of ['k1', 'k500', 'none']) assert.equal(layered.has(key), real.has(key))
  }
})

test('a lost attempt needs attention until it is resolved', () => {
  const at = (seq: number, type: string, data: object = {}): WireEvent => ({
    run: 'r',
    seq,
    at_ms: seq,
    type,
    node: 'a',
    block: 'a',
    path: '',
    key: 'a',
    attempt: 1,
    data: data as never,
  })
  const waiting = fold(emptyFold(), [at(1, 'node.started'), at(2, 'wait.opened', { kind: 'attention' })])
  assert.equal(shownStatus(waiting.nodes.get('a')!), 'attention')
  assert.equal(waiting.nodes.get('a')!.status, 'waiting')
  const done = fold(waiting, [
    at(3, 'wait.closed', { outcome: 'answered', by: 'Ada' }),
    at(4, 'node.succeeded', { output: { paid: true } }),
  ])
  assert.deepEqual([shownStatus(done.nodes.get('a')!), done.nodes.get('a')!.output], ['succeeded', { paid: true }])
})

test('forks, moves to another version, cached outputs and hastened retries have events', () => {
  const at = (seq: number, type: string, data: object, node: string | null = 'a'): WireEvent => ({
    run: 'r',
    seq,
    at_ms: seq,
    type,
    node,
    block: node,
    path: '',
    key: node,
    attempt: 1,
    data: data as never,
  })
  const view = fold(emptyFold(), [
    at(1, 'run.forked', { source: 'old', seq: 7 }, null),
    at(2, 'run.migrated', { version: 3, plan_hash: 'x' }, null),
    at(3, 'node.started', {}),
    at(4, 'retry.scheduled', { due_ms: 900_000, error: { code: 'x', message: 'x' } }),
    at(5, 'retry.hastened', { due_ms: 6 }),
  ])
  assert.deepEqual(
    [view.forkedFrom, view.version, view.nodes.get('a')!.dueAt, view.nodes.get('a')!.status],
    [{ run: 'old', seq: 7, at: 1 }, 3, 6, 'retrying'],
  )
  const cached = fold(view, [at(6, 'node.started', {}), at(7, 'node.succeeded', { output: 1, cached: true })])
  assert.equal(cached.nodes.get('a')!.cached, true)
})

test('a log is stored line by line, live text as a whole', () => {
  const { document } = recorded(RUNS[0]!)
  const block = Object.keys(document.blocks)[0]!
  const event = (seq: number, type: string, data: WireEvent['data'] = {}): WireEvent => ({
    run: 'r',
    seq,
    at_ms: seq,
    type,
    node: block,
    block,
    path: '',
    key: block,
    attempt: 1,
    data,
  })
  const view = fold(emptyFold(shapeOf(document, specs)), [
    event(1, 'node.started'),
    event(2, 'node.log', { message: 'one' }),
    event(3, 'node.log', { message: 'two\nthree' }),
    event(4, 'node.log', { message: 'Hello', stream: 'text' }),
    event(5, 'node.succeeded', { output: 1 }),
  ])
  const node = view.nodes.get(block)
  assert.deepEqual(node?.logs, ['one', 'two\nthree'])
  assert.equal(node?.said, 'Hello')
  assert.equal(node?.status, 'succeeded')
})
