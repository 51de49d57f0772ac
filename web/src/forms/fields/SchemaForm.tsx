// A form made from a JSON Schema: one control for each property. What is typed stays text until `readTyped` (form.ts) reads it,
// so that a run, an answer and the server's own form follow one rule.

import { useState, type ReactElement } from 'react'
import type { Json } from '../../api/schemas'
import { FieldShell, type FieldIds } from './FieldShell'
import { FileControl } from './FileControl'
import { labelOf, type FormField, type Typed } from './form'
import { typesOf } from './schema'
import './fields.css'
import './schemaform.css'

interface SchemaFormProps {
  fields: readonly FormField[]
  typed: Typed
  onChange: (typed: Typed) => void
  /** What is wrong, by field. It is shown when the field was left, or when the form was sent. */
  errors: Readonly<Record<string, string>>
  sent: boolean
}

export function SchemaForm({ fields, typed, onChange, errors, sent }: SchemaFormProps): ReactElement {
  const [left, setLeft] = useState<ReadonlySet<string>>(new Set())
  return (
    <div className="schemaform">
      {fields.map((field) => {
        const { name, schema, required } = field
        const text = typed[name] ?? ''
        const shows = sent || (left.has(name) && text.trim() !== '')
        return (
          <div key={name} onBlur={() => left.has(name) || setLeft(new Set([...left, name]))}>
            <FieldShell
              label={labelOf(field)}
              description={schema.description}
              required={required}
              error={shows ? errors[name] : null}
            >
              {(ids) => (
                <Control
                  field={field}
                  ids={ids}
                  text={text}
                  onChange={(next) => onChange({ ...typed, [name]: next })}
                />
              )}
            </FieldShell>
          </div>
        )
      })}
    </div>
  )
}

/** Put the cursor into a field of the form in `root`. */
export function focusField(root: HTMLElement | null, name: string): void {
  root?.querySelector<HTMLElement>(`.schemaform [name="${CSS.escape(name)}"]`)?.focus()
}

interface ControlProps {
  field: FormField
  ids: FieldIds
  text: string
  onChange: (text: string) => void
}

function Control({ field, ids, text, onChange }: ControlProps): ReactElement {
  const { name, kind, schema, required } = field
  const common = {
    id: ids.control,
    name,
    'data-testid': `field-${name}`,
    'aria-invalid': ids.invalid || undefined,
    'aria-describedby': ids.describedBy,
    'aria-required': required || undefined,
  }
  const typing = {
    ...common,
    value: text,
    onChange: (event: { target: { value: string } }) => onChange(event.target.value),
  }
  switch (kind) {
    case 'boolean':
      return (
        <span className="switch">
          <input
            {...common}
            type="checkbox"
            role="switch"
            checked={text === 'true'}
            onChange={(event) => onChange(event.target.checked ? 'true' : '')}
          />
          <span className="quiet" aria-hidden="true">
            {text === 'true' ? 'On' : 'Off'}
          </span>
        </span>
      )
    case 'enum':
      return (
        <select {...typing}>
          <option value="">{required ? 'Choose' : 'None'}</option>
          {(schema.enum ?? []).map((choice) => (
            <option key={JSON.stringify(choice)} value={JSON.stringify(choice)}>
              {schema['x-titles']?.[String(choice)] ?? (typeof choice === 'string' ? choice : JSON.stringify(choice))}
            </option>
          ))}
        </select>
      )
    case 'long':
      return <textarea {...typing} rows={schema['x-rows'] ?? 4} />
    case 'file':
      return <FileControl text={text} label={labelOf(field)} onChange={onChange} {...common} />
    case 'json':
      if (!typesOf(schema).length)
        return <AnyControl text={text} label={labelOf(field)} onChange={onChange} {...common} />
      return (
        <textarea {...typing} className="mono" rows={schema['x-rows'] ?? 4} spellCheck={false} placeholder="JSON" />
      )
    default:
      return (
        <input
          {...typing}
          maxLength={schema.maxLength}
          type={kind === 'string' ? (INPUT_TYPES[schema.format ?? ''] ?? 'text') : 'text'}
          inputMode={kind === 'integer' ? 'numeric' : kind === 'number' ? 'decimal' : undefined}
        />
      )
  }
}

/** A value of any type: written as it is when it is text, else as JSON. The form holds JSON either way. */
function AnyControl({
  text,
  label,
  onChange,
  ...common
}: { text: string; label: string; onChange: (text: string) => void } & Record<string, unknown>): ReactElement {
  const [asJson, setAsJson] = useState(text !== '' && stringIn(text) === null)
  return (
    <div className="valuefield">
      <textarea
        {...common}
        className={asJson ? 'mono' : undefined}
        rows={asJson ? 3 : 1}
        spellCheck={!asJson}
        placeholder={asJson ? 'JSON' : undefined}
        value={asJson ? text : (stringIn(text) ?? '')}
        onChange={({ target: { value } }) => onChange(asJson || value === '' ? value : JSON.stringify(value))}
      />
      <div className="segment valuefield__mode" role="group" aria-label={`Type of ${label}`}>
        <button
          type="button"
          aria-pressed={!asJson}
          onClick={() => {
            setAsJson(false)
            if (text !== '' && stringIn(text) === null) onChange(JSON.stringify(text))
          }}
        >
          Text
        </button>
        <button type="button" aria-pressed={asJson} onClick={() => setAsJson(true)}>
          JSON
        </button>
      </div>
    </div>
  )
}

/** The string that the JSON `text` is; null if it is something else. */
function stringIn(text: string): string | null {
  try {
    const value = JSON.parse(text) as Json
    return typeof value === 'string' ? value : null
  } catch {
    return null
  }
}

const INPUT_TYPES: Record<string, string> = { email: 'email', uri: 'url', date: 'date', time: 'time' }
