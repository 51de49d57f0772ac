import assert from 'node:assert/strict'
import { beforeEach, test } from 'node:test'
import type { Document, Draft } from '../src/api/types'
import { closeDraft, dispatch, docStore, flush, openDraft, redo, undo } from '../src/state/doc'
import {
  bounded,
  BLOCKS_KEPT_MAX,
  fitting,
  readHistory,
  STEPS_KEPT_MAX,
  writePending,
  type KeptHistory,
} from '../src/state/history'
import { read, recorded } from './help'

/** As much of IndexedDB as is used: values are cloned as the browser clones them. */
const disk = { stores: new Map<string, Map<string, { id: string; at: number }>>() }
const done = <T>(value: T): object => {
  const request: { result: T; onsuccess?: () => void } = { result: value }
  setTimeout(() => request.onsuccess?.())
  return request
}
const storeOf = (name: string): object => {
  const rows = disk.stores.get(name) ?? new Map<string, { id: string; at: number }>()
  disk.stores.set(name, rows)
  return {
    put: (value: { id: string; at: number }) => done(void rows.set(value.id, structuredClone(value))),
    get: (id: string) => done(structuredClone(rows.get(id))),
    delete: (id: string) => done(void rows.delete(id)),
    index: () => ({ getAllKeys: () => done([...rows.values()].sort((a, b) => a.at - b.at).map((row) => row.id)) }),
    createIndex: () => undefined,
  }
}
Object.defineProperty(globalThis, 'indexedDB', {
  value: {
    open: (name: string) =>
      done({ transaction: () => ({ objectStore: () => storeOf(name) }), createObjectStore: () => storeOf(name) }),
  },
})

const server = { draft: null as unknown as Draft }
globalThis.fetch = ((path: string, init: RequestInit) => {
  const answer = (status: number, body: unknown): Promise<Response> =>
    Promise.resolve(new Response(JSON.stringify(body), { status }))
  if (path === '/api/blocks') return answer(200, read('blocks'))
  if (init.method === 'GET') return answer(200, server.draft)
  const body = JSON.parse(init.body as string) as { document: Document; name: string }
  server.draft = { ...server.draft, document: body.document, rev: server.draft.rev + 1 }
  return answer(200, { rev: server.draft.rev, updated_at_ms: 2, diagnostics: [], tasks: [] })
}) as typeof fetch

beforeEach(async () => {
  await closeDraft()
  disk.stores.clear()
  server.draft = {
    id: 'd',
    name: 'nested',
    document: recorded('nested').document,
    rev: 1,
    created_at_ms: 1,
    updated_at_ms: 1,
    base_name: null,
    base_version: null,
    base_rev: null,
    folder: '',
    diagnostics: [],
    tasks: [],
  }
  await openDraft('d')
})

const rename = (name: string): boolean => dispatch({ type: 'rename', id: 'play', name })
/** What a reload does: everything in memory is gone. */
const reload = async (): Promise<void> => {
  await closeDraft()
  await openDraft('d')
}

test('undo and redo survive a reload', async () => {
  const first = docStore.getState().doc
  rename('A')
  rename('B')
  undo()
  await flush()
  await reload()
  assert.deepEqual([docStore.getState().undo.length, docStore.getState().redo.length], [1, 1])
  assert.equal(redo(), 'rename to “B”')
  assert.equal(docStore.getState().doc.blocks.play!.name, 'B')
  undo()
  undo()
  assert.deepEqual(docStore.getState().doc, first)
})

test('steps of another document are let go', async () => {
  rename('A')
  await flush()
  await closeDraft()
  server.draft = { ...server.draft, document: { ...server.draft.document, description: 'changed elsewhere' }, rev: 9 }
  await openDraft('d')
  assert.deepEqual([docStore.getState().undo, docStore.getState().redo], [[], []])
  assert.equal(docStore.getState().doc.description, 'changed elsewhere')
})

test('stored steps share what the steps in memory share', async () => {
  for (let i = 0; i < 20; i++) rename(`N${i}`)
  await writePending()
  const stored = (await readHistory('d'))!
  const docs = stored.undo.map((step) => (step.command as { doc: Document }).doc)
  assert.equal(docs.length, 20)
  assert.equal(docs[0]!.blocks.winner, docs[19]!.blocks.winner)
  assert.equal(docs[5]!.blocks.winner, stored.doc.blocks.winner)
})

test('the stored size has a bound', () => {
  const step = { label: 'x', command: { type: 'batch' as const, commands: [] } }
  const many = (blocks: number): KeptHistory => ({
    id: 'd',
    rev: 1,
    at: 1,
    undo: Array.from({ length: 200 }, (_, i) => ({ ...step, label: `${i}` })),
    redo: [],
    doc: {
      format: 'weft/1',
      edges: [],
      blocks: Object.fromEntries(Array.from({ length: blocks }, (_, i) => [`b${i}`, { type: 'set' }])),
    },
  })
  assert.deepEqual([bounded(many(10)).undo.length, bounded(many(10)).undo.at(-1)!.label], [STEPS_KEPT_MAX, '199'])
  assert.equal(bounded(many(1000)).undo.length, BLOCKS_KEPT_MAX / 1000 / 2)
  assert.equal(bounded(many(BLOCKS_KEPT_MAX)).undo.length, 0)
})

test('a history that is junk, or of a later revision, is none', () => {
  const { document } = recorded('nested')
  assert.deepEqual(fitting(null, document, 1), { undo: [], redo: [] })
  const stored = {
    id: 'd',
    rev: 1,
    doc: document,
    undo: [{ label: 'x', command: { type: 'batch', commands: [] } }],
    redo: [],
    at: 0,
  } as KeptHistory
  assert.equal(fitting(stored, structuredClone(document), 3).undo.length, 1)
  assert.deepEqual(fitting({ ...stored, rev: 5 }, document, 3), { undo: [], redo: [] })
  assert.deepEqual(fitting({ ...stored, undo: 7 as never }, document, 1), { undo: [], redo: [] })
})
