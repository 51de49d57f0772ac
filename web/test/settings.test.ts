import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { hintOf, kindOf } from '../src/forms/fields/kind'
import { LIMIT, POLICY, RETRY } from '../src/edit/inspector/policy'
import { SETTINGS } from '../src/edit/inspector/settings'
import type { JsonSchema } from '../src/api/types'

const kind = (name: string, schema: JsonSchema): string => kindOf(schema, hintOf(null, name, schema))

test('what decides about the queue has controls of the panel', () => {
  const kinds = Object.fromEntries(Object.entries(SETTINGS).map(([name, schema]) => [name, kind(name, schema)]))
  assert.deepEqual(
    ['pool', 'priority', 'fair', 'limits', 'rates'].map((name) => kinds[name]),
    ['text', 'number', 'text', 'items', 'items'],
  )
  assert.deepEqual(
    ['alerts', 'error_workflow', 'retention'].map((name) => kinds[name]),
    ['group', 'workflow', 'group'],
  )
  const parts = (name: string): [string, string][] =>
    Object.entries(SETTINGS[name]?.properties ?? {}).map(([part, schema]) => [part, kind(part, schema)])
  assert.deepEqual(parts('alerts'), [
    ['email', 'texts'],
    ['webhook', 'text'],
    ['waiting_s', 'duration'],
  ])
  assert.deepEqual(parts('retention'), [
    ['days', 'number'],
    ['keep', 'number'],
  ])
  for (const [list, number] of [
    ['limits', 'at_most'],
    ['rates', 'per_s'],
  ] as const) {
    const fields = SETTINGS[list]?.items?.properties ?? {}
    assert.deepEqual(Object.keys(fields), ['key', number])
    assert.deepEqual(
      Object.entries(fields).map(([name, schema]) => kind(name, schema)),
      ['text', 'number'],
    )
  }
})

test('fields have the names that findings of the server have', () => {
  const flat = (fields: Record<string, JsonSchema>, at = ''): [string, string][] =>
    Object.entries(fields).flatMap(([name, schema]) => [
      [at + name, schema.title!] as [string, string],
      ...flat({ ...schema.properties, ...schema.items?.properties }, `${name}/`),
    ])
  const shown = { settings: SETTINGS, policy: POLICY, retry: RETRY, limit: LIMIT }
  const names = Object.entries(shown).map(([form, fields]) => [form, Object.fromEntries(flat(fields))])
  const file = join(process.env.WEFT_WEB_ROOT!, '..', 'tests', 'vectors', 'form_names.json')
  assert.deepEqual(Object.fromEntries(names), JSON.parse(readFileSync(file, 'utf8')))
})
