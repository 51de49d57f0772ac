import assert from 'node:assert/strict'
import { beforeEach, test } from 'node:test'
import type { Document, Draft } from '../src/api/types'
import { closeDraft, dispatch, docStore, flush, openDraft, redo, settle, undo } from '../src/state/doc'
import { runDraft } from '../src/actions/start'
import { runStore } from '../src/state/live'
import { read, recorded } from './help'

/** A server with one draft, behind `fetch`. `lose`: the request is processed, but its answer is lost: the connection ends before the
 * answer or in the middle of it. `held`: how a request is answered that waits. */
const server = {
  draft: null as unknown as Draft,
  puts: 0,
  copies: 0,
  down: false,
  lose: null as null | 'all' | 'half',
  hold: '',
  held: [] as (() => void)[],
}

const ROUTES = ['self', 'events', 'graph', 'why', 'plan', 'cancel', 'page', 'document', 'nodes', 'rerun']
const URLS = Object.fromEntries(ROUTES.map((each) => [each, '']))
const ACCEPTED = { run: 'r', workflow: 'nested', status: 'queued', created: true, urls: URLS, diagnostics: [] }

globalThis.fetch = ((path: string, init: RequestInit) => {
  if (server.down) return Promise.reject(new TypeError('down'))
  const answer = (status: number, body: unknown): Promise<Response> => {
    const response = new Response(JSON.stringify(body), { status })
    if (server.hold && path.includes(server.hold)) return new Promise((done) => server.held.push(() => done(response)))
    if (server.lose === null || init.method === 'GET') return Promise.resolve(response)
    if (server.lose === 'all') return Promise.reject(new TypeError('lost'))
    return Promise.resolve(
      new Response(new ReadableStream({ start: (half) => half.error(new TypeError('lost')) }), { status }),
    )
  }
  if (path === '/api/blocks') return answer(200, read('blocks'))
  if (init.method === 'GET') return answer(200, { ...server.draft, id: path.split('/').at(-1) })
  const body = JSON.parse(init.body as string) as { document: Document; name: string }
  if (path.endsWith('/run')) return answer(202, ACCEPTED)
  if (init.method === 'POST') server.copies++
  if (init.method === 'POST') return answer(201, { ...server.draft, id: 'copy', document: body.document })
  server.puts++
  const rev = (init.headers as Record<string, string>)['If-Match']
  if (rev !== `"${server.draft.rev}"`)
    return answer(409, { status: 409, code: 'draft_changed', detail: 'changed', current: server.draft })
  server.draft = { ...server.draft, document: body.document, name: body.name, rev: server.draft.rev + 1 }
  return answer(200, { id: 'd', name: body.name, rev: server.draft.rev, updated_at_ms: 2, diagnostics: [], tasks: [] })
}) as typeof fetch

beforeEach(async () => {
  await closeDraft()
  Object.assign(server, {
    puts: 0,
    copies: 0,
    down: false,
    lose: null,
    hold: '',
    held: [],
    draft: {
      id: 'd',
      name: 'nested',
      document: recorded('nested').document,
      rev: 1,
      folder: '',
      updated_at_ms: 1,
      base_version: null,
      created_at_ms: 1,
      diagnostics: [],
      tasks: [],
    },
  })
  await openDraft('d')
})

const rename = (name: string): boolean => dispatch({ type: 'rename', id: 'play', name })

test('an edit is saved under the next revision', async () => {
  assert.equal(rename('Spielen'), true)
  assert.equal(docStore.getState().saving, 'dirty')
  await flush()
  assert.deepEqual(
    [docStore.getState().saving, docStore.getState().rev, server.draft.document.blocks.play!.name],
    ['saved', 2, 'Spielen'],
  )
  assert.equal(rename('Spielen'), false)
})

test('undo and redo, and their labels', async () => {
  const before = docStore.getState().doc
  rename('A')
  rename('B')
  assert.equal(undo(), 'rename to “B”')
  undo()
  assert.equal(docStore.getState().doc, before)
  redo()
  assert.equal(docStore.getState().doc.blocks.play!.name, 'A')
  rename('C')
  assert.equal(redo(), null)
  await flush()
})

test('a burst with one key is one step', () => {
  const before = docStore.getState().doc
  for (const x of [64, 80, 96]) dispatch({ type: 'moveBlocks', to: { winner: [x, 0] } }, 'arrows')
  assert.equal(docStore.getState().undo.length, 1)
  undo()
  assert.equal(docStore.getState().doc, before)
})

test('saved elsewhere: no version is lost, whichever one wins', async () => {
  const theirs = { ...recorded('nested').document, description: 'theirs' }
  for (const choice of ['mine', 'theirs', 'copy'] as const) {
    server.draft = { ...server.draft, document: theirs, rev: server.draft.rev + 5 }
    rename(`Mine ${choice}`)
    await flush()
    assert.equal(docStore.getState().saving, 'conflict')
    assert.deepEqual(docStore.getState().conflict?.document, theirs)
    const copied = await settle(choice)
    assert.equal(docStore.getState().saving, 'saved')
    if (choice === 'mine') assert.equal(server.draft.document.blocks.play!.name, 'Mine mine')
    else {
      assert.deepEqual(docStore.getState().doc, theirs)
      assert.equal(copied, choice === 'copy' ? 'copy' : null)
      undo()
      assert.equal(docStore.getState().doc.blocks.play!.name, `Mine ${choice}`)
      await flush()
      assert.equal(docStore.getState().saving, 'saved')
    }
  }
})

test('while the server is away edits wait', async () => {
  server.down = true
  rename('Away')
  await flush()
  assert.equal(docStore.getState().saving, 'offline')
  server.down = false
  await flush()
  assert.deepEqual([docStore.getState().saving, server.draft.document.blocks.play!.name], ['saved', 'Away'])
})

test('leaving saves first', async () => {
  rename('Left')
  await closeDraft()
  assert.equal(server.draft.document.blocks.play!.name, 'Left')
  assert.equal(docStore.getState().id, null)
})

test('a save whose answer was lost is ours, whatever was edited meanwhile', async () => {
  for (const lose of ['all', 'half'] as const) {
    server.lose = lose
    rename(`Sent ${lose}`)
    await flush()
    assert.equal(docStore.getState().saving, 'offline')
    server.down = true
    rename(`Not sent ${lose}`)
    await flush()
    Object.assign(server, { down: false, lose: null })
    rename(`After ${lose}`)
    await flush()
    assert.deepEqual(
      [docStore.getState().saving, docStore.getState().conflict, docStore.getState().rev],
      ['saved', null, server.draft.rev],
    )
    assert.equal(server.draft.document.blocks.play!.name, `After ${lose}`)
  }
})

test('a save from elsewhere is a conflict, also when an answer of ours was lost before it', async () => {
  server.lose = 'all'
  rename('Lost')
  await flush()
  server.lose = null
  server.draft = { ...server.draft, document: { ...server.draft.document, description: 'theirs' } }
  rename('Mine')
  await flush()
  assert.equal(docStore.getState().saving, 'conflict')
  await settle('theirs')
})

const turns = async (): Promise<void> => {
  for (let i = 0; i < 20; i++) await new Promise((done) => setTimeout(done, 0))
}

test('the draft that is opened last is the one that is open, in whatever order they come', async () => {
  server.hold = '/api/drafts/'
  const first = openDraft('first')
  await turns()
  const second = openDraft('second')
  await turns()
  server.held[1]!()
  await second
  server.held[0]!()
  await first
  assert.equal(docStore.getState().id, 'second')
  const third = openDraft('third')
  await turns()
  await closeDraft()
  server.held[2]!()
  await third
  assert.equal(docStore.getState().id, null, 'the page was left')
})

test('keeping mine as a copy, pressed twice, is one copy; on another draft it changes nothing', async () => {
  const meet = async (name: string): Promise<void> => {
    server.draft = {
      ...server.draft,
      document: { ...server.draft.document, description: name },
      rev: server.draft.rev + 5,
    }
    rename(name)
    await flush()
    assert.equal(docStore.getState().saving, 'conflict')
    server.hold = '/api/drafts'
  }
  await meet('Twice')
  const both = [settle('copy'), settle('copy')]
  await turns()
  server.hold = ''
  for (const answer of server.held) answer()
  assert.deepEqual(await Promise.all(both), ['copy', 'copy'])
  assert.equal(server.copies, 1)
  await meet('Left')
  server.held = []
  const left = settle('copy')
  await turns()
  server.hold = ''
  await openDraft('other')
  const { doc, undo } = docStore.getState()
  server.held[0]!()
  assert.equal(await left, 'copy')
  assert.deepEqual([docStore.getState().id, docStore.getState().doc, docStore.getState().undo], ['other', doc, undo])
})

test('a run is not painted on the draft that was opened before its answer came', async () => {
  server.hold = '/run'
  const started = runDraft({})
  await turns()
  server.hold = ''
  await openDraft('other')
  server.held[0]!()
  assert.equal((await started).run, 'r')
  assert.equal(runStore.getState().id, null)
})
