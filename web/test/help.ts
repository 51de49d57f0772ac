// What the tests share: fixtures of real runs, a seeded random source.

import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { JsonObject } from '../src/api/schemas'
import type { Block, BlockSpec, Document, Edge, RunView, WireEvent } from '../src/api/types'
import type { RunFold } from '../src/run'

export interface Recorded {
  document: Document
  run: RunView
  graph: {
    edges: {
      source: string
      target: string
      handle: string
      state: string
      counts?: { live?: number; dead?: number }
    }[]
  }
  events: WireEvent[]
}

export const RUNS = [
  'nested',
  'expense-approval',
  'error-handling',
  'parallel-fanout',
  'review-loop',
  'failing',
] as const

export function read<T>(name: string): T {
  return JSON.parse(readFileSync(join(process.env.WEFT_WEB_ROOT!, 'test', 'fixtures', `${name}.json`), 'utf8')) as T
}

export const recorded = (name: (typeof RUNS)[number]): Recorded => read<Recorded>(name)
export const specs = new Map(read<{ blocks: BlockSpec[] }>('blocks').blocks.map((spec) => [spec.type, spec]))

/** Milliseconds of processor time this process has had: what something costs, however busy the machine is. */
export function cpuMs(): number {
  const { user, system } = process.cpuUsage()
  return (user + system) / 1000
}

/** A fold as plain data in a fixed order of fields, to be compared: how its maps are layered is not part of it. */
export function plain({ nodes, scopes, ...rest }: RunFold): object {
  return { ...rest, nodes: [...nodes], scopes: [...scopes] }
}

/** mulberry32: small, seeded, good enough. */
export function random(seed: number): () => number {
  let a = seed
  return () => {
    a = (a + 0x6d2b79f5) | 0
    let t = Math.imul(a ^ (a >>> 15), 1 | a)
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t
    return ((t ^ (t >>> 14)) >>> 0) / 4294967296
  }
}

/** A document with containers in each other, conditions and error edges; never a circle. */
export function anyDocument(seed: number, count: number): Document {
  const rnd = random(seed)
  const blocks: Record<string, Block> = { start: { type: 'start', at: [-33, 17] } }
  const edges: Edge[] = []
  const containers = ['']
  for (let i = 0; i < count; i++) {
    const parent = containers[Math.floor(rnd() * containers.length)]!
    const type = rnd() < 0.1 ? 'loop' : rnd() < 0.2 ? 'condition' : 'set'
    const id = `b${i}`
    const params: JsonObject = type === 'condition' ? { cases: [{ id: 'x', when: '1' }, { id: 'y' }, { id: 'z' }] } : {}
    blocks[id] = { type, at: [rnd() * 900, rnd() * 900], params, ...(parent ? { parent } : {}) }
    const near = Object.keys(blocks).filter((other) => other !== id && (blocks[other]!.parent ?? '') === parent)
    for (let n = 0; n < 2 && near.length; n++) {
      if (rnd() > 0.75) continue
      const source = near[Math.floor(rnd() * near.length)]!
      edges.push({
        source,
        target: id,
        ...(blocks[source]!.type === 'condition'
          ? { handle: 'xyz'[Math.floor(rnd() * 3)]! }
          : rnd() < 0.1
            ? { handle: 'error' }
            : {}),
      })
    }
    if (type === 'loop') containers.push(id)
    if (parent && rnd() < 0.5) edges.push({ source: parent, handle: 'body', target: id })
  }
  return { format: 'weft/1', blocks, edges }
}
