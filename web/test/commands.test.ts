import assert from 'node:assert/strict'
import { test } from 'node:test'
import { sizeOf } from '../src/geometry/size'
import type { Json } from '../src/api/schemas'
import type { BlockSpec, Document, Point } from '../src/api/types'
import { applyCommand, copy, pasteIds, readClip, type Command } from '../src/state/commands'
import {
  absoluteAt,
  checkEdge,
  checkParent,
  handlesOf,
  indexOf,
  kindOf,
  noteId,
  parentOf,
} from '../src/document/document'
import { random, recorded, RUNS, specs } from './help'

const edit = (doc: Document, command: Command): Document => applyCommand(doc, command, specs)[0]
const text = (doc: Document): string => JSON.stringify(doc)

test('forty random edits: undo all is the first document, redo all the last, for 200 seeds', () => {
  for (let seed = 1; seed <= 200; seed++) {
    const rnd = random(seed)
    const first = recorded(RUNS[seed % RUNS.length]!).document
    const began = text(first)
    let doc = first
    const undo: Command[] = []
    for (let n = 0; n < 40; n++) {
      const [next, inverse] = applyCommand(doc, anyCommand(doc, rnd, n), specs)
      if (next === doc) continue
      undo.push(inverse)
      doc = next
      wellFormed(doc, seed)
    }
    const last = text(doc)
    const redo: Command[] = []
    for (const command of undo.reverse()) {
      const [next, inverse] = applyCommand(doc, command, specs)
      redo.push(inverse)
      doc = next
    }
    assert.equal(text(doc), began, `undo, seed ${seed}`)
    for (const command of redo.reverse()) doc = edit(doc, command)
    assert.equal(text(doc), last, `redo, seed ${seed}`)
    assert.equal(text(first), began, `the original document is not changed, seed ${seed}`)
  }
})

test('unknown fields survive', () => {
  const doc = { ...recorded('nested').document, 'x-own': { a: 1 } } as Document
  doc.blocks.play = { ...doc.blocks.play!, color: 'red', 'x-more': [1] }
  const moved = edit(edit(doc, { type: 'moveBlocks', to: { play: [80, 96] } }), {
    type: 'rename',
    id: 'play',
    name: 'Spielen',
  })
  assert.deepEqual(moved['x-own'], { a: 1 })
  assert.equal(moved.blocks.play!.color, 'red')
  assert.deepEqual(moved.blocks.play!['x-more'], [1])
})

test('a block with one edge in and one out is healed', () => {
  const { document: doc } = recorded('error-handling')
  const next = edit(doc, { type: 'removeBlocks', ids: ['fallback'] })
  assert.deepEqual(
    next.edges.filter((e) => e.target === 'report'),
    [
      { source: 'broken', handle: 'error', target: 'report' },
      { source: 'flaky', target: 'report' },
    ],
  )
})

test('removing a container removes what is inside', () => {
  const next = edit(recorded('nested').document, { type: 'removeBlocks', ids: ['teams'] })
  assert.deepEqual(Object.keys(next.blocks), ['start', 'winner'])
  assert.deepEqual(next.edges, [{ source: 'start', target: 'winner' }])
})

test('renaming rewrites every reference, by name only', () => {
  const { document } = recorded('nested')
  const doc = edit(document, {
    type: 'setParam',
    id: 'winner',
    path: ['note'],
    value: '<tally> and <Tally.result[0] ?? 1> and < Tally > and <tallyho>',
  })
  const next = edit(doc, { type: 'rename', id: 'tally', name: 'Count it' })
  assert.equal(next.blocks.winner!.params!.note, '<Count it> and <Count it.result[0] ?? 1> and < Tally > and <tallyho>')
  const loop = edit(document, { type: 'rename', id: 'rounds', name: 'Turns' })
  assert.match(String(loop.blocks.play!.params!.code), /<Turns\.index>/)
  assert.match(String(loop.blocks.tally!.params!.code), /<Turns\.results>/)
})

test('a name that cannot be written becomes the id, and other references keep what they read', () => {
  const { document } = recorded('expense-approval')
  const next = edit(document, { type: 'rename', id: 'ask', name: 'Who [boss]' })
  assert.equal((next.blocks.record!.params!.value as { decision: string }).decision, '<ask.action ?? "automatic">')
  const doc = edit(edit(document, { type: 'rename', id: 'check', name: 'Check' }), {
    type: 'setParam',
    id: 'record',
    path: ['value', 'x'],
    value: '<Check.case>',
  })
  const twin = edit(doc, { type: 'rename', id: 'start', name: 'Check' })
  assert.equal((twin.blocks.record!.params!.value as { x: string; amount: string }).x, '<check.case>')
})

test('in and out of a container: same place, edges across the border go and come back', () => {
  const { document: doc } = recorded('nested')
  const before = absoluteAt(doc, 'play')
  const [out, back] = applyCommand(doc, { type: 'reparent', ids: ['play'], parent: '' }, specs)
  assert.equal(parentOf(out, 'play'), '')
  assert.deepEqual(absoluteAt(out, 'play'), before)
  assert.equal(
    out.edges.some((e) => e.target === 'play'),
    false,
  )
  assert.equal(text(edit(out, back)), text(doc))
  const into = edit(out, { type: 'reparent', ids: ['winner'], parent: 'rounds', to: { winner: [-64, 500] } })
  assert.deepEqual(absoluteAt(into, 'winner'), [-64, 500])
  for (const container of ['rounds', 'teams']) holds(into, container)
  assert.equal(checkParent(doc, ['teams'], 'rounds', specs), 'A container cannot be moved into itself.')
  assert.match(checkParent(doc, ['start'], 'rounds', specs)!, /is a trigger/)
})

test('copy and paste: children, inner edges and references come along, ids differ', () => {
  const { document: doc } = recorded('nested')
  const clip = readClip(JSON.stringify(copy(doc, ['teams'])))!
  const ids = pasteIds(doc, clip)
  const next = edit(doc, { type: 'paste', clip, at: [1600, 640], parent: '' })
  assert.deepEqual(Object.keys(next.blocks).slice(-4), ['teams-2', 'rounds-2', 'play-2', 'tally-2'])
  assert.equal(next.blocks[ids.rounds!]!.parent, ids.teams)
  assert.deepEqual(next.blocks[ids.teams!]!.at, [1600, 640])
  assert.equal(next.edges.length, doc.edges.length + 3)
  assert.match(String(next.blocks['tally-2']!.params!.code), /<Rounds 2\.results>/)
  assert.match(String(next.blocks['play-2']!.params!.code), /<Teams 2\.item>/)
  assert.equal(next.blocks['teams-2']!.params!.items, '<start.teams>')
  const inside = edit(doc, {
    type: 'paste',
    clip: copy(doc, ['start', 'tally']),
    at: absoluteAt(doc, 'play'),
    parent: 'rounds',
  })
  assert.equal(inside.blocks['tally-2']!.parent, 'rounds')
  assert.equal('start-2' in inside.blocks, false)
  holds(inside, 'rounds')
  holds(inside, 'teams')
  assert.equal(readClip('hello'), null)
  assert.equal(readClip('{"blocks": {"a": 1}}'), null)
})

test('edges: each reason in words', () => {
  const { document: doc } = recorded('nested')
  const why = (source: string, target: string, handle = 'out'): string | null =>
    checkEdge(doc, { source, target, handle }, specs)
  assert.match(why('winner', 'start')!, /is a trigger/)
  assert.match(why('winner', 'teams')!, /cycle/)
  assert.match(why('start', 'play')!, /border/)
  assert.match(why('start', 'teams')!, /already/)
  assert.match(why('rounds', 'play')!, /inner left side/)
  assert.match(why('play', 'play')!, /itself/)
  assert.match(why('play', 'tally', 'nope')!, /border|no handle/)
  assert.equal(why('rounds', 'tally', 'error'), null)
  assert.equal(why('teams', 'tally', 'body'), null)
})

test('a case that is gone takes its edges; one that is renamed keeps them', () => {
  const { document: doc } = recorded('expense-approval')
  const renamed = edit(doc, { type: 'renameHandle', id: 'check', from: 'large', to: 'big' })
  assert.deepEqual(handlesOf(renamed.blocks.check!, specs), ['small', 'big', 'error'])
  assert.ok(indexOf(renamed).edge.has('check:big>ask'))
  const cases = (doc.blocks.check!.params!.cases as Json[]).slice(0, 1)
  const fewer = edit(doc, { type: 'setParams', id: 'check', params: { cases } })
  assert.deepEqual(
    fewer.edges.filter((e) => e.source === 'check').map((e) => e.handle),
    ['small'],
  )
})

test('replacing the document keeps what is equal', () => {
  const { document: doc } = recorded('nested')
  const changed = JSON.parse(text(doc)) as Document
  changed.blocks.play!.name = 'Other'
  const next = edit(doc, { type: 'replaceDoc', doc: changed })
  assert.equal(next.blocks.tally, doc.blocks.tally)
  assert.equal(next.edges, doc.edges)
  assert.equal(next.blocks.play!.name, 'Other')
  assert.equal(edit(doc, { type: 'replaceDoc', doc: JSON.parse(text(doc)) as Document }), doc)
})

function holds(doc: Document, container: string): void {
  const [w, h] = sizeOf(doc.blocks[container]!, specs.get(doc.blocks[container]!.type))
  for (const child of indexOf(doc).children.get(container) ?? []) {
    const [x, y] = doc.blocks[child]!.at!
    const [cw, ch] = sizeOf(doc.blocks[child]!, specs.get(doc.blocks[child]!.type))
    assert.ok(
      x >= 0 && y >= 0 && x + cw <= w && y + ch <= h,
      `${child} in ${container}: ${[x, y, cw, ch]} in ${[w, h]}`,
    )
  }
}

/** What must hold after every command. */
function wellFormed(doc: Document, seed: number): void {
  for (const edge of doc.edges) {
    assert.ok(doc.blocks[edge.source] && doc.blocks[edge.target], `seed ${seed}: an edge hangs in the air`)
    const inside =
      edge.handle === 'body' || (edge.handle === 'finally' && kindOf(doc, edge.source, specs))
        ? parentOf(doc, edge.target) === edge.source
        : parentOf(doc, edge.source) === parentOf(doc, edge.target)
    assert.ok(inside, `seed ${seed}: ${edge.source} -> ${edge.target} crosses a border`)
  }
  for (const [id, block] of Object.entries(doc.blocks))
    if (block.parent) assert.ok(kindOf(doc, block.parent, specs), `seed ${seed}: ${id} is in ${block.parent}`)
}

function anyCommand(doc: Document, rnd: () => number, n: number): Command {
  const one = <T>(list: readonly T[]): T => list[Math.floor(rnd() * list.length)]!
  const ids = Object.keys(doc.blocks)
  const some = (): string[] => ids.filter(() => rnd() < 0.3)
  const point = (): Point => [Math.round(rnd() * 60) * 16 - 200, Math.round(rnd() * 40) * 16 - 200]
  const containers = ['', ...ids.filter((id) => kindOf(doc, id, specs))]
  if (!ids.length) return { type: 'addBlock', id: `new-${n}`, block: { type: 'set', at: [0, 0] } }
  const makers: (() => Command)[] = [
    () => {
      const parent = one(containers)
      const near = one(ids)
      const type = one(['set', 'condition', 'loop', 'parallel', 'approval'])
      const edges =
        parentOf(doc, near) === parent && doc.blocks[near]!.type !== 'condition'
          ? [{ source: near, target: `new-${n}` }]
          : []
      return {
        type: 'addBlock',
        id: `new-${n}`,
        block: { type, name: `New ${n}`, at: point(), ...(parent ? { parent } : {}) },
        edges,
      }
    },
    () => ({ type: 'removeBlocks', ids: some().slice(0, 2) }),
    () => ({ type: 'moveBlocks', to: Object.fromEntries(some().map((id) => [id, point()])) }),
    () => ({ type: 'resize', id: one(ids), size: [480, 320] }),
    () => ({
      type: 'setParam',
      id: one(ids),
      path: ['value'],
      value: one<Json | undefined>(['<Start.x>', undefined, { a: [1] }, `<${doc.blocks[one(ids)]!.name ?? 'x'}.y>`]),
    }),
    () => ({
      type: 'setParams',
      id: one(ids),
      params: { cases: [{ id: 'a', when: 'true' }, { id: `b${Math.floor(rnd() * 3)}` }] as Json[] },
    }),
    () => ({ type: 'rename', id: one(ids), name: one(['Draft', `Name ${n}`, 'Start', 'odd [x]', 'Rounds']) }),
    () => ({ type: 'renameHandle', id: one(ids), from: 'approve', to: 'yes' }),
    () => ({
      type: 'setPolicy',
      id: one(ids),
      policy: { timeout_s: one([undefined, 5]), skip_if: one([undefined, '<Start.x> > 1']) },
    }),
    () => ({ type: 'setBlock', id: one(ids), fields: { assign: one([undefined, '$.x']) } }),
    () => ({ type: 'setEnabled', ids: some(), enabled: rnd() < 0.5 }),
    () => {
      for (let i = 0; i < 20; i++) {
        const source = one(ids)
        const handle = one(handlesOf(doc.blocks[source]!, specs).concat('out'))
        const edge = { source, target: one(ids), handle }
        if (!checkEdge(doc, edge, specs)) return { type: 'addEdge', edge }
      }
      return { type: 'setMeta', meta: { description: `d${n}` } }
    },
    () => ({
      type: 'removeEdges',
      ids: indexOf(doc)
        .edges.filter(() => rnd() < 0.2)
        .map((e) => e.id),
    }),
    () => ({ type: 'reparent', ids: some().slice(0, 3), parent: one(containers) }),
    () => ({ type: 'reparent', ids: [one(ids)], parent: one(containers), to: { [one(ids)]: point() } }),
    () => ({
      type: 'paste',
      clip: copy(doc, some().slice(0, 2), (doc.notes ?? []).map(noteId)),
      at: point(),
      parent: one(containers),
    }),
    () => ({ type: 'replaceDoc', doc: { ...doc, description: `other ${n}` } }),
    () => ({ type: 'setMeta', meta: { name: `n${n}`, variables: { x: n } } }),
    () => ({ type: 'addNote', note: { id: `note-${n}`, text: 'hi', at: point() } }),
    () => ({ type: 'setNote', id: `note-${n - 1}`, note: { text: 'changed' } }),
    () => ({ type: 'removeNotes', ids: [`note-${n - 2}`] }),
    () => ({ type: 'tidy', at: Object.fromEntries(ids.map((id) => [id, point()])) }),
    () => ({
      type: 'batch',
      commands: [anyCommand(doc, rnd, n + 1000), { type: 'setMeta', meta: { description: 'batch' } }],
    }),
  ]
  return one(makers)()
}

test('a variable gets another name: references, assignments and nothing else follow, in one step', () => {
  const doc: Document = {
    format: 'weft/1',
    variables: { a: 1, total: 0, total_2: 5 },
    blocks: {
      start: { type: 'start' },
      add: {
        type: 'variables',
        params: {
          assign: [
            { name: 'total', op: 'increment', value: '<workflow.total_2>' },
            { name: '$.total.items[0]', value: 'total' },
            { name: '$["total"]', value: 1 },
            { name: 'a', value: '<variable.Total ?? 0>' },
          ],
        },
      },
      short: { type: 'variables', params: { assign: { total: '<workflow.total>', a: 2 } } },
      read: {
        type: 'function',
        assign: '$.total',
        params: { code: 'return <workflow.total> + <workflow.total_2> + total' },
        policy: { skip_if: '<workflow.total> > 3', cache: { key: '<workflow.total>' } },
      },
      other: { type: 'set', params: { value: '<total.x> and workflow.total' } },
    },
    edges: [],
  }
  const [next, inverse] = applyCommand(doc, { type: 'renameVariable', from: 'total', to: 'sum' }, specs)
  assert.deepEqual(Object.keys(next.variables!), ['a', 'sum', 'total_2'])
  assert.deepEqual(
    (next.blocks.add!.params!.assign as { name: string; value: Json }[]).map((item) => [item.name, item.value]),
    [
      ['sum', '<workflow.total_2>'],
      ['$.sum.items[0]', 'total'],
      ['$.sum', 1],
      ['a', '<variable.sum ?? 0>'],
    ],
  )
  assert.deepEqual(next.blocks.short!.params!.assign, { sum: '<workflow.sum>', a: 2 })
  assert.equal(next.blocks.read!.assign, '$.sum')
  assert.equal(next.blocks.read!.params!.code, 'return <workflow.sum> + <workflow.total_2> + total')
  assert.deepEqual(next.blocks.read!.policy, { skip_if: '<workflow.sum> > 3', cache: { key: '<workflow.sum>' } })
  assert.equal(next.blocks.other, doc.blocks.other)
  assert.equal(applyCommand(next, inverse, specs)[0], doc)
  assert.equal(edit(doc, { type: 'renameVariable', from: 'total', to: 'a' }), doc)
  assert.equal(edit(doc, { type: 'renameVariable', from: 'none', to: 'b' }), doc)
})

test('params of any block type may make handles, when their hints say so', () => {
  const spec = {
    type: 'sorter',
    title: 'Sorter',
    description: '',
    category: 'flow',
    handles: [],
    container: null,
    trigger: false,
    output: null,
    effect: 'none',
    attempts: 1,
    timeout_ms: 1,
    sentence: '',
    icon: '',
    params: {
      properties: {
        rest: { 'x-ui': { handles: 'value', order: 3 } },
        bins: { 'x-ui': { handles: 'id', order: 1 } },
        words: { default: ['yes', 'no'], 'x-ui': { handles: 'items', order: 2 } },
      },
    },
  } as const
  const own = new Map([...specs, ['sorter', spec as unknown as BlockSpec]])
  const doc: Document = {
    format: 'weft/1',
    blocks: {
      s: { type: 'sorter', params: { bins: [{ id: 'big', title: 'Large' }, { id: 'small' }], rest: 'rest' } },
      a: { type: 'set' },
    },
    edges: [
      { source: 's', target: 'a', handle: 'big' },
      { source: 's', target: 'a', handle: 'rest' },
    ],
  }
  assert.deepEqual(handlesOf(doc.blocks.s!, own), ['big', 'small', 'yes', 'no', 'rest', 'error'])
  assert.equal(checkEdge(doc, { source: 's', target: 'a', handle: 'small' }, own), null)
  assert.match(checkEdge(doc, { source: 's', target: 'a', handle: 'out' }, own)!, /no handle “out”/)
  const renamed = applyCommand(doc, { type: 'renameHandle', id: 's', from: 'rest', to: 'others' }, own)[0]
  assert.deepEqual([renamed.edges[1]!.handle, renamed.blocks.s!.params!.rest], ['others', 'others'])
  const without = applyCommand(doc, { type: 'setParams', id: 's', params: { bins: [{ id: 'small' }] } }, own)[0]
  assert.deepEqual(
    without.edges.map((edge) => edge.handle),
    ['rest'],
  )
})
