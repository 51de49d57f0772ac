import assert from 'node:assert/strict'
import { test } from 'node:test'
import { describe, nodeText } from '../src/watch/events/describe'
import { placeOf } from '../src/run'
import { BIN_ABOVE, heightOf, PAD_X, seqAt, tapeLayout, xOf } from '../src/watch/tape/layout'
import { readMoment } from '../src/watch/tape/moment'
import { paint, type Colours } from '../src/watch/tape/paint'
import { clockText, durationText, roughly } from '../src/ui/time'
import { IDLE_MS, timeScale } from '../src/watch/tape/timeScale'
import type { Document, WireEvent } from '../src/api/types'
import { random, recorded, RUNS } from './help'

/** Events at these times. */
function log(times: readonly number[], type = 'node.started'): WireEvent[] {
  return times.map((at, i) => ({
    run: 'r',
    seq: i + 1,
    at_ms: at,
    type,
    node: 'a',
    block: 'a',
    path: '',
    key: 'a',
    attempt: 1,
    data: {},
  }))
}

const WIDTH = 1200
const never = (xs: Float64Array): void => {
  for (let i = 1; i < xs.length; i++) assert.ok(xs[i]! >= xs[i - 1]!, `event ${i + 1} lies left of the one before`)
}

for (const axis of ['order', 'time'] as const) {
  test(`by ${axis}: every event lies on the Tape, in order, and is found where it lies`, () => {
    const next = random(7)
    for (let turn = 0; turn < 60; turn++) {
      let at = 1000
      const events = log(
        Array.from(
          { length: 1 + Math.floor(next() * 400) },
          () => (at += next() < 0.04 ? 60_000 * next() : 200 * next()),
        ),
      )
      const layout = tapeLayout(events, WIDTH, axis, at + 500)
      never(layout.xs)
      assert.ok(layout.xs[0]! >= PAD_X - 0.01 && layout.xs.at(-1)! <= WIDTH - PAD_X + 0.01)
      for (let seq = 1; seq <= events.length; seq++) {
        const found = seqAt(layout, xOf(layout, seq))
        assert.equal(layout.xs[found - 1], layout.xs[seq - 1], `seq ${seq} of ${events.length}`)
      }
      assert.equal(seqAt(layout, 0), 0)
      assert.equal(layout.xs[seqAt(layout, WIDTH) - 1], layout.xs.at(-1))
    }
  })
}

test('an idle stretch takes a labelled break, not its length', () => {
  const layout = tapeLayout(log([0, 100, 200, 200 + 180_000, 180_400]), WIDTH, 'order', 0)
  assert.deepEqual(
    layout.breaks.map(({ ms, label }) => ({ ms, label })),
    [{ ms: 180_000, label: true }],
  )
  const [, , before, after] = layout.xs
  assert.ok(after! - before! < 200)
  assert.ok(layout.breaks[0]!.x > before! && layout.breaks[0]!.x < after!)
  assert.equal(tapeLayout(log([0, IDLE_MS]), WIDTH, 'order', 0).breaks.length, 0)
})

test('above 2,000 events there are bars, and a failure is on top of its bar', () => {
  const events = log(
    Array.from({ length: BIN_ABOVE + 500 }, (_, i) => i),
    'node.succeeded',
  )
  assert.equal(tapeLayout(events.slice(0, BIN_ABOVE), WIDTH, 'order', 0).bars, null)
  events[1200] = { ...events[1200]!, type: 'node.failed' }
  const { bars } = tapeLayout(events, WIDTH, 'order', 0)
  assert.ok(bars && bars.length < WIDTH / 2)
  assert.equal(
    bars.reduce((sum, bar) => sum + bar.count, 0),
    events.length,
  )
  const failed = bars.filter((bar) => bar.top === 'err')
  assert.equal(failed.length, 1)
  assert.ok(failed[0]!.first <= 1201 && failed[0]!.last >= 1201)
  assert.equal(failed[0]!.tone, 'ok')
})

test('an empty tape and one event', () => {
  assert.equal(seqAt(tapeLayout([], WIDTH, 'order', 0), 300), 0)
  const one = tapeLayout(log([5]), WIDTH, 'time', 5)
  assert.equal(seqAt(one, one.xs[0]!), 1)
})

test('heights: the run, its blocks, attempts', () => {
  const of = (type: string, attempt = 1): number => heightOf({ ...log([0])[0]!, type, attempt })
  assert.deepEqual(
    [of('run.started'), of('node.started'), of('node.started', 2), of('scope.opened'), of('something.new')],
    [22, 14, 10, 10, 10],
  )
})

test('the time axis goes from 0 to 1, and a gap has its share', () => {
  const events = log([0, 1000, 601_000, 602_000])
  const scale = timeScale(events, 602_000)
  assert.equal(scale.at(0), 0)
  assert.ok(Math.abs(scale.at(602_000) - 1) < 1e-9)
  assert.equal(scale.gaps.length, 1)
  assert.ok(Math.abs(scale.at(1000) - 0.42) < 0.001 && Math.abs(scale.at(601_000) - 0.58) < 0.001)
  let before = -1
  for (let at = 0; at <= 602_000; at += 1500) {
    assert.ok(scale.at(at) >= before)
    before = scale.at(at)
  }
})

test('d07: a short run takes the width of the Tape', () => {
  const { xs } = tapeLayout(log(Array.from({ length: 16 }, (_, i) => i)), WIDTH, 'order', 0)
  assert.ok(xs.at(-1)! > WIDTH * 0.9)
})

test('an event names branches by their titles, iterations by their number', () => {
  const doc = {
    format: 'weft/1',
    name: 'x',
    edges: [],
    blocks: {
      which: {
        type: 'condition',
        name: 'Which',
        params: { cases: [{ id: 'big-1000', title: 'Big order', when: 'true' }] },
      },
      review: { type: 'loop', name: 'Review' },
      teams: { type: 'parallel', name: 'Teams' },
    },
  } as Document
  const said = (type: string, block: string, data: WireEvent['data'], node = block): string =>
    describe({ ...log([0])[0]!, type, block, node, data }, doc)
  assert.equal(said('node.succeeded', 'which', { route: 'big-1000' }), 'Which succeeded. Branch taken: Big order')
  assert.equal(said('scope.opened', 'review', { first: 1, count: 1 }), 'Review: iteration 2 started')
  assert.equal(said('scope.opened', 'teams', { first: 0, count: 3 }), 'Teams: branches 1 to 3 started')
  assert.equal(said('node.started', 'review', {}, 'review:end'), 'Review: loop condition checked')
  assert.equal(said('node.skipped', 'which', { reason: 'pruned' }), 'Which skipped: branch not taken')
  assert.equal(said('run.parked', 'which', {}), 'Run paused')
  const started = (by?: string): string =>
    describe({ ...log([0])[0]!, type: 'run.started', block: null, node: null, data: { by } }, doc)
  assert.deepEqual([undefined, 'user:ada', 'token:tk_1', 'server-token'].map(started), [
    'Run started',
    'Run started by ada',
    'Run started by token tk_1',
    'Run started by the token of the server',
  ])
  assert.equal(said('run.started', '', { continues: 'r1' }), 'Run started, continues run r1')
  assert.equal(
    said('run.finished', '', { status: 'succeeded', continued_as: 'r2' }),
    'Run succeeded, continued as run r2',
  )
})

test('a node key in words', () => {
  const doc = {
    format: 'weft/1',
    edges: [],
    blocks: {
      send: { type: 'email', name: 'Send' },
      review: { type: 'loop', name: 'Review' },
      fan: { type: 'parallel', name: 'Fan' },
    },
  } as Document
  assert.equal(nodeText('send@review#5/fan[2]', doc), 'Send in branch 3 of Fan, iteration 6 of Review')
  assert.equal(nodeText('review:end', doc), 'Review')
})

test('times in words', () => {
  assert.deepEqual([0, 999, 1000, 41_230, 60_000, 200_000, 7_500_000, 100_000_000].map(durationText), [
    '0 ms',
    '999 ms',
    '1.0 s',
    '41.2 s',
    '1 min',
    '3 min 20 s',
    '2 h 5 min',
    '1 d 3 h',
  ])
  assert.deepEqual([3000, 85_000, 185_000, 7_300_000, 300_000_000].map(roughly), ['3 s', '85 s', '3 min', '2 h', '3 d'])
  const week = 7 * 86_400_000
  assert.deepEqual([week, week - 1, week - 5000, week - 3_600_000].map(roughly), ['7 d', '7 d', '7 d', '7 d'])
  assert.deepEqual([41_208, 3_723_000].map(clockText), ['00:41.208', '1:02:03'])
})

test('every event of real runs is a sentence with names, and no id is left in it', () => {
  for (const name of RUNS) {
    const { document, events } = recorded(name)
    for (const event of events) {
      const text = describe(event, document)
      assert.ok(text && !/undefined|null|\[object/.test(text), `${name} ${event.seq}: ${text}`)
      if (event.block && document.blocks[event.block]?.name)
        assert.ok(text.startsWith(document.blocks[event.block]!.name!), text)
    }
  }
})

test('places are counted from 1, inner ones first', () => {
  assert.equal(placeOf('teams[1]/rounds#2', null), 'iteration 3 of rounds, branch 2 of teams')
  assert.equal(placeOf('', null), '')
})

test('a moment is read from an address, and nonsense is ignored', () => {
  assert.deepEqual(
    readMoment(new URLSearchParams('seq=79&block=score&step=4&iter=review:6,teams:1&with=r2&rewind=1')),
    {
      seq: 79,
      block: 'score',
      step: 4,
      iter: { review: 6, teams: 1 },
      with: 'r2',
      rewind: true,
    },
  )
  assert.deepEqual(readMoment(new URLSearchParams('seq=x&step=-1&iter=a:-1,:3,b')), {
    seq: null,
    block: null,
    step: null,
    iter: {},
    with: null,
    rewind: false,
  })
})

/** What is written below the line of a Tape. */
function writtenBelow(times: readonly number[]): string[] {
  const events = log(times)
  const layout = tapeLayout(events, 1400, 'order', 0)
  const texts: string[] = []
  const ctx = new Proxy(
    {},
    {
      get: (_, name) =>
        name === 'measureText'
          ? (text: string) => ({ width: text.length * 6 })
          : (text: unknown, _x: number, y: number) => void (name === 'fillText' && y > 50 && texts.push(String(text))),
      set: () => true,
    },
  ) as CanvasRenderingContext2D
  paint(
    ctx,
    { layout, log: events, seq: 0, live: true, hover: null, block: null, strip: false, idleMs: 0 },
    {} as Colours,
  )
  return texts
}

test('a moment that events share is written once below the Tape', () => {
  const texts = writtenBelow([797, 804, 804, 804, 804, 804, 807, 807, 809].map((ms) => 1_700_000_000_000 + ms))
  assert.deepEqual(texts.map((text) => text.slice(-3)).sort(), ['797', '804', '807', '809'])
})
