import assert from 'node:assert/strict'
import { test } from 'node:test'
import { difference, same } from '../src/run/difference'
import { effectIn, filledWith } from '../src/edit/sheet/effect'
import { fieldsSoFar } from '../src/run/talk'

const marks = (before: unknown, after: unknown): string[] =>
  difference(before as never, after as never).lines.map(
    (line) => `${line.mark}${'  '.repeat(line.depth)}${line.key} ${line.text}`,
  )

test('a difference names only what is not the same, at its place', () => {
  assert.deepEqual(
    marks(
      { status: 409, body: { code: 'sold_out', free: 0, sku: 'LN' } },
      { status: 409, body: { code: 'held', free: 0, sku: 'LN', holder: 'A' } },
    ),
    ['=status 409', '=body ', '-  code "sold_out"', '+  code "held"', '=  free 0', '=  sku "LN"', '+  holder "A"'],
  )
  assert.deepEqual(marks({ headers: { a: 1, b: 2 }, x: 1 }, { headers: { a: 1, b: 2 }, x: 2 }), [
    '=headers 2 values',
    '-x 1',
    '+x 2',
  ])
  assert.deepEqual(marks([1, 2], [1, 3, 4]), ['=0 1', '-1 2', '+1 3', '+2 4'])
  assert.deepEqual(marks('a', { b: 1 }), ['- "a"', '+ ', '+  b 1'])
})

test('values are the same by what they say', () => {
  assert.equal(same({ a: [1, { b: null }] }, { a: [1, { b: null }] }), true)
  assert.equal(same({ a: 1 }, { a: 1, b: undefined as never }), false)
  assert.equal(same([1], { 0: 1 } as never), false)
})

test('fields of an answer are read while it is written', () => {
  assert.deepEqual(fieldsSoFar('{"reply": "It is la'), { reply: 'It is la' })
  assert.deepEqual(fieldsSoFar('{"reply": "late", "order": 10'), { reply: 'late', order: 10 })
  assert.deepEqual(fieldsSoFar('{"reply": "late", "or'), { reply: 'late' })
  assert.deepEqual(fieldsSoFar('{"reply": "late", "lines": [{"sku": "A"'), { reply: 'late', lines: [{ sku: 'A' }] })
  assert.deepEqual(fieldsSoFar('{"reply": "say \\"yes\\"", "n":'), { reply: 'say "yes"' })
  assert.deepEqual(fieldsSoFar('{"done": true} and more'), { done: true })
  assert.equal(fieldsSoFar('no object'), null)
})

test('what a tool would send has its arguments, encoded in an address', () => {
  const fill = filledWith({ number: '10/42', amount: 15 })
  assert.deepEqual(
    effectIn('http', { method: 'post', url: 'https://shop.example/refund/{{number}}' }, undefined, fill),
    {
      verb: 'sends',
      what: 'POST https://shop.example/refund/10%2F42',
      rest: ' for real',
    },
  )
  assert.equal(effectIn('http', { url: 'https://shop.example/' }, undefined, fill).verb, 'asks')
  assert.equal(effectIn('email', { to: 'ada@example.org' }, undefined, fill).what, 'an email to ada@example.org')
})
