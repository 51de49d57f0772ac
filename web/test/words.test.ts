import assert from 'node:assert/strict'
import test from 'node:test'
import { notifiedText } from '../src/pages/notified'
import { ticks } from '../src/pages/ticks'

const START = new Date(2026, 10, 29, 10, 0, 0, 250).getTime()
const labels = (ms: number, most = 6): string[] => ticks(START, START + ms, most).map(({ label }) => label)

test('an axis has round times, each label once', () => {
  assert.deepEqual(labels(3_000, 3), ['10:00:01', '10:00:02', '10:00:03'])
  assert.deepEqual(labels(1_500, 3), ['10:00:00.5', '10:00:01.0', '10:00:01.5'])
  assert.deepEqual(labels(600), ['10:00:00.3', '10:00:00.4', '10:00:00.5', '10:00:00.6', '10:00:00.7', '10:00:00.8'])
  assert.deepEqual(labels(50 * 60_000), ['10:10', '10:20', '10:30', '10:40', '10:50'])
  assert.deepEqual(labels(50 * 60_000, 3), ['10:30'])
  assert.deepEqual(labels(30 * 3_600_000, 3), ['29 Nov, 12:00', '30 Nov, 00:00', '30 Nov, 12:00'])
  assert.deepEqual(labels(4 * 86_400_000), ['30 Nov', '1 Dec', '2 Dec', '3 Dec'])
})

test('no axis of any length repeats a label or has too many', () => {
  for (let ms = 120; ms < 3e10; ms = Math.ceil(ms * 1.37)) {
    const found = labels(ms)
    assert.ok(found.length > 0 && found.length <= 6, `${ms}: ${found.join()}`)
    assert.equal(new Set(found).size, found.length, `${ms}: ${found.join()}`)
  }
})

test('the outcome of a message is written once', () => {
  const mail = { to: 'ada@example.org', channel: 'email', attempts: 1 }
  const text = (status: string, error: string | null = null): string => notifiedText({ ...mail, status, error })
  assert.equal(text('sent'), 'Sent to ada@example.org by email')
  assert.equal(text('sent', 'the first one failed'), 'Sent to ada@example.org by email')
  assert.equal(text('failed', 'no such host'), 'Not sent to ada@example.org by email: no such host')
  assert.equal(text('pending'), 'Being sent to ada@example.org by email')
  assert.equal(
    text('pending', 'no such host'),
    'Being sent to ada@example.org by email. The last attempt failed: no such host',
  )
  assert.equal(text('cancelled'), 'No longer sent to ada@example.org by email')
})
