// Building a form: a row for each field, its details below a fold. For approvals, the workflow's input, and start blocks.

import { useState, type ReactElement } from 'react'
import type { Json } from '../../api/schemas'
import type { JsonSchema } from '../../api/types'
import { Icon } from '../../ui/icons'
import type { ControlProps } from './control'
import { JsonText } from './JsonText'
import {
  fieldListOf,
  fieldsOf,
  FIELD_TYPES,
  freshProperty,
  propertiesOf,
  PROPERTY_TYPES,
  schemaOf,
  TYPE_WORDS,
  type Property,
  type PropertyType,
} from './properties'
import { AddRow, CommitInput, focusField, moved, replaced, RowTools } from './rows'
import { useFieldScope } from './scope'

export function SchemaField({
  value,
  onChange,
  path,
}: Pick<ControlProps, 'value' | 'onChange' | 'path'>): ReactElement {
  const schema = value && typeof value === 'object' && !Array.isArray(value) ? (value as JsonSchema) : undefined
  return (
    <Rows
      path={path}
      types={PROPERTY_TYPES}
      rows={propertiesOf(schema)}
      onChange={(rows) => onChange(schemaOf(schema, rows) as Json | undefined)}
    />
  )
}

export function InputsField({ value, onChange, path }: ControlProps): ReactElement {
  return (
    <Rows
      path={path}
      types={FIELD_TYPES}
      rows={fieldsOf(value)}
      onChange={(rows) => onChange(rows.length ? fieldListOf(rows) : undefined)}
    />
  )
}

/** A file has no default value: each run has its own. */
function ofType(type: PropertyType): Partial<Property> {
  return type === 'file' ? { type, fallback: undefined } : { type }
}

interface RowsProps {
  path: string
  types: readonly PropertyType[]
  rows: readonly Property[]
  onChange: (rows: Property[]) => void
}

function Rows({ path, types, rows, onChange }: RowsProps): ReactElement {
  const { readonly } = useFieldScope()
  const [open, setOpen] = useState<number | null>(null)
  return (
    <div className="rowlist">
      {rows.map((row, i) => {
        const set = (change: Partial<Property>): void => onChange(replaced(rows, i, { ...row, ...change }))
        const used = rows.filter((_, j) => j !== i).map((each) => each.name)
        return (
          <div key={i} className="case" role="group" aria-label={`Field ${row.name}`}>
            <div className="case__head">
              <button
                type="button"
                className="case__fold"
                aria-expanded={open === i}
                aria-label={`Details of ${row.name}`}
                onClick={() => setOpen(open === i ? null : i)}
              >
                <Icon name={open === i ? 'down' : 'chevron'} size={14} />
              </button>
              <CommitInput
                mono
                label={`Name of field ${i + 1}`}
                testId={`field-${path}.${i}.name`}
                value={row.name}
                onCommit={(name) => set({ name })}
                check={(text) =>
                  text.trim() === ''
                    ? 'A field needs a name.'
                    : used.includes(text)
                      ? 'Another field has this name.'
                      : null
                }
              />
              <select
                aria-label={`Type of ${row.name}`}
                data-testid={`field-${path}.${i}.type`}
                value={row.type}
                disabled={readonly}
                onChange={(event) => set(ofType(event.target.value as PropertyType))}
              >
                {types.map((type) => (
                  <option key={type} value={type}>
                    {TYPE_WORDS[type]}
                  </option>
                ))}
              </select>
              <RowTools
                at={i}
                count={rows.length}
                name={row.name}
                onRemove={() => (setOpen(null), onChange(replaced(rows, i, undefined)))}
              />
            </div>
            {row.type === 'choice' ? (
              <label className="case__line">
                <span className="label">Choices, one per line</span>
                <textarea
                  rows={Math.max(2, row.choices.length)}
                  value={row.choices.join('\n')}
                  readOnly={readonly}
                  data-testid={`field-${path}.${i}.choices`}
                  onChange={(event) => set({ choices: event.target.value.split('\n') })}
                  onBlur={() => set({ choices: row.choices.filter((each) => each.trim()) })}
                />
              </label>
            ) : null}
            {open === i ? (
              <div className="case__more">
                <div className="case__check">
                  <label>
                    <input
                      type="checkbox"
                      checked={row.required}
                      disabled={readonly}
                      data-testid={`field-${path}.${i}.required`}
                      onChange={(event) => set({ required: event.target.checked })}
                    />
                    Required
                  </label>
                  <RowTools
                    at={i}
                    count={rows.length}
                    name={row.name}
                    onMove={(to) => (setOpen(to), onChange(moved(rows, i, to)))}
                  />
                </div>
                <label className="case__line">
                  <span className="label">Label</span>
                  <input
                    type="text"
                    value={row.title}
                    readOnly={readonly}
                    placeholder={row.name}
                    data-testid={`field-${path}.${i}.title`}
                    onChange={(event) => set({ title: event.target.value })}
                  />
                </label>
                <label className="case__line">
                  <span className="label">Description</span>
                  <input
                    type="text"
                    value={row.description}
                    readOnly={readonly}
                    onChange={(event) => set({ description: event.target.value })}
                  />
                </label>
                {row.type === 'file' ? null : (
                  <div className="case__line">
                    <span className="label">Default value</span>
                    <Fallback row={row} path={`${path}.${i}.default`} onChange={(fallback) => set({ fallback })} />
                  </div>
                )}
              </div>
            ) : row.title || row.required ? (
              <p className="case__note">{[row.title, row.required ? 'Required' : ''].filter(Boolean).join(', ')}</p>
            ) : null}
          </div>
        )
      })}
      {rows.length === 0 && readonly ? <span className="quiet">None</span> : null}
      <AddRow
        testId={`add-${path}`}
        onClick={() => (onChange([...rows, freshProperty(rows)]), focusField(`field-${path}.${rows.length}.name`))}
      >
        Add field
      </AddRow>
    </div>
  )
}

function Fallback({
  row,
  path,
  onChange,
}: {
  row: Property
  path: string
  onChange: (value: Json | undefined) => void
}): ReactElement {
  const { readonly } = useFieldScope()
  const name = `Default of ${row.name}`
  if (row.type === 'boolean') {
    return (
      <select
        aria-label={name}
        value={String(row.fallback ?? '')}
        disabled={readonly}
        onChange={(event) => onChange(event.target.value === '' ? undefined : event.target.value === 'true')}
      >
        <option value="">None</option>
        <option value="true">True</option>
        <option value="false">False</option>
      </select>
    )
  }
  if (row.type === 'string' || row.type === 'long' || row.type === 'choice' || row.type === 'date') {
    return (
      <input
        type={row.type === 'date' ? 'date' : 'text'}
        aria-label={name}
        data-testid={`field-${path}`}
        value={typeof row.fallback === 'string' ? row.fallback : ''}
        readOnly={readonly}
        onChange={(event) => onChange(event.target.value || undefined)}
      />
    )
  }
  return <JsonText label={name} value={row.fallback} path={path} rows={1} onChange={onChange} />
}
