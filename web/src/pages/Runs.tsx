// All runs, newest first: saved views, a filter of tokens, when they were created, and what can be done with many at once.

import { useEffect, useState, type ReactElement } from 'react'
import { useStore } from 'zustand'
import { api, type RunQuery } from '../net/api'
import type { RunPage, RunSummary } from '../api/schemas'
import { serverNow } from '../net/clock'
import { navigate, setQuery, useLocation } from '../ui/navigation'
import TopBar from '../edit/shell/TopBar'
import { Button } from '../ui/Button'
import { copyText } from '../ui/copy'
import { meStore } from '../state/me'
import { useTitles } from '../state/titles'
import { EmptyState } from '../ui/EmptyState'
import { Icon } from '../ui/icons'
import { wordOf } from '../ui/status'
import { useReadOnly } from '../ui/rights'
import { useData } from '../ui/useData'
import { ListState, Stale, usePolled } from './parts'
import { useBlockNames } from './runs/blockNames'
import { Bulk } from './runs/Bulk'
import { Dates } from './runs/Dates'
import { Filter } from './runs/Filter'
import { filterText, PARAMS, savedViews, saveViews, STATUSES, whereOf, type View } from './runs/filter'
import { Histogram } from './runs/Histogram'
import { HEADS, Row } from './runs/Row'
import './pages.css'
import './runs.css'

const PAGE = 50
const ONCE_MAX = 1000
/** A text is looked for in so many runs. */
const SCAN_MAX = 10_000
const PARTS = 126

export default function Runs(): ReactElement {
  const { query } = useLocation()
  const filter = filterText(query)
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
  const [pages, setPages] = useState(1)
  const [took, setTook] = useState(0)
  const first = usePolled(async () => {
    const began = performance.now()
    const where = whereOf(query, serverNow())
    const page = await (attention ? openRuns(where) : newestRuns(where, pages * PAGE))
    setTook(Math.round(performance.now() - began))
    return page
  }, [filter])
  const times = usePolled(() => timesOf(query), [filter], 10_000)
  const today = usePolled(() => timesOf(new URLSearchParams('since=today'), 1), [], 15_000)
  const workflows = useData(() => api.workflows(), [])
  const [chosen, setChosen] = useState<ReadonlySet<string>>(new Set())
  const [dates, setDates] = useState(false)
  const titleOf = useTitles()
  const mine = useMine()
  useEffect(() => {
    setPages(1)
    setChosen(new Set())
  }, [filter])

  const newest = first.value?.runs ?? []
  const runs = newest.filter((run) => !attention || lost.value?.has(run.id))
  const next = first.value?.next ?? null
  const more = (): void => {
    setPages(pages + 1)
    first.reload()
  }
  const workflow = query.get('workflow')
  const names = [
    ...new Set([
      ...(workflows.value ?? []).map((each) => each.name),
      ...newest.map((run) => run.workflow),
      ...(workflow ? [workflow] : []),
    ]),
  ].sort()
  const blockName = useBlockNames(runs)
  const failed = new Map<string, { name: string; count: number }>()
  for (const run of runs) {
    const block = run.error?.block
    if (block) failed.set(block, { name: blockName(run, block), count: (failed.get(block)?.count ?? 0) + 1 })
  }
  const people = [...new Set([mine, ...newest.map((run) => run.by)].filter((by) => by !== null))]
  const total = first.value?.counts ? Object.values(first.value.counts).reduce((sum, count) => sum + count, 0) : null
  const plus = first.value?.capped.length ? '+' : ''
  const found = first.value
    ? `${runs.length}${next === null ? '' : '+'}${total === null ? '' : ` of ${total.toLocaleString()}${plus}`}, in ${took} ms`
    : ''
  const choose = (id: string, on: boolean): void => {
    const now = new Set(chosen)
    if (on) now.add(id)
    else now.delete(id)
    setChosen(now)
  }
  const all = runs.length > 0 && runs.every((run) => chosen.has(run.id))
  const longest = Math.max(0, ...runs.map((run) => run.duration_ms ?? 0))
  return (
    <div className="screen">
      <TopBar
        right={
          <>
            <Button kind="bare" icon="download" className="runs__wide" onClick={() => saveCsv(runs)}>
              CSV
            </Button>
            <Button
              kind="bare"
              icon="link"
              className="runs__wide"
              onClick={() => void copyText(location.href, 'Copied link')}
            >
              Link to this view
            </Button>
          </>
        }
      />
      <main className="page runspage">
        <div className="runspage__head">
          <h1>Runs</h1>
          <Views
            filter={filter}
            counts={first.value?.counts ?? null}
            failedToday={today.value?.counts.failed?.[0] ?? null}
            lost={lost.value?.size ?? 0}
            mine={mine}
          />
          <Button kind="bare" icon="schedule" aria-expanded={dates} onClick={() => setDates(!dates)}>
            Dates
          </Button>
          <span className="runspage__live" data-tone={first.error ? 'err' : 'run'}>
            <Icon name={first.error ? 'warning' : 'running'} size={12} />
            {first.error ? 'Offline' : 'Live'}
          </span>
        </div>
        {dates ? <Dates onClose={() => setDates(false)} /> : null}
        <Filter known={{ workflows: names, titleOf, failed, people }} found={found} />
        {times.value ? (
          <Histogram
            times={times.value}
            until={times.value.since_ms + times.value.width_ms * PARTS}
            brushed={/^\d+$/.test(query.get('since') ?? '')}
          />
        ) : (
          <div className="times times--ghost" />
        )}
        <Stale data={first} />
        {runs.length ? (
          <div className="runs" role="table" aria-label="Runs">
            <div role="row" className="runs__row runs__head label">
              <span role="columnheader" className="runs__tick">
                <input
                  type="checkbox"
                  aria-label="Choose all"
                  ref={(box) => {
                    if (box) box.indeterminate = chosen.size > 0 && !all
                  }}
                  checked={all}
                  onChange={() => setChosen(new Set(all ? [] : runs.map((run) => run.id)))}
                />
              </span>
              {HEADS.map((name) => (
                <span key={name} role="columnheader">
                  {name}
                </span>
              ))}
            </div>
            {runs.map((run) => (
              <Row
                key={run.id}
                run={run}
                lost={lost.value?.has(run.id) ?? false}
                text={query.get('text') ?? ''}
                title={titleOf(run.workflow)}
                blockName={(block) => blockName(run, block)}
                longest={longest}
                chosen={chosen.has(run.id)}
                onChoose={(on) => choose(run.id, on)}
              />
            ))}
          </div>
        ) : (
          <ListState data={first} empty>
            {filter ? (
              <EmptyState
                icon="search"
                title={
                  PARAMS.some((param) => /^(text|key|not_.*)$/.test(param) && query.has(param)) &&
                  (total ?? Infinity) > SCAN_MAX
                    ? `None of the newest ${SCAN_MAX.toLocaleString('en')} of these runs match`
                    : 'No runs match'
                }
              >
                {query.has('text') ? (
                  <p>A text is looked for in the id, the key and the error of a run, not in its input.</p>
                ) : null}
                <Button onClick={() => setQuery(Object.fromEntries(PARAMS.map((param) => [param, null])))}>
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
      <Bulk
        runs={runs.filter((run) => chosen.has(run.id))}
        shown={runs.length}
        onAll={() => setChosen(new Set(runs.map((run) => run.id)))}
        onNone={() => setChosen(new Set())}
        onDone={first.reload}
      />
    </div>
  )
}

/** Who this person starts runs as; null on a server without a token, where that is not recorded. */
function useMine(): string | null {
  const me = useStore(meStore, (s) => s.me)
  useReadOnly()
  return me === null || me.via === 'open' ? null : me.user ? `user:${me.user}` : me.actor
}

/** Request the numbers of runs in the time that the filter names, or in this day. */
function timesOf(query: URLSearchParams, parts = PARTS): ReturnType<typeof api.runTimes> {
  const now = serverNow()
  const where = whereOf(query, now)
  const since = where.since ?? new Date(now).setHours(0, 0, 0, 0)
  const until = Math.max(where.until ?? now, since + parts)
  return api.runTimes({ since, until, parts, workflow: where.workflow })
}

interface ViewsProps {
  filter: string
  counts: RunPage['counts']
  failedToday: number | null
  lost: number
  mine: string | null
}

/** Views that are there, and those that were kept in this browser. */
function Views({ filter, counts, failedToday, lost, mine }: ViewsProps): ReactElement {
  const [kept, setKept] = useState(savedViews)
  const [name, setName] = useState<string | null>(null)
  const total = counts ? Object.values(counts).reduce((sum, count) => sum + count, 0) : null
  const fixed: (View & { count: number | null; testId?: string })[] = [
    { name: 'All', query: '', count: total },
    ...STATUSES.filter((each) => each === 'running' || each === 'waiting').map((each) => ({
      name: wordOf(each),
      query: `status=${each}`,
      count: counts?.[each] ?? null,
    })),
    { name: 'Failed today', query: 'status=failed&since=today', count: failedToday },
    ...(mine ? [{ name: 'Mine', query: new URLSearchParams({ by: mine }).toString(), count: null }] : []),
    ...(lost || filter === 'status=attention'
      ? [{ name: wordOf('attention'), query: 'status=attention', count: lost, testId: 'filter-attention' }]
      : []),
  ]
  const keep = (views: View[]): void => {
    saveViews(views)
    setKept(views)
  }
  const show = (query: string): void =>
    setQuery({
      ...Object.fromEntries(PARAMS.map((param) => [param, null])),
      ...Object.fromEntries(new URLSearchParams(query)),
    })
  const known = [...fixed, ...kept].some((view) => view.query === filter)
  return (
    <div className="views" role="group" aria-label="Views">
      {fixed.map((view) => (
        <button
          key={view.name}
          type="button"
          className="view"
          data-testid={view.testId}
          aria-pressed={filter === view.query}
          onClick={() => show(view.query)}
        >
          {view.name}
          {view.count === null ? null : <span>{view.count.toLocaleString()}</span>}
        </button>
      ))}
      {kept.map((view) => (
        <span key={view.name} className="view view--kept" data-on={filter === view.query || undefined}>
          <button type="button" aria-pressed={filter === view.query} onClick={() => show(view.query)}>
            {view.name}
          </button>
          <button
            type="button"
            aria-label={`Forget the view ${view.name}`}
            onClick={() => keep(kept.filter((each) => each !== view))}
          >
            <Icon name="close" size={12} />
          </button>
        </span>
      ))}
      {known ? null : name === null ? (
        <Button kind="bare" icon="plus" onClick={() => setName('')}>
          Keep this view
        </Button>
      ) : (
        <form
          className="views__new"
          onSubmit={(event) => {
            event.preventDefault()
            const word = name.trim()
            if (word) keep([...kept.filter((view) => view.name !== word), { name: word, query: filter }])
            setName(null)
          }}
        >
          <input
            type="text"
            autoFocus
            aria-label="Name of the view"
            placeholder="Name, then Enter"
            maxLength={40}
            value={name}
            onChange={(event) => setName(event.target.value)}
            onKeyDown={(event) => event.key === 'Escape' && setName(null)}
          />
        </form>
      )}
    </div>
  )
}

const COLUMNS = [
  'id',
  'workflow',
  'version',
  'status',
  'key',
  'by',
  'created_at_ms',
  'started_at_ms',
  'finished_at_ms',
  'duration_ms',
] as const // prettier-ignore

/** The runs of the list as a file. A text that a spreadsheet would take for a formula gets a quote before it. */
function saveCsv(runs: readonly RunSummary[]): void {
  const cell = (value: unknown): string =>
    `"${String(value ?? '')
      .replace(/^[=+\-@]/, "'$&")
      .replaceAll('"', '""')}"`
  const lines = runs.map((run) => [...COLUMNS.map((name) => run[name]), run.error?.message ?? ''].map(cell).join(','))
  const blob = new Blob([`${[...COLUMNS, 'error'].join(',')}\n${lines.join('\n')}\n`], { type: 'text/csv' })
  const link = document.createElement('a')
  link.href = URL.createObjectURL(blob)
  link.download = 'runs.csv'
  link.click()
  setTimeout(() => URL.revokeObjectURL(link.href), 10_000)
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
