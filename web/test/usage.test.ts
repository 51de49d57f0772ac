import assert from 'node:assert/strict'
import test from 'node:test'
import type { SpentView } from '../src/api/schemas'
import { barsOf, costText, dayOf, daysBefore, daysIn, isDay } from '../src/pages/usage'

const spent = (key: string, cost: string | null, tokens = 10): SpentView => ({
  key,
  calls: 1,
  unpriced: cost === null ? 1 : 0,
  input_tokens: tokens,
  cached_tokens: 0,
  cache_write_tokens: 0,
  output_tokens: 0,
  reasoning_tokens: 0,
  cost,
})

test('days', () => {
  assert.equal(daysBefore('2026-03-01', 1), '2026-02-28')
  assert.equal(daysBefore('2026-03-01', -1), '2026-03-02')
  assert.equal(daysIn('2026-02-01', '2026-02-28'), 28)
  assert.equal(dayOf(Date.parse('2026-11-23T23:59:59Z')), '2026-11-23')
  assert.deepEqual(['2026-11-23', '2026-13-23', 'x', null].map(isDay), [true, false, false, false])
})

test('each day has a bar, also one without any use', () => {
  const bars = barsOf('2026-11-01', '2026-11-04', [spent('2026-11-02', '0.5'), spent('2026-11-04', '1.00')])
  assert.deepEqual(
    bars.map((bar) => [bar.from, bar.height]),
    [
      ['2026-11-01', 0],
      ['2026-11-02', 0.5],
      ['2026-11-03', 0],
      ['2026-11-04', 1],
    ],
  )
})

test('without prices bars are of tokens', () => {
  const bars = barsOf('2026-11-01', '2026-11-02', [spent('2026-11-01', null, 5), spent('2026-11-02', null, 20)])
  assert.deepEqual(
    bars.map((bar) => bar.height),
    [0.25, 1],
  )
})

test('a bar of a long period is of several days', () => {
  const bars = barsOf('2025-01-01', '2025-12-31', [spent('2025-12-31', '1.00')])
  assert.ok(bars.length <= 92)
  assert.deepEqual([bars[0]!.from, bars.at(-1)!.to, bars.at(-1)!.height], ['2025-01-01', '2025-12-31', 1])
})

test('what has no price is not 0', () => {
  assert.equal(costText({ calls: 1, unpriced: 1, cost: null }), 'no price known')
  assert.equal(costText({ calls: 1, unpriced: 0, cost: '0.00' }), '$0.00')
  assert.equal(costText({ calls: 3, unpriced: 1, cost: '0.0018' }), '$0.0018 and 1 call without a price')
})
