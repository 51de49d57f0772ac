import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Document } from '../src/api/types'
import { applyCommand } from '../src/state/commands'
import { diffDocuments, isSame } from '../src/document/diff'
import { recorded, RUNS, specs } from './help'

test('a document and its copy are the same', () => {
  for (const name of RUNS) {
    const { document } = recorded(name)
    const diff = diffDocuments(document, structuredClone(document))
    assert.ok(isSame(diff))
    assert.deepEqual(diff.moved, [])
  }
})

test('added, removed, changed, moved, connections, and the workflow itself', () => {
  const before: Document = {
    format: 'weft/1',
    name: 'w',
    variables: { a: 1 },
    blocks: {
      start: { type: 'start', at: [0, 0] },
      a: { type: 'set', name: 'A', params: { value: { x: [1, 2] } } },
      gone: { type: 'set' },
    },
    edges: [
      { source: 'start', target: 'a' },
      { source: 'a', target: 'gone' },
    ],
  }
  const after: Document = {
    format: 'weft/1',
    name: 'w',
    variables: { a: 2 },
    blocks: {
      start: { type: 'start', at: [16, 0] },
      a: { type: 'set', name: 'A', params: { value: { x: [1, 3] }, more: true } },
      fresh: { type: 'http' },
    },
    edges: [
      { source: 'start', target: 'a', handle: 'out' },
      { source: 'a', target: 'fresh', handle: 'error' },
    ],
  }
  const diff = diffDocuments(before, after)
  assert.deepEqual(Object.fromEntries(diff.blocks.map((each) => [each.id, each.how])), {
    a: 'changed',
    fresh: 'added',
    gone: 'removed',
  })
  assert.deepEqual(diff.blocks.find((each) => each.id === 'a')!.fields, [
    { path: 'params.value.x.1', before: 2, after: 3 },
    { path: 'params.more', before: undefined, after: true },
  ])
  assert.deepEqual(diff.edges, [
    { how: 'added', source: 'a', target: 'fresh', handle: 'error' },
    { how: 'removed', source: 'a', target: 'gone', handle: 'out' },
  ])
  assert.deepEqual(diff.fields, [{ path: 'variables.a', before: 1, after: 2 }])
  assert.deepEqual(diff.moved, ['start'])
})

test('a rename shows up where the references are', () => {
  const { document } = recorded('nested')
  const [next] = applyCommand(document, { type: 'rename', id: 'play', name: 'Spielen' }, specs)
  const diff = diffDocuments(document, next)
  assert.ok(diff.blocks.every((each) => each.how === 'changed'))
  assert.ok(diff.blocks.find((each) => each.id === 'play')!.fields.some((field) => field.path === 'name'))
})
