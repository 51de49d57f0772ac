import assert from 'node:assert/strict'
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { layout } from '../src/geometry/layout'
import { route, type Rect } from '../src/geometry/layout/route'
import { router } from '../src/geometry/layout/routes'
import { BODY_X, CONTAINER_HEAD, handlePlace, sizeOf } from '../src/geometry/size'
import type { Block, Document, Edge, Point } from '../src/api/types'
import { applyCommand } from '../src/state/commands'
import { leadsInside, absoluteAt, handlesOf, indexOf, parentOf } from '../src/document/document'
import { anyDocument, random, recorded, RUNS, specs } from './help'

const EXAMPLES_AT = join(process.env.WEFT_WEB_ROOT!, '..', 'examples')
const EXAMPLES = readdirSync(EXAMPLES_AT).filter((name) => name.endsWith('.json'))

const tidy = (doc: Document): Document => applyCommand(doc, layout(doc, specs), specs)[0]
const waysOf = (doc: Document) => router()(doc, specs)

/** Every edge has a way that is orthogonal, begins at its handle, ends at its target and crosses no box beside it. */
function check(doc: Document, label: string): void {
  const ways = waysOf(doc)
  for (const edge of indexOf(doc).edges) {
    const source = doc.blocks[edge.source]!
    if (!handlesOf(source, specs).includes(edge.handle)) continue
    const way = ways.get(edge.id)
    assert.ok(way, `${label}: ${edge.id} has a way`)
    const [sx, sy] = absoluteAt(doc, edge.source)
    const [tx, ty] = absoluteAt(doc, edge.target)
    const out = handlePlace(source, specs.get(source.type), edge.handle)
    const from: Point = [sx + (leadsInside(doc, edge) ? BODY_X : out.x), sy + out.y]
    const points = way.map(([x, y]): Point => [from[0] + x, from[1] + y])
    assert.deepEqual(way[0], [0, 0])
    assert.deepEqual(points.at(-1), [tx, ty + 32], `${label}: ${edge.id} ends at its target`)
    const container = leadsInside(doc, edge) ? edge.source : parentOf(doc, edge.source)
    const boxes = boxesIn(doc, container)
    for (let i = 1; i < points.length; i++) {
      const [a, b] = [points[i - 1]!, points[i]!]
      assert.ok(a[0] === b[0] || a[1] === b[1], `${label}: ${edge.id} is orthogonal`)
      for (const { id, x, y, w, h } of boxes) {
        const hit =
          Math.min(a[0], b[0]) < x + w &&
          Math.max(a[0], b[0]) > x &&
          Math.min(a[1], b[1]) < y + h &&
          Math.max(a[1], b[1]) > y
        assert.ok(!hit, `${label}: ${edge.id} passes under ${id}: ${JSON.stringify(points)}`)
      }
      if (!container) continue
      const [cx, cy] = absoluteAt(doc, container)
      const [cw, ch] = sizeOf(doc.blocks[container]!, specs.get(doc.blocks[container]!.type))
      for (const [x, y] of [a, b]) {
        assert.ok(
          x > cx && x < cx + cw && y > cy + CONTAINER_HEAD - 1 && y < cy + ch,
          `${label}: ${edge.id} stays inside ${container}, below its head`,
        )
      }
    }
  }
}

function boxesIn(doc: Document, container: string): (Rect & { id: string })[] {
  return (indexOf(doc).children.get(container) ?? []).map((id) => {
    const [x, y] = absoluteAt(doc, id)
    const [w, h] = sizeOf(doc.blocks[id]!, specs.get(doc.blocks[id]!.type))
    return { id, x, y, w, h }
  })
}

for (const name of RUNS)
  test(`${name}: no edge passes under a card, as it was drawn and tidied`, () => {
    const { document } = recorded(name)
    check(document, name)
    check(tidy(document), `${name}, tidied`)
  })

for (const name of EXAMPLES)
  test(`example ${name}: no edge passes under a card, as it is stored and tidied`, () => {
    const doc = JSON.parse(readFileSync(join(EXAMPLES_AT, name), 'utf8')) as Document
    check(doc, name)
    check(tidy(doc), `${name}, tidied`)
  })

test('random documents, tidied: no edge passes under a card', () => {
  for (let seed = 1; seed <= 60; seed++) check(tidy(anyDocument(seed, 5 + (seed % 40))), `seed ${seed}`)
})

test('blocks placed by hand: no edge passes under a card, wherever it leads', () => {
  for (let seed = 1; seed <= 50; seed++) check(scattered(seed, 4 + (seed % 24)), `seed ${seed}`)
})

test('an edge that spans columns goes around the container between its ends', () => {
  const doc: Document = {
    format: 'weft/1',
    blocks: {
      start: { type: 'start', at: [0, 0] },
      fan: { type: 'parallel', at: [272, 0], size: [400, 240] },
      join: { type: 'function', at: [736, 0] },
    },
    edges: [
      { source: 'start', target: 'fan' },
      { source: 'fan', target: 'join' },
      { source: 'start', target: 'join' },
    ],
  }
  check(doc, 'spanning')
  const way = waysOf(doc).get('start:out>join')!
  assert.ok(
    way.some(([, y]) => y <= -32 - 8),
    'above the container',
  )
})

test('ways that do not belong together do not lie on each other', () => {
  const doc = tidy({
    format: 'weft/1',
    blocks: {
      start: { type: 'start' },
      a: { type: 'set' },
      b: { type: 'set' },
      c: { type: 'set' },
      d: { type: 'set' },
    },
    edges: [
      { source: 'start', target: 'a' },
      { source: 'start', target: 'b' },
      { source: 'a', target: 'd' },
      { source: 'b', target: 'c' },
      { source: 'a', target: 'c' },
      { source: 'b', target: 'd' },
    ],
  })
  const ways = waysOf(doc)
  const upright = indexOf(doc).edges.flatMap((edge) => {
    const [x, y] = absoluteAt(doc, edge.source)
    const points = ways.get(edge.id)!.map((p): Point => [x + 208 + p[0], y + 32 + p[1]])
    return points
      .slice(1)
      .flatMap((b, i) =>
        points[i]![0] === b[0]
          ? [{ edge, x: b[0], low: Math.min(points[i]![1], b[1]), high: Math.max(points[i]![1], b[1]) }]
          : [],
      )
  })
  for (const p of upright)
    for (const q of upright) {
      if (p.edge.id >= q.edge.id || p.edge.source === q.edge.source || p.edge.target === q.edge.target) continue
      assert.ok(p.x !== q.x || p.high <= q.low || q.high <= p.low, `${p.edge.id} lies on ${q.edge.id}`)
    }
})

test('boxes on each other: there is a way all the same', () => {
  const boxes = [
    { x: 0, y: 0, w: 208, h: 64 },
    { x: 100, y: 20, w: 208, h: 64 },
  ]
  const [way] = route(boxes, [{ start: [208, 32], end: [100, 52], down: false, lead: 0, from: 'a:out', to: 'b' }])
  assert.deepEqual(
    [way![0], way!.at(-1)],
    [
      [208, 32],
      [100, 52],
    ],
  )
})

test('what did not move keeps its way, the same object', () => {
  const find = router()
  const { document } = recorded('nested')
  const before = find(document, specs)
  const renamed = applyCommand(document, { type: 'rename', id: 'tally', name: 'Sum' }, specs)[0]
  for (const [id, way] of find(renamed, specs)) assert.equal(way, before.get(id))
  const moved = applyCommand(document, { type: 'moveBlocks', to: { winner: [1600, 400] } }, specs)[0]
  const after = find(moved, specs)
  assert.equal(after.get('teams:body>rounds'), before.get('teams:body>rounds'))
  assert.notDeepEqual(after.get('teams:out>winner'), before.get('teams:out>winner'))
})

test('a thousand blocks in well under a second, tidied or scattered', () => {
  for (const [label, doc] of [
    ['tidied', tidy(anyDocument(3, 1000))],
    ['scattered', scattered(5, 1000)],
  ] as const) {
    // Time of the processor: others may be at work on this machine.
    const start = process.cpuUsage()
    waysOf(doc)
    const { user, system } = process.cpuUsage(start)
    const took = (user + system) / 1000
    assert.ok(took < 1500, `${label}: ${took} ms`)
  }
})

/** Cards on a loose grid, each a little off its place, joined at random (also backwards). */
function scattered(seed: number, count: number): Document {
  const rnd = random(seed)
  const wide = Math.ceil(Math.sqrt(count))
  const blocks: Record<string, Block> = {}
  const edges: Edge[] = []
  for (let i = 0; i < count; i++) {
    const at: Point = [(i % wide) * 320 + Math.floor(rnd() * 48), Math.floor(i / wide) * 192 + Math.floor(rnd() * 48)]
    const type = i === 0 ? 'start' : rnd() < 0.2 ? 'condition' : 'set'
    blocks[`b${i}`] = {
      type,
      at,
      ...(type === 'condition' ? { params: { cases: [{ id: 'x', when: '1' }, { id: 'y' }] } } : {}),
    }
  }
  for (let i = 1; i < count; i++) {
    const near = Math.max(0, Math.min(count - 1, i + Math.floor((rnd() - 0.7) * 3 * wide)))
    const source = near === i ? 0 : near
    const handle =
      blocks[`b${source}`]!.type === 'condition'
        ? 'xy'[Math.floor(rnd() * 2)]!
        : rnd() < 0.15 && source
          ? 'error'
          : 'out'
    edges.push({ source: `b${source}`, target: `b${i}`, handle })
  }
  return { format: 'weft/1', blocks, edges }
}
