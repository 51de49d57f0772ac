// Journals of runs far longer than the recorded ones, made up: a loop of many rounds, and a parallel of many branches, with a
// few failures, retries and logs, as the server would send them.

import type { Document, WireEvent } from '../src/api/types'

type Part = Partial<WireEvent> & { type: string }

const block = (type: string, more: object = {}) => ({ type, at: [0, 0] as [number, number], ...more })

/** Three blocks in a container. */
export function longDocument(kind: 'loop' | 'parallel'): Document {
  return {
    format: 'weft/1',
    name: 'long',
    blocks: {
      start: block('start'),
      many: block(kind),
      one: block('function', { parent: 'many' }),
      two: block('http', { parent: 'many' }),
      three: block('set', { parent: 'many' }),
    },
    edges: [
      { source: 'start', target: 'many' },
      { source: 'many', target: 'one', handle: 'body' },
      { source: 'one', target: 'two' },
      { source: 'two', target: 'three' },
    ],
  } as Document
}

/** About `size` events, ending with run.finished. */
export function longJournal(kind: 'loop' | 'parallel', size: number): WireEvent[] {
  const events: WireEvent[] = []
  const add = ({ type, ...part }: Part): void => {
    const at = 1_700_000_000_000 + events.length * 3
    const node = part.node ?? null
    const path = part.path ?? ''
    const of = node?.split(':')[0] ?? null
    events.push({
      run: 'r',
      seq: events.length + 1,
      at_ms: at,
      type,
      node,
      block: of,
      path,
      key: node && path ? `${node}@${path}` : node,
      attempt: part.attempt ?? 1,
      data: part.data ?? {},
    })
  }
  const ran = (node: string, path: string, output: unknown): void => {
    add({ type: 'node.started', node, path })
    add({ type: 'node.succeeded', node, path, data: { output: output as never } })
  }
  add({ type: 'run.started' })
  ran('start', '', {})
  const rounds = Math.floor((size - 8) / (kind === 'loop' ? 7.15 : 6.15))
  add({ type: 'node.started', node: 'many:start' })
  add({ type: 'region.sized', node: 'many:start', data: { count: rounds } })
  if (kind === 'parallel') add({ type: 'scope.opened', node: 'many:start', data: { first: 0, count: rounds } })
  for (let i = 0; i < rounds; i++) {
    const path = kind === 'loop' ? `many#${i}` : `many[${i}]`
    if (kind === 'loop') add({ type: 'scope.opened', node: 'many:start', data: { first: i, count: 1 } })
    ran('one', path, { n: i })
    add({ type: 'node.started', node: 'two', path })
    if (i % 10 === 3) {
      add({
        type: 'retry.scheduled',
        node: 'two',
        path,
        data: { error: { code: 'http_503', message: 'Service unavailable', retryable: true }, due_ms: 1 },
      })
      add({ type: 'node.started', node: 'two', path, attempt: 2 })
    }
    add({
      type: 'node.succeeded',
      node: 'two',
      path,
      data: { output: { status: 200, body: { id: i, name: `item ${i}` } } },
    })
    if (i % 20 === 7) add({ type: 'node.log', node: 'three', path, data: { message: 'odd' } })
    ran('three', path, i)
  }
  add({ type: 'region.exited', node: 'many:end', data: { count: rounds, output: { results: [] } } })
  add({ type: 'run.finished', data: { status: 'succeeded', output: {} } })
  return events
}
