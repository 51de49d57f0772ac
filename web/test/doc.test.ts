import assert from 'node:assert/strict'
import { beforeEach, test } from 'node:test'
import type { Document, Draft } from '../src/net/types'
import { closeDraft, dispatch, docStore, flush, openDraft, redo, settle, undo } from '../src/state/doc'
import { read, recorded } from './help'

/** A server with one draft, behind `fetch`. */
const server = { draft: null as unknown as Draft, puts: 0, down: false }

globalThis.fetch = ((path: string, init: RequestInit) => {
  if (server.down) return Promise.reject(new TypeError('down'))
  const answer = (status: number, body: unknown): Promise<Response> => Promise.resolve(new Response(JSON.stringify(body), { status }))
  if (path === '/api/blocks') return answer(200, read('blocks'))
  if (init.method === 'GET') return answer(200, server.draft)
  const body = JSON.parse(init.body as string) as { document: Document; name: string }
  if (init.method === 'POST') return answer(201, { ...server.draft, id: 'copy', document: body.document })
  server.puts++
  const rev = (init.headers as Record<string, string>)['If-Match']
  if (rev !== `"${server.draft.rev}"`) return answer(409, { status: 409, code: 'draft_changed', detail: 'changed', current: server.draft })
  server.draft = { ...server.draft, document: body.document, name: body.name, rev: server.draft.rev + 1 }
  return answer(200, { rev: server.draft.rev, updated_at: 2, diagnostics: [] })
}) as typeof fetch

beforeEach(async () => {
  await closeDraft()
  Object.assign(server, { puts: 0, down: false, draft: { id: 'd', name: 'nested', document: recorded('nested').document, rev: 1, updated_at: 1, base_version: null } })
  await openDraft('d')
})

const rename = (name: string): boolean => dispatch({ type: 'rename', id: 'play', name })

test('an edit is saved under the next revision', async () => {
  assert.equal(rename('Spielen'), true)
  assert.equal(docStore.get().saving, 'dirty')
  await flush()
  assert.deepEqual([docStore.get().saving, docStore.get().rev, server.draft.document.blocks.play!.name], ['saved', 2, 'Spielen'])
  assert.equal(rename('Spielen'), false)
})

test('undo and redo, and their labels', async () => {
  const before = docStore.get().doc
  rename('A')
  rename('B')
  assert.equal(undo(), 'rename to “B”')
  undo()
  assert.equal(docStore.get().doc, before)
  redo()
  assert.equal(docStore.get().doc.blocks.play!.name, 'A')
  rename('C')
  assert.equal(redo(), null)
  await flush()
})

test('a burst with one key is one step', () => {
  const before = docStore.get().doc
  for (const x of [64, 80, 96]) dispatch({ type: 'moveBlocks', to: { winner: [x, 0] } }, 'arrows')
  assert.equal(docStore.get().undo.length, 1)
  undo()
  assert.equal(docStore.get().doc, before)
})

test('somebody else saved: nothing is lost, whichever is kept', async () => {
  const theirs = { ...recorded('nested').document, description: 'theirs' }
  for (const choice of ['mine', 'theirs', 'copy'] as const) {
    server.draft = { ...server.draft, document: theirs, rev: server.draft.rev + 5 }
    rename(`Mine ${choice}`)
    await flush()
    assert.equal(docStore.get().saving, 'conflict')
    assert.deepEqual(docStore.get().conflict?.document, theirs)
    const copied = await settle(choice)
    assert.equal(docStore.get().saving, 'saved')
    if (choice === 'mine') assert.equal(server.draft.document.blocks.play!.name, 'Mine mine')
    else {
      assert.deepEqual(docStore.get().doc, theirs)
      assert.equal(copied, choice === 'copy' ? 'copy' : null)
      undo()
      assert.equal(docStore.get().doc.blocks.play!.name, `Mine ${choice}`)
      await flush()
      assert.equal(docStore.get().saving, 'saved')
    }
  }
})

test('while the server is away edits wait', async () => {
  server.down = true
  rename('Away')
  await flush()
  assert.equal(docStore.get().saving, 'offline')
  server.down = false
  await flush()
  assert.deepEqual([docStore.get().saving, server.draft.document.blocks.play!.name], ['saved', 'Away'])
})

test('leaving saves first', async () => {
  rename('Left')
  await closeDraft()
  assert.equal(server.draft.document.blocks.play!.name, 'Left')
  assert.equal(docStore.get().id, null)
})
