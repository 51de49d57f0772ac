// Forms from JSON Schemas, case by case: tests/vectors/forms.json, which the tests of the server's form read, too.

import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import type { Json } from '../src/api/schemas'
import type { JsonSchema } from '../src/api/types'
import { sentence } from '../src/ui/words'
import {
  defaultsOf,
  fieldsOf,
  isFormValue,
  labelOf,
  readTyped,
  typedOf,
  type FormField,
  type Typed,
} from '../src/forms/fields/form'

interface Case {
  name: string
  schema: JsonSchema
  fields: (Pick<FormField, 'name' | 'title' | 'kind' | 'required'> & { initial: string })[]
  typed: { texts: Typed; values: Record<string, Json>; errors: Record<string, string> }[]
}

const FILE = join(process.env.WEFT_WEB_ROOT!, '..', 'tests', 'vectors', 'forms.json')

for (const { name, schema, fields, typed } of JSON.parse(readFileSync(FILE, 'utf8')) as Case[]) {
  test(`a form, as the server's: ${name}`, () => {
    const found = fieldsOf(schema)
    const initial = defaultsOf(found)
    assert.deepEqual(
      found.map(({ name, title, kind, required }) => ({ name, title, kind, required, initial: initial[name] })),
      fields,
    )
    for (const { texts, values, errors } of typed) assert.deepEqual(readTyped(found, texts), { values, errors })
  })
}

test('bounds and patterns have their own words', () => {
  const schema = {
    properties: {
      count: { type: 'integer', title: 'Count', minimum: 1, maximum: 9 },
      code: { type: 'string', pattern: '^a+$', minLength: 2 },
    },
  }
  const why = (texts: Typed) => readTyped(fieldsOf(schema), texts).errors
  assert.deepEqual(why({ count: '0', code: 'a' }), {
    count: 'Must be at least 1.',
    code: 'Must have at least 2 characters.',
  })
  assert.deepEqual(why({ count: '10', code: 'ab' }), {
    count: 'Must be at most 9.',
    code: 'Must look like ^a+$.',
  })
})

test('a value is shown as text that reads back as the same value, or not at all', () => {
  const fields = fieldsOf({
    properties: {
      note: { type: 'string' },
      count: { type: 'integer', title: 'How many' },
      unit_price: { type: 'number' },
      sure: { type: 'boolean' },
      size: { enum: ['s', 2, null] },
      extra: {},
    },
  })
  assert.deepEqual(fields.map(labelOf), ['Note', 'How many', 'Unit price', 'Sure', 'Size', 'Extra'])
  const value = { note: ' a\n', count: -3, unit_price: 1e-7, sure: true, size: null, extra: ['x', { a: null }] }
  assert.ok(isFormValue(fields, value))
  assert.deepEqual(readTyped(fields, typedOf(fields, value)), { values: value, errors: {} })
  assert.ok(isFormValue(fields, {}) && isFormValue(fields, { sure: false, other: 1, extra: null }))
  const others: Json[] = [
    null,
    [],
    'x',
    { note: 5 },
    { note: '' },
    { note: null },
    { count: 'many' },
    { count: 1.5 },
    { unit_price: '1' },
    { sure: 'true' },
  ]
  for (const other of others) assert.ok(!isFormValue(fields, other), JSON.stringify(other))
})

test('messages below fields are sentences', () => {
  for (const [text, written] of [
    ['too small', 'Too small.'],
    ['Enter a number.', 'Enter a number.'],
    ['<a.b> is not there', '<a.b> is not there.'],
    ['did you mean "a"?', 'Did you mean "a"?'],
    ["pip install 'openpyxl'; then restart it", "pip install 'openpyxl'; then restart it."],
    ['', ''],
  ] as const)
    assert.equal(sentence(text), written)
})
