import assert from 'node:assert/strict'
import { test } from 'node:test'
import { complete, intoReference, suggest, typedAt } from '../src/refs/complete'
import { find, isWritable, rewrite, withHead } from '../src/refs/parse'
import { preview } from '../src/refs/preview'
import type { Json, JsonObject } from '../src/api/schemas'
import type { Document } from '../src/api/types'
import { keepReferences, outputSchema, reachable, referencesOf, refName, resolve } from '../src/refs/scope'
import { emptyFold, fold, shapeOf } from '../src/run'
import { recorded, specs } from './help'

test('which names can be written in a reference', () => {
  assert.equal(isWritable('How much?'), true)
  assert.equal(isWritable('Tell: paid'), true)
  assert.equal(isWritable('Who [boss]'), false)
  assert.equal(isWritable('?? what'), false)
})

test('rewriting leaves path, default and everything else as written', () => {
  assert.equal(withHead('Draft v1.2.text ?? 1', 2, 'New'), 'New.text ?? 1')
  assert.equal(withHead('Draft ?? 1', 1, 'New'), 'New ?? 1')
  assert.equal(
    rewrite('x <a.b> y <c>', (f) => (f.text === 'a.b' ? 'z.b' : null)),
    'x <z.b> y <c>',
  )
})

test('what a block can read', () => {
  const { document: doc } = recorded('nested')
  const names = (block: string, inside = false): string[] =>
    reachable(doc, { block, inside }, specs).map((r) => `${r.block} ${r.mode}`)
  assert.deepEqual(names('winner'), ['teams current', 'start current'])
  assert.deepEqual(names('tally'), ['rounds current', 'play last', 'start current'])
  assert.deepEqual(names('play'), ['start current', 'play previous'])
  const loop = recorded('review-loop').document
  assert.ok(reachable(loop, { block: 'draft' }, specs).some((r) => r.block === 'ask' && r.mode === 'previous'))
  assert.ok(reachable(loop, { block: 'send' }, specs).some((r) => r.block === 'draft' && r.mode === 'last'))
})

test('what a reference reads', () => {
  const { document: doc } = recorded('nested')
  const read = (text: string, block: string) => resolve(doc, find(text)[0]!, { block }, specs)
  assert.equal(read('<teams.item>', 'play')?.kind, 'scope')
  assert.equal(read('<teams.results>', 'winner')?.kind, 'block')
  assert.equal(read('<loop.index>', 'play')?.kind, 'scope')
  assert.equal(read('<loop.index>', 'winner'), null)
  assert.equal(read('<workflow.x>', 'play')?.kind, 'variable')
  assert.equal(read('<unknown.x>', 'play'), null)
  assert.equal(referencesOf(doc, 'play', specs).length, 4)
  assert.equal(refName(doc, 'tally'), 'Tally')
})

test('schemas', () => {
  const { document: doc } = recorded('expense-approval')
  assert.deepEqual(Object.keys(outputSchema(doc, 'start', specs)!.properties!), ['amount', 'purpose', 'employee'])
  assert.deepEqual(Object.keys(outputSchema(doc, 'ask', specs)!.properties!), [
    'note',
    'action',
    'answered_by',
    'answered_at',
    'expired',
  ])
  assert.deepEqual(Object.keys(outputSchema(doc, 'record', specs)!.properties!), ['amount', 'decision', 'decided_by'])
})

test('what blocks put out that follows from their params', () => {
  const put = (type: string, params: JsonObject): string[] => {
    const doc: Document = { format: 'weft/1', blocks: { it: { type, params } }, edges: [] }
    return Object.keys(outputSchema(doc, 'it', specs)?.properties ?? {})
  }
  const fields = { properties: { note: { type: 'string' } } }
  assert.deepEqual(put('form', { fields }), ['note', 'answered_by', 'answered_at'])
  assert.deepEqual(put('approval', { fields }), ['note', 'action', 'answered_by', 'answered_at', 'expired'])
  assert.deepEqual(put('schedule', { cron: '* * * * *', input: { region: 'north' } }), [
    'scheduled_at',
    'fired_at',
    'region',
  ])
  assert.deepEqual(put('webhook', {}), ['body', 'headers', 'query', 'method', 'delivery', 'received_at'])
  const hook: Document = {
    format: 'weft/1',
    blocks: { it: { type: 'webhook', params: { body_schema: { type: 'object', properties: { order: {} } } } } },
    edges: [],
  }
  assert.deepEqual(Object.keys(outputSchema(hook, 'it', specs)!.properties!.body!.properties!), ['order'])
})

test('the keys of cache and limit read, too', () => {
  const doc: Document = {
    format: 'weft/1',
    edges: [{ source: 'a', target: 'b' }],
    blocks: {
      a: { type: 'set', name: 'First' },
      b: {
        type: 'set',
        name: 'Second',
        policy: { skip_if: '<First.x>', cache: { key: '<First.id>' }, limit: { key: 'crm <First.y>', at_most: 5 } },
      },
    },
  }
  assert.deepEqual(
    referencesOf(doc, 'b', specs).map(({ pointer, target }) => [pointer, target?.kind]),
    [
      ['skip_if', 'block'],
      ['cache.key', 'block'],
      ['limit.key', 'block'],
    ],
  )
  const renamed = { ...doc, blocks: { ...doc.blocks, a: { ...doc.blocks.a!, name: 'Start of it' } } }
  assert.deepEqual(keepReferences(doc, renamed, specs).blocks.b!.policy, {
    skip_if: '<Start of it.x>',
    cache: { key: '<Start of it.id>' },
    limit: { key: 'crm <Start of it.y>', at_most: 5 },
  })
})

test('what is being typed', () => {
  assert.deepEqual(typedAt('Hi <dra', 7), { start: 3, end: 7, typed: 'dra', env: false })
  assert.deepEqual(typedAt('Hi <draft.con> x', 9), { start: 3, end: 14, typed: 'draft', env: false })
  assert.deepEqual(typedAt('key ${API', 9), { start: 4, end: 9, typed: 'API', env: true })
  assert.equal(typedAt('a < b', 5), null)
  assert.equal(typedAt('plain', 3), null)
})

test('completing: only what can be reached, then its fields', () => {
  const { document: doc } = recorded('expense-approval')
  const labels = (typed: string, block: string): string[] =>
    complete(typed, { doc, reader: { block }, specs }).map((o) => o.label)
  assert.deepEqual(labels('', 'ask').slice(0, 2), ['How much?', 'Start'])
  assert.equal(labels('', 'ask').includes('Record'), false)
  assert.deepEqual(labels('Start.', 'ask'), ['Start.amount', 'Start.purpose', 'Start.employee'])
  assert.deepEqual(labels('start.am', 'ask'), ['start.amount'])
  assert.deepEqual(labels('How much?.', 'ask'), ['How much?.case', 'How much?.title', 'How much?.result'])
  const seen = complete('Manager.', { doc, reader: { block: 'record' }, specs, lastOutput: () => ({ extra: 1 }) })
  assert.equal(seen.find((o) => o.label === 'Manager.extra')?.detail, 'From the last run')
  assert.deepEqual(
    complete('we', { doc, reader: { block: 'pay' }, env: ['WEFT_BASE_URL', 'API_KEY'] }, true).map((o) => o.insert),
    ['${WEFT_BASE_URL}'],
  )
  const loop = recorded('review-loop').document
  assert.ok(complete('', { doc: loop, reader: { block: 'draft' }, specs }).some((o) => o.insert === '<loop.index>'))
  assert.equal(suggest('Managr', ['Manager', 'Start']), 'Manager')
  assert.equal(suggest('xyz', ['Manager', 'Start']), null)
})

test('a field that is typed after a reference goes into it', () => {
  const doc: Document = {
    format: 'weft/1',
    edges: [
      { source: 'start', target: 'call' },
      { source: 'call', target: 'set' },
    ],
    blocks: {
      start: { type: 'start', at: [0, 0] },
      call: { type: 'http', name: 'Call', params: { url: 'x' }, at: [0, 0] },
      set: { type: 'set', name: 'Set', at: [0, 0] },
    },
  }
  const typed = (text: string, seen?: Json): string | undefined =>
    intoReference(text, text.length, { doc, reader: { block: 'set' }, specs, lastOutput: () => seen })?.text
  assert.equal(typed('<Call>.'), '<Call.>')
  assert.equal(typed('<Call.body>.'), undefined) // nothing is known of it
  assert.equal(typed('<Call.body>.i'), '<Call.body.i>')
  assert.equal(typed('<Call.body>.', { body: { id: 1 } }), '<Call.body.>')
  assert.equal(typed('<Call.body>.t', { body: 'report' }), undefined) // report.txt
  assert.equal(typed('<Call.url>.t'), undefined)
  assert.equal(typed('See <Call>.'), undefined)
  assert.deepEqual(intoReference('<Call.body>>', 11, { doc, reader: { block: 'set' }, specs }), {
    text: '<Call.body>',
    caret: 11,
  })
})

test('b04: the fields of a loop around are offered also when another block is called Loop', () => {
  const at = { at: [0, 0] as [number, number] }
  const doc = {
    format: 'weft/1',
    edges: [{ source: 'loop', target: 'loop-2' }],
    blocks: {
      loop: { type: 'loop', name: 'Loop', params: { mode: 'for', count: 2 }, ...at },
      'loop-2': { type: 'loop', name: 'Loop 2', params: { mode: 'for', count: 2 }, ...at },
      set: { type: 'set', name: 'Set', parent: 'loop-2', ...at },
    },
  }
  const labels = (typed: string): string[] =>
    complete(typed, { doc, reader: { block: 'set' }, specs }).map((o) => o.label)
  assert.deepEqual(labels('loop.i'), ['loop.index', 'loop.item', 'loop.items'])
  assert.ok(labels('Loop.ind').includes('Loop.index'))
  assert.deepEqual(labels('Loop 2.ind'), ['Loop 2.index'])
})

test('previewing with the values of a run', () => {
  const { document: doc, events, run } = recorded('nested')
  const view = fold(emptyFold(shapeOf(doc, specs)), events)
  const at = (text: string, block: string, iter = {}) =>
    preview(text, { block }, { view, doc, iter, input: run.input, specs })
  assert.deepEqual(at('<start.rounds>', 'play'), { text: '<start.rounds>', known: true, value: 3 })
  assert.equal(at('round <rounds.index> of <teams.item>', 'play', { teams: 1, rounds: 0 })?.value, 'round 0 of green')
  assert.equal(at('<unknown.x ?? 5>', 'play'), null)
  assert.equal(at('<start.nothing ?? 5>', 'play')?.value, 5)
  assert.deepEqual(at('<tally.result>', 'winner', { teams: 2 })?.known, true)
  assert.equal(at('${KEY}', 'play')?.known, false)
  assert.equal(at('no references', 'play'), null)
})
