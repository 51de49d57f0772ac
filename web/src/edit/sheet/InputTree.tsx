// The values that a block can read, as a tree: dragged into a field, or put there by Enter. Arrow keys walk and fold.

import { useMemo, useRef, useState, type DragEvent, type KeyboardEvent, type ReactElement } from 'react'
import type { Json } from '../../api/schemas'
import { isObject } from '../../net/json'
import { Icon, type IconName } from '../../ui/icons'
import { brief } from '../../run/difference'
import { inputGroups, SHOWN_FIELDS } from './inputs'
import { DRAGGED } from './insert'
import { useFieldScope } from '../../forms/fields/scope'

interface Row {
  id: string
  depth: number
  label: string
  note: string
  icon?: IconName
  /** With brackets. */
  reference: string | null
  value: string
  opens: boolean
  open: boolean
  group: boolean
}

const ROWS_MAX = 600
const WRITABLE = /^[\p{L}\p{N}_$@][\p{L}\p{N}_$@-]*$/u

export function InputTree({ id, onInsert }: { id: string; onInsert: (reference: string) => void }): ReactElement {
  const { doc, specs, run, env } = useFieldScope()
  const [query, setQuery] = useState('')
  /** The rows that were opened or closed. At first groups are open, environment and variables and values in them are closed. */
  const [turned, setTurned] = useState<ReadonlySet<string>>(new Set())
  const [active, setActive] = useState(0)
  const tree = useRef<HTMLDivElement>(null)
  const groups = useMemo(() => inputGroups(doc, id, specs, run, env), [doc, id, specs, run, env])
  const rows = useMemo(() => rowsOfGroups(groups, turned, query.trim().toLowerCase()), [groups, turned, query])
  const shown = rows.slice(0, ROWS_MAX)
  const now = Math.min(active, shown.length - 1)
  const turn = (row: Row): void => {
    const next = new Set(turned)
    if (!next.delete(row.id)) next.add(row.id)
    setTurned(next)
  }
  const go = (to: number): void => {
    const at = Math.max(0, Math.min(shown.length - 1, to))
    setActive(at)
    tree.current?.children[at]?.scrollIntoView({ block: 'nearest' })
  }
  const onKey = (event: KeyboardEvent): void => {
    const row = shown[now]
    if (!row) return
    if (event.key === 'ArrowDown') go(now + 1)
    else if (event.key === 'ArrowUp') go(now - 1)
    else if (event.key === 'Home') go(0)
    else if (event.key === 'End') go(shown.length - 1)
    else if (event.key === 'ArrowRight' && row.opens && !row.open) turn(row)
    else if (event.key === 'ArrowLeft' && row.opens && row.open) turn(row)
    else if (event.key === 'Enter' && row.reference) onInsert(row.reference)
    else if (event.key === 'Enter' && row.opens) turn(row)
    else return
    event.preventDefault()
    event.stopPropagation()
  }
  return (
    <div className="inputs">
      <label className="inputs__find">
        <Icon name="search" size={14} />
        <input
          type="search"
          aria-label="Find a value"
          placeholder="Find a value"
          value={query}
          onChange={(event) => setQuery(event.target.value)}
        />
      </label>
      {groups.length === 0 ? <p className="wsheet__empty">Nothing comes before this block.</p> : null}
      <div
        ref={tree}
        className="inputs__tree"
        role="tree"
        aria-label="Values before this block"
        tabIndex={0}
        data-testid="inputs"
        aria-activedescendant={shown[now] ? `in-${now}` : undefined}
        onKeyDown={onKey}
      >
        {shown.map((row, i) => (
          <div
            key={row.id}
            id={`in-${i}`}
            role="treeitem"
            aria-level={row.depth + 1}
            aria-selected={i === now}
            aria-expanded={row.opens ? row.open : undefined}
            className={row.group ? 'inputs__row inputs__row--group' : 'inputs__row'}
            style={{ paddingLeft: 8 + row.depth * 14 }}
            draggable={row.reference !== null}
            title={row.reference ? `${row.reference}: drag it into a field, or press Enter` : undefined}
            onDragStart={(event) => row.reference && startDrag(event, row)}
            onClick={() => {
              setActive(i)
              if (row.opens) turn(row)
            }}
            onDoubleClick={() => row.reference && onInsert(row.reference)}
          >
            <span className="inputs__twist">
              {row.opens ? <Icon name={row.open ? 'down' : 'chevron'} size={12} /> : null}
            </span>
            {row.icon ? <Icon name={row.icon} size={14} /> : null}
            <span className="inputs__key">{row.label}</span>
            <span className="inputs__value">{row.value}</span>
            <span className="inputs__note">{row.note}</span>
          </div>
        ))}
      </div>
      {rows.length > ROWS_MAX ? (
        <p className="wsheet__empty">and {rows.length - ROWS_MAX} more: search for them.</p>
      ) : null}
    </div>
  )
}

/** A plum chip follows the pointer. */
function startDrag(event: DragEvent, row: Row): void {
  const { dataTransfer } = event
  dataTransfer.setData(DRAGGED, row.reference!)
  dataTransfer.setData('text/plain', row.reference!)
  dataTransfer.effectAllowed = 'copy'
  const chip = document.createElement('span')
  chip.className = 'inputs__chip'
  chip.textContent = row.label
  const value = document.createElement('i')
  value.textContent = row.value.slice(0, 24)
  if (row.value) chip.append(value)
  document.body.append(chip)
  dataTransfer.setDragImage(chip, 8, 10)
  setTimeout(() => chip.remove())
}

function rowsOfGroups(groups: ReturnType<typeof inputGroups>, turned: ReadonlySet<string>, wanted: string): Row[] {
  const rows: Row[] = []
  for (const group of groups) {
    const shut = group.id === 'env' || group.id === 'variables'
    const open = wanted !== '' || shut === turned.has(group.id)
    const inner: Row[] = []
    if (group.names)
      for (const name of group.names)
        inner.push({ ...EMPTY, id: `env ${name}`, depth: 1, label: name, reference: `\${${name}}` })
    else if (group.value !== undefined) {
      const base = group.scope ?? group.ref
      const visit = (value: Json, path: string, depth: number): void => {
        const isList = Array.isArray(value)
        for (const [key, part] of entriesOf(value)) {
          if (group.scope && depth === 1 && !SHOWN_FIELDS.has(key)) continue
          const below = isList ? `${path}[${key}]` : WRITABLE.test(key) ? `${path}.${key}` : `${path}["${key}"]`
          const id = `${group.id}${below}`
          const opens = entriesOf(part).length > 0
          const isOpen = wanted !== '' || turned.has(id)
          inner.push({
            ...EMPTY,
            id,
            depth,
            label: key,
            value: isObject(part) && !Array.isArray(part) ? small(part) : brief(part),
            reference: `<${base}${below}>`,
            opens,
            open: isOpen,
          })
          if (opens && isOpen && inner.length < ROWS_MAX) visit(part, below, depth + 1)
        }
      }
      visit(group.value, '', 1)
    }
    const found = wanted ? inner.filter((row) => `${row.label} ${row.value}`.toLowerCase().includes(wanted)) : inner
    if (wanted && !found.length && !group.title.toLowerCase().includes(wanted)) continue
    const plain = group.value !== undefined && entriesOf(group.value).length === 0
    rows.push({
      ...EMPTY,
      id: group.id,
      label: group.title,
      note: group.note,
      icon: group.icon,
      value: plain ? brief(group.value) : group.value === undefined && !group.names ? 'no value yet' : '',
      reference: group.ref && group.id !== 'variables' ? `<${group.ref}>` : null,
      opens: inner.length > 0,
      open,
      group: true,
    })
    if (open) rows.push(...found)
  }
  return rows
}

const EMPTY: Row = {
  id: '',
  depth: 0,
  label: '',
  note: '',
  reference: null,
  value: '',
  opens: false,
  open: false,
  group: false,
}

function entriesOf(value: Json): [string, Json][] {
  if (Array.isArray(value)) return value.map((each, i) => [String(i), each])
  return isObject(value) ? (Object.entries(value) as [string, Json][]) : []
}

/** `{ sku: "TW-14", qty: 2 }` while it is short. */
function small(value: object): string {
  const text = Object.entries(value)
    .map(([key, part]) => `${key}: ${brief(part as Json)}`)
    .join(', ')
  return text.length > 40 || !text ? brief(value as Json) : `{ ${text} }`
}
