import assert from 'node:assert/strict'
import { test } from 'node:test'
import { amountIn, unitOf, unitsOf, valueFrom } from '../src/forms/fields/duration'
import { baseOf, titleOf } from '../src/forms/fields/schema'

test('what a param counts in', () => {
  assert.equal(baseOf({ title: 'Timeout (seconds)' }), 's')
  assert.equal(baseOf({ title: 'First delay (ms)' }), 'ms')
  assert.equal(baseOf({ title: 'Max concurrency' }), null)
  assert.equal(titleOf('expires_in_s', { title: 'Expires after (seconds)' }), 'Expires after')
})

test('a value is shown in the largest unit that fits', () => {
  const cases: [number, 'ms' | 's', string][] = [
    [604_800, 's', '7 d'],
    [90, 's', '90 s'],
    [300, 's', '5 min'],
    [5400, 's', '90 min'],
    [7200, 's', '2 h'],
    [0.05, 's', '0.05 s'],
    [0, 's', '0 s'],
    [1000, 'ms', '1 s'],
    [1500, 'ms', '1500 ms'],
    [300_000, 'ms', '5 min'],
  ]
  for (const [value, base, text] of cases) {
    const unit = unitOf(value, base, unitsOf(base))
    assert.equal(`${amountIn(unit, value, base)} ${unit}`, text)
    assert.equal(valueFrom(amountIn(unit, value, base), unit, base, false), value)
  }
})

test('a number and its unit as the value of the document', () => {
  assert.equal(valueFrom(7, 'd', 's', false), 604_800)
  assert.equal(valueFrom(0.1, 'h', 's', false), 360)
  assert.equal(valueFrom(1.5, 's', 'ms', true), 1500)
  assert.equal(valueFrom(0.0004, 's', 'ms', true), 0)
})

test('no unit above the maximum', () => {
  assert.deepEqual(unitsOf('s', 60), ['s', 'min'])
  assert.deepEqual(unitsOf('s', 300), ['s', 'min'])
  assert.deepEqual(unitsOf('s'), ['s', 'min', 'h', 'd'])
  assert.deepEqual(unitsOf('s', 0.5), ['s'])
})
