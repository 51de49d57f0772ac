// All runs, newest first; by status, workflow or draft; page by page.

import { useEffect, useState, type ReactElement } from 'react'
import { api, type RunQuery } from '../net/api'
import type { RunPage, RunStatus, RunSummary } from '../net/types'
import { Link, navigate, setQuery, useLocation } from '../routes'
import TopBar from '../panels/shell/TopBar'
import { durationText, dateTime } from '../panels/tape/time'
import { shortId } from '../panels/tape/Drawer'
import { Button } from '../ui/Button'
import { EmptyState } from '../ui/EmptyState'
import { Status, wordOf } from '../ui/status'
import { useData } from '../ui/useData'
import { Ago, ListState, messageOf, Stale, usePolled } from './parts'
import './pages.css'
import './runs.css'

const STATUSES: readonly RunStatus[] = ['running', 'waiting', 'queued', 'succeeded', 'failed', 'cancelled']
const PAGE = 50
const OPEN_MAX = 1000

export default function Runs(): ReactElement {
  const { query } = useLocation()
  const status = (STATUSES as readonly string[]).includes(query.get('status') ?? '') ? (query.get('status') as RunStatus) : undefined
  const workflow = query.get('workflow') ?? undefined
  const draft = query.get('draft') ?? undefined
  const parent = query.get('parent') ?? undefined
  const attention = query.get('status') === 'attention'
  // Lost attempts: the runs are open ones, which of them is for the waits to say.
  const lost = usePolled(async () => new Set((await api.waits('pending', undefined, 1000)).filter((wait) => wait.kind === 'attention').map((wait) => wait.run)), [], 10_000)
  const where = { ...(status ? { status } : {}), ...(workflow ? { workflow } : {}), ...(draft ? { draft } : {}), ...(parent ? { parent } : {}) }
  const first = usePolled(() => (attention ? openRuns(where) : api.runs({ ...where, limit: PAGE })), [status, workflow, draft, parent, attention])
  const workflows = useData(() => api.workflows(), [])
  const [older, setOlder] = useState<{ runs: RunSummary[]; next: string | null } | null>(null)
  const [trouble, setTrouble] = useState('')
  useEffect(() => {
    setOlder(null)
    setTrouble('')
  }, [status, workflow, draft, parent, attention])

  const newest = first.value?.runs ?? []
  const known = new Set(newest.map((run) => run.id))
  const runs = [...newest, ...(older?.runs ?? []).filter((run) => !known.has(run.id))].filter((run) => !attention || lost.value?.has(run.id))
  const next = older ? older.next : (first.value?.next ?? null)
  const more = async (): Promise<void> => {
    if (next === null) return
    try {
      const page = await api.runs({ ...where, before: next, limit: PAGE })
      // What was on the first page stays, though newer runs may push it off.
      setOlder({ runs: [...(older?.runs ?? newest), ...page.runs], next: page.next })
      setTrouble('')
    } catch (error) {
      setTrouble(messageOf(error))
    }
  }
  const counts = first.value?.counts
  const names = [...new Set([...(workflows.value ?? []).map((each) => each.name), ...newest.map((run) => run.workflow), ...(workflow ? [workflow] : [])])].sort()
  const total = counts ? Object.values(counts).reduce((sum, count) => sum + count, 0) : null
  return (
    <div className="screen">
      <TopBar />
      <main className="page page--wide">
        <h1>Runs</h1>
        <div className="filters" role="group" aria-label="Filter">
          <button type="button" className="pill" aria-pressed={!status && !attention} onClick={() => setQuery({ status: null })}>All{total === null ? null : <span className="label">{total}</span>}</button>
          {STATUSES.map((each) => (
            <button key={each} type="button" className="pill" aria-pressed={status === each} onClick={() => setQuery({ status: status === each ? null : each })}>
              {wordOf(each)}{counts ? <span className="label">{counts[each]}</span> : null}
            </button>
          ))}
          {lost.value?.size || attention ? (
            <button type="button" className="pill" aria-pressed={attention} data-testid="filter-attention" onClick={() => setQuery({ status: attention ? null : 'attention' })}>
              {wordOf('attention')}<span className="label">{lost.value?.size ?? 0}</span>
            </button>
          ) : null}
          <select aria-label="Workflow" value={workflow ?? ''} onChange={(event) => setQuery({ workflow: event.target.value || null })}>
            <option value="">All workflows</option>
            {names.map((name) => <option key={name} value={name}>{name}</option>)}
          </select>
          {draft ? <Button icon="close" onClick={() => setQuery({ draft: null })}>Only of one draft</Button> : null}
          {parent ? <Button icon="close" onClick={() => setQuery({ parent: null })}>Only those run {shortId(parent)} started</Button> : null}
        </div>
        <Stale data={first} />
        {runs.length ? (
          <div className="runs" role="table" aria-label="Runs">
            <div role="row" className="runs__row runs__head label">
              {['Status', 'Workflow', 'Input', 'Started', 'Took', 'Run'].map((name) => <span key={name} role="columnheader">{name}</span>)}
            </div>
            {runs.map((run) => <Row key={run.id} run={run} lost={lost.value?.has(run.id) ?? false} />)}
          </div>
        ) : (
          <ListState data={first} empty>
            {status || workflow || draft || parent || attention ? (
              <EmptyState title="No run is like that"><Button onClick={() => setQuery({ status: null, workflow: null, draft: null, parent: null })}>Show all runs</Button></EmptyState>
            ) : (
              <EmptyState icon="play" title="Nothing has run yet"><Button kind="primary" onClick={() => navigate('/')}>Run an example</Button></EmptyState>
            )}
          </ListState>
        )}
        {trouble ? <p className="notice" data-tone="err" role="alert">{trouble}</p> : null}
        {next !== null && runs.length ? <p className="runs__more"><Button onClick={() => void more()}>Older runs</Button></p> : null}
      </main>
    </div>
  )
}

/** Runs that have not ended, as one page: those that need attention are among them. */
async function openRuns(where: RunQuery): Promise<RunPage> {
  const pages = await Promise.all((['waiting', 'running', 'queued'] as const).map((status) => api.runs({ ...where, status, limit: OPEN_MAX })))
  const counts = pages[0]!.counts
  return { runs: pages.flatMap((page) => page.runs).sort((a, b) => b.created_at_ms - a.created_at_ms), next: null, ...(counts ? { counts } : {}) }
}

function Row({ run, lost }: { run: RunSummary; lost: boolean }): ReactElement {
  const began = run.started_at_ms ?? run.created_at_ms
  const version = run.version ? `v${run.version}` : run.draft_rev ? `draft r${run.draft_rev}` : ''
  const input = run.input_summary && run.input_summary !== '{}' && run.input_summary !== 'null' ? run.input_summary : ''
  return (
    <div
      role="row" className="runs__row" data-testid={`run-${run.id}`} data-status={run.status}
      onClick={(event) => {
        if (!(event.target as HTMLElement).closest('a')) navigate(`/runs/${run.id}`)
      }}
    >
      <span role="cell"><Status status={lost ? 'attention' : run.status} /></span>
      <span role="cell" className="runs__name"><Link to={`/runs/${run.id}`}>{run.workflow}</Link> <span className="label">{version}</span>{run.parent_run_id ? <Link className="label" to={`/runs/${run.parent_run_id}`} title="The run that started it"> in {shortId(run.parent_run_id)}</Link> : null}</span>
      <span role="cell" className="runs__what mono" title={run.error?.message ?? input}>
        {run.error ? <span className="runs__error">{run.error.message}</span> : input}
      </span>
      <span role="cell" className="label" title={dateTime(began)}><Ago at={began} /></span>
      <span role="cell" className="mono runs__took">{run.duration_ms === null || run.duration_ms === undefined ? '' : durationText(run.duration_ms)}</span>
      <span role="cell" className="label" title={run.id}>{shortId(run.id)}</span>
    </div>
  )
}
