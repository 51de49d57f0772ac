import assert from 'node:assert/strict'
import { test } from 'node:test'
import { cronWords } from '../src/panels/triggers/cron'

test('cron in words', () => {
  const words: [string, string | null][] = [
    ['* * * * *', 'every minute'], ['*/15 * * * *', 'every 15 minutes'], ['0 * * * *', 'every hour'], ['5 * * * *', '5 min past every hour'], ['0 */2 * * *', 'every 2 hours'],
    ['0 9 * * MON-FRI', 'at 09:00 on weekdays'], ['30 8,17 * * 1-5', 'at 08:30 and 17:30 on weekdays'], ['0 0 1 * *', 'at 00:00 on the 1st'], ['0 6 L * *', 'at 06:00 on the last day of the month'],
    ['0 12 * * 0', 'at 12:00 on Sundays'], ['0 12 * * 7,sat', 'at 12:00 on weekends'], ['15 10 2,22,13 6 *', 'at 10:15 on the 2nd, 13th and 22nd in June'], ['0 0 1 * MON', 'at 00:00 on the 1st or Mondays'],
    ['0 12 * * *', 'at 12:00'], ['0 9 * JAN,MAR *', 'at 09:00 in January and March'],
    ['@daily', 'at 00:00'], ['@weekly', 'at 00:00 on Sundays'], [' @Hourly', 'every hour'], ['@yearly', 'at 00:00 on the 1st in January'],
  ]
  for (const [expression, text] of words) assert.equal(cronWords(expression), text, expression)
})

test('what has no simple words gets none', () => {
  for (const odd of ['', '@reboot', '0 9 * *', 'x * * * *', '0 9 * * MON#2', '0 9 LW * *', '61 * * * *', '5-3 * * * *', '1/5 * * * *', '0 9 * 13 *', '0 9 32 * *', '* 9 * * *']) assert.equal(cronWords(odd), null, odd)
})
