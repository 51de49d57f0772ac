// Rows of a file, and sums of candidates.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { RunReplay } from '../src/api/schemas'
import { nameOf, round, sumOf } from '../src/edit/evaluate/play'
import { rowsOf } from '../src/edit/evaluate/rows'

test('columns are fields of the input, but expected and pins', () => {
  assert.deepEqual(rowsOf('\uFEFFwhat,zip,expected,pin.page\r\n"a, ""b""\nc",01234,x,"[1]"\r\n\r\nsofa,,,\r\n'), [
    { input: { what: 'a, "b"\nc', zip: '01234' }, expected: 'x', pins: { page: [1] } },
    { input: { what: 'sofa' }, expected: null, pins: {} },
  ])
  assert.deepEqual(rowsOf('input\n"{""a"": 1}"\nplain'), [
    { input: { a: 1 }, expected: null, pins: {} },
    { input: 'plain', expected: null, pins: {} },
  ])
})

test('what is wrong with a file names the row', () => {
  assert.throws(() => rowsOf('what\n'), /no rows/)
  assert.throws(() => rowsOf('what\na,b'), /Row 2 has more cells/)
  assert.throws(() => rowsOf('what\na\n{x'), /Row 3, column what/)
  assert.throws(() => rowsOf(`what\n${'a\n'.repeat(1001)}`), /1001 rows/)
})

const run = (value: number | null, cost: number | null, result: RunReplay['result'] = 'played'): RunReplay => ({
  run: '1',
  workflow: 'w',
  version: null,
  created_at_ms: 0,
  before: 'queued',
  result,
  reason: '',
  now: 'succeeded',
  way: null,
  blocks: {},
  differences: [],
  used: { cost_usd: cost, tokens: 10, ms: 5, calls: 1 },
  recorded: null,
  score: { value, reason: '', output: '', difference: null },
})

test('a mean counts what is scored, and a sum of costs has all prices or none', () => {
  const sum = sumOf([run(1, 0.1), run(0.5, 0.2), run(null, 0, 'not_called')])
  assert.deepEqual(sum, { score: 0.75, scored: 2, cost: 0.3, ms: 15, tokens: 30, notCalled: 1 })
  assert.equal(sumOf([run(1, 0.1), run(1, null)]).cost, null)
  assert.equal(sumOf([]).score, null)
  assert.equal(round(0.1 + 0.2), 0.3)
  assert.equal(nameOf({ version: 3, model: 'dev:a' }), 'Version 3, dev:a')
  assert.equal(nameOf({ version: null, model: '' }), 'Draft')
})
