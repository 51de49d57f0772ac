// Chips and figures of replays.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { NodeReplay, RunReplay } from '../src/api/schemas'
import { chipOf, countsOf, pairOf, short } from '../src/run/replays'

const node = (block: string, more: Partial<NodeReplay> = {}): NodeReplay => ({
  key: block,
  block,
  result: 'changed',
  value: null,
  would: '',
  sends: false,
  answered: false,
  error: '',
  ...more,
})

const run = (more: Partial<RunReplay> = {}): RunReplay => ({
  run: 'r',
  workflow: 'w',
  version: 1,
  created_at_ms: 0,
  before: 'succeeded',
  result: 'same',
  reason: '',
  now: 'succeeded',
  way: null,
  blocks: { a: 'same' },
  differences: [],
  used: { cost_usd: 0, tokens: 0, ms: 0, calls: 0 },
  recorded: null,
  score: null,
  ...more,
})

test('a block that is the same in all runs', () => {
  assert.deepEqual(chipOf('a', [run(), run()])?.text, '2 of 2 same')
  assert.equal(chipOf('a', [run()])?.tone, 'ok')
  assert.equal(chipOf('b', [run()]), null)
})

test('the worst of all runs counts, and the value that would change is shown', () => {
  const value = { pointer: '/result', a: '90', b: '"a text that is very long"' }
  const changed = run({ blocks: { a: 'changed' }, differences: [node('a', { value })] })
  assert.deepEqual(chipOf('a', [run(), changed]), {
    tone: 'thread',
    text: '90 → a text that is …',
    title: '/result: 90 → "a text that is very long"',
  })
  assert.equal(chipOf('a', [changed, changed])?.text, '90 → a text that is …, 2 runs')
  const calls = run({ blocks: { a: 'would_call' }, differences: [node('a', { would: 'send a mail', sends: true })] })
  assert.deepEqual(chipOf('a', [run(), changed, calls]), {
    tone: 'wait',
    text: '1 would send',
    title: 'would send a mail',
  })
  const way = { key: 'a', block: 'a', before: ['Charge'], now: ['Ask'] }
  assert.deepEqual(chipOf('a', [run({ way, blocks: { a: 'changed' }, differences: [node('a')] })]), {
    tone: 'thread',
    text: '1 other branch',
    title: 'Charge → Ask',
  })
  const failing = run({ blocks: { a: 'changed' }, differences: [node('a', { error: 'no' })] })
  assert.deepEqual(chipOf('a', [calls, failing]), { tone: 'err', text: '1 would fail', title: 'no' })
  assert.equal(chipOf('a', [run(), run({ blocks: { a: 'not_reached' } })])?.text, '1 not reached')
  assert.equal(chipOf('a', [run(), run({ blocks: { a: 'unknown' } })])?.text, '1 unknown')
})

test('figures, and values that are short', () => {
  assert.deepEqual(countsOf([run(), run({ result: 'failed' }), run()]), {
    same: 2,
    other_way: 0,
    would_call: 0,
    changed: 0,
    failed: 1,
    not_replayed: 0,
    played: 0,
    not_called: 0,
  })
  assert.deepEqual(pairOf('"http://example.com/a/one"', '"http://example.com/a/two"'), ['…m/a/one', '…m/a/two'])
  assert.deepEqual(pairOf('1', '2'), ['1', '2'])
  assert.equal(short(null), 'nothing')
  assert.equal(short('"b"'), 'b')
  assert.equal(short('{"a":1}'), '{"a":1}')
})
