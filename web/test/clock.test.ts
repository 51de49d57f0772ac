import assert from 'node:assert/strict'
import { test } from 'node:test'
import { api } from '../src/net/api'
import { learn, serverNow } from '../src/net/clock'

const HOUR = 3_600_000
/** An answer made `age` ms after its Date, by a server whose clock is `ahead`; it took `took` ms each way. */
function hear(ahead: number, took = 100, age = 400): void {
  const asked = Date.now()
  learn(new Date(Math.floor((asked + took + ahead) / 1000) * 1000 - age).toUTCString(), asked, asked + 2 * took)
}
const off = (): number => serverNow() - Date.now()
const isAbout = (ahead: number): void => assert.ok(Math.abs(off() - ahead) <= 3000, `${off()} is not about ${ahead}`)

test('clocks that agree, as far as whole seconds tell, are left alone', () => {
  for (const took of [0, 100, 30_000]) {
    hear(0, took)
    isAbout(0)
  }
  learn(null, 0, 0)
  learn('yesterday', 0, 0)
  isAbout(0)
})

test('a clock that is wrong is reckoned with, and no more when it is set', () => {
  for (const ahead of [HOUR, -HOUR, 0, 24 * HOUR, 0]) {
    hear(ahead)
    isAbout(ahead)
    const known = off()
    for (const age of [0, 900]) {
      hear(ahead, 50, age)
      isAbout(ahead)
    }
    if (ahead === 0) assert.ok(Math.abs(known) < 100)
  }
})

test('every answer tells the time', async () => {
  globalThis.fetch = (() =>
    Promise.resolve(
      new Response('{"workflows": []}', { headers: { Date: new Date(Date.now() + HOUR).toUTCString() } }),
    )) as typeof fetch
  await api.workflows()
  isAbout(HOUR)
})
