// The calls of a durable function, a row each. Only the rows in view exist.

import { memo, useEffect, useMemo, useRef, type KeyboardEvent, type ReactElement } from 'react'
import { useStore } from 'zustand'
import type { WaitView } from '../../api/types'
import { columnsOf, isOpen, tasksOf, threadsOf, type LaneItem } from '../../run/lane'
import { isEnded, shortName } from '../../run'
import { runStore } from '../../state/live'
import { Icon } from '../../ui/icons'
import { Status } from '../../ui/status'
import { durationText, roughly, timeOfDay } from '../../ui/time'
import { useClock } from '../../ui/useClock'
import { useVirtual } from '../../watch/trace/virtual'
import { choose } from './choose'
import { iconOfItem } from './icon'
import { rowsOf, shownText, threadsAt, type LaneRow } from './rows'
import { WaitAction } from './WaitAction'

const ROW_H = 32
const COLUMN_W = 14
const COLUMNS_MAX = 12

interface LaneRowsProps {
  items: readonly LaneItem[]
  chosen: string | null
  /** Views of open waits by id, with their links. */
  waits: ReadonlyMap<string, WaitView>
  onAnswer: (wait: WaitView) => void
}

export function LaneRows({ items, chosen, waits, onAnswer }: LaneRowsProps): ReactElement {
  const box = useRef<HTMLDivElement>(null)
  const live = useStore(runStore, (s) => s.cursor === 'live' && !isEnded(s.head.status))
  const rows = useMemo(() => rowsOf(items), [items])
  const tasks = useMemo(() => threadsOf(tasksOf(items)), [items])
  const columns = useMemo(() => columnsOf(tasks), [tasks])
  const width = Math.min(COLUMNS_MAX, Math.max(0, ...columns.values()) + 1)
  const virtual = useVirtual(box, rows.length, ROW_H)
  const at = rows.findIndex((row) => row.id === chosen)
  const line = rows[at]?.kind === 'item' ? (rows[at] as { item: LaneItem }).item.line : null
  useEffect(() => {
    if (at >= 0) virtual.reveal(at)
  }, [chosen])
  // Who looks at the end follows it.
  const atEnd = useRef(true)
  useEffect(() => {
    if (live && atEnd.current && chosen === null) virtual.reveal(rows.length - 1)
  }, [rows.length, live])

  const onKey = (event: KeyboardEvent): void => {
    if (event.ctrlKey || event.metaKey || event.altKey || event.target !== event.currentTarget) return
    const page = Math.max(1, Math.floor((box.current?.clientHeight ?? 0) / ROW_H) - 1)
    const by = { ArrowDown: 1, ArrowUp: -1, PageDown: page, PageUp: -page }[event.key]
    const to = by !== undefined ? at + by : event.key === 'Home' ? 0 : event.key === 'End' ? rows.length - 1 : null
    if (to === null) return
    const found = nearest(rows, to, by === undefined ? (to ? -1 : 1) : Math.sign(by))
    if (found) choose(found)
    event.preventDefault()
    event.stopPropagation()
  }
  return (
    <div
      ref={box}
      role="tree"
      tabIndex={0}
      aria-label="Calls"
      className="lane__rows"
      data-testid="lane-rows"
      onKeyDown={onKey}
      onScroll={() => (atEnd.current = virtual.atEnd())}
      aria-activedescendant={at >= 0 ? `lane-row-${at}` : undefined}
    >
      <div style={{ height: virtual.height }} role="presentation" className="lane__all">
        {rows.slice(virtual.from, virtual.to).map((row, n) => {
          const place = { top: (virtual.from + n) * ROW_H, height: ROW_H }
          if (row.kind !== 'item') return <Band key={row.id} row={row} place={place} />
          const { item } = row
          return (
            <Row
              key={row.id}
              at={virtual.from + n}
              row={row}
              chosen={row.id === chosen}
              beside={line !== null && item.line === line && row.id !== chosen}
              threads={threadsAt(item, tasks, columns).join(' ')}
              column={columns.get(item.task) ?? 0}
              width={width}
              view={item.wait?.id ? waits.get(item.wait.id) : undefined}
              onAnswer={onAnswer}
            />
          )
        })}
      </div>
    </div>
  )
}

/** The call at a row, or the next one in a direction, or the one before. */
function nearest(rows: readonly LaneRow[], to: number, by: number): LaneItem | null {
  const from = Math.max(0, Math.min(rows.length - 1, to))
  for (const step of [by, -by])
    for (let at = from; at >= 0 && at < rows.length; at += step) {
      const row = rows[at]!
      if (row.kind === 'item') return row.item
    }
  return null
}

function Band({ row, place }: { row: LaneRow; place: { top: number; height: number } }): ReactElement {
  if (row.kind === 'cut')
    return (
      <div role="treeitem" aria-level={1} className="lane__cut" style={place} data-testid="lane-cut">
        <span>Cancelled</span>
      </div>
    )
  const depth = row.kind === 'band' ? row.depth : 0
  return (
    <div role="treeitem" aria-level={depth + 1} className="lane__band" style={place} data-testid="lane-band">
      <span style={{ paddingLeft: depth * 12 }}>{row.kind === 'band' ? row.label : ''}</span>
    </div>
  )
}

interface RowProps {
  at: number
  row: Extract<LaneRow, { kind: 'item' }>
  chosen: boolean
  /** The chosen call is of the same line. */
  beside: boolean
  /** Columns of the tasks that are open here, as text: equal ones are one. */
  threads: string
  column: number
  width: number
  view: WaitView | undefined
  onAnswer: (wait: WaitView) => void
}

const Row = memo(function Row({
  at,
  row,
  chosen,
  beside,
  threads,
  column,
  width,
  view,
  onAnswer,
}: RowProps): ReactElement {
  const { item, depth, chip } = row
  const status = item.status === 'lost' ? 'attention' : item.status
  const error = item.error && item.status !== 'cancelled' ? item.error.message : null
  const input = shownText(item)
  const last = COLUMNS_MAX - 1
  return (
    <div
      role="treeitem"
      id={`lane-row-${at}`}
      data-testid={`lane-${row.id}`}
      data-status={status}
      data-beside={beside || undefined}
      aria-level={depth + 1}
      aria-selected={chosen}
      className="lane__row"
      style={{ top: at * ROW_H, height: ROW_H }}
      onClick={() => choose(item)}
    >
      <span className="lane__columns" style={{ width: width * COLUMN_W + 6 }} aria-hidden="true">
        {threads.split(' ').map((each) => (
          <i key={each} className="lane__thread" style={{ left: Math.min(Number(each), last) * COLUMN_W + 8 }} />
        ))}
        <i className="lane__dot" style={{ left: Math.min(column, last) * COLUMN_W + 4 }} />
      </span>
      <span className="lane__what">
        <Icon name={iconOfItem(item)} size={14} />
        <span className="lane__name" title={item.name}>
          {shortName(item.name)}
        </span>
        {chip ? <span className="lane__chip">{chip}</span> : null}
        {item.times > 1 ? <span className="lane__fact mono">{item.times} tries</span> : null}
        {error ? (
          <span className="lane__fact" data-tone="err" title={error}>
            {error}
          </span>
        ) : input ? (
          <span className="lane__fact mono" title={input}>
            {input}
          </span>
        ) : null}
      </span>
      <WaitAction item={item} view={view} onAnswer={onAnswer} />
      <span className="lane__status">
        <Status status={status} />
      </span>
      <Took item={item} />
      <span className="lane__line mono" title="Line">
        {item.line || ''}
      </span>
    </div>
  )
})

function Took({ item }: { item: LaneItem }): ReactElement {
  if (!isOpen(item) || item.endedAt !== null)
    return (
      <span className="lane__took mono">
        {item.endedAt === null ? '' : durationText(item.endedAt - item.startedAt)}
      </span>
    )
  return <Clock item={item} />
}

/** Ticks only in rows that are open. */
function Clock({ item }: { item: LaneItem }): ReactElement {
  const now = useClock(500)
  const due = item.dueAt ?? (item.status === 'waiting' ? item.wait?.dueAt : null) ?? null
  if (due !== null)
    return (
      <span className="lane__took mono" title={`Until ${timeOfDay(due)}`}>
        {due > now ? `in ${roughly(due - now)}` : 'due'}
      </span>
    )
  return <span className="lane__took mono">{durationText(Math.max(0, now - item.startedAt))}</span>
}
