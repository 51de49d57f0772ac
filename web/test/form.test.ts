// Forms from JSON Schemas, case by case: tests/vectors/forms.json, which the tests of the server's form read, too.

import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import type { Json, JsonSchema } from '../src/net/types'
import { defaultsOf, fieldsOf, readTyped, type FormField, type Typed } from '../src/panels/fields/form'

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
    count: 'Count must be at least 1.',
    code: 'code must have at least 2 characters.',
  })
  assert.deepEqual(why({ count: '10', code: 'ab' }), {
    count: 'Count must be at most 9.',
    code: 'code must look like ^a+$.',
  })
})
