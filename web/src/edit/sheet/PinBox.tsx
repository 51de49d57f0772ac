// The pinned output of a block: what later blocks read in runs of the draft. Edited as JSON, kept with the draft, never published.

import { useState, type ReactElement } from 'react'
import type { Json } from '../../api/schemas'
import type { Block } from '../../api/types'
import { dispatch } from '../../state/doc'
import { Button } from '../../ui/Button'
import { Icon } from '../../ui/icons'
import { readJson } from '../../forms/fields/JsonText'
import { useFieldScope } from '../../forms/fields/scope'
import { printJson } from '../../forms/json/print'
import { linesOf } from '../../run/difference'

export function setPin(id: string, pin: Block['pin']): void {
  dispatch({ type: 'setBlock', id, fields: { pin } })
}

export function PinBox({ id, pin }: { id: string; pin: NonNullable<Block['pin']> }): ReactElement {
  const { readonly } = useFieldScope()
  const [text, setText] = useState<string | null>(null)
  const read = text === null ? null : readJson(text)
  return (
    <section aria-label="Pinned output" data-testid="pin">
      <div className="wsheet__line">
        <h4 className="wsheet__label">Pinned output</h4>
        <span className="pinmark">
          <Icon name="pin" size={11} />
          Drafts only
        </span>
        <span className="wsheet__gap" />
        {readonly ? null : text === null ? (
          <>
            <Button kind="bare" onClick={() => setText(printJson(pin.output))}>
              Edit
            </Button>
            <Button kind="bare" data-testid="unpin" onClick={() => setPin(id, undefined)}>
              Unpin
            </Button>
          </>
        ) : (
          <>
            <Button
              data-testid="pin-keep"
              why={read && !read.ok ? `Invalid JSON: ${read.why}` : null}
              onClick={() => {
                if (read?.ok) setPin(id, { ...pin, output: (read.value ?? null) as Json })
                setText(null)
              }}
            >
              Keep
            </Button>
            <Button kind="bare" onClick={() => setText(null)}>
              Cancel
            </Button>
          </>
        )}
      </div>
      <div className="pinbox">
        {text === null ? (
          <div className="difference__lines" tabIndex={0} role="group" aria-label="Pinned value">
            {linesOf(pin.output).map((line) => (
              <p key={line.id} className="difference__line">
                <span className="difference__key" style={{ paddingLeft: Math.max(0, line.depth - 1) * 14 }}>
                  {line.key}
                </span>
                <span className="difference__text">{line.text}</span>
              </p>
            ))}
          </div>
        ) : (
          <textarea
            className="field mono"
            aria-label="Pinned output, as JSON"
            data-testid="pin-text"
            rows={Math.min(12, text.split('\n').length + 1)}
            value={text}
            onChange={(event) => setText(event.target.value)}
          />
        )}
      </div>
      <p className="wsheet__help">In runs of the draft, later blocks read this. A published version never does.</p>
    </section>
  )
}
