// Sums over the runs of a workflow: what each block and edge of its picture shows. Pure.

import type { Loom, LoomRun } from '../../api/schemas'

export interface BlockTotal {
  runs: number
  executions: number
  failed: number
  open: number
  /** Milliseconds of one execution, the mean of each run, ascending. */
  times: number[]
}

export interface ExitTotal {
  /** Runs that left by this handle, oldest first. */
  runs: LoomRun[]
  open: number
}

export interface Cell {
  run: LoomRun
  /** 0: succeeded, 1: failed, 2: open. */
  state: number
  ms: number
}

export interface Totals {
  runs: LoomRun[]
  blocks: Map<string, BlockTotal>
  /** By block and handle, joined by a blank. */
  exits: Map<string, ExitTotal>
  /** Iterations and branches by container, oldest first. */
  cells: Map<string, Cell[]>
  /** The runs in which a block failed, oldest first. */
  failures: Map<string, LoomRun[]>
  /** The runs in which a block began. */
  entered: Map<string, Set<LoomRun>>
}

const ENDED = new Set(['succeeded', 'failed', 'cancelled'])

export const isOpen = (run: LoomRun): boolean => !ENDED.has(run.status)

/** `between`: only runs created from the first time on and before the second one. */
export function totalsOf(loom: Loom, between: readonly [number, number] | null = null): Totals {
  const runs = between
    ? loom.runs.filter((run) => run.created_at_ms >= between[0] && run.created_at_ms < between[1])
    : loom.runs
  const totals: Totals = {
    runs,
    blocks: new Map(),
    exits: new Map(),
    cells: new Map(),
    failures: new Map(),
    entered: new Map(),
  }
  for (const run of runs) {
    for (const [block, executions, failed, open, ms] of run.uses ?? []) {
      const id = loom.blocks[block!]!
      const total = totals.blocks.get(id) ?? { runs: 0, executions: 0, failed: 0, open: 0, times: [] }
      totals.blocks.set(id, total)
      totals.entered.set(id, (totals.entered.get(id) ?? new Set()).add(run))
      if (failed) totals.failures.set(id, [...(totals.failures.get(id) ?? []), run])
      total.runs += 1
      total.executions += executions!
      total.failed += failed!
      total.open += open!
      if (executions) total.times.push(ms! / executions)
    }
    for (const [block, handle] of run.exits ?? []) {
      const key = `${loom.blocks[block!]!} ${loom.handles[handle!]!}`
      const exit = totals.exits.get(key) ?? { runs: [], open: 0 }
      totals.exits.set(key, exit)
      exit.runs.push(run)
      if (isOpen(run)) exit.open += 1
    }
    for (const [container, state, ms] of run.cells ?? []) {
      const id = loom.blocks[container!]!
      const cells = totals.cells.get(id) ?? []
      totals.cells.set(id, cells)
      cells.push({ run, state: state!, ms: ms! })
    }
  }
  for (const total of totals.blocks.values()) total.times.sort((a, b) => a - b)
  return totals
}

/** The durations of the runs, from their creation to their end, ascending. */
export const runTimes = (runs: readonly LoomRun[]): number[] =>
  runs.flatMap((run) => (run.finished_at_ms ? [run.finished_at_ms - run.created_at_ms] : [])).sort((a, b) => a - b)

const THREADS_MAX = 40

/** The number of runs that one thread stands for: a round number, so that the thickest edge has at most 40 threads. */
export function runsPerThread(most: number): number {
  for (let unit = 1; ; unit *= 10) {
    for (const step of [1, 2, 3, 5]) if (most / (unit * step) <= THREADS_MAX) return unit * step
  }
}

/** Threads of a number of runs: at least one if there is a run. */
export const threadsOf = (runs: number, perThread: number): number => Math.ceil(runs / perThread)

/** The value below which `part` of the ascending values lie. */
export function quantile(values: readonly number[], part: number): number {
  return values[Math.min(values.length - 1, Math.floor(values.length * part))] ?? 0
}

/** The number of values in each of `bins` equal parts of the logarithm of the time: some take a millisecond, some a day. */
export function distribution(times: readonly number[], bins: number): { counts: number[]; median: number } {
  const counts = new Array<number>(bins).fill(0)
  const low = Math.log1p(times[0] ?? 0)
  const span = Math.log1p(times.at(-1) ?? 0) - low
  const binOf = (ms: number): number =>
    span < 1e-9 ? bins >> 1 : Math.min(bins - 1, Math.floor(((Math.log1p(ms) - low) / span) * bins))
  for (const ms of times) counts[binOf(ms)]! += 1
  return { counts, median: times.length ? binOf(quantile(times, 0.5)) : -1 }
}

export interface Bin {
  from: number
  to: number
  ended: number
  failed: number
  open: number
}

/** The runs by the time of their creation, in equal parts of the time from the first run to the last. */
export function binsOf(runs: readonly LoomRun[], count: number): Bin[] {
  if (!runs.length) return []
  const first = runs[0]!.created_at_ms
  const width = Math.max(1, Math.ceil((runs.at(-1)!.created_at_ms + 1 - first) / count))
  const bins = Array.from({ length: count }, (_, at) => ({
    from: first + at * width,
    to: first + (at + 1) * width,
    ended: 0,
    failed: 0,
    open: 0,
  }))
  for (const run of runs) {
    const bin = bins[Math.floor((run.created_at_ms - first) / width)]!
    if (isOpen(run)) bin.open += 1
    else if (run.status === 'failed') bin.failed += 1
    else bin.ended += 1
  }
  return bins
}
