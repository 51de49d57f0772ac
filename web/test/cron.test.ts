import assert from 'node:assert/strict'
import { test } from 'node:test'
import { cronWords } from '../src/forms/triggers/cron'
import { planOf, readPlan, writePlan, type Plan } from '../src/forms/triggers/plan'

test('cron in words', () => {
  const words: [string, string | null][] = [
    ['* * * * *', 'Every minute'],
    ['*/15 * * * *', 'Every 15 minutes'],
    ['0 * * * *', 'Every hour'],
    ['5 * * * *', '5 min past every hour'],
    ['0 */2 * * *', 'Every 2 hours'],
    ['0 9 * * MON-FRI', 'At 09:00 on weekdays'],
    ['30 8,17 * * 1-5', 'At 08:30 and 17:30 on weekdays'],
    ['0 0 1 * *', 'At 00:00 on the 1st'],
    ['0 6 L * *', 'At 06:00 on the last day of the month'],
    ['0 12 * * 0', 'At 12:00 on Sundays'],
    ['0 12 * * 7,sat', 'At 12:00 on weekends'],
    ['15 10 2,22,13 6 *', 'At 10:15 on the 2nd, 13th and 22nd in June'],
    ['0 0 1 * MON', 'At 00:00 on the 1st or Mondays'],
    ['0 12 * * *', 'At 12:00'],
    ['0 9 * JAN,MAR *', 'At 09:00 in January and March'],
    ['@daily', 'At 00:00'],
    ['@weekly', 'At 00:00 on Sundays'],
    [' @Hourly', 'Every hour'],
    ['@yearly', 'At 00:00 on the 1st in January'],
    ['*/15 9-17 * * MON-FRI', 'Every 15 minutes from 09:00 to 17:45 on weekdays'],
    ['* 9 * * *', 'Every minute from 09:00 to 09:59'],
    ['0 9 * * MON#2', 'At 09:00 on the second Monday of the month'],
    ['0 9 * * 5L', 'At 09:00 on the last Friday of the month'],
    ['0 9 LW * *', 'At 09:00 on the last weekday of the month'],
  ]
  for (const [expression, text] of words) assert.equal(cronWords(expression), text, expression)
})

test('what has no simple words gets none', () => {
  for (const odd of [
    '',
    '@reboot',
    '0 9 * *',
    'x * * * *',
    '61 * * * *',
    '5-3 * * * *',
    '1/5 * * * *',
    '0 9 * 13 *',
    '*/45 * * * *',
    '0 */5 * * *',
    '*/0 * * * *',
    '*/15 9,12 * * *',
    '0 9 * * MON#6',
    '0 9 * * XYZ#1',
    '0 9 32 * *',
  ])
    assert.equal(cronWords(odd), null, odd)
})

test('the usual schedules are read and written', () => {
  const plans: [string, Plan][] = [
    ['* * * * *', { kind: 'minutes', every: 1 }],
    ['*/15 * * * *', { kind: 'minutes', every: 15 }],
    ['5 * * * *', { kind: 'hours', every: 1, minute: 5 }],
    ['0 */2 * * *', { kind: 'hours', every: 2, minute: 0 }],
    ['30 7 * * *', { kind: 'daily', at: '07:30' }],
    ['0 9 * * MON-FRI', { kind: 'weekdays', at: '09:00' }],
    ['0 9 * * MON,WED,SUN', { kind: 'weekly', days: [0, 1, 3], at: '09:00' }],
    ['0 0 1 * *', { kind: 'monthly', date: 1, at: '00:00' }],
    ['15 6 L * *', { kind: 'monthly', date: 'L', at: '06:15' }],
  ]
  for (const [text, plan] of plans) {
    assert.deepEqual(readPlan(text), plan, text)
    assert.equal(writePlan(plan), text)
  }
  assert.deepEqual(readPlan('0 9 * * 1-5'), { kind: 'weekdays', at: '09:00' })
  assert.deepEqual(readPlan(' 0 9  * * 7 '), { kind: 'weekly', days: [0], at: '09:00' })
})

test('other schedules stay text', () => {
  for (const text of [
    '',
    '@daily',
    '*/7 * * * *',
    '0 9 1 * MON',
    '0 9 * JAN *',
    '0 9,17 * * *',
    '0 9 * * MON#2',
    '0 0 0 * *',
    '60 9 * * *',
    '0 24 * * *',
    '0 9 * *',
    '0 9 32 * *',
    '*/15 9 * * *',
  ])
    assert.equal(readPlan(text), null, text)
})

test('another kind of schedule has the time of the old one', () => {
  assert.equal(writePlan(planOf('weekly', readPlan('30 7 * * MON-FRI'))), '30 7 * * MON,TUE,WED,THU,FRI')
  assert.equal(writePlan(planOf('monthly', readPlan('30 7 * * *'))), '30 7 1 * *')
  assert.equal(writePlan(planOf('daily', null)), '0 9 * * *')
})
