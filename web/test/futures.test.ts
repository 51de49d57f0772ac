import assert from 'node:assert/strict'
import { test } from 'node:test'
import { emptyFold, fold, shapeOf } from '../src/run'
import type { NodeDiff, RunDiff } from '../src/api/schemas'
import { firstDifference, futuresOf, sharedEvents } from '../src/watch/tape/compare'
import { futuresOnAxis, LEFT, type Side } from '../src/watch/tape/futures'
import { recorded, RUNS, specs } from './help'

const WIDTH = 1100

for (const name of RUNS)
  test(`${name}: two runs lie on one axis, the same up to where they part`, () => {
    const run = recorded(name)
    const side = (events: typeof run.events, split: number): Side => ({
      view: fold(emptyFold(shapeOf(run.document, specs)), events),
      log: events,
      doc: run.document,
      split,
    })
    const half = Math.floor(run.events.length / 2)
    for (const split of [0, half, run.events.length]) {
      const futures = futuresOnAxis(
        side(run.events.slice(0, Math.max(split, half + 1)), split),
        side(run.events, split),
        WIDTH,
      )
      for (const { xs } of [futures.before, futures.now]) {
        for (let i = 1; i < xs.length; i++) assert.ok(xs[i]! >= xs[i - 1]!, `event ${i + 1}`)
        assert.ok(xs.every((x) => x >= LEFT - 1 && x <= WIDTH))
      }
      assert.deepEqual([...futures.before.xs.slice(0, split)], [...futures.now.xs.slice(0, split)])
      for (const row of futures.shared) for (const span of row) assert.ok(span.to !== null && span.to <= split)
      for (const row of futures.now.rows) for (const span of row) assert.ok(span.from > split)
    }
  })

const ended = { status: 'succeeded', attempt: 1, route: 'out', error: null }
const node = (key: string, output: NodeDiff['output'], route = 'out'): NodeDiff => ({
  key,
  a: ended,
  b: { ...ended, route },
  output,
  more: false,
})
const event = (seq: number, key: string) => ({ seq, type: 'node.succeeded', key, attempt: 1, data: {}, output: null })
const same: RunDiff = {
  a: { run: 'a', workflow: 'x', version: 1, status: 'succeeded', seq: 9 },
  b: { run: 'b', workflow: 'x', version: 1, status: 'succeeded', seq: 9 },
  same: true,
  same_plan: true,
  diverged: null,
  nodes: [],
  only_a: [],
  only_b: [],
  equal: 3,
  differing: 0,
  input: [],
  output: [],
}

test('the first difference is of the block where the two part', () => {
  assert.equal(firstDifference(same, null), null)
  const value = [{ pointer: '/amount', a: '84', b: '20' }]
  const diff = {
    ...same,
    diverged: { a: event(7, 'refund'), b: event(5, 'refund'), fields: ['output'] },
    nodes: [node('other', [{ pointer: '', a: '1', b: '2' }]), node('refund', value)],
  }
  assert.deepEqual(firstDifference(diff, null), { name: 'refund.amount', before: '84', now: '20', seqs: [7, 5] })
  assert.deepEqual(sharedEvents(diff, new Array(9), new Array(9)), [6, 4])
  assert.deepEqual(sharedEvents(same, new Array(9), new Array(8)), [9, 8])
  const branch = { ...diff, nodes: [node('if@l#1', [], 'no')] }
  assert.equal(firstDifference(branch, null)!.now, 'no')
})

test('rows that say nothing of either run are left out', () => {
  const run = recorded('failing')
  const view = fold(emptyFold(shapeOf(run.document, specs)), run.events)
  const rows = futuresOf(view, view, [run.events[0]!.at_ms, run.events[0]!.at_ms], 2, run.document).map(
    ([name]) => name,
  )
  assert.deepEqual(rows, ['Result', 'Took since', 'Shared'])
})
