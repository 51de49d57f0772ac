// Many runs again, in requests of at most 100, and the sum of what they repeat.

import { api } from '../../net/api'
import type { RerunOfMany } from '../../api/schemas'

const AT_ONCE = 100

export async function rerunAll(
  runs: readonly string[],
  version: 'active' | null,
  preview = false,
): Promise<RerunOfMany[]> {
  const found: RerunOfMany[] = []
  for (let n = 0; n < runs.length; n += AT_ONCE)
    found.push(...(await api.rerunMany(runs.slice(n, n + AT_ONCE), version, preview)).runs)
  return found
}

export interface Repeated {
  name: string
  /** In how many of the runs it runs, and in how many more it may run. */
  runs: number
  may: number
  writes: boolean
}

/** The blocks that would run, those that change something outside first. */
export function repeatedBy(found: readonly RerunOfMany[]): Repeated[] {
  const all = new Map<string, Repeated>()
  for (const { blocks } of found) {
    for (const block of blocks ?? []) {
      if (block.fate === 'kept' || block.fate === 'skipped') continue
      const name = block.name || block.block
      const one = all.get(name) ?? { name, runs: 0, may: 0, writes: false }
      all.set(name, one)
      one[block.fate === 'maybe' ? 'may' : 'runs'] += 1
      one.writes ||= block.effect === 'write'
    }
  }
  return [...all.values()].sort((a, b) => Number(b.writes) - Number(a.writes) || b.runs - a.runs)
}
