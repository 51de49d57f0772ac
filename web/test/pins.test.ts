import assert from 'node:assert/strict'
import { beforeEach, test } from 'node:test'
import { isPinned, PINS_MAX, pinsOf, togglePin, withPins } from '../src/watch/run/pins'

const storage = new Map<string, string>()
Object.defineProperty(globalThis, 'localStorage', {
  value: {
    getItem: (key: string) => storage.get(key) ?? null,
    setItem: (key: string, text: string) => storage.set(key, text),
  },
  configurable: true,
})

beforeEach(() => storage.clear())

test('a pinned input comes first and once, and stays when others come', () => {
  assert.equal(togglePin('d', { a: 1 }), true)
  assert.deepEqual(withPins('d', [{ b: 2 }, { a: 1 }]), [{ a: 1 }, { b: 2 }])
  assert.equal(isPinned('d', { a: 1 }), true)
  assert.deepEqual(withPins('other', [{ b: 2 }]), [{ b: 2 }])
  assert.equal(togglePin('d', { a: 1 }), false)
  assert.deepEqual(pinsOf('d'), [])
})

test('pins have a bound, and storage that holds junk is none', () => {
  for (let n = 0; n < PINS_MAX + 5; n++) togglePin('d', n)
  assert.deepEqual([pinsOf('d').length, pinsOf('d')[0]], [PINS_MAX, PINS_MAX + 4])
  for (const junk of ['not json', 'null', '7', '[]', '{"d": 5}']) {
    storage.set('weft-pins', junk)
    assert.deepEqual(pinsOf('d'), [])
  }
})
