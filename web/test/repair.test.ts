import assert from 'node:assert/strict'
import { test } from 'node:test'
import { layout } from '../src/geometry/layout'
import { sentenceText } from '../src/canvas/sentence'
import { sizeOf } from '../src/geometry/size'
import { asSchema, FAULTS_MAX, repair } from '../src/net/repair'
import type { Json } from '../src/api/schemas'
import type { Document } from '../src/api/types'
import { formSchema, triggersOf } from '../src/document/triggers'
import { startValues, valueProblems } from '../src/forms/fields/form'
import { printJson } from '../src/forms/json/print'
import { readDocument } from '../src/forms/json/readDocument'
import { outputSchema, reachable, referencesOf } from '../src/refs/scope'
import { applyCommand, copy } from '../src/state/commands'
import { absoluteAt, checkEdge, handlesOf, indexOf, readingOrder } from '../src/document/document'
import { shapeOf } from '../src/run'
import { random, recorded, RUNS, specs } from './help'

/** What the pages do with a document when they open it. */
function readAll(doc: Document): void {
  const { edges } = indexOf(doc)
  readingOrder(doc)
  shapeOf(doc, specs)
  layout(doc, specs)
  for (const [id, block] of Object.entries(doc.blocks)) {
    const spec = specs.get(block.type)
    sentenceText(block, spec)
    sizeOf(block, spec)
    handlesOf(block, specs)
    absoluteAt(doc, id)
    reachable(doc, { block: id }, specs)
    referencesOf(doc, id, specs)
    outputSchema(doc, id, specs)
  }
  for (const { source, target, handle } of edges) checkEdge(doc, { source, target, handle }, specs)
  for (const trigger of triggersOf(doc, specs)) {
    const schema = formSchema(doc, trigger.id)
    valueProblems(schema, startValues(schema))
  }
  const ids = Object.keys(doc.blocks)
  copy(
    doc,
    ids,
    (doc.notes ?? []).map((note) => note.id ?? ''),
  )
  if (ids[0]) applyCommand(doc, { type: 'rename', id: ids[0], name: 'Other' }, specs)
  printJson(doc as unknown as Json)
}

const JUNK: unknown[] = [
  null,
  0,
  -1.5,
  1e300,
  '',
  'text',
  true,
  [],
  [null],
  [1, 2],
  [[]],
  {},
  { a: null },
  { x: [{ y: 1 }] },
]

test('a right document is the same object', () => {
  for (const name of RUNS) {
    const { document } = recorded(name)
    const { document: repaired, faults } = repair(document)
    assert.deepEqual(faults, [])
    assert.equal(repaired, document)
  }
})

test('anything at all becomes a document that can be drawn', () => {
  for (const raw of [
    ...JUNK,
    undefined,
    { format: 'weft/1' },
    { blocks: [], edges: {}, notes: 5 },
    { blocks: { a: null, b: 3, c: { type: 7 } }, edges: [null, 1, {}] },
  ]) {
    const { document, faults, original } = repair(raw)
    assert.ok(faults.length > 0, JSON.stringify(raw))
    assert.equal(original, raw)
    readAll(document)
  }
})

test('each field of a wrong shape is left out, said, and nothing else', () => {
  const { document } = recorded('nested')
  for (const junk of [null, 5, 'x', true, { a: 1 }]) {
    const { document: repaired, faults } = repair({ ...document, notes: junk })
    assert.deepEqual(
      faults.map((f) => f.pointer),
      ['/notes'],
    )
    assert.deepEqual(repaired, Object.fromEntries(Object.entries(document).filter(([key]) => key !== 'notes')))
  }
  const odd = {
    format: 'weft/1',
    extra: { kept: true },
    blocks: { 'a/b~': { type: 'start', at: ['x', 1], params: [], own: 1 }, ok: { type: 'set' } },
    edges: [{ source: 'a', target: 'b', own: 2 }, 7],
    notes: [{ text: 5, id: 'n' }],
  }
  const { document: repaired, faults } = repair(odd)
  assert.deepEqual(
    faults.map((f) => f.pointer),
    ['/blocks/a~1b~0/at', '/blocks/a~1b~0/params', '/edges/1', '/notes/0/text'],
  )
  assert.deepEqual(repaired, {
    format: 'weft/1',
    extra: { kept: true },
    blocks: { 'a/b~': { type: 'start', own: 1 }, ok: { type: 'set' } },
    edges: [{ source: 'a', target: 'b', own: 2 }],
    notes: [{ id: 'n' }],
  })
  assert.equal(repaired.blocks.ok, odd.blocks.ok)
})

test('names that cannot be assigned are left out', () => {
  const raw: unknown = JSON.parse(
    '{"format":"weft/1","blocks":{"__proto__":{"type":"start"},"constructor":{"type":"start"}},"edges":[]}',
  )
  const { document } = repair(raw)
  assert.deepEqual(Object.keys(document.blocks), ['constructor'])
  readAll(document)
})

test('schemas: every level can be read', () => {
  const schema = asSchema({
    properties: { a: null, b: { type: 5, required: [1], properties: { c: [] } }, d: true },
    required: 'a',
    items: 3,
    enum: {},
  })
  assert.deepEqual(schema, { properties: { b: { properties: {} }, d: true } })
  let deep: unknown = {}
  for (let i = 0; i < 5000; i++) deep = { items: deep }
  asSchema(deep)
  assert.deepEqual(asSchema(7), {})
})

test('a document with faults everywhere does not fill the memory with findings', () => {
  const blocks = Object.fromEntries(Array.from({ length: 5000 }, (_, i) => [`b${i}`, { type: 'set', params: 1 }]))
  assert.equal(repair({ format: 'weft/1', blocks, edges: [] }).faults.length, FAULTS_MAX)
})

test('any part of a document replaced by junk leaves a document that everything takes', () => {
  const rnd = random(11)
  const pick = <T>(list: readonly T[]): T => list[Math.floor(rnd() * list.length)]!
  for (let round = 0; round < 1000; round++) {
    const doc = structuredClone(recordedOf(pick(RUNS))) as unknown as Record<string, unknown>
    const steps: (string | number)[] = []
    for (let changes = 1 + Math.floor(rnd() * 3); changes > 0; changes--) {
      let at: unknown = doc
      for (let depth = Math.floor(rnd() * 7); ; depth--) {
        const keys = Object.keys(at as object)
        if (!keys.length) break
        const key = pick(keys)
        const inner = (at as Record<string, unknown>)[key]
        steps.push(key)
        if (depth > 0 && typeof inner === 'object' && inner !== null && Object.keys(inner).length) {
          at = inner
          continue
        }
        ;(at as Record<string, unknown>)[key] = structuredClone(pick(JUNK))
        break
      }
    }
    const { document, faults } = repair(doc)
    try {
      readAll(document)
    } catch (error) {
      throw new Error(`round ${round}, at ${steps.join('.')}: ${String(error)}\n${(error as Error).stack}`)
    }
    // What is drawn is right: repairing it again finds nothing.
    assert.deepEqual(repair(document).faults, [], steps.join('.'))
    const text = JSON.stringify(doc)
    assert.equal(readDocument(text).errors.length, repair(JSON.parse(text)).faults.length)
    assert.ok(faults.length <= FAULTS_MAX)
  }
})

const documents = new Map(RUNS.map((name) => [name, recorded(name).document]))
const recordedOf = (name: (typeof RUNS)[number]): Document => documents.get(name)!
