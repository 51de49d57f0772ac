import assert from 'node:assert/strict'
import { test } from 'node:test'
import { emptyFold, fold, shapeOf, type RunFold } from '../src/run'
import { changeAt, takenOver } from '../src/watch/tape/changes'
import { lanesOf, pausesOf, type Span } from '../src/watch/tape/lanes'
import { Timeline } from '../src/state/keyframes'
import type { Document, WireEvent } from '../src/api/types'
import { recorded, RUNS, specs } from './help'

const ALL: ReadonlySet<string> = new Set()
const folded = (run: ReturnType<typeof recorded>): RunFold => fold(emptyFold(shapeOf(run.document, specs)), run.events)

for (const name of RUNS) {
  test(`${name}: each block that ran is in a lane, and none lies above another`, () => {
    const run = recorded(name)
    const view = folded(run)
    const lanes = lanesOf(view, run.document, ALL)
    assert.equal(lanes[0]!.label, 'Main')
    assert.equal(new Set(lanes.map((lane) => lane.id)).size, lanes.length)
    const there = new Set(lanes.flatMap((lane) => lane.spans.map((span) => span.node.key)))
    for (const node of view.nodes.values())
      assert.equal(there.has(node.key), node.status !== 'skipped' || !!node.region, node.key)
    for (const lane of lanes) {
      let end = 0
      for (const span of lane.spans) {
        assert.ok(span.from >= end, `${lane.id} at event ${span.from}`)
        assert.ok(span.to === null || span.to >= span.from)
        end = span.to ?? Infinity
      }
    }
  })
}

/** Events about blocks: `[at, type, block, path?, data?]`. */
function log(rows: [number, string, string | null, string?, object?][]): WireEvent[] {
  return rows.map(([at_ms, type, block, path = '', data = {}], i) => {
    const key = block === null ? null : path ? `${block}@${path}` : block
    return { run: 'r', seq: i + 1, at_ms, type, node: block, block, path, key, attempt: 1, ...data, data } as WireEvent
  })
}

const doc = { format: 'weft/1', name: 'x', edges: [], blocks: { a: { type: 'set' }, b: { type: 'set' } } } as Document

test('a step of a durable function is called without its module', () => {
  const started = (n: number, kind: string, name: string) => ({ n, kind, name, effect: 'read', input_hash: '' })
  const view = fold(
    emptyFold(shapeOf(doc, specs)),
    log([
      [0, 'run.started', null],
      [1, 'node.started', 'a'],
      [2, 'step.started', 'a', '', started(1, 'step', 'orders.reserve')],
      [3, 'step.started', 'a', '', started(2, 'wait', 'signal v1.2')],
      [4, 'step.started', 'a', '', started(3, 'step', 'read v1.2 of it')],
    ]),
  )
  const labels = lanesOf(view, doc, ALL).flatMap((lane) =>
    lane.spans.filter((span) => span.step).map((span) => span.label),
  )
  assert.deepEqual(labels, ['reserve', 'signal v1.2', 'read v1.2 of it'])
})

test('iterations that ended well share a lane until it is opened, and one that failed stays', () => {
  const run = recorded('failing')
  const view = folded(run)
  const last = [...view.scopes.values()].at(-1)!
  const failed: RunFold = { ...view, scopes: new Map(view.scopes).set(last.path, { ...last, status: 'failed' }) }
  const ended = [...failed.scopes.values()].filter(
    (scope) => scope.container === last.container && scope.status === 'succeeded',
  )
  assert.ok(ended.length >= 5)
  const lanes = lanesOf(failed, run.document, ALL, true)
  const shared = lanes.find((lane) => lane.id === `${last.container}!ended`)!
  assert.deepEqual([shared.label, shared.open, shared.spans.length], [`${ended.length} finished`, false, 1])
  const all = lanesOf(failed, run.document, ALL)
  assert.equal(lanes.length, all.length - ended.length + 1)
  assert.ok(lanes.some((lane) => lane.label === `#${last.index + 1}`))
  assert.equal(lanesOf(failed, run.document, new Set([shared.id]), true).length, all.length + 1)
})

test('blocks side by side have lanes of their own, and a folded container shows none inside', () => {
  const view = fold(
    emptyFold(),
    log([
      [0, 'run.started', null],
      [0, 'node.started', 'a'],
      [0, 'node.started', 'b'],
      [9, 'node.succeeded', 'a'],
      [9, 'node.succeeded', 'b'],
    ]),
  )
  assert.deepEqual(
    lanesOf(view, doc, ALL).map((lane) => [lane.label, lane.spans.map((span) => span.node.block)]),
    [
      ['Main', ['a']],
      ['', ['b']],
    ],
  )
  const run = recorded('nested')
  const all = lanesOf(folded(run), run.document, ALL)
  const outer = all.find((lane) => lane.open)!
  const fewer = lanesOf(folded(run), run.document, new Set([outer.id]))
  assert.ok(fewer.length < all.length)
  assert.equal(fewer.find((lane) => lane.id === outer.id)!.open, false)
})

test('the attempts of a block share a lane, and a line joins them', () => {
  const view = fold(
    emptyFold(),
    log([
      [0, 'run.started', null],
      [0, 'node.started', 'a'],
      [1, 'node.failed', 'a', '', { error: { code: 'http_status', message: '' } }],
      [1, 'retry.scheduled', 'a', '', { error: { code: 'http_status', message: '' }, due_ms: 9 }],
      [2, 'node.started', 'b'],
      [3, 'node.succeeded', 'b'],
      [9, 'node.started', 'a', '', { attempt: 2 }],
      [10, 'node.succeeded', 'a', '', { attempt: 2 }],
    ]),
  )
  const lanes = lanesOf(view, doc, ALL)
  assert.deepEqual(
    lanes.map((lane) => lane.spans.map((span) => `${span.node.block}${span.attempt}`)),
    [['a1', 'a2'], ['b1']],
  )
  const [[before, next], ...more] = pausesOf(lanes[0]!.spans) as [[Span, Span], ...unknown[]]
  assert.deepEqual([before.tone, before.attempt, next.tone, next.attempt], ['err', 1, 'ok', 2])
  assert.ok(before.to! < next.from)
  assert.deepEqual([more.length, pausesOf(lanes[1]!.spans).length], [0, 0])
})

test('a recovery is a tear: what was finished and what was under way is counted before it', () => {
  const timeline = new Timeline()
  timeline.append(
    log([
      [0, 'run.started', null],
      [0, 'node.started', 'a'],
      [5, 'node.succeeded', 'a', '', { output: 1 }],
      [6, 'node.started', 'b'],
      [3106, 'run.recovered', null],
      [3106, 'retry.scheduled', 'b', '', { error: { code: 'attempt_lost', message: '' }, due_ms: 3106 }],
    ]),
  )
  assert.deepEqual(timeline.head.tears, [{ seq: 5, at: 3106, lastAt: 6 }])
  assert.deepEqual(takenOver(timeline, 5), { kept: 1, again: 1 })
  assert.deepEqual(timeline.seek(4).tears, [])
})

test('a change names the value before and after', () => {
  const timeline = new Timeline(shapeOf({ ...doc, variables: { n: 1 } } as Document))
  timeline.append(
    log([
      [0, 'run.started', null],
      [1, 'variables.patched', 'a', '', { ops: [['set', '$.n', 2]] }],
      [2, 'node.succeeded', 'b', 'l#0', { output: 'one' }],
      [3, 'node.succeeded', 'b', 'l#1', { output: 'two' }],
    ]),
  )
  assert.deepEqual(changeAt(timeline, 2), { name: 'n', before: '1', after: '2' })
  assert.deepEqual(changeAt(timeline, 3), { name: 'Output', before: null, after: '"one"' })
  assert.deepEqual(changeAt(timeline, 4), { name: 'Output', before: '"one"', after: '"two"' })
  assert.equal(changeAt(timeline, 1), null)
})
