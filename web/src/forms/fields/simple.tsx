// The small controls: number, yes or no, one of several. A value that equals the default is not written into the document.

import { useState, type ReactElement } from 'react'
import type { Json } from '../../api/schemas'
import type { ControlProps } from './control'
import { readNumber } from './number'
import { ReferenceField } from './ReferenceField'
import { placeholderOf } from './schema'
import { useFieldScope } from './scope'

/** A number, or a reference to one. */
export function NumberControl({ value, onChange, ids, path, schema, hint }: ControlProps): ReactElement {
  const [typed, setTyped] = useState<string | null>(null)
  const shown =
    typed !== null && same(readNumber(typed), value)
      ? typed
      : value === undefined || value === null
        ? ''
        : String(value)
  return (
    <ReferenceField
      id={ids.control}
      testId={`field-${path}`}
      describedBy={ids.describedBy ?? ''}
      invalid={ids.invalid}
      value={shown}
      mono
      placeholder={hint.placeholder ?? placeholderOf(schema)}
      onChange={(text) => {
        setTyped(text)
        onChange(readNumber(text))
      }}
    />
  )
}

function same(a: Json | undefined, b: Json | undefined): boolean {
  return Object.is(a, b)
}

export function BooleanControl({ value, onChange, ids, path, schema, label }: ControlProps): ReactElement {
  const { readonly } = useFieldScope()
  const byDefault = schema.default === true
  const on = typeof value === 'boolean' ? value : byDefault
  return (
    <span className="switch">
      <input
        type="checkbox"
        role="switch"
        id={ids.control}
        data-testid={`field-${path}`}
        checked={on}
        disabled={readonly}
        aria-describedby={ids.describedBy}
        aria-label={label}
        onChange={(event) => onChange(event.target.checked === byDefault ? undefined : event.target.checked)}
      />
      <span className="quiet" aria-hidden="true">
        {on ? 'On' : 'Off'}
      </span>
    </span>
  )
}

export function SelectControl({
  value,
  onChange,
  ids,
  path,
  schema,
  hint,
  params,
  required,
}: ControlProps & { required?: boolean }): ReactElement {
  const { readonly } = useFieldScope()
  const options: Json[] = hint.options ? [...hint.options(params ?? {})] : [...(schema.enum ?? [])]
  const byDefault = schema.default
  const known = value === undefined || value === null || options.some((option) => option === value)
  const chosen = value === undefined || value === null ? '' : JSON.stringify(value)
  const hasDefault = byDefault !== undefined && options.includes(byDefault)
  return (
    <select
      id={ids.control}
      data-testid={`field-${path}`}
      disabled={readonly}
      aria-describedby={ids.describedBy}
      aria-invalid={ids.invalid || !known ? true : undefined}
      value={hasDefault && chosen === '' ? JSON.stringify(byDefault) : chosen}
      onChange={(event) => {
        const next = event.target.value === '' ? undefined : (JSON.parse(event.target.value) as Json)
        onChange(hasDefault && next === byDefault && !required ? undefined : next)
      }}
    >
      {hasDefault ? null : <option value="">{required ? 'Choose' : 'None'}</option>}
      {known ? null : <option value={chosen}>{String(value)} (unknown)</option>}
      {options.map((option) => (
        <option key={JSON.stringify(option)} value={JSON.stringify(option)}>
          {schema['x-titles']?.[String(option)] ?? wordOf(option)}
        </option>
      ))}
    </select>
  )
}

function wordOf(option: Json): string {
  if (option === '') return 'None'
  return typeof option === 'string'
    ? /^[a-z_]+$/.test(option)
      ? option.charAt(0).toUpperCase() + option.slice(1).replace(/_/g, ' ')
      : option
    : JSON.stringify(option)
}
