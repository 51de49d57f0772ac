// What the tests share: fixtures of real runs, a seeded random source.

import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { BlockSpec, Document, RunView, WireEvent } from '../src/net/types'

export interface Recorded {
  document: Document
  run: RunView
  graph: { edges: { source: string; target: string; handle: string; state: string; counts?: { live?: number; dead?: number } }[] }
  events: WireEvent[]
}

export const RUNS = ['nested', 'expense-approval', 'error-handling', 'parallel-fanout', 'review-loop', 'failing'] as const

export function read<T>(name: string): T {
  return JSON.parse(readFileSync(join(process.env.WEFT_WEB_ROOT!, 'test', 'fixtures', `${name}.json`), 'utf8')) as T
}

export const recorded = (name: (typeof RUNS)[number]): Recorded => read<Recorded>(name)
export const specs = new Map(read<{ blocks: BlockSpec[] }>('blocks').blocks.map((spec) => [spec.type, spec]))

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
