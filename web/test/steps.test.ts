// The steps of a block in the trace: a row each, below the block, with a bar; found by name.

import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import type { WireEvent } from '../src/api/types'
import { timeScale } from '../src/watch/tape/timeScale'
import { segmentsOf } from '../src/watch/trace/bars'
import { traceIndex, traceRows } from '../src/watch/trace/rows'
import { emptyFold, fold, shapeOf, usedShort, usedText } from '../src/run'
import { triesText } from '../src/watch/tries'
import { specs } from './help'

const streams = JSON.parse(
  readFileSync(join(process.env.WEFT_WEB_ROOT!, '..', 'tests', 'vectors', 'runs.json'), 'utf8'),
) as { name: string; events: WireEvent[] }[]
const { events } = streams.find(({ name }) => name === 'steps')!
const view = fold(emptyFold(shapeOf(null, specs)), events)
const rows = (query = '', folded = new Map<string, boolean>()): ReturnType<typeof traceRows> =>
  traceRows(traceIndex(view), null, folded, new Set(), query)

test('each step is a row below its block, in order', () => {
  assert.deepEqual(
    rows().map((row) => [row.label, row.depth, row.status]),
    [
      ['start', 0, 'succeeded'],
      ['a', 0, 'succeeded'],
      ['look', 1, 'succeeded'],
      ['fail', 1, 'failed'],
      ['sure?', 1, 'succeeded'],
      ['ask', 1, 'succeeded'],
    ],
  )
  assert.equal(rows('', new Map([['a', false]])).length, 2)
})

test('a step is found by its name, with the block around it', () => {
  assert.deepEqual(
    rows('sure').map((row) => row.label),
    ['a', 'sure?'],
  )
})

test('the entry that left for a wait is no failure, and the wait is drawn as one', () => {
  const now = events.at(-1)!.at_ms
  const block = rows().find((row) => row.id === 'a')!
  const tones = segmentsOf(block, timeScale(events, now), now).map((each) => each.tone)
  assert.deepEqual(tones.slice(0, 2), ['ok', 'wait'])
})

test('what was used is said once for all steps', () => {
  const { steps } = view.nodes.get('a')!
  assert.equal(usedText([...steps, ...steps]), '14 input tokens, $0.5')
  assert.equal(usedText([]), '')
  assert.equal(usedShort([...steps, ...steps]), '14 tokens, $0.5')
  const [one, two, three] = [0.1, 0.1, 0.1].map((cost) => ({ usage: { input_tokens: 1 }, cost }))
  assert.equal(usedShort([one!, two!, three!]), '3 tokens, $0.3')
  assert.equal(usedShort([{ usage: { output_tokens: 1200 }, cost: null }]), '1,200 tokens, no price known')
  assert.equal(
    usedText([one!, { usage: { output_tokens: 1 }, cost: null }].slice(1)),
    '1 output tokens, no price known',
  )
})

test('a step that pauses shows how often it was tried, and when it is tried next', () => {
  const { events } = streams.find(({ name }) => name === 'left')!
  const pause = events.findLastIndex(({ type }) => type === 'step.retrying')
  const { steps } = fold(emptyFold(shapeOf(null, specs)), events.slice(0, pause + 1)).nodes.get('a')!
  const step = steps.find(({ status }) => status === 'retrying')!
  assert.deepEqual([step.times, step.dueAt, step.error?.code], [2, events[pause]!.data.due_ms, 'function_failed'])
  assert.match(triesText(step), /^2 tries, next at /)
  const after = fold(emptyFold(shapeOf(null, specs)), events)
    .nodes.get('a')!
    .steps.find(({ n }) => n === step.n)!
  assert.deepEqual([after.status, after.dueAt, triesText(after)], ['succeeded', null, '3 tries'])
})
