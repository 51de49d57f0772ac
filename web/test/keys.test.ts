import assert from 'node:assert/strict'
import { test } from 'node:test'
import { keyOfEvent, KEYS, keyText, matchesKeys } from '../src/keys'
import { rowsOf } from '../src/ui/tree'
import { fuzzy } from '../src/ui/Listbox'
import { applyOps, parseVariablePath } from '../src/document/variables'
import { cpuMs } from './help'

const press = (key: string, more: Partial<KeyboardEvent> = {}) => ({
  key,
  code: '',
  shiftKey: false,
  altKey: false,
  ctrlKey: false,
  metaKey: false,
  ...more,
})

test('no two shortcuts of one place are the same', () => {
  for (const where of ['app', 'canvas', 'tape']) {
    const keys = KEYS.filter((row) => row.where === where || row.where === 'app').flatMap((row): string[] => [
      ...row.keys,
    ])
    assert.equal(new Set(keys).size, keys.length, where)
  }
})

test('key presses', () => {
  const all = ['app', 'canvas'] as const
  assert.equal(keyOfEvent(press('/'), all), 'add')
  assert.equal(keyOfEvent(press('n'), all), 'add')
  assert.equal(keyOfEvent(press('z', { ctrlKey: true }), all), 'undo')
  assert.equal(keyOfEvent(press('Z', { ctrlKey: true, shiftKey: true }), all), 'redo')
  assert.equal(keyOfEvent(press('ArrowLeft', { shiftKey: true, altKey: true }), all), 'selectUpstream')
  assert.equal(keyOfEvent(press('.'), all), 'nextEvent')
  assert.equal(keyOfEvent(press('>', { shiftKey: true, code: 'Period' }), all), 'nextBlock')
  assert.equal(keyOfEvent(press('.', { ctrlKey: true }), all), 'cancel')
  assert.equal(keyOfEvent(press('?', { shiftKey: true }), all), 'shortcuts')
  assert.equal(keyOfEvent(press('!', { shiftKey: true, code: 'Digit1' }), all), 'fitSelection')
  assert.equal(keyOfEvent(press('+', { shiftKey: true }), all), 'zoomIn')
  assert.equal(keyOfEvent(press(' '), ['tape']), 'play')
  assert.equal(keyOfEvent(press('n'), ['app']), null)
  assert.equal(matchesKeys(press('s'), 'shift+S'), false)
  assert.equal(keyText('redo'), 'Ctrl+Shift+Z')
})

test('rows of a value', () => {
  const { rows } = rowsOf({ a: [1, { 'odd key': 2 }], b: 'x' }, new Set())
  assert.deepEqual(
    rows.map((r) => r.path),
    ['', '.a', '.a[0]', '.a[1]', '.a[1]["odd key"]', '.b'],
  )
  assert.equal(rowsOf({ a: [1, 2] }, new Set(['.a'])).rows.length, 2)
  assert.deepEqual(
    rowsOf({ a: 1, bee: { c: 'needle' } }, new Set(), 'needle').rows.map((r) => r.path),
    ['', '.bee', '.bee.c'],
  )
  const long = { list: Array.from({ length: 200_000 }, (_, i) => ({ id: i, text: 'some text' })) }
  const start = cpuMs()
  const big = rowsOf(long, new Set())
  const took = cpuMs() - start
  assert.ok(big.cut && big.rows.length < 10_000)
  assert.ok(took < 500, `${took} ms`)
})

test('patches of variables', () => {
  assert.deepEqual(parseVariablePath('$.hit.body[0]["odd key"]'), ['hit', 'body', 0, 'odd key'])
  const after = applyOps({ n: 1, list: ['a'], o: { x: 1 } }, [
    ['increment', '$.n', null],
    ['append', '$.list', 'b'],
    ['merge', '$.o', { y: 2 }],
    ['del', '$.o.x', null],
    ['set', '$.deep.er[0]', true],
  ])
  assert.deepEqual(after, { n: 2, list: ['a', 'b'], o: { y: 2 }, deep: { er: [true] } })
})

test('fuzzy search prefers starts of words', () => {
  assert.ok(fuzzy('HTTP request', 'req') > fuzzy('Array equal', 'req'))
  assert.ok(fuzzy('Condition', 'cnd') > 0)
  assert.equal(fuzzy('Loop', 'xyz'), 0)
})
