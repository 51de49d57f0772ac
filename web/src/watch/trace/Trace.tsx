// The trace: what ran, inside what, when and for how long. Selecting a row selects it on the canvas too.

import {
  memo,
  useDeferredValue,
  useEffect,
  useMemo,
  useRef,
  useState,
  type KeyboardEvent,
  type ReactElement,
} from 'react'
import { useStore } from 'zustand'
import type { Document } from '../../api/types'
import { Link } from '../../ui/navigation'
import { specsOf } from '../../state/doc'
import { routeTitle } from '../../document/document'
import { isLoading, runStore } from '../../state/live'
import { firstError, pathFor, usedText, type BlockStatus, type NodeState, type StepState } from '../../run'
import { STEP_ICONS } from '../../ui/steps'
import { setIter, uiStore, showStep } from '../../state/ui'
import { EmptyState } from '../../ui/EmptyState'
import { Icon, iconOf } from '../../ui/icons'
import { Status } from '../../ui/status'
import { durationText } from '../../ui/time'
import { reminderText } from '../events/describe'
import { timeScale, type TimeScale } from '../tape/timeScale'
import { useClock } from '../../ui/useClock'
import { fromFirstBlock, segmentsOf } from './bars'
import { selectNode } from '../../actions/jump'
import { parentRow, pathsTo, rowOf, traceIndex, traceRows, type TraceRow } from './rows'
import { useVirtual } from './virtual'
import './trace.css'
import { triesText } from '../tries'

const ROW_H = 24
/** Shorter waits are drawn to scale: beside one of some seconds, a block of milliseconds is a line. */
const COMPRESS_MS = 60_000

const SKIPS: Readonly<Record<string, string>> = { skip_if: 'Skipped by “Skip if”', expired: 'Not answered in time' }
const FILTERS = {
  all: { label: 'All', only: [] },
  failed: { label: 'Failed', only: ['failed', 'handled'] },
  open: { label: 'Running or waiting', only: ['running', 'retrying', 'waiting', 'attention'] },
  attention: { label: 'Needs attention', only: ['attention'] },
  skipped: { label: 'Skipped', only: ['skipped'] },
} satisfies Record<string, { label: string; only: readonly BlockStatus[] }>

export default function Trace(): ReactElement {
  // Thousands of rows may follow the cursor a moment later; the Tape itself never waits for them.
  const view = useDeferredValue(useStore(runStore, (s) => s.view))
  const doc = useStore(runStore, (s) => s.doc)
  const timeline = useStore(runStore, (s) => s.timeline)
  const headSeq = useStore(runStore, (s) => s.head.seq)
  const loading = useStore(runStore, isLoading)
  const selected = useStore(uiStore, (s) => (s.selection.blocks.length === 1 ? s.selection.blocks[0]! : null))
  const iter = useStore(uiStore, (s) => s.iter)
  const [fold, setFold] = useState<ReadonlyMap<string, boolean>>(new Map())
  const [query, setQuery] = useState('')
  const [only, setOnly] = useState<keyof typeof FILTERS>('all')
  const [active, setActive] = useState<string | null>(null)
  const box = useRef<HTMLDivElement>(null)
  const now = useClock(500)

  const shownPath = selected !== null && doc ? pathFor(view, doc, selected, iter) : ''
  const leaf = firstError(view)
  const looked = useMemo(() => new Set([...pathsTo(shownPath), ...pathsTo(leaf?.path ?? '')]), [shownPath, leaf?.path])
  const index = useMemo(() => traceIndex(view), [view])
  const rows = useMemo(
    () => traceRows(index, doc, fold, looked, query, FILTERS[only].only),
    [index, doc, fold, looked, query, only],
  )
  const scale = useMemo(
    () => timeScale(fromFirstBlock(timeline.log), Math.max(now, timeline.log.at(-1)?.at_ms ?? 0), COMPRESS_MS),
    [timeline, headSeq, now],
  )
  const virtual = useVirtual(box, rows.length, ROW_H)

  // What is selected elsewhere is the active row, unless that row says the same already.
  const activeRow = rows.find((row) => row.id === active)
  const says =
    activeRow &&
    selected !== null &&
    activeRow.block === selected &&
    (activeRow.scope ? true : activeRow.path === shownPath)
  const wanted = says || selected === null ? active : (rows[rowOf(rows, selected, shownPath)]?.id ?? active)
  const at = Math.max(
    0,
    rows.findIndex((row) => row.id === wanted),
  )
  useEffect(() => {
    if (wanted !== null && rows[at]?.id === wanted) virtual.reveal(at)
  }, [wanted])

  const choose = (row: TraceRow): void => {
    setActive(row.id)
    if (row.node) return selectNode(row.node)
    if (row.step) {
      selectNode({ block: row.block, path: row.path })
      return showStep(row.step.n)
    }
    selectNode({ block: row.block, path: row.scope!.path.slice(0, Math.max(0, row.path.lastIndexOf('/'))) })
    setIter(row.block, row.scope!.index)
  }
  const toggle = (row: TraceRow): void => {
    if (row.open !== null) setFold(new Map(fold).set(row.id, !row.open))
  }
  const onKey = (event: KeyboardEvent): void => {
    const row = rows[at]
    if (!row || event.ctrlKey || event.metaKey || event.altKey) return
    const page = Math.max(1, Math.floor((box.current?.clientHeight ?? 0) / ROW_H) - 1)
    const to = {
      ArrowDown: at + 1,
      ArrowUp: at - 1,
      Home: 0,
      End: rows.length - 1,
      PageDown: at + page,
      PageUp: at - page,
    }[event.key]
    if (to !== undefined) choose(rows[Math.max(0, Math.min(rows.length - 1, to))]!)
    else if (event.key === 'ArrowRight' && row.open === false) toggle(row)
    else if (event.key === 'ArrowRight' && row.open && rows[at + 1]) choose(rows[at + 1]!)
    else if (event.key === 'ArrowLeft' && row.open && !query) toggle(row)
    else if (event.key === 'ArrowLeft' && parentRow(rows, at) >= 0) choose(rows[parentRow(rows, at)]!)
    else if (event.key === 'Enter' || event.key === ' ') choose(row)
    else return
    event.preventDefault()
    event.stopPropagation()
  }

  if (loading && view.seq === 0)
    return <EmptyState title="Loading">The events of this run are on their way.</EmptyState>
  if (view.seq === 0)
    return (
      <EmptyState title="Not started yet">
        {headSeq ? 'The Tape is before the first event.' : 'Blocks appear here when they start.'}
      </EmptyState>
    )
  const cursorX = view.at === null ? null : scale.at(view.seq === headSeq ? Math.max(now, view.at) : view.at)
  return (
    <div className="trace">
      <div className="trace__bar">
        <input
          type="search"
          aria-label="Search in the trace"
          placeholder="Find a block or an error"
          value={query}
          onChange={(event) => setQuery(event.target.value)}
        />
        <select
          aria-label="Show only"
          className="trace__only"
          data-testid="trace-only"
          value={only}
          onChange={(event) => setOnly(event.target.value as keyof typeof FILTERS)}
        >
          {Object.entries(FILTERS).map(([id, { label }]) => (
            <option key={id} value={id}>
              {label}
            </option>
          ))}
        </select>
        <span className="label">{rows.length} rows</span>
        <span className="trace__axis" aria-hidden="true">
          {scale.gaps.map((gap) => (
            <i key={gap.from} style={{ left: `${gap.x * 100}%`, transform: `translateX(-${gap.x * 100}%)` }}>
              {durationText(gap.to - gap.from)} idle
            </i>
          ))}
        </span>
      </div>
      <div
        ref={box}
        role="tree"
        tabIndex={0}
        aria-label="Trace"
        className="trace__rows"
        onKeyDown={onKey}
        aria-activedescendant={rows[at] ? `trace-row-${at}` : undefined}
      >
        <div style={{ height: virtual.height }} role="presentation" className="trace__all">
          {rows.slice(virtual.from, virtual.to).map((row, i) => (
            <Row
              key={row.id}
              row={row}
              at={virtual.from + i}
              active={row.id === wanted}
              doc={doc}
              scale={scale}
              now={row.finishedAt === null ? now : 0}
              cursorX={cursorX}
              onChoose={choose}
              onToggle={toggle}
            />
          ))}
          {rows.length ? null : (
            <p className="trace__none quiet">{query ? `No results for “${query}”` : 'No results'}</p>
          )}
        </div>
      </div>
    </div>
  )
}

interface RowProps {
  row: TraceRow
  at: number
  active: boolean
  doc: Document | null
  scale: TimeScale
  /** 0 when the row has ended: then it is not drawn again with every tick. */
  now: number
  cursorX: number | null
  onChoose: (row: TraceRow) => void
  onToggle: (row: TraceRow) => void
}

const Row = memo(function Row({
  row,
  at,
  active,
  doc,
  scale,
  now,
  cursorX,
  onChoose,
  onToggle,
}: RowProps): ReactElement {
  const type = doc?.blocks[row.block]?.type ?? ''
  const took =
    row.startedAt !== null && (row.finishedAt !== null || now)
      ? Math.max(0, (row.finishedAt ?? now) - row.startedAt)
      : null
  const skipped = row.status === 'skipped'
  const segments = segmentsOf(row, scale, now || (row.finishedAt ?? 0))
  return (
    <div
      role="treeitem"
      id={`trace-row-${at}`}
      data-testid={`trace-${row.id}`}
      data-status={row.status}
      aria-level={row.depth + 1}
      aria-selected={active}
      aria-expanded={row.open ?? undefined}
      className="trace__row"
      style={{ top: at * ROW_H, height: ROW_H }}
      onClick={() => onChoose(row)}
      onDoubleClick={() => onToggle(row)}
    >
      <span className="trace__name" style={{ paddingLeft: 8 + row.depth * 14 }}>
        <span
          className="trace__twist"
          onClick={(event) => {
            event.stopPropagation()
            onToggle(row)
          }}
        >
          {row.open === null ? null : <Icon name={row.open ? 'down' : 'chevron'} size={12} />}
        </span>
        {row.step ? <Icon name={STEP_ICONS[row.step.kind]} size={12} /> : null}
        {row.scope || row.step ? null : <Icon name={iconOf(type)} size={14} />}
        <span className={row.scope ? 'trace__label mono' : 'trace__label'}>{row.label}</span>
        {row.node ? <Facts node={row.node} doc={doc} /> : null}
        {row.step ? <StepFacts step={row.step} /> : null}
      </span>
      <Status status={row.status} />
      <span className="trace__took mono">{took === null || skipped ? '' : durationText(took)}</span>
      <span className="trace__bars" aria-hidden="true">
        {segments.map((each, i) => (
          <i
            key={i}
            data-tone={each.tone}
            className={each.thin ? 'trace__seg trace__seg--thin' : 'trace__seg'}
            style={{ left: `${each.x * 100}%`, width: `max(2px, ${each.width * 100}%)` }}
          />
        ))}
        {segments.flatMap((each) =>
          each.breaks.map((x) => (
            <i key={`${x}`} className="trace__break" data-tone={each.tone} style={{ left: `${x * 100}%` }} />
          )),
        )}
        {cursorX === null ? null : <i className="trace__cursor" style={{ left: `${cursorX * 100}%` }} />}
      </span>
    </div>
  )
})

function Facts({ node, doc }: { node: NodeState; doc: Document | null }): ReactElement | null {
  const { region } = node
  if (node.error && node.status !== 'succeeded')
    return (
      <span className="trace__fact" data-tone={node.handled ? undefined : 'err'} title={node.error.message}>
        {node.error.message}
      </span>
    )
  if (region)
    return (
      <span className="trace__fact mono">
        {region.closed} / {region.count}
        {region.failed ? `, ${region.failed} failed` : ''}
      </span>
    )
  if (node.status === 'skipped')
    return (
      <span className="trace__fact">
        {node.reason === 'pruned' ? 'Branch not taken' : (SKIPS[node.reason ?? ''] ?? node.reason)}
      </span>
    )
  if (node.wait?.kind === 'child') return <Child node={node} />
  if (node.wait?.remindAt)
    return <span className="trace__fact">{reminderText(node.wait.remindAt, node.wait.openedAt)}</span>
  if (node.cached) return <span className="trace__fact">From the cache</span>
  if (node.attempt > 1 && !node.steps.length) return <span className="trace__fact mono">Attempt {node.attempt}</span>
  if (node.route && node.route !== 'out')
    return (
      <span className="trace__fact mono">{doc ? routeTitle(doc, node.block, node.route, specsOf()) : node.route}</span>
    )
  return null
}

function StepFacts({ step }: { step: StepState }): ReactElement | null {
  const tries = triesText(step)
  if (step.error)
    return (
      <span className="trace__fact" data-tone="err" title={step.error.message}>
        {tries ? `${tries}: ` : ''}
        {step.error.message}
      </span>
    )
  const facts = [tries, usedText([step])].filter(Boolean)
  return facts.length ? <span className="trace__fact mono">{facts.join(', ')}</span> : null
}

/** The run a block started: to be gone to, when the server has said which it is. */
function Child({ node }: { node: NodeState }): ReactElement {
  const child = useStore(runStore, (s) => s.meta?.children?.find((each) => each.key === node.key))
  if (node.waits.length > 1) return <span className="trace__fact">{node.waits.length} other runs</span>
  if (!child) return <span className="trace__fact">Another run</span>
  return (
    <span className="trace__fact">
      <Link to={`/runs/${child.run}`} tabIndex={-1} onClick={(event) => event.stopPropagation()}>
        Run of {child.workflow}
      </Link>
    </span>
  )
}
