import assert from 'node:assert/strict'
import { test } from 'node:test'
import { emptyFold, fold, shapeOf } from '../src/run'
import type { NodeDiff, RunDiff } from '../src/api/schemas'
import { changedWords, futuresOf, sharedEvents } from '../src/watch/tape/differing'
import { firstDifference } from '../src/watch/tape/firstDifference'
import { futuresOnAxis, LEFT, type Side } from '../src/watch/tape/futures'
import type { Json } from '../src/api/schemas'
import type { WireEvent } from '../src/api/types'
import { callsText, endOf, momentOf, momentText, partsOf, pointOf, valueNow } from '../src/watch/tape/rewind'
import { NO_CHANGES } from '../src/watch/tape/rewindStore'
import { recorded, RUNS, specs } from './help'

const WIDTH = 1100

for (const name of RUNS)
  test(`${name}: two runs lie on one axis, the same up to where they part`, () => {
    const run = recorded(name)
    const side = (events: typeof run.events, split: number): Side => ({
      view: fold(emptyFold(shapeOf(run.document, specs)), events),
      log: events,
      doc: run.document,
      split,
    })
    const half = Math.floor(run.events.length / 2)
    for (const split of [0, half, run.events.length]) {
      const futures = futuresOnAxis(
        side(run.events.slice(0, Math.max(split, half + 1)), split),
        side(run.events, split),
        WIDTH,
      )
      for (const { xs } of [futures.before, futures.now]) {
        for (let i = 1; i < xs.length; i++) assert.ok(xs[i]! >= xs[i - 1]!, `event ${i + 1}`)
        assert.ok(xs.every((x) => x >= LEFT - 1 && x <= WIDTH))
      }
      assert.deepEqual([...futures.before.xs.slice(0, split)], [...futures.now.xs.slice(0, split)])
      for (const row of futures.shared) for (const span of row) assert.ok(span.to !== null && span.to <= split)
      for (const row of futures.now.rows) for (const span of row) assert.ok(span.from > split)
    }
  })

const ended = { status: 'succeeded', attempt: 1, route: 'out', error: null }
const node = (key: string, output: NodeDiff['output'], route = 'out'): NodeDiff => ({
  key,
  a: ended,
  b: { ...ended, route },
  output,
  more: false,
})
const event = (seq: number, key: string) => ({ seq, type: 'node.succeeded', key, attempt: 1, data: {}, output: null })
const same: RunDiff = {
  a: { run: 'run-a', workflow: 'x', version: 1, status: 'succeeded', seq: 9 },
  b: { run: 'run-b', workflow: 'x', version: 1, status: 'succeeded', seq: 9 },
  same: true,
  same_plan: true,
  diverged: null,
  nodes: [],
  only_a: [],
  only_b: [],
  equal: 3,
  differing: 0,
  input: [],
  output: [],
}

test('the first difference is of the block where the two part', () => {
  assert.equal(firstDifference(same, null, emptyFold(), emptyFold()), null)
  const value = [{ pointer: '/amount', a: '84', b: '20' }]
  const diff = {
    ...same,
    diverged: { a: event(7, 'refund'), b: event(5, 'refund'), fields: ['output'] },
    nodes: [node('other', [{ pointer: '', a: '1', b: '2' }]), node('refund', value)],
  }
  assert.deepEqual(firstDifference(diff, null, emptyFold(), emptyFold()), {
    name: 'refund.amount',
    before: '84',
    now: '20',
    seqs: [7, 5],
  })
  assert.deepEqual(sharedEvents(diff, new Array(9), new Array(9)), [6, 4])
  assert.deepEqual(sharedEvents(same, new Array(9), new Array(8)), [9, 8])
  // A fork with other params: the record of a call that it reuses differs, and the call is shared.
  const begun = { ...event(3, 'a'), type: 'step.started' }
  const params = { ...same, diverged: { a: begun, b: begun, fields: ['data'] } }
  assert.deepEqual(sharedEvents(params, new Array(9), new Array(9), 6), [6, 6])
  const at5 = { name: 'x', before: '1', now: '2', seqs: [5, 5] as [number, number] }
  assert.deepEqual(sharedEvents(params, new Array(9), new Array(9), 6, at5), [4, 4])
  assert.deepEqual(sharedEvents(diff, new Array(9), new Array(9), 8), [6, 4])
  const branch = { ...diff, nodes: [node('if@l#1', [], 'no')] }
  assert.equal(firstDifference(branch, null, emptyFold(), emptyFold())!.now, 'no')
})

test('rows that say nothing of either run are left out', () => {
  const run = recorded('failing')
  const view = fold(emptyFold(shapeOf(run.document, specs)), run.events)
  const rows = futuresOf(view, view, [run.events[0]!.at_ms, run.events[0]!.at_ms], 2, run.document).map(
    ([name]) => name,
  )
  assert.deepEqual(rows, ['Result', 'Took', 'Shared'])
})

const reply = (text: string, amount: number): Json => ({ text, calls: [{ name: 'refund', arguments: { amount } }] })
/** An agent that looks up an order, asks a person, and refunds. */
function talk(amount: number): WireEvent[] {
  const rows: [string, object][] = [
    ['node.started', {}],
    ['step.started', { n: 1, kind: 'model', name: 'dev:x' }],
    ['step.finished', { n: 1, output: { text: 'I look', calls: [{ name: 'find', arguments: { no: 7 } }] } }],
    ['step.started', { n: 2, kind: 'tool', name: 'find' }],
    ['step.finished', { n: 2, output: 'late' }],
    ['step.started', { n: 3, kind: 'model', name: 'dev:x' }],
    ['step.finished', { n: 3, output: reply('I pay', amount) }],
    ['step.started', { n: 4, kind: 'wait', name: 'approve refund' }],
    ['step.finished', { n: 4, output: { action: 'approve' } }],
    ['step.started', { n: 5, kind: 'tool', name: 'refund', effect: 'write' }],
    ['step.finished', { n: 5, output: 'paid' }],
  ]
  return rows.map(([type, data], i) => ({
    ...{ run: 'r', seq: i + 1, at_ms: i, type, node: 'a', block: 'a', path: '', key: 'a', attempt: 1 },
    data,
  })) as WireEvent[]
}
const viewAt = (seq: number, amount = 84) => fold(emptyFold(), talk(amount).slice(0, seq))

test('the first difference inside an agent is of the call that has other arguments', () => {
  const diff = { ...same, diverged: { a: event(7, 'a'), b: event(7, 'a'), fields: ['output'] } }
  const found = firstDifference(diff, null, viewAt(11), viewAt(11, 20))
  assert.deepEqual(found, { name: 'refund.amount', before: '84', now: '20', seqs: [7, 7] })
  assert.equal(firstDifference({ ...same, diverged: diff.diverged }, null, viewAt(11), viewAt(11)), null)
})

test('what two runs never have the same is no difference, nor is what one of them has not reached', () => {
  const value = (pointer: string, a: string | null, b: string | null) => ({ pointer, a, b })
  const ids = { a: { ...same.a, run: 'run-1' }, b: { ...same.b, run: 'run-2' } }
  const noise = node('a', [value('/headers/date', '1', '2'), value('/body/key', '"run-1:a#1"', '"run-2:a#1"')])
  const words = { name: 'Prompt', before: 'Where is 1042?', now: 'Where is 1043?' }
  const diff = { ...same, ...ids, nodes: [noise], output: [value('', '{"paid":20}', null)] }
  assert.equal(firstDifference(diff, null, viewAt(11), viewAt(8)), null)
  assert.equal(firstDifference(diff, null, viewAt(11), viewAt(8), words)!.now, 'Where is 1043?')
  const ended = { ...viewAt(11), status: 'succeeded' as const }
  const result = firstDifference({ ...diff, output: [value('/paid', '20', '5')] }, null, ended, ended)!
  assert.deepEqual([result.name, result.before, result.now], ['result.paid', '20', '5'])
})

test('a turn that has just asked the model offers what the turn before it brought', () => {
  const view = viewAt(6)
  const moment = momentOf(view, null)!
  const parts = partsOf(moment, { prompt: 'Where is it?' }, NO_CHANGES)
  assert.equal(momentText(moment, 'Support'), 'Rewound to turn 2 of Support')
  assert.deepEqual(
    parts.map((part) => part.label),
    ['Prompt', 'Result of find, turn 1'],
  )
  const changes = parts[1]!.put!('in time')
  assert.deepEqual([changes.steps, pointOf(moment, changes)], [{ 2: 'in time' }, { node: 'a', step: 2 }])
})

test('of an answer over HTTP its body is changed, and the rest of it stays', () => {
  const answer = { status: 200, headers: { date: 'now' }, body: { state: 'late' } }
  const events = talk(84).map((event) =>
    event.seq === 5 ? ({ ...event, data: { n: 2, output: answer } } as unknown as WireEvent) : event,
  )
  const moment = momentOf(fold(emptyFold(), events.slice(0, 5)), null)!
  const part = partsOf(moment, {}, NO_CHANGES).find((each) => each.label === 'Result of find')!
  assert.deepEqual(part.value, { state: 'late' })
  const changes = part.put!({ state: 'sent' })
  assert.deepEqual(changes.steps, { 2: { ...answer, body: { state: 'sent' } } })
  assert.deepEqual(valueNow(part, changes), { state: 'sent' })
})

test('a rewind unfolds the turn at the playhead, and begins before it asks the model', () => {
  assert.equal(momentOf(viewAt(1), null), null)
  const words = { system: 'Be kind', prompt: 'Where is it?' }
  const labels = (seq: number) => partsOf(momentOf(viewAt(seq), null)!, words, NO_CHANGES).map((part) => part.label)
  assert.deepEqual(labels(2), ['Instructions', 'Prompt'])
  assert.deepEqual(labels(5).slice(2), ['Turn 1 wrote', 'Calls find with', 'Result of find'])
  const moment = momentOf(viewAt(11), null)!
  assert.equal(momentText(moment, 'Support'), 'Rewound to turn 2 of Support')
  assert.deepEqual(labels(11).slice(2), [
    'Turn 2 wrote',
    'Calls refund with',
    'Answer about refund',
    'Result of refund',
  ])
  assert.deepEqual(labels(8).at(-1), 'A person is asked about refund')
  assert.deepEqual(pointOf(moment, NO_CHANGES), { seq: 5 })
  assert.equal(endOf(moment.node, moment.turns[0]!), 5)
})

test('a change of a turn takes back those of steps before and after it', () => {
  const moment = momentOf(viewAt(11), null)!
  const part = (label: string, changes = NO_CHANGES) =>
    partsOf(moment, { prompt: 'Where is it?' }, changes).find((each) => each.label === label)!
  const answered = part('Answer about refund').put!({ action: 'reject' })
  assert.deepEqual(answered.steps, { 4: { action: 'reject' } })
  assert.deepEqual(pointOf(moment, answered), { node: 'a', step: 4 })
  const called = part('Calls refund with', answered).put!({ amount: 5 })
  assert.deepEqual(called.steps, { 3: reply('I pay', 5) })
  assert.deepEqual(valueNow(part('Calls refund with', called), called), { amount: 5 })
  const both = part('Turn 2 wrote', called).put!('I pay less')
  assert.deepEqual(both.steps, { 3: reply('I pay less', 5) })
  const back = part('Calls refund with', both).put!({ amount: 84 })
  assert.deepEqual(part('Turn 2 wrote', back).put!('I pay'), NO_CHANGES)
  const asked = part('Prompt').put!('Where?')
  assert.deepEqual([asked.params, part('Prompt', asked).put!('Where is it?').params], [{ prompt: 'Where?' }, {}])
})

test('what Continue would do is named, and changed words are found', () => {
  const call = { key: 'a', n: 5, kind: 'tool', name: 'refund', effect: 'write' }
  assert.match(callsText({ again: [call], more: false }), /^1 step may run again, 1 of them outside: refund\.$/)
  assert.match(callsText({ again: [], more: false }), /not run before/)
  assert.deepEqual(changedWords('Refund late orders.', 'Refund shipping of late orders.'), [
    { text: 'Refund ', changed: false },
    { text: 'shipping of ', changed: true },
    { text: 'late orders.', changed: false },
  ])
})
