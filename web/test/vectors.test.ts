// The recorded streams of tests/vectors: after each event the fold says what the server's projection says. That one is
// `executor/kernel/journal/projection.py`; a difference here means that the editor and the server disagree about an event.

import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import type { Block, WireEvent } from '../src/api/types'
import { emptyFold, reduce, shapeOf, type NodeState } from '../src/run'
import { specs } from './help'

interface Expected {
  key: string
  status: string
  route: string | null
  started_at: number | null
  finished_at: number | null
  lost: number
  cached: boolean
  reused: boolean
  reason?: string
  because?: string | null
  error?: string
  /** Not of containers: the attempts of their two ends are not those of a block. */
  steps?: [number, string, number, number | null][]
  attempt?: number
  attempts?: [number, number, number | null][]
}

interface Stream {
  name: string
  containers: Record<string, string>
  events: WireEvent[]
  expected: { run: string; node: Expected | null }[]
}

const streams = JSON.parse(
  readFileSync(join(process.env.WEFT_WEB_ROOT!, '..', 'tests', 'vectors', 'runs.json'), 'utf8'),
) as Stream[]

for (const { name, containers, events, expected } of streams) {
  test(`${name}: each event means what it means to the server`, () => {
    const blocks = Object.fromEntries(
      Object.entries(containers).map(([id, type]) => [id, { type, at: [0, 0] } as Block]),
    )
    let view = emptyFold(shapeOf({ format: 'weft/1', blocks, edges: [] }, specs))
    for (const [n, event] of events.entries()) {
      view = reduce(view, event)
      const { run, node } = expected[n]!
      const at = `${name}, event ${event.seq} (${event.type})`
      assert.equal(statusOf(view.status, event), run, at)
      if (!node) continue
      const ours = view.nodes.get(node.key)
      assert.ok(ours, at)
      assert.deepEqual(said(ours, node), node, at)
    }
  })
}

/** In the server's words: a run that is being cancelled is still running, one whose only event is its start is queued. */
function statusOf(status: string, event: WireEvent): string {
  if (event.type === 'run.started') return 'queued'
  return status === 'cancelling' ? 'running' : status
}

/** What the fold says of a node, as far as it is expected. */
function said(ours: NodeState, node: Expected): Expected {
  const asked = ours.status === 'waiting' && ours.wait?.kind === 'attention'
  const found: Expected = {
    key: ours.key,
    status: asked ? 'needs_attention' : ours.status,
    route: ours.route,
    // A container whose ends were reused has no start of its own.
    started_at: node.started_at === null ? null : ours.startedAt,
    finished_at: ours.finishedAt,
    lost: ours.lost,
    cached: ours.cached,
    reused: ours.reused,
  }
  if (node.reason !== undefined) Object.assign(found, { reason: ours.reason, because: ours.because })
  if (node.error !== undefined) found.error = ours.error?.code
  if (node.steps) found.steps = ours.steps.map(({ n, status, times, endedAt }) => [n, status, times, endedAt])
  if (node.attempts) {
    found.attempt = ours.attempt
    found.attempts = ours.attempts.map(({ attempt, startedAt, endedAt }) => [attempt, startedAt, endedAt])
  }
  return found
}
