// Rows against candidates: what each answered, where that differs from what was expected, its score, cost and time; sums above.

import type { ReactElement } from 'react'
import type { RunReplay } from '../../api/schemas'
import { costText } from '../../run/steps'
import { pairOf, short } from '../../run/replays'
import { Link } from '../../ui/navigation'
import { durationText } from '../../ui/time'
import { shortId } from '../../ui/words'
import { nameOf, sumOf, type Played } from './play'
import type { Data } from './SetUp'

const WORDS: Readonly<Record<RunReplay['result'], string>> = {
  same: 'the same',
  changed: 'other values',
  other_way: 'another way',
  would_call: 'would call',
  failed: 'fails',
  not_replayed: 'not replayed',
  played: 'ended',
  not_called: 'not called',
}

export function EvaluateTable({
  played,
  rows,
  busy,
}: {
  played: readonly Played[]
  rows: Data | null
  busy: boolean
}): ReactElement {
  const first = played[0]!.runs
  const best = Math.max(...played.map(({ runs }) => sumOf(runs).score ?? -1))
  return (
    <div className="evaluate__table" aria-busy={busy} role="region" aria-label="Rows and candidates" tabIndex={0}>
      <table data-testid="evaluate-table">
        <thead>
          <tr>
            <th scope="col">Row</th>
            {played.map(({ candidate, runs }) => (
              <Head key={nameOf(candidate)} name={nameOf(candidate)} runs={runs} best={best} />
            ))}
          </tr>
        </thead>
        <tbody>
          {first.map((run, at) => (
            <tr key={at}>
              <th scope="row">
                {rows ? (
                  <>
                    <span className="evaluate__number">{at + 1}</span> {labelOf(rows.rows[at]?.input)}
                  </>
                ) : (
                  <Link to={`/runs/${run.run}`} target="_blank" title={run.run}>
                    {shortId(run.run)}
                  </Link>
                )}
              </th>
              {played.map(({ candidate, runs }) => (
                <Cell key={nameOf(candidate)} run={runs[at]} />
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  )
}

function Head({ name, runs, best }: { name: string; runs: readonly RunReplay[]; best: number }): ReactElement {
  const { score, scored, cost, ms, tokens, notCalled } = sumOf(runs)
  return (
    <th scope="col" data-testid="evaluate-head">
      <span className="evaluate__name">{name}</span>
      <span className="evaluate__sum" data-best={(score !== null && score === best) || undefined}>
        {score === null ? '–' : score.toFixed(2)}
      </span>
      <span className="evaluate__small">
        {score === null ? 'no score' : `mean of ${scored} of ${runs.length}`}
        {notCalled ? <span className="evaluate__uncalled"> · {notCalled} not called</span> : null}
      </span>
      <span className="evaluate__small">{figures(cost, runs.length ? ms / runs.length : 0, tokens, ' a row')}</span>
    </th>
  )
}

function Cell({ run }: { run: RunReplay | undefined }): ReactElement {
  if (!run) return <td className="evaluate__pending">waiting</td>
  const { score, used } = run
  const [before, now] = score?.difference ? pairOf(score.difference.a, score.difference.b) : ['', '']
  const title = score?.difference
    ? `${score.difference.pointer || 'output'}: ${score.difference.a ?? 'nothing'} → ${score.difference.b ?? 'nothing'}`
    : (score?.output ?? '')
  const said = run.reason || score?.reason || ''
  return (
    <td data-result={run.result} data-testid="evaluate-cell">
      <span className="evaluate__line">
        <b>{score?.value == null ? WORDS[run.result] : score.value.toFixed(2)}</b>
        <span className="evaluate__value" title={title}>
          {score?.difference ? (
            <>
              <del>{before}</del> <span aria-hidden="true">›</span> <ins>{now}</ins>
            </>
          ) : score?.value == null ? null : (
            short(score.output)
          )}
        </span>
      </span>
      {said ? (
        <span className="evaluate__small" title={said}>
          {said}
        </span>
      ) : null}
      {run.result === 'not_called' ? null : (
        <span className="evaluate__small">{figures(used.cost_usd, used.ms, used.tokens)}</span>
      )}
    </td>
  )
}

const figures = (cost: number | null, ms: number, tokens: number, a = ''): string =>
  [
    cost === null ? 'no price' : costText(cost),
    `${durationText(ms)}${a}`,
    `${tokens.toLocaleString('en')} tokens`,
  ].join(' · ')

function labelOf(input: unknown): string {
  if (input === null || typeof input !== 'object') return String(input ?? '')
  return Object.values(input)
    .map((value) => (typeof value === 'string' ? value : JSON.stringify(value)))
    .join(', ')
}
