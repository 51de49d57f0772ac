import assert from 'node:assert/strict'
import { test } from 'node:test'
import { fileIn, sizeText } from '../src/net/files'
import { fieldsOf, readTyped } from '../src/forms/fields/form'
import { propertiesOf, schemaOf } from '../src/forms/fields/properties'
import type { Json } from '../src/api/schemas'
import type { JsonSchema } from '../src/api/types'

const FILE = { type: 'file' as const, id: `file_${'0'.repeat(64)}`, name: 'a.csv', media_type: 'text/csv', size: 3 }

test('a value is a file by its type and its id', () => {
  assert.deepEqual(fileIn(FILE), FILE)
  assert.deepEqual(fileIn({ type: 'file', id: FILE.id }), { ...FILE, name: 'file', media_type: '', size: 0 })
  const others: Json[] = [null, 'file', [FILE], { type: 'file', id: 'file_1' }, { id: FILE.id }, { ...FILE, type: 'x' }]
  for (const other of others) assert.equal(fileIn(other), null)
})

test('sizes as text', () => {
  assert.deepEqual([0, 1, 1023, 1024, 1536, 20_000, 1024 ** 2, 104_857_600].map(sizeText), [
    '0 bytes',
    '1 byte',
    '1023 bytes',
    '1 kB',
    '1.5 kB',
    '20 kB',
    '1 MB',
    '100 MB',
  ])
})

test('a form takes nothing but a file where a file is wanted', () => {
  const schema: JsonSchema = { type: 'object', required: ['a'], properties: { a: { format: 'file' } } }
  const fields = fieldsOf(schema)
  assert.equal(fields[0]!.kind, 'file')
  assert.deepEqual(readTyped(fields, { a: JSON.stringify(FILE) }), { values: { a: FILE }, errors: {} })
  assert.deepEqual(readTyped(fields, { a: '{"x":1}' }).errors, { a: 'Choose a file.' })
  assert.deepEqual(readTyped(fields, {}).errors, { a: 'Choose a file.' })
  assert.equal(fieldsOf({ properties: { a: { type: 'string', format: 'file' } } })[0]!.kind, 'string')
})

test('a field for a file is one of the types in the form builder', () => {
  const schema: JsonSchema = { type: 'object', properties: { a: { type: 'object', format: 'file', title: 'A' } } }
  const rows = propertiesOf(schema)
  assert.equal(rows[0]!.type, 'file')
  assert.deepEqual(schemaOf(schema, rows), schema)
  assert.deepEqual(schemaOf(schema, [{ ...rows[0]!, type: 'string' }])?.properties?.a, { type: 'string', title: 'A' })
})
