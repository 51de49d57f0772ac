// A value of the talk that can be changed before another run continues it.

import { useState, type ReactElement } from 'react'
import type { Json } from '../../api/schemas'
import { Button } from '../../ui/Button'
import { readJson } from '../../forms/fields/JsonText'
import { printJson } from '../../forms/json/print'

export function Changeable({
  what,
  testId,
  value,
  changed,
  asText = false,
  onChange,
}: {
  /** "the result": what the button changes. */
  what: string
  testId: string
  value: Json
  changed: Json | undefined
  /** Edited as text instead of as JSON. */
  asText?: boolean
  onChange: (value: Json | undefined) => void
}): ReactElement {
  const [text, setText] = useState<string | null>(null)
  const read = text === null || asText ? null : readJson(text)
  const wrong = read && !read.ok ? `Invalid JSON: ${read.why}` : null
  const show = (of: Json): string => (asText ? String(of) : printJson(of))
  const keep = (): void => {
    if (text !== null) onChange(asText ? text : read?.ok ? ((read.value ?? null) as Json) : undefined)
    setText(null)
  }
  return (
    <div className="changeable" data-changed={changed !== undefined || undefined}>
      {text === null ? (
        <>
          {changed === undefined ? null : <p className="changeable__now">{show(changed)}</p>}
          <Button kind="bare" icon="edit" data-testid={testId} onClick={() => setText(show(changed ?? value))}>
            {`Change ${what}`}
          </Button>
          {changed === undefined ? null : (
            <Button kind="bare" onClick={() => onChange(undefined)}>
              Undo the change
            </Button>
          )}
        </>
      ) : (
        <>
          <textarea
            className={asText ? 'field' : 'field mono'}
            aria-label={`New text of ${what}`}
            data-testid={`${testId}-text`}
            rows={Math.min(10, text.split('\n').length + 1)}
            value={text}
            onChange={(event) => setText(event.target.value)}
          />
          <Button data-testid={`${testId}-keep`} why={wrong} onClick={keep}>
            Keep the change
          </Button>
          <Button kind="bare" onClick={() => setText(null)}>
            Cancel
          </Button>
        </>
      )}
    </div>
  )
}
