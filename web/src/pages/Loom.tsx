// All runs of a workflow on one canvas: edges as thick as how many runs went there, cards with times and failures, iterations as a grid.

import { useEffect, useMemo, useState, type ReactElement } from 'react'
import type { Loom as LoomAnswer, LoomRun } from '../api/schemas'
import type { Document } from '../api/types'
import { nameOf, routeTitle } from '../document/document'
import TopBar from '../edit/shell/TopBar'
import { api } from '../net/api'
import { loadSpecs, specsStore } from '../state/doc'
import { placed } from '../state/placed'
import { Ago } from '../ui/Ago'
import { Button } from '../ui/Button'
import { EmptyState } from '../ui/EmptyState'
import { Link, navigate, setQuery, useLocation } from '../ui/navigation'
import { Status } from '../ui/status'
import type { RunStatus } from '../api/types'
import { useData } from '../ui/useData'
import { useReadOnly } from '../ui/rights'
import { useTitles } from '../state/titles'
import { shortId } from '../ui/words'
import { serverNow } from '../net/clock'
import { Histogram, type Brush } from './loom/Histogram'
import { OneOrAll } from './loom/OneOrAll'
import { Picture } from './loom/Picture'
import { isOpen, totalsOf } from './loom/totals'
import { ListState, Stale, usePolled } from './parts'
import { RerunMany } from './runs/RerunMany'
import './pages.css'
import './loom/loom.css'

const EVERY_MS = 3000
const HOUR = 3_600_000
/** The times whose runs are drawn, at most 1,000 of them; without one, the last 1,000 runs. */
const SPANS: readonly (readonly [id: string, label: string, words: string, ms: number | null])[] = [
  ['1h', '1 h', 'The last hour', HOUR],
  ['24h', '24 h', 'The last 24 hours', 24 * HOUR],
  ['7d', '7 d', 'The last 7 days', 168 * HOUR],
  ['all', '1,000 runs', '', null],
]
const LISTED = 50

export default function Loom({ id: workflow }: { id: string }): ReactElement {
  const stored = useData(async () => {
    const [version] = await Promise.all([api.workflow(workflow), loadSpecs()])
    return placed(version.document, specsStore.getState().specs)
  }, [workflow])
  const { query } = useLocation()
  const titleOf = useTitles()
  const span = SPANS.find(([id]) => id === query.get('time')) ?? SPANS.at(-1)!
  const [spanId, , , back] = span
  const loom = usePolled(
    () => api.loom(workflow, back === null ? undefined : serverNow() - back),
    [workflow, spanId],
    EVERY_MS,
  )
  const { reload } = loom
  const partial = loom.value !== null && !loom.value.complete
  useEffect(() => {
    if (partial && !loom.loading) reload()
  }, [partial, loom.loading, reload])
  const tabs = [
    { to: `/runs?workflow=${encodeURIComponent(workflow)}`, label: 'Runs' },
    { to: `/loom/${encodeURIComponent(workflow)}`, label: 'Loom' },
    { to: '/approvals', label: 'Approvals' },
  ]
  const failed = stored.error ? stored : loom
  return (
    <div className="screen loom">
      <TopBar
        tabs={tabs}
        left={
          <>
            <span className="bar__slash" aria-hidden="true">
              /
            </span>
            <h1 className="loom__title">{titleOf(workflow)}</h1>
          </>
        }
        right={<OneOrAll workflow={workflow} run={loom.value?.runs.at(-1)?.id ?? null} />}
      />
      <main className="loom__main">
        <Stale data={loom} />
        {stored.value && loom.value ? (
          loom.value.runs.length || !loom.value.complete || back !== null ? (
            <Woven key={spanId} doc={stored.value} loom={loom.value} workflow={workflow} span={span} />
          ) : (
            <EmptyState icon="play" title="No runs yet">
              <p>Run the workflow, and its runs are drawn here as threads.</p>
            </EmptyState>
          )
        ) : (
          <ListState data={failed} empty={false}>
            {null}
          </ListState>
        )}
      </main>
    </div>
  )
}

function Woven({
  doc,
  loom,
  workflow,
  span,
}: {
  doc: Document
  loom: LoomAnswer
  workflow: string
  span: (typeof SPANS)[number]
}): ReactElement {
  const [brush, setBrush] = useState<Brush>(null)
  const [chosen, setChosen] = useState<string | null>(null)
  const specs = specsStore.getState().specs
  const totals = useMemo(() => totalsOf(loom, brush), [loom, brush])
  const open = totals.runs.filter(isOpen).length
  const runs = chosen === null ? undefined : (totals.failures.get(chosen) ?? totals.exits.get(chosen)?.runs)
  return (
    <>
      <div className="loom__head">
        {brush ? (
          <span className="loom__brushed">
            Runs of <b>{`${at(brush[0])} to ${at(brush[1])}`}</b>
            {`, ${totals.runs.length.toLocaleString('en')} of ${loom.runs.length.toLocaleString('en')}`}
            <Button kind="bare" icon="close" iconOnly onClick={() => setBrush(null)}>
              Show all times
            </Button>
          </span>
        ) : (
          <span className="loom__brushed">
            {span[2] ? `${span[2]}, ${countOf(loom.runs.length)}` : `The last ${countOf(loom.runs.length)}`}
          </span>
        )}
        {loom.complete ? null : <span role="status">Reading more runs</span>}
        <span className="loom__legend">
          <i data-kind="ended" /> ended <i data-kind="open" /> {`open now, ${open.toLocaleString('en')}`}{' '}
          <i data-kind="error" /> error branch
        </span>
      </div>
      <Picture
        doc={doc}
        specs={specs}
        totals={totals}
        chosen={chosen}
        onChoose={(key) => setChosen(key === chosen ? null : key)}
        onOpen={(run) => navigate(`/runs/${run.id}`)}
      />
      {runs && chosen !== null ? (
        <Left
          key={chosen}
          title={`${countOf(runs.length)} ${doc.blocks[chosen] ? `failed at ${nameOf(doc, chosen)}` : `left ${leftBy(doc, chosen)}`}`}
          runs={runs}
          workflow={workflow}
          onClose={() => setChosen(null)}
        />
      ) : null}
      <div className="loom__span">
        <div className="loomswitch" role="group" aria-label="Time">
          {SPANS.map(([id, label]) => (
            <button
              key={id}
              type="button"
              aria-pressed={id === span[0]}
              onClick={() => setQuery({ time: id === 'all' ? null : id })}
            >
              {label}
            </button>
          ))}
        </div>
      </div>
      <Histogram runs={loom.runs} brush={brush} onBrush={setBrush} />
    </>
  )
}

const countOf = (runs: number): string => `${runs.toLocaleString('en')} ${runs === 1 ? 'run' : 'runs'}`

function leftBy(doc: Document, exit: string): string {
  const cut = exit.lastIndexOf(' ')
  const [block, handle] = [exit.slice(0, cut), exit.slice(cut + 1)]
  const name = nameOf(doc, block)
  if (handle === 'out') return name
  return handle === 'error'
    ? `${name} by its error branch`
    : `${name} by ${routeTitle(doc, block, handle, specsStore.getState().specs)}`
}

const at = (ms: number): string =>
  new Date(ms).toLocaleTimeString('en-GB', { hour: '2-digit', minute: '2-digit', second: '2-digit' })

/** The runs of a bundle, and what can be done with all of them. */
function Left({
  title,
  runs,
  workflow,
  onClose,
}: {
  title: string
  runs: readonly LoomRun[]
  workflow: string
  onClose: () => void
}): ReactElement {
  const readOnly = useReadOnly()
  const ended = runs.filter((run) => !isOpen(run))
  const [asks, setAsks] = useState(false)
  const [started, setStarted] = useState<number | null>(null)
  const newest = [...runs].reverse()
  const why =
    readOnly ?? (ended.length ? (started === null ? null : 'They have been started.') : 'All of them are open.')
  return (
    <section className="loomlist" aria-label={title} data-testid="loom-runs">
      <header>
        <h2>{title}</h2>
        <Button kind="bare" icon="close" iconOnly onClick={onClose}>
          Close
        </Button>
      </header>
      <ol>
        {newest.slice(0, LISTED).map((run) => (
          <li key={run.id}>
            <Link to={`/runs/${run.id}`}>
              <Status status={run.status as RunStatus} />
              <code>{shortId(run.id)}</code>
              <b>{run.key ?? ''}</b>
              <span>{run.error ?? ''}</span>
              <Ago at={run.created_at_ms} />
            </Link>
          </li>
        ))}
      </ol>
      <footer>
        <span className="quiet" role="status">
          {started !== null
            ? `${started} of ${ended.length} started`
            : runs.length > LISTED
              ? `${(runs.length - LISTED).toLocaleString('en')} more`
              : ''}
        </span>
        <Link
          className="button"
          to={`/runs?workflow=${encodeURIComponent(workflow)}${runs.every((run) => run.status === 'failed') ? '&status=failed' : ''}`}
        >
          Open as list
        </Link>
        <Button kind="primary" icon="redo" why={why} onClick={() => setAsks(true)}>
          {`Run ${ended.length.toLocaleString('en')} again`}
        </Button>
      </footer>
      {asks ? (
        <RerunMany
          runs={ended.map((run) => run.id)}
          onDone={(made) => setStarted(made.filter((each) => each.run).length)}
          onClose={() => setAsks(false)}
        />
      ) : null}
    </section>
  )
}
