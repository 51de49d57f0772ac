// A JSON value as text, with references in its texts. What does not parse stays with the block and never reaches the document.

import { useState, type ReactElement } from 'react'
import type { Json } from '../../api/schemas'
import { docStore } from '../../state/doc'
import { keepUnfinished, unfinishedText } from '../../state/unfinished'
import { printJson } from '../json/print'
import type { Change, ControlProps } from './control'
import { ReferenceField } from './ReferenceField'
import { placeholderOf } from './schema'
import { useFieldScope } from './scope'

export interface JsonTextProps {
  label: string
  value: Json | undefined
  onChange: Change
  path: string
  rows?: number
}

export function JsonText({ label, value, onChange, path, rows = 3 }: JsonTextProps): ReactElement {
  const { block, readonly } = useFieldScope()
  const [typed, setTyped] = useState<string | null>(() =>
    readonly ? null : unfinishedText(docStore.getState().id, block, path),
  )
  const [typing, setTyping] = useState(false)
  const stored = value === undefined ? '' : printJson(value)
  const read = typed === null ? null : readJson(typed)
  // Text that says the same as the value, or nothing yet, stays as it was typed.
  const keeps = read !== null && (!read.ok || JSON.stringify(read.value) === JSON.stringify(value))
  const shown = keeps ? typed! : stored
  const isWrong = keeps && !read.ok && !typing
  return (
    <>
      <ReferenceField
        label={`${label}, as JSON`}
        testId={`field-${path}`}
        value={shown}
        multiline
        mono
        expression
        json
        rows={rows}
        invalid={isWrong}
        onBlur={() => setTyping(false)}
        onChange={(text) => {
          setTyping(true)
          setTyped(text)
          const next = readJson(text)
          keepUnfinished(docStore.getState().id, block, path, next.ok ? null : text)
          if (next.ok) onChange(next.value)
        }}
      />
      {isWrong && !read.ok ? (
        <p className="ref__wrong">Invalid JSON: {read.why} The workflow uses the last valid value.</p>
      ) : null}
    </>
  )
}

type Mode = 'text' | 'json'

/** Anything: text as it is, or a JSON value. */
export function ValueField({ value, onChange, path, label, ids, schema, hint }: ControlProps): ReactElement {
  const { readonly, block } = useFieldScope()
  const [mode, setMode] = useState<Mode>(() =>
    (value === undefined || typeof value === 'string') && unfinishedText(docStore.getState().id, block, path) === null
      ? 'text'
      : 'json',
  )
  const now: Mode = value !== undefined && typeof value !== 'string' ? 'json' : mode
  const rows = hint.rows ?? schema['x-rows'] ?? 1
  const turn = (to: Mode): void => {
    setMode(to)
    if (to === 'text') keepUnfinished(docStore.getState().id, block, path, null)
    if (to === now || value === undefined) return
    if (to === 'text') return onChange(typeof value === 'string' ? value : JSON.stringify(value))
    const read = readJson(String(value))
    onChange(read.ok && read.value !== undefined ? read.value : value)
  }
  return (
    <div className="valuefield">
      {now === 'json' ? (
        <JsonText
          label={label}
          value={value}
          onChange={onChange}
          path={path}
          rows={value === undefined || (typeof value === 'object' && value !== null) ? Math.max(rows, 3) : 1}
        />
      ) : (
        <ReferenceField
          label={label}
          testId={`field-${path}`}
          value={typeof value === 'string' ? value : ''}
          multiline
          rows={rows}
          pick="insert"
          describedBy={ids.describedBy ?? ''}
          invalid={ids.invalid}
          placeholder={hint.placeholder ?? placeholderOf(schema)}
          onChange={(text) => onChange(text === '' ? undefined : text)}
        />
      )}
      {readonly ? null : (
        <div className="segment valuefield__mode" role="group" aria-label={`Type of ${label}`}>
          {(['text', 'json'] as const).map((each) => (
            <button key={each} type="button" aria-pressed={now === each} onClick={() => turn(each)}>
              {each === 'text' ? 'Text' : 'JSON'}
            </button>
          ))}
        </div>
      )}
    </div>
  )
}

/** Empty text is no value. */
export function readJson(text: string): { ok: true; value: Json | undefined } | { ok: false; why: string } {
  if (!text.trim()) return { ok: true, value: undefined }
  try {
    return { ok: true, value: JSON.parse(text) as Json }
  } catch (error) {
    return { ok: false, why: `${(error instanceof Error ? error.message : String(error)).replace(/\.?$/, '.')}` }
  }
}
