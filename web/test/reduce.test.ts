import assert from 'node:assert/strict'
import { test } from 'node:test'
import { KEYFRAME_EVERY, Timeline } from '../src/state/keyframes'
import { edgeAt, emptyFold, firstError, fold, iterOf, nodeAt, pathFor, reduce, scopesAt, shapeOf, statusAt } from '../src/state/run'
import { random, recorded, RUNS, specs } from './help'

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
      const plain = document.edges.find((e) => e.source === edge.source && e.target === edge.target && (e.handle ?? 'out') === edge.handle)
      if (!plain) continue
      const ours = edgeAt(whole, document, plain, {})
      assert.deepEqual([ours.live, ours.dead], [edge.counts?.live ?? 0, edge.counts?.dead ?? 0], `${edge.source} -> ${edge.target}`)
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
      assert.deepEqual(view, whole)
    }
    assert.deepEqual(events.reduce(reduce, emptyFold(shape)), whole)
  })

  test(`${name}: a fold is not changed by what comes after it`, () => {
    const half = Math.floor(events.length / 2)
    const before = fold(emptyFold(shape), events.slice(0, half))
    const kept = structuredClone(before)
    fold(before, events.slice(half))
    assert.deepEqual(before, kept)
  })

  test(`${name}: seeking is folding`, () => {
    const timeline = new Timeline(shape)
    assert.ok(timeline.append(events))
    const rnd = random(7)
    const places = [0, 1, events.length, KEYFRAME_EVERY - 1, KEYFRAME_EVERY, KEYFRAME_EVERY + 1, ...Array.from({ length: 30 }, () => Math.floor(rnd() * (events.length + 1)))]
    for (const seq of places.filter((at) => at <= events.length)) {
      assert.deepEqual(timeline.seek(seq), fold(emptyFold(shape), events.slice(0, seq)), `seq ${seq}`)
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
  assert.deepEqual(timeline.head, fold(emptyFold(shapeOf(document)), events))
  assert.equal(timeline.log.length, events.length)
})

test('an event of an unknown type moves seq and nothing else', () => {
  const { document, events } = recorded('nested')
  const view = fold(emptyFold(shapeOf(document)), events.slice(0, 20))
  const after = reduce(view, { ...events[20]!, type: 'something.new' })
  assert.deepEqual({ ...after, seq: view.seq, at: view.at }, view)
  assert.equal(after.seq, 21)
})

test('the iteration that is looked at decides what a block shows', () => {
  const { document, events } = recorded('nested')
  const view = fold(emptyFold(shapeOf(document, specs)), events)
  assert.equal(pathFor(view, document, 'play', {}), 'teams[2]/rounds#2')
  assert.equal(pathFor(view, document, 'play', { teams: 0, rounds: 1 }), 'teams[0]/rounds#1')
  assert.deepEqual(nodeAt(view, document, 'play', iterOf('teams[1]/rounds#0'))?.output, { result: { team: 'green', round: 1, points: 5 }, stdout: '' })
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

test('the first error is the innermost that nobody caught', () => {
  const { document, events } = recorded('failing')
  const view = fold(emptyFold(shapeOf(document, specs)), events)
  assert.equal(firstError(view)?.key, 'last')
  assert.deepEqual(view.failures, ['last'])
  const { scopes } = scopesAt(view, document, 'fan', {})
  assert.deepEqual(scopes.map((scope) => scope?.status), ['succeeded', 'failed', 'succeeded', 'failed'])
})

test('fifty thousand events fold in a blink', () => {
  const at = 1
  const base = { run: 'r', at, attempt: 1 }
  const events = [{ ...base, seq: 1, type: 'run.started', node: null, block: null, path: '', key: null, data: {} }]
  for (let i = 0; events.length < 50_000; i++) {
    const path = `many#${Math.floor(i / 2) % 5000}`
    events.push({ ...base, seq: events.length + 1, type: i % 2 ? 'node.succeeded' : 'node.started', node: 'one', block: 'one', path, key: `one@${path}`, data: {} } as never)
  }
  const timeline = new Timeline()
  // CPU time, not wall time: the machine may be busy with other things.
  const start = process.cpuUsage()
  timeline.append(events)
  const { user } = process.cpuUsage(start)
  assert.ok(user < 3_000_000, `${user / 1000} ms`)
})
