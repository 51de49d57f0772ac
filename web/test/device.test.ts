import assert from 'node:assert/strict'
import { test } from 'node:test'
import { deviceName } from '../src/pages/settings/device'

const WEBKIT = 'AppleWebKit/537.36 (KHTML, like Gecko)'
const AGENTS: readonly (readonly [string, string])[] = [
  [`Mozilla/5.0 (X11; Linux x86_64) ${WEBKIT} Chrome/140.0.0.0 Safari/537.36`, 'Chrome on Linux'],
  [`Mozilla/5.0 (Windows NT 10.0) ${WEBKIT} Chrome/140.0 Safari/537.36 Edg/140.0`, 'Edge on Windows'],
  ['Mozilla/5.0 (Macintosh; Intel Mac OS X 14.0; rv:130.0) Gecko/20100101 Firefox/130.0', 'Firefox on macOS'],
  ['Mozilla/5.0 (iPhone; CPU iPhone OS 18_0 like Mac OS X) Version/18.0 Safari/604.1', 'Safari on iPhone'],
  ['curl/8.5', 'curl/8.5'],
  ['', 'Unknown'],
]

test('the name of a browser', () => {
  for (const [agent, name] of AGENTS) assert.equal(deviceName(agent), name)
})
