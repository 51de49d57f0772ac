// A JSON value as a tree that stays quick: only the rows in view exist, a text shows its first 200 characters, and of a large
// value only the first 64 kB; the rest is a download. Arrow keys walk and fold, Enter copies the path.

import { useMemo, useRef, useState, type KeyboardEvent, type ReactElement } from 'react'
import { fileIn } from '../net/files'
import type { Json } from '../api/schemas'
import { Button } from './Button'
import { FileChip } from './FileChip'
import { Icon } from './icons'
import { copyText } from './copy'
import { rowsOf, sizeOfJson, PREVIEW_BYTES, type Row } from './tree'

const ROW_H = 20
const TEXT_MAX = 200
/** From here on a number called `..._at` is a moment in Unix ms: 2001. */
const MOMENT_MIN = 1e12

export interface ValueTreeProps {
  value: Json
  /** What a copied path begins with: `Draft` gives `<Draft.items[0]>`. */
  base?: string
  /** File name of the download, without `.json`. */
  name?: string
  height?: number
  label?: string
}

export function ValueTree({
  value,
  base,
  name = 'value',
  height = 240,
  label = 'Value',
}: ValueTreeProps): ReactElement {
  const [closed, setClosed] = useState<ReadonlySet<string>>(new Set())
  const [query, setQuery] = useState('')
  const [top, setTop] = useState(0)
  // Nothing is selected until the tree has the keyboard.
  const [active, setActive] = useState(-1)
  const ref = useRef<HTMLDivElement>(null)
  const size = useMemo(() => sizeOfJson(value), [value])
  const { rows, cut } = useMemo(() => rowsOf(value, closed, query), [value, closed, query])
  const shown = Math.min(height, Math.max(rows.length, 1) * ROW_H + 2)
  const from = Math.max(0, Math.floor(top / ROW_H) - 4)
  const seen = rows.slice(from, from + Math.ceil(shown / ROW_H) + 8)
  const now = Math.min(active, rows.length - 1)

  const fold = (row: Row, close: boolean): void => {
    const next = new Set(closed)
    if (close) next.add(row.id)
    else next.delete(row.id)
    setClosed(next)
  }
  const go = (to: number): void => {
    const at = Math.max(0, Math.min(rows.length - 1, to))
    setActive(at)
    const box = ref.current!
    if (at * ROW_H < box.scrollTop) box.scrollTop = at * ROW_H
    if ((at + 1) * ROW_H > box.scrollTop + box.clientHeight) box.scrollTop = (at + 1) * ROW_H - box.clientHeight
  }
  const onKey = (event: KeyboardEvent): void => {
    const row = rows[now]
    if (!row) return
    if (event.key === 'ArrowDown') go(now + 1)
    else if (event.key === 'ArrowUp') go(now - 1)
    else if (event.key === 'Home') go(0)
    else if (event.key === 'End') go(rows.length - 1)
    else if (event.key === 'ArrowLeft' && row.size !== null && !row.closed) fold(row, true)
    else if (event.key === 'ArrowRight' && row.closed) fold(row, false)
    else if (event.key === 'Enter') void copyPath(row, base)
    else return
    event.preventDefault()
    event.stopPropagation()
  }

  return (
    <div>
      {rows.length > 8 || query || cut ? (
        <div className="tree__bar">
          <input
            type="search"
            aria-label={`Search in ${label.toLowerCase()}`}
            placeholder="Search"
            value={query}
            onChange={(e) => setQuery(e.target.value)}
          />
          {cut ? (
            <span className="label">
              First {PREVIEW_BYTES / 1024} kB of {Math.ceil(size / 1024)} kB
            </span>
          ) : null}
          <Button icon="download" onClick={() => download(value, name)}>
            Download
          </Button>
        </div>
      ) : null}
      <div
        ref={ref}
        role="tree"
        aria-label={label}
        tabIndex={0}
        className="tree"
        style={{ height: shown }}
        onKeyDown={onKey}
        onFocus={() => now < 0 && setActive(0)}
        aria-activedescendant={rows[now] ? `${label}-${now}` : undefined}
        onScroll={(event) => setTop(event.currentTarget.scrollTop)}
      >
        <div style={{ height: rows.length * ROW_H }} role="presentation">
          {seen.map((row, i) => (
            <div
              key={row.id}
              id={`${label}-${from + i}`}
              role="treeitem"
              aria-level={row.depth + 1}
              aria-selected={from + i === now}
              aria-expanded={row.size === null ? undefined : !row.closed}
              className="tree__row"
              style={{ top: (from + i) * ROW_H, paddingLeft: 4 + row.depth * 14 }}
              onClick={() => {
                setActive(from + i)
                if (row.size) fold(row, !row.closed)
              }}
              onDoubleClick={() => void copyPath(row, base)}
              title={base ? 'Press Enter or double-click to copy the path' : undefined}
            >
              <span className="tree__twist">
                {row.size ? <Icon name={row.closed ? 'chevron' : 'down'} size={12} /> : null}
              </span>
              {row.key === null ? null : <span className="tree__key">{row.key}: </span>}
              <Shown row={row} />
            </div>
          ))}
        </div>
      </div>
    </div>
  )
}

function Shown({ row }: { row: Row }): ReactElement {
  const { value } = row
  if (Array.isArray(value)) return <span className="tree__note">{`[${value.length}]`}</span>
  const file = fileIn(value)
  if (file) return <FileChip file={file} />
  if (value && typeof value === 'object') return <span className="tree__note">{`{${Object.keys(value).length}}`}</span>
  if (typeof value === 'string') {
    const text = JSON.stringify(value.length > TEXT_MAX ? value.slice(0, TEXT_MAX) : value)
    return (
      <>
        <span className="tree__text">{text}</span>
        {value.length > TEXT_MAX ? <span className="tree__note"> +{value.length - TEXT_MAX}</span> : null}
      </>
    )
  }
  if (typeof value === 'number' && value > MOMENT_MIN && /(^|_)(at|at_ms|due_ms)$/.test(row.key ?? '')) {
    return (
      <>
        <span className="tree__number">{value}</span>
        <span className="tree__note"> {new Date(value).toLocaleString()}</span>
      </>
    )
  }
  return <span className={typeof value === 'number' ? 'tree__number' : 'tree__word'}>{String(value)}</span>
}

function copyPath(row: Row, base: string | undefined): Promise<void> {
  const path = base ? `<${base}${row.path}>` : row.path || '$'
  return copyText(path, `Copied ${path}`)
}

function download(value: Json, name: string): void {
  const url = URL.createObjectURL(new Blob([JSON.stringify(value, null, 2)], { type: 'application/json' }))
  const link = document.createElement('a')
  link.href = url
  link.download = `${name}.json`
  link.click()
  setTimeout(() => URL.revokeObjectURL(url), 10_000)
}
