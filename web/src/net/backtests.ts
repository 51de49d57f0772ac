// Runs that are kept as tests, and recorded runs replayed with a document. Nothing outside is called by that, but models if one asks
// for it.

import * as is from '../api/checks'
import type { Backtest, BacktestRequest, KeptView, RunReplay } from '../api/schemas'
import type { Document } from '../api/types'
import { answer } from './answers'
import { enc, get, post, send } from './http'

export const keepRun = (run: string, note = '') => post(`/api/runs/${enc(run)}/keep`, { note }, answer(is.KeptView))

export const dropKept = (run: string) => send('DELETE', `/api/runs/${enc(run)}/keep`, answer(is.KeepDropped), {})

export const keptRuns = async (workflow: string, signal?: AbortSignal): Promise<readonly KeptView[]> =>
  (await get(`/api/workflows/${enc(workflow)}/kept`, answer(is.KeptRuns), signal)).kept

/** The whole request, with a document of the editor. */
export type Asked = Omit<BacktestRequest, 'document'> & { document?: Document }

/** One page of a backtest. */
export const backtest = (workflow: string, asked: Asked, signal: AbortSignal): Promise<Backtest> =>
  send('POST', `/api/workflows/${enc(workflow)}/backtest`, answer(is.Backtest), asked, {}, signal)

/** The runs to play: this number of the last ones, or those that are kept. */
export type Which = number | 'kept'
const KEPT_MAX = 200

/** Play a document, page by page. `onPage` gets all runs so far, and how many there are to be. */
export async function play(
  workflow: string,
  document: Document,
  which: Which,
  onPage: (runs: readonly RunReplay[], total: number) => void,
  signal: AbortSignal,
): Promise<void> {
  let left = which === 'kept' ? KEPT_MAX : which
  let before: string | null = null
  let runs: readonly RunReplay[] = []
  let total: number | null = null
  while (left > 0) {
    const page: Backtest = await backtest(workflow, { document, kept: which === 'kept', last: left, before }, signal)
    total ??= page.total
    runs = [...runs, ...page.runs]
    onPage(runs, Math.max(total, runs.length))
    left -= page.runs.length
    before = page.next
    if (before === null) return
  }
}
