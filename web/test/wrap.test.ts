// Long chains stand in rows after a tidy, and stay there.

import assert from 'node:assert/strict'
import test from 'node:test'
import type { Document } from '../src/api/types'
import { layout } from '../src/geometry/layout'
import { applyCommand } from '../src/state/commands'

function chain(length: number): Document {
  const ids = Array.from({ length }, (_, i) => `b${i}`)
  return {
    format: 'weft/1',
    blocks: Object.fromEntries(ids.map((id) => [id, { type: 'set', at: [0, 0] as [number, number] }])),
    edges: ids.slice(1).map((id, i) => ({ source: `b${i}`, handle: 'out', target: id })),
  } as Document
}

const tidied = (doc: Document): Document => applyCommand(doc, layout(doc))[0]

test('a short chain stays in one row', () => {
  const rows = new Set(Object.values(tidied(chain(8)).blocks).map((block) => block.at![1]))
  assert.equal(rows.size, 1)
})

test('a long chain wraps into rows of the same width that begin at the same column', () => {
  const doc = tidied(chain(30))
  const rows = new Map<number, number[]>()
  for (const { at } of Object.values(doc.blocks)) rows.set(at![1], [...(rows.get(at![1]) ?? []), at![0]])
  assert.ok(rows.size >= 4, `${rows.size} rows`)
  for (const row of rows.values()) {
    assert.equal(Math.min(...row), 0)
    assert.ok(Math.max(...row) < 2200)
  }
  const heights = [...rows.keys()].sort((a, b) => a - b)
  for (const [i, y] of heights.slice(1).entries()) assert.ok(y - heights[i]! >= 64 + 96)
  assert.deepEqual(tidied(doc), doc)
})
