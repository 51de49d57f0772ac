// A section of the settings that lists what is stored: its head, the table, and what stands there while it is empty.

import type { ReactElement, ReactNode } from 'react'
import { Ago } from '../../ui/Ago'
import { EmptyState } from '../../ui/EmptyState'
import type { Loaded } from '../../ui/useData'
import { ListState } from '../parts'

export interface Column<T> {
  name: string
  cell: (row: T) => ReactNode
  className?: string
}

/** The column of buttons: its name is for screen readers only. */
export const ACTIONS = 'Actions'

interface TableProps<T> {
  label: string
  columns: readonly Column<T>[]
  rows: readonly T[]
  keyOf: (row: T) => string | number
  /** A class that sets the widths of the columns; a narrow window shows one column with their names. */
  widths?: string
  testIdOf?: (row: T) => string
}

export function Table<T>({ label, columns, rows, keyOf, widths, testIdOf }: TableProps<T>): ReactElement {
  const row = `settings__row ${widths ? `settings__wide ${widths}` : ''}`
  return (
    <div className="settings__env" role="table" aria-label={label}>
      <div role="row" className={`${row} label`}>
        {columns.map(({ name }) => (
          <span key={name} role="columnheader" className={name === ACTIONS ? 'visually-hidden' : undefined}>
            {name}
          </span>
        ))}
      </div>
      {rows.map((each) => (
        <div key={keyOf(each)} role="row" className={row} data-testid={testIdOf?.(each)}>
          {columns.map(({ name, cell, className }, n) => (
            <span
              key={name}
              role="cell"
              className={name === ACTIONS ? `settings__session settings__acts ${className ?? ''}` : className}
              data-label={widths && n && name !== ACTIONS ? name : undefined}
            >
              {cell(each)}
            </span>
          ))}
        </div>
      ))}
    </div>
  )
}

interface ListPageProps<T> extends TableProps<T> {
  /** `secrets`: the id of the section, and the test id. */
  id: string
  title: string
  about: ReactNode
  /** The button that adds one. */
  add?: ReactNode
  /** How the rows are loaded. */
  data: Loaded<unknown>
  /** The words of an empty list, and what to do then. */
  empty: string
  hint?: ReactNode
  /** Above the table: what went wrong. */
  notice?: ReactNode
  children?: ReactNode
}

export function ListPage<T>(props: ListPageProps<T>): ReactElement {
  const { id, title, about, add, data, empty, hint, notice, children, ...table } = props
  return (
    <section aria-labelledby={`set-${id}`} data-testid={id} id={id}>
      <div className="settings__head">
        <h2 id={`set-${id}`}>{title}</h2>
        {add}
      </div>
      <p className="quiet">{about}</p>
      {notice}
      {table.rows.length ? (
        <Table {...table} />
      ) : (
        <ListState data={data} empty>
          <EmptyState title={empty}>{hint}</EmptyState>
        </ListState>
      )}
      {children}
    </section>
  )
}

/** Why the last request was refused, if it was. */
export function Refused({ error, testId }: { error: string | null; testId?: string }): ReactElement | null {
  return error === null ? null : (
    <p className="notice" data-tone="err" role="alert" data-testid={testId}>
      {error}
    </p>
  )
}

/** When it was last used. `at` null: never. */
export function LastUsed({ at }: { at: number | null }): ReactElement {
  return at === null ? <span className="quiet">Never</span> : <Ago at={at} />
}

export const codes = (texts: readonly string[]): ReactElement[] => texts.map((text) => <code key={text}>{text}</code>)
