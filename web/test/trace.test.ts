import assert from 'node:assert/strict'
import { test } from 'node:test'
import { errorsOf } from '../src/pages/answer'
import { defaultsOf, fieldsOf, readTyped } from '../src/forms/fields/form'
import { sampleInput } from '../src/pages/importing'
import { ApiError } from '../src/net/api'
import type { WireEvent } from '../src/api/types'
import { timeScale } from '../src/watch/tape/timeScale'
import { fromFirstBlock, segmentsOf } from '../src/watch/trace/bars'
import { parentRow, pathsTo, rowOf, traceIndex, traceRows } from '../src/watch/trace/rows'
import { emptyFold, firstError, fold, shapeOf } from '../src/run'
import { recorded, RUNS, specs } from './help'

const ALL = new Map<string, boolean>()

for (const name of RUNS) {
  const { document, events } = recorded(name)
  const view = fold(emptyFold(shapeOf(document, specs)), events)
  const index = traceIndex(view)
  const open = new Map([...view.scopes.keys()].map((path) => [path, true]))

  test(`${name}: with everything open each node and each scope is one row, below what it is in`, () => {
    const rows = traceRows(index, document, open, new Set())
    assert.deepEqual(rows.map((row) => row.id).sort(), [...view.nodes.keys(), ...view.scopes.keys()].sort())
    for (const [at, row] of rows.entries()) {
      const parent = rows[parentRow(rows, at)]
      if (row.scope) assert.equal(parent?.id, row.scope.container)
      else assert.equal(parent?.id ?? '', row.path)
      if (row.node) assert.equal(rowOf(rows, row.block, row.path), at)
    }
  })

  test(`${name}: bars lie on the axis`, () => {
    const now = events.at(-1)!.at_ms
    const scale = timeScale(events, now)
    for (const row of traceRows(index, document, open, new Set())) {
      for (const each of segmentsOf(row, scale, now))
        assert.ok(each.x >= 0 && each.width >= 0 && each.x + each.width <= 1 + 1e-9, row.id)
    }
  })
}

test('what failed is open to its leaf, and folded away it is found at what holds it', () => {
  const { document, events } = recorded('failing')
  const view = fold(emptyFold(shapeOf(document, specs)), events)
  const leaf = firstError(view)!
  const index = traceIndex(view)
  const rows = traceRows(index, document, ALL, new Set(pathsTo(leaf.path)))
  assert.equal(rows[rowOf(rows, leaf.block, leaf.path)]?.id, leaf.key)
  if (!leaf.path) return
  const shut = traceRows(index, document, new Map([...view.nodes.keys()].map((key) => [key, false])), new Set())
  const at = rowOf(shut, leaf.block, leaf.path)
  assert.ok(at >= 0 && leaf.path.startsWith(shut[at]!.block))
})

test('a search keeps the way to what it finds', () => {
  const { document, events } = recorded('nested')
  const view = fold(emptyFold(shapeOf(document, specs)), events)
  const rows = traceRows(traceIndex(view), document, ALL, new Set(), 'play')
  assert.ok(rows.some((row) => row.block === 'play'))
  assert.ok(rows.every((row) => row.block !== 'tally' && row.block !== 'start'))
  assert.deepEqual(traceRows(traceIndex(view), document, ALL, new Set(), 'no such name'), [])
})

const form = {
  type: 'object',
  required: ['amount'],
  properties: {
    amount: { type: 'number', minimum: 1 },
    count: { type: 'integer' },
    note: { type: 'string' },
    sure: { type: 'boolean', default: true },
    size: { enum: ['s', 2] },
    extra: { type: 'object' },
  },
}

test('a form is read as JSON, what is empty is left out', () => {
  const fields = fieldsOf(form)
  const typed = { ...defaultsOf(fields), amount: '3,5', count: '4', size: '2', extra: '{"a": 1}' }
  assert.deepEqual(readTyped(fields, typed), {
    values: { amount: 3.5, count: 4, sure: true, size: 2, extra: { a: 1 } },
    errors: {},
  })
})

test('each wrong field has its own words', () => {
  const { errors } = readTyped(fieldsOf(form), { amount: '0', count: '1.5', size: 'x', extra: '{' })
  assert.deepEqual(Object.keys(errors).sort(), ['amount', 'count', 'extra', 'size'])
  assert.equal(readTyped(fieldsOf(form), {}).errors.amount, 'Enter a value.')
})

test('the messages of a refusal go to their fields', () => {
  const problem = {
    type: '',
    title: '',
    status: 422,
    code: 'answer_invalid',
    detail: 'no',
    errors: [{ pointer: '/amount', message: 'too small' }],
  }
  assert.deepEqual(errorsOf(new ApiError(problem), fieldsOf(form)), { byField: { amount: 'too small' }, other: '' })
  assert.equal(
    errorsOf(new ApiError({ ...problem, errors: [{ pointer: '/other', message: 'x' }] }), fieldsOf(form)).other,
    'no',
  )
})

test('an example can be run at once', () => {
  assert.deepEqual(sampleInput({ properties: { a: { default: 1 }, b: { examples: [420] }, c: { type: 'string' } } }), {
    a: 1,
    b: 420,
  })
})

test('only rows in a state, and the way to them', () => {
  const { document, events } = recorded('failing')
  const view = fold(emptyFold(shapeOf(document, specs)), events)
  const rows = traceRows(traceIndex(view), document, new Map(), new Set(), '', ['failed', 'handled'])
  const leaves = rows.filter((row) => row.node && row.open === null)
  assert.ok(leaves.length > 0 && leaves.every((row) => row.status === 'failed' || row.status === 'handled'))
  for (const [at, row] of rows.entries()) if (row.depth > 0) assert.ok(parentRow(rows, at) >= 0, row.id)
  assert.ok(
    rows.length <
      traceRows(
        traceIndex(view),
        document,
        new Map([...view.nodes.keys(), ...view.scopes.keys()].map((key) => [key, true])),
        new Set(),
      ).length,
  )
  assert.deepEqual(traceRows(traceIndex(view), document, new Map(), new Set(), '', ['attention']), [])
})

test('b19: the axis begins with the first block, and some seconds of waiting are drawn to scale', () => {
  const event = (seq: number, at: number, type: string): WireEvent => ({
    run: 'r',
    seq,
    at_ms: at,
    type,
    node: 'a',
    block: 'a',
    path: '',
    key: 'a',
    attempt: 1,
    data: {},
  })
  const log = [
    event(1, 0, 'run.started'),
    event(2, 900, 'node.started'),
    event(3, 904, 'node.succeeded'),
    event(4, 904, 'node.started'),
    event(5, 6904, 'node.succeeded'),
  ]
  const scale = timeScale(fromFirstBlock(log), 6904, 60_000)
  assert.equal(scale.at(900), 0)
  assert.deepEqual(scale.gaps, [])
  assert.ok(scale.at(904) < 0.001, 'four milliseconds beside six seconds')
})
