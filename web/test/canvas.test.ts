import assert from 'node:assert/strict'
import { test } from 'node:test'
import { containerAt, freeHandle, targetAt } from '../src/actions/connect'
import { fitted, zoomFor } from '../src/geometry/fitting'
import { deriver } from '../src/canvas/flow'
import { along } from '../src/canvas/path'
import { presetOf } from '../src/actions/presets'
import { sentenceOf, sentenceText } from '../src/canvas/sentence'
import type { Block, BlockSpec, Document, WireEvent } from '../src/api/types'
import { handlesOf } from '../src/document/document'
import { emptyFold, fold, shapeOf, statusAt, type RunFold } from '../src/run'
import { NOTHING } from '../src/state/ui'

const spec = (type: string, sentence: string, params: BlockSpec['params'] = {}): BlockSpec =>
  ({
    type,
    title: type,
    description: `about ${type}`,
    category: 'action',
    params,
    handles: ['out'],
    container: null,
    trigger: false,
    output: null,
    effect: 'none',
    sentence,
  }) as unknown as BlockSpec

const doc: Document = {
  format: 'weft/1',
  blocks: {
    start: { type: 'start', name: 'Start', at: [0, 0] },
    review: { type: 'loop', name: 'Review', at: [272, 0], size: [400, 240], params: { mode: 'for', count: 2 } },
    draft: { type: 'function', name: 'Draft', parent: 'review', at: [48, 64], params: { code: 'return 1' } },
    check: {
      type: 'condition',
      name: 'Check',
      at: [736, 0],
      params: { cases: [{ id: 'yes', when: 'true' }, { id: 'else' }] },
    },
  },
  edges: [
    { source: 'start', target: 'review' },
    { source: 'review', handle: 'body', target: 'draft' },
    { source: 'review', target: 'check' },
  ],
}
const none = new Map<string, BlockSpec>()

test('a sentence shows references as chips, and the words and rules around them as text', () => {
  const condition = spec('condition', 'if {cases[0].when} | takes one of several ways', {
    properties: {
      cases: {
        type: 'array',
        items: { type: 'object', properties: { when: { type: 'string', 'x-weft': 'expression' } } },
      },
    },
  })
  const one: Block = {
    type: 'condition',
    params: { cases: [{ id: 'big', when: '<start.amount> > 500' }, { id: 'else' }] },
  }
  assert.deepEqual(sentenceOf(one, condition), [
    { text: 'if ', code: false },
    { text: '<start.amount>', code: true },
    { text: ' > 500', code: false },
  ])
  const rule = (when: string): Block => ({ type: 'condition', params: { cases: [{ id: 'big', when }] } })
  assert.deepEqual(sentenceOf(rule('1 > 0'), condition).slice(1), [{ text: '1 > 0', code: true }])
  const ask: Block = { type: 'approval', params: { title: 'Expense of <start.amount> EUR' } }
  assert.deepEqual(sentenceOf(ask, spec('approval', 'asks: {title} | asks a person')), [
    { text: 'asks: ', code: false },
    { text: 'Expense of ', code: false },
    { text: '<start.amount>', code: true },
    { text: ' EUR', code: false },
  ])
  const greet: Block = { type: 'approval', params: { title: 'Hello <start.name>' } }
  assert.deepEqual(sentenceOf(greet, spec('approval', '{title}')), [
    { text: 'Hello ', code: false },
    { text: '<start.name>', code: true },
  ])
})

test('the first sentence without an empty value is used, defaults count as values, and without any the description is shown', () => {
  const wait = spec('wait', 'waits {seconds} s | waits until {until} | waits')
  assert.equal(sentenceText({ type: 'wait', params: { until: '2027-01-01' } }, wait), 'waits until 2027-01-01')
  assert.equal(sentenceText({ type: 'wait' }, wait), 'waits')
  const http = spec('http', '{method} {url}', { properties: { method: { default: 'GET' }, url: { type: 'string' } } })
  assert.equal(sentenceText({ type: 'http', params: { url: '/a/<start.id>' } }, http), 'GET /a/<start.id>')
  assert.equal(sentenceText({ type: 'http', params: { url: '' } }, http), 'about http')
  assert.equal(
    sentenceText(
      { type: 'start', params: { fields: [{ name: 'a' }, { name: 'b' }] } },
      spec('start', 'takes {fields[].name} | starts'),
    ),
    'takes a, b',
  )
})

test('an edge dropped on a card leads to it; the inside of its own container is empty space', () => {
  assert.equal(targetAt(doc, none, [800, 40], 'review', 'out'), 'check')
  assert.equal(targetAt(doc, none, [600, 200], 'draft', 'out'), null)
  assert.equal(targetAt(doc, none, [600, 200], 'review', 'body'), null)
  assert.equal(targetAt(doc, none, [600, 200], 'start', 'out'), 'review')
  assert.equal(targetAt(doc, none, [20, 600], 'start', 'out'), null)
})

test('containers catch what is dropped into them, but not themselves', () => {
  assert.equal(containerAt(doc, none, [600, 200]), 'review')
  assert.equal(containerAt(doc, none, [600, 200], ['review']), '')
  assert.equal(containerAt(doc, none, [20, 600]), '')
})

test('the free handle: named ones first, then out; never error', () => {
  assert.equal(freeHandle(doc, none, 'start'), 'out')
  assert.equal(freeHandle(doc, none, 'check'), 'yes')
  const wired = { ...doc, edges: [...doc.edges, { source: 'check', handle: 'yes', target: 'draft' }] }
  assert.equal(freeHandle(wired, none, 'check'), 'else')
})

test('what did not change stays the same object for the canvas; parents come before their children', () => {
  const derive = deriver()
  const before = derive.nodes(doc, none, NOTHING, new Map())
  const moved = { ...doc, blocks: { ...doc.blocks, draft: { ...doc.blocks.draft!, at: [64, 64] as [number, number] } } }
  const after = derive.nodes(moved, none, NOTHING, new Map())
  const ids = after.map((node) => node.id)
  assert.ok(ids.indexOf('review') < ids.indexOf('draft'))
  for (const [i, node] of after.entries()) assert.equal(node === before[i], node.id !== 'draft')
  assert.deepEqual(
    derive.edges(moved, none, NOTHING, new Map()).map((edge) => edge.id),
    ['start:out>review', 'review:body>draft', 'review:out>check'],
  )
})

test('new conditions, routers and approvals have their handles at once', () => {
  assert.deepEqual(handlesOf({ type: 'condition', params: presetOf('condition') }), ['yes', 'else', 'error'])
  assert.deepEqual(handlesOf({ type: 'router', params: presetOf('router') }), ['a', 'b', 'other', 'error'])
  assert.deepEqual(handlesOf({ type: 'approval', params: presetOf('approval') }), ['out', 'approve', 'reject', 'error'])
})

test('a document that fits is in the middle; a wide one is shown from its beginning, no smaller than can be read', () => {
  const room = { width: 1000, height: 600 }
  const start = { x: 0, y: 0, width: 200, height: 100 }
  assert.deepEqual(fitted(room, { x: 0, y: 0, width: 400, height: 200 }, start, 0.75), { zoom: 1, x: 300, y: 200 })
  assert.deepEqual(fitted(room, { x: 0, y: 0, width: 4000, height: 200 }, start, 0.75), { zoom: 0.75, x: 40, y: 225 })
  assert.equal(fitted(room, { x: 0, y: 0, width: 4000, height: 200 }, start, 0.05).zoom, 0.23)
  // The beginning in the middle of a tall document stands at half height; at its top nothing empty is shown above it.
  const tall = { x: 0, y: -2000, width: 400, height: 4000 }
  const { y, zoom } = fitted(room, tall, start, 0.75)
  assert.equal(y + 50 * zoom, 300)
  assert.equal(fitted(room, tall, { ...start, y: -2000 }, 0.75).y, 40 + 2000 * 0.75)
})

test('a way is drawn with round corners, and the plus stands on its longest part', () => {
  const { path, x, y, lead } = along(
    [
      [0, 0],
      [32, 0],
      [32, 200],
      [64, 200],
    ],
    100,
    50,
  )
  assert.equal(path, 'M100,50L120,50Q132,50 132,62L132,238Q132,250 144,250L164,250')
  assert.deepEqual([x, y, lead], [132, 150, 32])
})

test('a step that is smaller than the grid is a curve instead of two corners', () => {
  const { path, x, long } = along(
    [
      [0, 0],
      [60, 0],
      [60, 4],
      [96, 4],
    ],
    100,
    50,
  )
  assert.equal(path, 'M100,50L142,50C160,50 160,54 178,54L196,54')
  assert.deepEqual([x, long.across], [130, true])
})

test('a container in which something failed has failed when the run ends, in a parallel as in a loop', () => {
  for (const type of ['loop', 'parallel'] as const) {
    const ran: Document = {
      format: 'weft/1',
      blocks: { start: { type: 'start' }, box: { type, params: {} }, work: { type: 'function', parent: 'box' } },
      edges: [
        { source: 'start', target: 'box' },
        { source: 'box', handle: 'body', target: 'work' },
      ],
    }
    const path = type === 'loop' ? 'box#0' : 'box[0]'
    let seq = 0
    const event = (name: string, node: string | null, data: WireEvent['data'] = {}, at = ''): WireEvent => ({
      run: 'r',
      seq: ++seq,
      at_ms: seq,
      type: name,
      node,
      block: node?.split(':')[0] ?? null,
      path: at,
      key: node && (at ? `${node}@${at}` : node),
      attempt: 1,
      data,
    })
    const events = [
      event('run.started', null),
      event('node.started', 'start'),
      event('node.succeeded', 'start'),
      event('node.started', 'box:start'),
      event('region.sized', 'box:start', { count: 1 }),
      event('scope.opened', 'box:start', { first: 0, count: 1 }),
      event('node.started', 'work', {}, path),
      event('node.failed', 'work', { error: { code: 'code_failed', message: 'no' } }, path),
      event('run.finished', null, { status: 'failed' }),
    ]
    const view = fold(emptyFold(shapeOf(ran)), events)
    assert.equal(statusAt(view, ran, 'box', {}), 'failed', type)
    assert.equal(view.nodes.get('box')!.region!.failed, 1, type)
  }
})

test('what waits for a run it started knows which', () => {
  const ran: Document = {
    format: 'weft/1',
    blocks: { start: { type: 'start' }, sub: { type: 'run_workflow' } },
    edges: [{ source: 'start', target: 'sub' }],
  }
  const base = { run: 'r', at_ms: 1, path: '', attempt: 1, node: 'sub', block: 'sub', key: 'sub' }
  const view = fold(emptyFold(shapeOf(ran)), [
    { ...base, seq: 1, type: 'node.started', data: {} },
    { ...base, seq: 2, type: 'wait.opened', data: { kind: 'child', wait: 'sub!1', child: 'c1' } },
    { ...base, seq: 3, type: 'wait.closed', data: { outcome: 'fired' } },
  ])
  assert.equal(view.nodes.get('sub')!.wait!.child, 'c1')
})

test('a block with several open waits waits until the last of them is over', () => {
  const ran: Document = {
    format: 'weft/1',
    blocks: { start: { type: 'start' }, a: { type: 'agent' } },
    edges: [{ source: 'start', target: 'a' }],
  }
  const base = { run: 'r', at_ms: 1, path: '', node: 'a', block: 'a', key: 'a' }
  const opened = (seq: number, attempt: number, data: object): WireEvent =>
    ({
      ...base,
      seq,
      attempt,
      type: 'wait.opened',
      data: { kind: 'child', wait: `a!${attempt}`, ...data },
    }) as WireEvent
  const closed = (seq: number, attempt: number, left: number): WireEvent =>
    ({
      ...base,
      seq,
      attempt,
      type: 'wait.closed',
      data: { outcome: 'answered', ...(left ? { left } : {}) },
    }) as WireEvent
  const events: WireEvent[] = [
    { ...base, seq: 1, attempt: 1, type: 'node.started', data: {} },
    opened(2, 1, { child: 'c1', step: 1 }),
    opened(3, 2, { child: 'c2', step: 2, beside: true }),
    opened(4, 3, { kind: 'approval', step: 3, beside: true, due_ms: 9 }),
    closed(5, 3, 2),
    closed(6, 1, 1),
    closed(7, 2, 0),
  ]
  const after = (n: number): RunFold => fold(emptyFold(shapeOf(ran)), events.slice(0, n))
  assert.deepEqual([...after(4).waits.keys()], ['a!1', 'a!2', 'a!3'])
  assert.equal(after(4).nodes.get('a')!.dueAt, 9)
  const [two, one, none] = [after(5), after(6), after(7)].map((view) => view.nodes.get('a')!)
  assert.deepEqual([two!.status, two!.waits.map((wait) => wait.child), two!.dueAt], ['waiting', ['c1', 'c2'], null])
  assert.deepEqual([one!.status, one!.wait!.child, one!.attempt], ['waiting', 'c2', 1])
  assert.deepEqual([none!.status, none!.waits.length, none!.wait!.outcome], ['running', 0, 'answered'])
  assert.equal(after(7).waits.size, 0)
})

test('two blocks are shown together by moving, then by a smaller zoom, and not at all when that would be too small', () => {
  const room = { width: 1000, height: 600 }
  assert.equal(zoomFor(room, { x: 0, y: 0, width: 900, height: 100 }, 1, 0.75), 1)
  assert.equal(zoomFor(room, { x: 0, y: 0, width: 1154, height: 100 }, 1, 0.75), 0.8)
  assert.equal(zoomFor(room, { x: 0, y: 0, width: 4000, height: 100 }, 1, 0.75), null)
  assert.equal(zoomFor(room, { x: 0, y: 0, width: 900, height: 100 }, 0.5, 0.75), 0.5)
})
