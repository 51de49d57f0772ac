import assert from 'node:assert/strict'
import { test } from 'node:test'
import { shortOf } from '../src/canvas/items'
import { reasonOf } from '../src/canvas/reason'
import { freePlace, roomAround } from '../src/geometry/room'
import { sentenceText } from '../src/canvas/sentence'
import { layout } from '../src/geometry/layout'
import { edgePaint } from '../src/canvas/paint'
import type { Json } from '../src/api/schemas'
import type { Document } from '../src/api/types'
import { applyCommand } from '../src/state/commands'
import { emptyFold, fold, shapeOf } from '../src/run'
import { recorded, specs } from './help'

test('b08: Tidy keeps siblings in the order of their edges, and a second run moves nothing', () => {
  const names = ['a', 'b', 'c', 'd', 'e']
  const doc: Document = {
    format: 'weft/1',
    name: 'fan',
    blocks: {
      start: { type: 'start', at: [0, 0] },
      ...Object.fromEntries(names.map((name) => [name, { type: 'set', at: [300, 0] }])),
    },
    edges: names.map((target) => ({ source: 'start', target })),
  } as Document
  const [tidy] = applyCommand(doc, layout(doc, specs), specs)
  const heights = names.map((name) => tidy.blocks[name]!.at![1])
  assert.deepEqual(
    heights,
    [...heights].sort((a, b) => a - b),
  )
  assert.deepEqual(applyCommand(tidy, layout(tidy, specs), specs)[0], tidy)
})

test('b10: a container that is wrapped around blocks has room at every side', () => {
  const inner = { x: 300, y: 200, w: 208, h: 64 }
  const outer = { x: 252, y: 152, w: 288, h: 160 }
  const others = [
    { id: 'left', x: 40, y: 200, w: 208, h: 64 },
    { id: 'above', x: 300, y: 120, w: 208, h: 64 },
    { id: 'right', x: 572, y: 200, w: 208, h: 64 },
    { id: 'far', x: 900, y: 200, w: 208, h: 64 },
    { id: 'below', x: 300, y: 280, w: 208, h: 64 },
    { id: 'elsewhere', x: -500, y: 900, w: 208, h: 64 },
  ]
  const { shift, moves } = roomAround(inner, outer, others)
  const placed = { ...outer, x: outer.x + shift[0], y: outer.y + shift[1] }
  for (const box of others) {
    const [x, y] = moves[box.id] ?? [box.x, box.y]
    const away = x >= placed.x + placed.w || x + box.w <= placed.x || y >= placed.y + placed.h || y + box.h <= placed.y
    assert.ok(away, box.id)
  }
  assert.deepEqual(Object.keys(moves).sort(), ['below', 'far', 'right'])
  assert.equal(moves.far![0] - moves.right![0], 900 - 572)
  assert.deepEqual(roomAround(inner, outer, [others[5]!]), { shift: [0, 0], moves: {} })
})

test('b10: a container that grows moves on what it would grow into, and nothing else', () => {
  const doc = {
    format: 'weft/1',
    name: 'x',
    edges: [],
    blocks: {
      loop: { type: 'loop', at: [0, 0], size: [288, 160] },
      a: { type: 'set', parent: 'loop', at: [48, 64] },
      next: { type: 'set', at: [352, 0] },
      low: { type: 'set', at: [0, 208] },
      aside: { type: 'set', at: [352, 400] },
      left: { type: 'set', at: [-300, 208] },
    },
  } as Document
  const [wide] = applyCommand(doc, { type: 'moveBlocks', to: { a: [304, 160] } }, specs)
  const { at, size } = wide.blocks.loop!
  assert.deepEqual(
    [at, size],
    [
      [0, 0],
      [528, 272],
    ],
  )
  assert.deepEqual(
    ['next', 'low', 'aside', 'left'].map((id) => wide.blocks[id]!.at),
    [
      [544, 0],
      [0, 288],
      [544, 400],
      [-300, 208],
    ],
  )
  const [same] = applyCommand(doc, { type: 'moveBlocks', to: { a: [48, 80] } }, specs)
  assert.deepEqual(same.blocks.next, doc.blocks.next)
})

test('b10: a container that would only touch what stands above it moves away as well', () => {
  const above = { id: 'above', x: 288, y: 0, w: 208, h: 64 }
  const { shift } = roomAround({ x: 288, y: 112, w: 208, h: 64 }, { x: 240, y: 64, w: 288, h: 160 }, [above])
  assert.deepEqual(shift, [0, 32])
})

test('b10: the first free place lies downwards', () => {
  assert.deepEqual(
    freePlace(
      [0, 0],
      [208, 64],
      [
        { x: 0, y: 0, w: 208, h: 64 },
        { x: 0, y: 96, w: 208, h: 64 },
      ],
    ),
    [0, 176],
  )
  assert.deepEqual(freePlace([0, 0], [208, 64], []), [0, 0])
})

test('d03: an error leads with what came back', () => {
  assert.equal(
    reasonOf('POST http://127.0.0.1:8301/demo/echo answered 503 Service Unavailable: later'),
    '503 Service Unavailable: later (POST http://127.0.0.1:8301/demo/echo)',
  )
  assert.equal(
    reasonOf('GET https://a.example/x: no answer within 5 s'),
    'no answer within 5 s (GET https://a.example/x)',
  )
  assert.equal(reasonOf('Error: Invoice 7 has no VAT number\n  at line 3'), 'Invoice 7 has no VAT number')
  assert.equal(reasonOf('TypeError: x is not a function'), 'TypeError: x is not a function')
})

test('b09: what a container does is said of its mode, whatever other fields still hold', () => {
  const said = (type: string, params: Record<string, string | number>): string =>
    sentenceText({ type, params }, specs.get(type))
  assert.equal(said('loop', { mode: 'each', items: '<start.list>', count: 3 }), 'For each of <start.list>')
  assert.equal(said('loop', { mode: 'for', items: '<start.list>', count: 3 }), 'Repeat 3 times')
  assert.equal(said('loop', { count: 3 }), 'Repeat 3 times')
  assert.equal(said('loop', { count: 1 }), 'Repeat 1 time')
  assert.equal(said('loop', { mode: 'do_while', condition: '<a.b>', count: 3 }), 'Repeat: do while <a.b>')
  assert.equal(
    said('parallel', { mode: 'each', items: '<start.list>', count: 3 }),
    'For each of <start.list>, in parallel',
  )
})

test('code on a card is its first line that is no comment', () => {
  const said = (type: string, params: Record<string, Json>): string => sentenceText({ type, params }, specs.get(type))
  assert.equal(said('function', { code: '// adds\n\nconst a = 1;\nreturn a + 1;' }), 'a + 1')
  assert.equal(said('function', { language: 'python', code: '# adds\nreturn len(rows)' }), 'len(rows)')
})

test('an edge of another branch names the branch that ran, by its title', () => {
  const { document, events } = recorded('expense-approval')
  const view = fold(emptyFold(shapeOf(document, specs)), events)
  const dead = document.edges
    .map((edge) => edgePaint({ doc: document, view }, edge.source, edge.handle ?? 'out', edge.target, {}))
    .filter((paint) => paint.state === 'dead')
  assert.ok(dead.length)
  for (const { title } of dead) assert.match(title, /^Skipped: /)
})

test('f14: an item in a few letters: itself, its name, its key', () => {
  assert.deepEqual(([7, true, 'green', { name: 'Ada', n: 1 }, { id: 4 }, ['de', { n: 1 }]] as Json[]).map(shortOf), [
    '7',
    'true',
    'green',
    'Ada',
    '4',
    'de',
  ])
  assert.deepEqual(
    [null, undefined, { n: 1 }, [1, 2, 3]].map((item) => shortOf(item as Json)),
    ['', '', '', ''],
  )
  assert.equal(shortOf('a rather long text that does not fit into a header').length, 24)
})
