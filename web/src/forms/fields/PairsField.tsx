// An object as rows of key and value: headers, query, what an approval shows. Values hold references.

import { useState, type ReactElement } from 'react'
import { isObject } from '../../net/json'
import type { Json, JsonObject } from '../../api/schemas'
import type { ControlProps } from './control'
import { ReferenceField } from './ReferenceField'
import { AddRow, focusField, RowTools } from './rows'
import { readJson } from './JsonText'
import { isCredential } from './kind'
import { useFieldScope } from './scope'

interface Row {
  key: string
  value: Json
}

export function PairsField({ value, onChange, path, label, schema }: ControlProps): ReactElement {
  const { readonly } = useFieldScope()
  // Rows may have no key yet, or the same one twice: the document has only those that count.
  const [typed, setTyped] = useState<Row[] | null>(null)
  const [typing, setTyping] = useState<number | null>(null)
  const stored: Row[] = isObject(value) ? Object.entries(value).map(([key, item]) => ({ key, value: item })) : []
  const rows =
    typed && JSON.stringify(objectOf(typed) ?? null) === JSON.stringify(isObject(value) ? value : null) ? typed : stored
  const put = (next: Row[]): void => {
    setTyped(next)
    onChange(objectOf(next))
  }
  const patch = (at: number, change: Partial<Row>): void =>
    put(rows.map((row, i) => (i === at ? { ...row, ...change } : row)))
  return (
    <div className="rowlist">
      {rows.map((row, i) => {
        const twice = row.key !== '' && typing !== i && rows.some((other, j) => j < i && other.key === row.key)
        return (
          <div key={i} className="pair">
            <input
              type="text"
              className="mono"
              aria-label={`Key ${i + 1} of ${label}`}
              data-testid={`field-${path}.${i}.key`}
              placeholder="Name"
              value={row.key}
              readOnly={readonly}
              spellCheck={false}
              autoComplete="off"
              aria-invalid={twice || undefined}
              title={twice ? 'This name is used above. This row takes precedence.' : undefined}
              onBlur={() => setTyping(null)}
              onChange={(event) => {
                setTyping(i)
                patch(i, { key: event.target.value })
              }}
            />
            <ReferenceField
              label={`Value of ${row.key || `row ${i + 1}`}`}
              testId={`field-${path}.${i}.value`}
              value={typeof row.value === 'string' ? row.value : JSON.stringify(row.value)}
              placeholder="Value"
              secret={isCredential(row.key, schema)}
              onChange={(text) => patch(i, { value: typeof row.value === 'string' ? text : retyped(text) })}
            />
            <RowTools
              at={i}
              count={rows.length}
              name={row.key || `row ${i + 1}`}
              onRemove={() => put(rows.filter((_, j) => j !== i))}
            />
          </div>
        )
      })}
      {rows.length === 0 && readonly ? <span className="quiet">None</span> : null}
      <AddRow
        testId={`add-${path}`}
        onClick={() => (setTyped([...rows, { key: '', value: '' }]), focusField(`field-${path}.${rows.length}.key`))}
      >
        Add row
      </AddRow>
    </div>
  )
}

/** A value that was no text stays none while its text is JSON. */
function retyped(text: string): Json {
  const read = readJson(text)
  return read.ok && read.value !== undefined ? read.value : text
}

function objectOf(rows: readonly Row[]): JsonObject | undefined {
  const entries = rows.filter((row) => row.key !== '').map((row): [string, Json] => [row.key, row.value])
  return entries.length ? Object.fromEntries(entries) : undefined
}
