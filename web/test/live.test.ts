import assert from 'node:assert/strict'
import { beforeEach, test } from 'node:test'
import type { WireEvent } from '../src/api/types'
import { closeRun, ingest, openRun, runStore } from '../src/state/live'
import { recorded } from './help'

const { document, run, events } = recorded('nested')
/** Answers that wait, by what was asked for. */
const held: { path: string; answer: () => void }[] = []
/** Runs whose events are asked for, each once for every feed. */
const followed: string[] = []

globalThis.fetch = ((path: string) => {
  const id = path.split('/')[3]!.split('?')[0]!
  const now = (body: unknown): Response => new Response(JSON.stringify(body), { status: 200 })
  if (path.includes('/events'))
    return followed.push(id), Promise.resolve(now({ events, count: events.length, next: null }))
  if (path.includes('/document')) return Promise.resolve(now({ document }))
  return new Promise((done) => held.push({ path: id, answer: () => done(now({ ...run, id })) }))
}) as typeof fetch

beforeEach(() => {
  closeRun()
  held.length = followed.length = 0
})

test('a run that is left and opened again is followed once, whichever answer comes first', async () => {
  const opened = [openRun('a'), openRun('b'), openRun('a')]
  for (const each of held) each.answer()
  await Promise.all(opened)
  assert.equal(runStore.getState().error, null)
  assert.deepEqual(followed, ['a'])
  assert.equal(runStore.getState().id, 'a')
  const late = openRun('c')
  closeRun()
  held.at(-1)!.answer()
  await late
  assert.deepEqual([runStore.getState().id, followed.length], [null, 1])
})

test('the text of an attempt that was lost is not the beginning of the next', async () => {
  const event = (seq: number, type: string, attempt: number): WireEvent =>
    ({ seq, at_ms: seq, type, path: '', attempt, node: 'play', block: 'play', key: 'play', data: {} }) as WireEvent
  ingest([{ ...event(1, 'run.started', 0), node: null, block: null, key: null }, event(2, 'node.started', 1)])
  runStore.setState({ live: new Map([['play', 'half of']]) })
  ingest([event(3, 'retry.scheduled', 1), event(4, 'node.started', 2)])
  assert.equal(runStore.getState().live.get('play'), undefined)
})
