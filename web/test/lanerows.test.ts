// The rows of a lane, and the colours of its code.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { highlighted } from '../src/pages/lane/python'
import { rowsOf, shownText } from '../src/pages/lane/rows'
import { threadsOf, type LaneItem } from '../src/run/lane'

const item = (n: number, group = '', phase = 'body'): LaneItem => ({
  n,
  phase,
  group,
  kind: 'step',
  name: 'flow.one',
  inputHash: '',
  effect: 'none',
  attempt: 1,
  status: 'succeeded',
  times: 1,
  startedAt: 0,
  endedAt: 0,
  from: n,
  to: n,
  seq: n,
  usage: {},
  cost: null,
  error: null,
  began: {},
  dueAt: null,
  line: 1,
  task: 0,
  above: 0,
  shown: null,
  wait: null,
})
const shapes = (items: LaneItem[]): string[] =>
  rowsOf(items).map((row) =>
    row.kind === 'item' ? `${row.item.n}${row.chip}` : row.kind === 'band' ? row.label : '--',
  )

test('calls of a group are below its band, also of groups in it', () => {
  assert.deepEqual(shapes([item(1), item(2, 'pay'), item(3, 'pay/card'), item(4, 'pay'), item(5)]), [
    '1',
    'pay',
    '2',
    'card',
    '3',
    '4',
    '5',
  ])
})

test('groups whose calls alternate are named in each row', () => {
  assert.deepEqual(shapes([item(1, 'ship/a'), item(2, 'ship/b'), item(3, 'ship/a'), item(4, 'ship/b')]), [
    'ship',
    '1a',
    '2b',
    '3a',
    '4b',
  ])
})

test('what is undone after a cancel is below a line', () => {
  assert.deepEqual(shapes([item(1, 'pay'), item(2, 'pay', 'undo')]), ['pay', '1', '--', 'pay', '2'])
})

test('an input in a line', () => {
  assert.equal(shownText({ ...item(1), shown: { order: '7', part: 0 } }), 'order="7", part=0')
  assert.equal(shownText({ ...item(1), shown: '{"note":"xx…' }), '{"note":"xx…')
})

test('a task is drawn as long as those that it began', () => {
  const task = (task: number, above: number, from: number, until: number | null) => ({ task, above, from, until })
  const [main, one] = threadsOf([task(0, 0, 5, 6), task(1, 0, 2, 9), task(2, 1, 3, null)])
  assert.deepEqual([main!.from, main!.until, one!.until], [2, null, null])
})

test('texts that span lines, and nothing else is remembered', () => {
  const parts = highlighted(['x = """one # two', 'if three', 'four""" + f("a")  # five', 'return 6'])
  assert.deepEqual(parts, [
    [
      ['', 'x = '],
      ['text', '"""one # two'],
    ],
    [['text', 'if three']],
    [
      ['text', 'four"""'],
      ['', ' + f('],
      ['text', '"a"'],
      ['', ')  '],
      ['note', '# five'],
    ],
    [
      ['word', 'return'],
      ['', ' '],
      ['number', '6'],
    ],
  ])
})
