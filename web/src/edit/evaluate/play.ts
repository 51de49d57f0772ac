// Plays candidates on the same rows, each in turn, until the rows or the budget end. The server keeps nothing of it.

import type { DataRow, RunReplay, Scorer } from '../../api/schemas'
import type { Document } from '../../api/types'
import { backtest, type Asked } from '../../net/backtests'

/** A document with a model in all its blocks that ask one, or with its own. */
export interface Candidate {
  version: number | null // null: the draft
  model: string
}

export interface Played {
  candidate: Candidate
  runs: readonly RunReplay[]
}

export interface Plan {
  workflow: string
  draft: Document
  candidates: readonly Candidate[]
  /** Rows of a file; or a number of the last runs, or those that are kept. */
  rows: readonly DataRow[] | number | 'kept'
  budget: number | null
  score: Scorer
}

const KEPT_MAX = 200
const PAGE = 20

export async function evaluate(
  { workflow, draft, candidates, rows, budget, score }: Plan,
  onRows: (played: readonly Played[], spent: number) => void,
  signal: AbortSignal,
): Promise<void> {
  const data = typeof rows === 'object' ? rows : null
  const last = data ? data.length : rows === 'kept' ? KEPT_MAX : (rows as number)
  let played: Played[] = candidates.map((candidate) => ({ candidate, runs: [] }))
  let spent = 0
  let before: string | null = null
  for (let done = 0; done < last; ) {
    // One by one where they share a budget, so that a small one compares the same rows.
    const size = Math.min(budget === null ? PAGE : 1, last - done)
    for (const [at, { candidate, runs }] of played.entries()) {
      let found: readonly RunReplay[] = []
      let from = before
      while (found.length < size) {
        const asked: Asked = {
          ...(candidate.version === null ? { document: draft } : { version: candidate.version }),
          model: candidate.model || null,
          rows: data ? data.slice(done + found.length, done + size) : null,
          kept: rows === 'kept',
          last: size - found.length,
          before: from,
          call_models: budget === null ? null : { budget_usd: Math.max(0, round(budget - spent)) },
          score,
        }
        const page = await backtest(workflow, asked, signal)
        found = [...found, ...page.runs]
        spent = round(spent + page.spent_usd)
        if (page.next === null) break
        from = page.next
      }
      played = played.map((each, i) => (i === at ? { candidate, runs: [...runs, ...found] } : each))
      onRows(played, spent)
    }
    const first = played[0]!.runs
    if (first.length <= done) return
    done = first.length
    before = data ? null : first.at(-1)!.run
  }
}

/** Sums of dollars, in billionths. */
export const round = (usd: number): number => Math.round(usd * 1e9) / 1e9

export interface Sum {
  score: number | null
  scored: number
  cost: number | null
  ms: number
  tokens: number
  notCalled: number
}

export function sumOf(runs: readonly RunReplay[]): Sum {
  const scores = runs.flatMap(({ score }) => (score?.value == null ? [] : [score.value]))
  const costs = runs.map(({ used }) => used.cost_usd)
  const sum = (numbers: readonly number[]): number => numbers.reduce((a, b) => a + b, 0)
  return {
    score: scores.length ? sum(scores) / scores.length : null,
    scored: scores.length,
    cost: costs.includes(null) ? null : round(sum(costs as number[])),
    ms: sum(runs.map(({ used }) => used.ms)),
    tokens: sum(runs.map(({ used }) => used.tokens)),
    notCalled: runs.filter(({ result }) => result === 'not_called').length,
  }
}

export const nameOf = ({ version, model }: Candidate): string =>
  [version === null ? 'Draft' : `Version ${version}`, model].filter(Boolean).join(', ')
