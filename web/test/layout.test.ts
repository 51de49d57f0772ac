import assert from 'node:assert/strict'
import { test } from 'node:test'
import { layout } from '../src/geometry/layout'
import { placed } from '../src/state/placed'
import { handlePlace, PORT_Y, sizeOf } from '../src/geometry/size'
import type { Block, Document } from '../src/api/types'
import { applyCommand } from '../src/state/commands'
import { leadsInside, absoluteAt, indexOf } from '../src/document/document'
import { anyDocument, cpuMs, recorded, RUNS, specs } from './help'

const tidy = (doc: Document, ids?: string[]): Document => applyCommand(doc, layout(doc, specs, ids), specs)[0]
const size = (doc: Document, id: string) => sizeOf(doc.blocks[id]!, specs.get(doc.blocks[id]!.type))

function check(doc: Document, label: string): void {
  for (const [container, children] of indexOf(doc).children) {
    const boxes = children.map((id) => ({
      id,
      x: doc.blocks[id]!.at![0],
      y: doc.blocks[id]!.at![1],
      w: size(doc, id)[0],
      h: size(doc, id)[1],
    }))
    for (const a of boxes) {
      assert.ok(a.x % 16 === 0 && a.y % 16 === 0, `${label}: ${a.id} is on the grid`)
      if (container) {
        const [w, h] = size(doc, container)
        assert.ok(a.x >= 0 && a.y >= 32 && a.x + a.w <= w && a.y + a.h <= h, `${label}: ${a.id} is inside ${container}`)
      }
      for (const b of boxes) {
        if (a.id >= b.id) continue
        const apart = a.x + a.w <= b.x || b.x + b.w <= a.x || a.y + a.h <= b.y || b.y + b.h <= a.y
        assert.ok(apart, `${label}: ${a.id} and ${b.id} overlap`)
      }
    }
  }
}

for (const name of RUNS) {
  test(`${name}: nothing overlaps, children stay inside, a second run moves nothing`, () => {
    const doc = tidy(recorded(name).document)
    check(doc, name)
    assert.equal(JSON.stringify(tidy(doc)), JSON.stringify(doc))
    for (const edge of doc.edges)
      if (!leadsInside(doc, edge))
        assert.ok(
          absoluteAt(doc, edge.source)[0] < absoluteAt(doc, edge.target)[0],
          `${edge.source} left of ${edge.target}`,
        )
  })
}

test('random documents: nothing overlaps, a second run moves nothing', () => {
  for (let seed = 1; seed <= 60; seed++) {
    const doc = tidy(anyDocument(seed, 5 + (seed % 40)))
    check(doc, `seed ${seed}`)
    assert.equal(JSON.stringify(tidy(doc)), JSON.stringify(doc), `seed ${seed}`)
  }
})

test('a row of blocks is a straight line', () => {
  const blocks: Record<string, Block> = Object.fromEntries(
    ['a', 'b', 'c', 'd'].map((id, i) => [id, { type: i ? 'set' : 'start', at: [i * 7, i * 99] }]),
  )
  const doc = tidy({
    format: 'weft/1',
    blocks,
    edges: [
      { source: 'a', target: 'b' },
      { source: 'b', target: 'c' },
      { source: 'c', target: 'd' },
    ],
  })
  assert.deepEqual(
    Object.values(doc.blocks).map((b) => b.at![1]),
    [0, 0, 0, 0],
  )
})

test('branches lie in the order of their handles', () => {
  const doc = tidy(recorded('expense-approval').document)
  const check = doc.blocks.check!
  const small = handlePlace(check, specs.get('condition'), 'small').y
  assert.ok(small > PORT_Y)
  assert.ok(doc.blocks.pay!.at![1] < doc.blocks.decline!.at![1])
})

test('only the selection moves, around where it is', () => {
  const { document } = recorded('error-handling')
  const moved = applyCommand(
    document,
    { type: 'moveBlocks', to: { broken: [304, 608], fallback: [300, 600] } },
    specs,
  )[0]
  const doc = tidy(moved, ['broken', 'fallback'])
  assert.deepEqual(doc.blocks.start!.at, document.blocks.start!.at)
  assert.deepEqual(doc.blocks.broken!.at, [304, 608])
  assert.ok(doc.blocks.fallback!.at![0] >= 304 + 208)
})

test('notes stay beside their block', () => {
  const { document } = recorded('nested')
  const [x, y] = absoluteAt(document, 'winner')
  const doc = { ...document, notes: [{ id: 'n', text: 'why', at: [x + 16, y + 80] as [number, number] }] }
  const after = tidy(doc)
  const [nx, ny] = absoluteAt(after, 'winner')
  assert.deepEqual(after.notes![0]!.at, [nx + 16, ny + 80])
  assert.equal(JSON.stringify(tidy(after)), JSON.stringify(after))
})

test('a thousand blocks in well under a second', () => {
  const doc = anyDocument(3, 1000)
  const start = cpuMs()
  layout(doc, specs)
  const took = cpuMs() - start
  assert.ok(took < 1500, `${took} ms`)
})

test('a document that says nothing of places is tidied to be shown, one with all places is left as it is', () => {
  const { document } = recorded('nested')
  const bare = {
    ...document,
    blocks: Object.fromEntries(
      Object.entries(document.blocks).map(([id, { at: _, size: __, ...block }]) => [id, block]),
    ),
  }
  const shown = placed(bare, specs)
  const spots = Object.keys(bare.blocks).map(
    (id) => `${shown.blocks[id]!.parent ?? ''} ${shown.blocks[id]!.at?.join()}`,
  )
  assert.equal(new Set(spots).size, spots.length)
  assert.deepEqual(Object.keys(shown.blocks), Object.keys(bare.blocks))
  assert.equal(placed(document, specs), document)
})

test('blocks that lack a place get a free one, and the others stay', () => {
  const doc = {
    format: 'weft/1',
    name: 'some',
    blocks: {
      start: { type: 'start', at: [0, 0] },
      a: { type: 'set' },
      b: { type: 'set' },
      end: { type: 'set', at: [272, 0] },
      loop: { type: 'loop', at: [0, 304], size: [320, 160] },
      inner: { type: 'set', parent: 'loop' },
      alone: { type: 'set' },
    },
    edges: [
      { source: 'start', target: 'a' },
      { source: 'a', target: 'b' },
      { source: 'loop', handle: 'body', target: 'inner' },
    ],
  } as unknown as Document
  const shown = placed(doc, specs)
  check(shown, 'some')
  assert.deepEqual(
    ['start', 'end', 'loop', 'inner'].map((id) => shown.blocks[id]!.at),
    [
      [0, 0],
      [272, 0],
      [0, 304],
      [48, 48],
    ],
  )
  assert.ok(shown.blocks.b!.at![0] > shown.blocks.a!.at![0])
})
