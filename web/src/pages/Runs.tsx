// All runs, newest first; by status, workflow or draft; page by page.

import { useEffect, useState, type ReactElement } from 'react'
import { api, type RunQuery } from '../net/api'
import type { RunPage, RunSummary } from '../api/schemas'
import type { RunStatus } from '../api/types'
import { isEnded } from '../run'
import { Link, navigate, setQuery, useLocation } from '../ui/navigation'
import TopBar from '../edit/shell/TopBar'
import { durationText, dateTime } from '../ui/time'
import { shortId } from '../ui/words'
import { Button } from '../ui/Button'
import { EmptyState } from '../ui/EmptyState'
import { Status, wordOf } from '../ui/status'
import { useData } from '../ui/useData'
import { Ago } from '../ui/Ago'
import { ListState, Stale, usePolled } from './parts'
import './pages.css'
import './runs.css'

const STATUSES: readonly RunStatus[] = ['running', 'waiting', 'queued', 'succeeded', 'failed', 'cancelled']
const PAGE = 50
const ONCE_MAX = 1000

export default function Runs(): ReactElement {
  const { query } = useLocation()
  const status = (STATUSES as readonly string[]).includes(query.get('status') ?? '')
    ? (query.get('status') as RunStatus)
    : undefined
  const workflow = query.get('workflow') ?? undefined
  const draft = query.get('draft') ?? undefined
  const parent = query.get('parent') ?? undefined
  const attention = query.get('status') === 'attention'
  // Lost attempts: the runs are open ones, which of them is for the waits to say.
  const lost = usePolled(
    async () =>
      new Set(
        (await api.waits('pending', undefined, 1000))
          .filter((wait) => wait.kind === 'attention')
          .map((wait) => wait.run),
      ),
    [],
    10_000,
  )
  const where = {
    ...(status ? { status } : {}),
    ...(workflow ? { workflow } : {}),
    ...(draft ? { draft } : {}),
    ...(parent ? { parent } : {}),
  }
  const [pages, setPages] = useState(1)
  const first = usePolled(
    () => (attention ? openRuns(where) : newestRuns(where, pages * PAGE)),
    [status, workflow, draft, parent, attention],
  )
  const workflows = useData(() => api.workflows(), [])
  useEffect(() => setPages(1), [status, workflow, draft, parent, attention])

  const newest = first.value?.runs ?? []
  const runs = newest.filter((run) => !attention || lost.value?.has(run.id))
  const next = first.value?.next ?? null
  const more = (): void => {
    setPages(pages + 1)
    first.reload()
  }
  const counts = first.value?.counts
  const capped = first.value?.capped ?? []
  const names = [
    ...new Set([
      ...(workflows.value ?? []).map((each) => each.name),
      ...newest.map((run) => run.workflow),
      ...(workflow ? [workflow] : []),
    ]),
  ].sort()
  const total = counts ? Object.values(counts).reduce((sum, count) => sum + count, 0) : null
  return (
    <div className="screen">
      <TopBar />
      <main className="page page--wide">
        <h1>Runs</h1>
        <div className="filters" role="group" aria-label="Filter">
          <button
            type="button"
            className="pill"
            aria-pressed={!status && !attention}
            onClick={() => setQuery({ status: null })}
          >
            All{total === null ? null : <span className="label">{total + (capped.length ? '+' : '')}</span>}
          </button>
          {STATUSES.map((each) => (
            <button
              key={each}
              type="button"
              className="pill"
              aria-pressed={status === each}
              onClick={() => setQuery({ status: status === each ? null : each })}
            >
              {wordOf(each)}
              {counts ? <span className="label">{counts[each] + (capped.includes(each) ? '+' : '')}</span> : null}
            </button>
          ))}
          {lost.value?.size || attention ? (
            <button
              type="button"
              className="pill"
              aria-pressed={attention}
              data-testid="filter-attention"
              onClick={() => setQuery({ status: attention ? null : 'attention' })}
            >
              {wordOf('attention')}
              <span className="label">{lost.value?.size ?? 0}</span>
            </button>
          ) : null}
          <select
            aria-label="Workflow"
            value={workflow ?? ''}
            onChange={(event) => setQuery({ workflow: event.target.value || null })}
          >
            <option value="">All workflows</option>
            {names.map((name) => (
              <option key={name} value={name}>
                {name}
              </option>
            ))}
          </select>
          {draft ? (
            <Button icon="close" onClick={() => setQuery({ draft: null })}>
              Of one draft
            </Button>
          ) : null}
          {parent ? (
            <Button icon="close" onClick={() => setQuery({ parent: null })}>
              Started by run {shortId(parent)}
            </Button>
          ) : null}
        </div>
        <Stale data={first} />
        {runs.length ? (
          <div className="runs" role="table" aria-label="Runs">
            <div role="row" className="runs__row runs__head label">
              {['Status', 'Workflow', 'Input', 'Started', 'Duration', 'Run'].map((name) => (
                <span key={name} role="columnheader">
                  {name}
                </span>
              ))}
            </div>
            {runs.map((run) => (
              <Row key={run.id} run={run} lost={lost.value?.has(run.id) ?? false} />
            ))}
          </div>
        ) : (
          <ListState data={first} empty>
            {status || workflow || draft || parent || attention ? (
              <EmptyState title="No runs match">
                <Button onClick={() => setQuery({ status: null, workflow: null, draft: null, parent: null })}>
                  Show all runs
                </Button>
              </EmptyState>
            ) : (
              <EmptyState icon="play" title="No runs yet">
                <Button kind="primary" onClick={() => navigate('/')}>
                  Run an example
                </Button>
              </EmptyState>
            )}
          </ListState>
        )}
        {next !== null && runs.length ? (
          <p className="runs__more">
            <Button why={first.loading && runs.length < pages * PAGE ? 'Loading' : null} onClick={more}>
              Older runs
            </Button>
          </p>
        ) : null}
      </main>
    </div>
  )
}

/** The newest `count` runs as one page. All of them are asked for each time: also of what is far down the status changes. */
async function newestRuns(where: RunQuery, count: number): Promise<RunPage> {
  const page = await api.runs({ ...where, limit: Math.min(count, ONCE_MAX) })
  while (page.next !== null && page.runs.length < count) {
    const limit = Math.min(count - page.runs.length, ONCE_MAX)
    const more = await api.runs({ ...where, before: page.next, limit, counts: 0 })
    page.runs.push(...more.runs)
    page.next = more.next
  }
  return page
}

/** Runs that have not ended, as one page: those that need attention are among them. */
async function openRuns(where: RunQuery): Promise<RunPage> {
  const pages = await Promise.all(
    (['waiting', 'running', 'queued'] as const).map((status, n) =>
      api.runs({ ...where, status, limit: ONCE_MAX, ...(n ? { counts: 0 } : {}) }),
    ),
  )
  // A run whose status changed between the requests is in two of the answers.
  const runs = new Map(pages.flatMap((page) => page.runs).map((run) => [run.id, run]))
  return {
    runs: [...runs.values()].sort((a, b) => b.created_at_ms - a.created_at_ms),
    next: null,
    counts: pages[0]!.counts,
    capped: pages[0]!.capped,
  }
}

function Row({ run, lost }: { run: RunSummary; lost: boolean }): ReactElement {
  const began = run.started_at_ms ?? run.created_at_ms
  const version = run.version ? `v${run.version}` : run.draft_rev ? `Draft r${run.draft_rev}` : ''
  const input = run.input_summary && run.input_summary !== '{}' && run.input_summary !== 'null' ? run.input_summary : ''
  return (
    <div
      role="row"
      className="runs__row"
      data-testid={`run-${run.id}`}
      data-status={run.status}
      onClick={(event) => {
        if (!(event.target as HTMLElement).closest('a')) navigate(`/runs/${run.id}`)
      }}
    >
      <span role="cell">
        <Status status={lost && !isEnded(run.status) ? 'attention' : run.status} />
      </span>
      <span role="cell" className="runs__name">
        <Link to={`/runs/${run.id}`}>{run.workflow}</Link> <span className="label">{version}</span>
        {run.parent_run_id ? (
          <Link className="label" to={`/runs/${run.parent_run_id}`} title="The run that started it">
            {' '}
            in {shortId(run.parent_run_id)}
          </Link>
        ) : null}
      </span>
      <span role="cell" className="runs__what mono" title={run.error?.message ?? run.lacks ?? input}>
        {run.error ? (
          <span className="runs__error">{run.error.message}</span>
        ) : run.stale_since_ms !== null ? (
          <span className="runs__stale" data-testid="stale">
            Worker stopped responding, <Ago at={run.stale_since_ms} />. Another one will continue.
          </span>
        ) : run.lacks ? (
          <span className="runs__stale" data-testid="lacks">
            Waits for {run.lacks}
          </span>
        ) : (
          input
        )}
      </span>
      <span role="cell" className="label" title={dateTime(began)}>
        <Ago at={began} />
      </span>
      <span role="cell" className="mono runs__took">
        {run.duration_ms === null || run.duration_ms === undefined ? '' : durationText(run.duration_ms)}
      </span>
      <span role="cell" className="label" title={run.id}>
        {shortId(run.id)}
      </span>
    </div>
  )
}
