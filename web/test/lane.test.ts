// The recorded lane of tests/vectors: the fold of the editor has the items that the server has.

import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import type { LaneItem as Wire, LaneTask as WireTask } from '../src/api/schemas'
import type { WireEvent } from '../src/api/types'
import { emptyFold, fold } from '../src/run'
import { columnsOf, laneItems, tasksOf, type LaneItem } from '../src/run/lane'

const { events, lanes } = JSON.parse(
  readFileSync(join(process.env.WEFT_WEB_ROOT!, '..', 'tests', 'vectors', 'lanes.json'), 'utf8'),
) as { events: WireEvent[]; lanes: { seq: number; tasks: WireTask[]; items: Wire[] }[] }

for (const { seq, tasks, items } of lanes) {
  test(`after event ${seq} the lane is that of the server`, () => {
    const ours = laneItems(fold(emptyFold(), events.slice(0, seq)), ['body', 'undo'])
    assert.deepEqual(ours.map(wire), items.map(whole))
    assert.deepEqual(
      tasksOf(ours).map(({ task, above, from, until }) => ({ task, above, from_seq: from, until_seq: until })),
      tasks,
    )
  })
}

test('tasks side by side have columns of their own, which later tasks take again', () => {
  const task = (task: number, above: number, from: number, until: number | null) => ({ task, above, from, until })
  const columns = columnsOf([
    task(0, 0, 1, null),
    task(1, 0, 2, 5),
    task(2, 0, 3, 9),
    task(3, 0, 6, null),
    task(4, 3, 7, 8),
  ])
  assert.deepEqual(
    [...columns],
    [
      [0, 0],
      [1, 1],
      [2, 2],
      [3, 1],
      [4, 3],
    ],
  )
})

const wire = (item: LaneItem) => ({
  phase: item.phase,
  n: item.n,
  kind: item.kind,
  name: item.name,
  status: item.status,
  times: item.times,
  started: [item.from, item.startedAt],
  finished: [item.to, item.endedAt],
  place: [item.line, item.task, item.above, item.group],
  shown: item.shown,
  error: item.error,
  due: item.dueAt,
  wait: item.wait && [item.wait.kind, item.wait.id, item.wait.title, item.wait.dueAt, item.wait.child],
})

const whole = (item: Wire) => ({
  phase: item.phase ?? 'body',
  n: item.n,
  kind: item.kind,
  name: item.name,
  status: item.status,
  times: item.times ?? 1,
  started: [item.started_seq, item.started_at_ms],
  finished: [item.finished_seq ?? null, item.finished_at_ms ?? null],
  place: [item.line ?? 0, item.task ?? 0, item.above ?? 0, item.group ?? ''],
  shown: item.shown ?? null,
  error: item.error ?? null,
  due: item.due_ms ?? null,
  wait: item.wait
    ? [item.wait.kind, item.wait.id ?? null, item.wait.title ?? '', item.wait.due_ms ?? null, item.wait.child ?? null]
    : null,
})
