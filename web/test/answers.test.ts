import assert from 'node:assert/strict'
import { test } from 'node:test'
import * as is from '../src/api/checks'
import { run as readRun } from '../src/net/answers'
import { api, ApiError } from '../src/net/api'
import { maybe, Mismatch, shape, text } from '../src/api/check'
import { triggers } from '../src/net/triggers'
import { read, recorded, RUNS } from './help'

/** Every request gets this answer. */
function answering(status: number, body: unknown): void {
  globalThis.fetch = (() =>
    Promise.resolve(new Response(typeof body === 'string' ? body : JSON.stringify(body), { status }))) as typeof fetch
}

const failure = async (act: () => Promise<unknown>): Promise<ApiError> => {
  try {
    await act()
  } catch (error) {
    assert.ok(error instanceof ApiError, String(error))
    return error
  }
  throw new Error('it did not fail')
}

test('what the server sends passes', () => {
  is.BlockList(read('blocks'), '')
  for (const name of RUNS) {
    const { run, events } = recorded(name)
    assert.deepEqual({ ...readRun(run), child_waits: undefined }, { ...run, child_waits: undefined })
    is.EventPage({ run: run.id, status: run.status, events, count: events.length, next: null }, '')
  }
})

test('an answer of another shape says where, and is an ApiError', async () => {
  assert.throws(
    () => is.EventPage({ events: [{ run: 'r', seq: 1 }], count: 1, next: null }, ''),
    (error: Error) => error instanceof Mismatch && /^\/events\/0\/at_ms must be a number/.test(error.message),
  )
  answering(200, { runs: [{ id: 7 }], next: null })
  const error = await failure(() => api.runs())
  assert.deepEqual([error.status, error.code], [0, 'answer_unreadable'])
  assert.match(error.message, /GET \/api\/runs .*\/runs\/0\/id must be text/)
  for (const junk of ['', 'null', '5', '[]', '{}', '<html>', '{"schedules": [null]}']) {
    answering(200, junk)
    for (const act of [
      () => api.draft('d'),
      () => api.run('r'),
      () => api.waits(),
      () => api.drafts(),
      () => triggers.schedules(),
      () => triggers.webhooks(),
      () => api.events('r'),
    ]) {
      assert.equal((await failure(act)).code, 'answer_unreadable', junk)
    }
  }
})

test('a refusal that is no problem document is still one', async () => {
  answering(502, '<html>bad gateway</html>')
  assert.deepEqual(
    [(await failure(() => api.runs())).status, (await failure(() => api.runs())).code],
    [502, 'http_502'],
  )
  answering(422, { title: 'x', status: 422, code: 'c', detail: 'd', diagnostics: 'junk' })
  assert.equal((await failure(() => api.runs())).code, 'http_422')
  answering(409, { type: 't', title: 'x', status: 409, code: 'seq_not_found', detail: 'too far', seq: 4 })
  assert.equal((await failure(() => api.fork('r', 9))).problem.seq, 4)
})

const DRAFT = { folder: '', created_at_ms: 1, updated_at_ms: 1, base_version: null, diagnostics: [], tasks: [] }

test('a draft of any shape can be drawn, and the stored document stays available', async () => {
  const stored = { format: 'weft/1', blocks: { a: { type: 'set' } }, edges: [], notes: 5 }
  answering(200, { id: 'd', name: 'n', rev: 1, ...DRAFT, document: stored })
  const draft = await api.draft('d')
  assert.deepEqual([draft.document.notes, draft.repaired?.original], [undefined, stored])
  answering(200, { id: 'd', name: 'n', rev: 1, ...DRAFT, document: null })
  assert.deepEqual((await api.draft('d')).document.blocks, {})
})

test('a check that refuses what the type allows does not compile', () => {
  shape<{ a: string | null; b?: 'x' | 'y' }>({ a: maybe(text), b: maybe(text) })
  // @ts-expect-error: `a` may be null
  shape<{ a: string | null }>({ a: text })
  // @ts-expect-error: `a` is a number
  shape<{ a: number }>({ a: text })
})
