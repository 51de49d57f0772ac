// The turn at the playhead, unfolded: what the model read and wrote, its calls, the question to a person and the answer, what came
// back. Each of them can be changed here, and what was changed is plum.

import { useState, type ReactElement } from 'react'
import type { Json } from '../../api/schemas'
import { readJson } from '../../forms/fields/JsonText'
import { printJson } from '../../forms/json/print'
import { same } from '../../run/difference'
import { Button } from '../../ui/Button'
import { valueNow, type Part } from './rewind'
import { rewindStore, type Changes } from './rewindStore'

export function UnfoldedTurn({
  parts,
  changes,
  again,
  onWrong,
}: {
  parts: readonly Part[]
  changes: Changes
  /** The step will be made again, as something before it is another one. */
  again: (n: number) => boolean
  onWrong: (id: string, why: string | null) => void
}): ReactElement {
  return (
    <div className="turn" role="group" aria-label="The turn at this moment" data-testid="rewind-turn">
      {parts.map((part) => (
        <PartField
          key={part.id}
          part={part}
          now={valueNow(part, changes)}
          again={part.n !== null && again(part.n)}
          onWrong={(why) => onWrong(part.id, why)}
        />
      ))}
    </div>
  )
}

const ROWS = 3

function PartField({
  part: { label, value, put },
  now,
  again,
  onWrong,
}: {
  part: Part
  now: Json
  again: boolean
  onWrong: (why: string | null) => void
}): ReactElement {
  const asText = typeof value === 'string'
  const print = (of: Json): string => (asText && typeof of === 'string' ? of : printJson(of))
  const [typed, setTyped] = useState<{ text: string; value: Json | undefined } | null>(null)
  // A change of another part may have taken this one back.
  const own = typed && (typed.value === undefined || same(typed.value, now)) ? typed : null
  const changed = own?.value === undefined && own ? true : !same(now, value)
  const type = (text: string): void => {
    const read = asText ? { ok: true as const, value: text, why: '' } : readJson(text)
    const next = read.ok ? ((read.value ?? null) as Json) : undefined
    setTyped({ text, value: next })
    onWrong(read.ok ? null : `${label}: this is not valid JSON: ${read.why}`)
    if (next !== undefined) rewindStore.setState(put!(next))
  }
  return (
    <div className="turn__part" data-changed={changed || undefined} data-again={again || undefined}>
      <span className="turn__label">
        <b>{label}</b>
        {changed ? (
          <Button
            kind="bare"
            icon="undo"
            iconOnly
            onClick={() => {
              setTyped(null)
              onWrong(null)
              rewindStore.setState(put!(value))
            }}
          >
            {`Take back: ${label}`}
          </Button>
        ) : again ? (
          <span className="turn__again">made again</span>
        ) : null}
      </span>
      {put && !again ? (
        <textarea
          aria-label={label}
          className={asText ? 'field' : 'field mono'}
          rows={ROWS}
          spellCheck={false}
          value={own?.text ?? print(now)}
          aria-invalid={(own && own.value === undefined) || undefined}
          onChange={(event) => type(event.target.value)}
        />
      ) : (
        <p className={put && !asText ? 'mono' : undefined} tabIndex={0}>
          {print(value)}
        </p>
      )}
    </div>
  )
}
