import assert from 'node:assert/strict'
import { test } from 'node:test'
import { locate, placeOf } from '../src/forms/json/locate'
import { printJson } from '../src/forms/json/print'
import { readDocument } from '../src/forms/json/readDocument'
import { recorded } from './help'

const at = (text: string, pointer: string): string => {
  const place = locate(text).places.get(pointer)!
  return text.slice(place.from, place.to)
}

test('printing says the same, with plain lists on one line', () => {
  for (const name of ['nested', 'expense-approval', 'review-loop'] as const) {
    const { document } = recorded(name)
    assert.deepEqual(JSON.parse(printJson(document as never)), document)
  }
  assert.equal(
    printJson({ at: [1, 2], edges: [{ source: 'a', target: 'b' }], none: [], deep: { x: {} } }),
    `{
  "at": [1, 2],
  "edges": [
    {"source": "a", "target": "b"}
  ],
  "none": [],
  "deep": {
    "x": {}
  }
}`,
  )
})

test('every pointer has its place', () => {
  const text = '{"a": [1, {"b~/": "x\\"y"}], "c": null}'
  assert.equal(at(text, ''), text)
  assert.equal(at(text, '/a/0'), '1')
  assert.equal(at(text, '/a/1/b~0~1'), '"x\\"y"')
  assert.equal(at(text, '/c'), 'null')
  const { places } = locate(text)
  assert.equal(text.slice(places.get('/c')!.key!.from, places.get('/c')!.key!.to), '"c"')
  assert.equal(placeOf(places, '/a/7/deep'), places.get('/a'))
})

test('places agree with JSON.parse on recorded documents', () => {
  const { document } = recorded('nested')
  const text = printJson(document as never)
  const { places, error } = locate(text)
  assert.equal(error, null)
  const visit = (value: unknown, pointer: string): void => {
    assert.deepEqual(JSON.parse(at(text, pointer)), value)
    if (value && typeof value === 'object')
      for (const [key, item] of Object.entries(value))
        visit(item, `${pointer}/${key.replaceAll('~', '~0').replaceAll('/', '~1')}`)
  }
  visit(document, '')
  assert.ok(places.size > 50)
})

test('the first error is where it is, and what is above it is known', () => {
  const errors: [string, number, RegExp][] = [
    ['{"a": 1,}', 7, /comma/],
    ['{"a" 1}', 5, /colon/],
    ['{"a": tru}', 6, /tru/],
    ['[1 2]', 3, /comma or \]/],
    ['{"a": "x', 6, /quotes/],
    ['', 0, /ends/],
    ['{} x', 3, /after the end/],
    ['{"a": 1, "a": 2}', 9, /twice/],
    ['{a: 1}', 1, /double quotes/],
    ['[01]', 1, /01/],
    ['{"a": "\\q"}', 6, /escape/],
  ]
  for (const [text, from, message] of errors) {
    const { error } = locate(text)
    assert.ok(error, text)
    assert.equal(error.from, from, text)
    assert.match(error.message, message, text)
    // JSON.parse takes a name that is there twice, and drops the first.
    if (!message.test('twice')) assert.throws(() => JSON.parse(text), text)
  }
  assert.ok(locate('{"a": [1, 2], "b": oops}').places.has('/a/1'))
})

test('only what can be drawn becomes the document', () => {
  const good = JSON.stringify({ format: 'weft/1', blocks: { a: { type: 'start', at: [0, 0] } }, edges: [] })
  assert.deepEqual(readDocument(good).errors, [])
  const bad: [unknown, RegExp][] = [
    [[], /object/],
    [{ blocks: {}, edges: [] }, /format/],
    [{ format: 'weft/1', edges: [] }, /"blocks"/],
    [{ format: 'weft/1', blocks: {} }, /"edges"/],
    [{ format: 'weft/1', blocks: { a: {} }, edges: [] }, /type/],
    [{ format: 'weft/1', blocks: { a: { type: 'x', at: [1] } }, edges: [] }, /two numbers/],
    [{ format: 'weft/1', blocks: {}, edges: [{ source: 'a' }] }, /edge/],
  ]
  for (const [value, message] of bad) {
    const read = readDocument(JSON.stringify(value))
    assert.equal(read.doc, null)
    assert.match(read.errors[0]!.message, message)
  }
})
