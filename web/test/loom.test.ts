import assert from 'node:assert/strict'
import test from 'node:test'
import type { Loom, LoomRun } from '../src/api/schemas'
import type { Document } from '../src/api/types'
import { indexOf, NO_SPECS } from '../src/document/document'
import { bundleOf, placesOf, threads } from '../src/pages/loom/place'
import { binsOf, distribution, quantile, runsPerThread, threadsOf, totalsOf } from '../src/pages/loom/totals'

const run = (id: string, at: number, more: Partial<LoomRun> = {}): LoomRun => ({
  id,
  status: 'succeeded',
  created_at_ms: at,
  ...more,
})
const LOOM: Loom = {
  blocks: ['start', 'pay', 'each'],
  handles: ['out', 'error'],
  complete: true,
  runs: [
    run('a', 100, {
      uses: [
        [0, 1, 0, 0, 2],
        [1, 2, 0, 0, 40],
      ],
      exits: [
        [0, 0, 1],
        [1, 0, 2],
      ],
      cells: [
        [2, 0, 5],
        [2, 1, 9],
      ],
    }),
    run('b', 200, { status: 'running', uses: [[1, 0, 0, 1, 0]], exits: [[0, 0, 1]] }),
    run('c', 300, { status: 'failed', uses: [[1, 1, 1, 0, 10]], exits: [[1, 1, 1]] }),
  ],
}

test('blocks, exits and cells are summed over the runs', () => {
  const totals = totalsOf(LOOM)
  assert.deepEqual(totals.blocks.get('pay'), { runs: 3, executions: 3, failed: 1, open: 1, times: [10, 20] })
  assert.deepEqual(
    totals.exits.get('start out')!.runs.map(({ id }) => id),
    ['a', 'b'],
  )
  assert.equal(totals.exits.get('start out')!.open, 1)
  assert.deepEqual(
    totals.cells.get('each')!.map(({ state, ms }) => [state, ms]),
    [
      [0, 5],
      [1, 9],
    ],
  )
})

test('a brush takes the runs of its time', () => {
  const totals = totalsOf(LOOM, [200, 300])
  assert.deepEqual(
    totals.runs.map(({ id }) => id),
    ['b'],
  )
  assert.equal(totals.exits.get('pay error'), undefined)
  assert.equal(totals.blocks.get('pay')!.open, 1)
})

test('the thickest edge has at most 40 threads, and no run is without one', () => {
  assert.deepEqual([1, 40, 41, 268, 1000].map(runsPerThread), [1, 1, 2, 10, 30])
  assert.equal(threadsOf(1, 30), 1)
  assert.equal(threadsOf(0, 30), 0)
})

test('times are in bins of their logarithm', () => {
  const { counts, median } = distribution([1, 1, 2, 1000, 60_000], 10)
  assert.equal(
    counts.reduce((sum, count) => sum + count, 0),
    5,
  )
  assert.equal(counts[9], 1)
  assert.equal(median, 0)
  assert.equal(quantile([1, 2, 3, 4], 0.5), 3)
  assert.deepEqual(distribution([], 3), { counts: [0, 0, 0], median: -1 })
})

test('every run is in one bin of time', () => {
  const bins = binsOf(LOOM.runs, 4)
  assert.deepEqual(
    bins.map((bin) => [bin.ended, bin.open, bin.failed]),
    [
      [1, 0, 0],
      [0, 1, 0],
      [0, 0, 0],
      [0, 0, 1],
    ],
  )
  assert.deepEqual(binsOf([], 4), [])
})

test('threads of a bundle lie beside each other and end at the block', () => {
  const doc: Document = {
    format: 'weft/1',
    blocks: { start: { type: 'start', at: [0, 0] }, pay: { type: 'set', at: [400, 160] } },
    edges: [{ source: 'start', target: 'pay' }],
  }
  const places = placesOf(doc, NO_SPECS)
  const bundle = bundleOf(indexOf(doc).edges[0]!, places, NO_SPECS)!
  const ends = threads(bundle, 3, 0, 3)
    .split('M')
    .slice(1)
    .map((path) => Number(path.split(' ').at(-1)!.split('H')[0]))
  const middle = places.get('pay')!.y + places.get('pay')!.h / 2
  assert.deepEqual(ends, [middle - 1.55, middle, middle + 1.55])
})
