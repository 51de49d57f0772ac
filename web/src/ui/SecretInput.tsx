// A password, key or token that is typed: covered, until it is asked for. One with several lines, such as a private key, keeps them.

import { useState, type ReactElement } from 'react'
import { Button } from './Button'

interface SecretInputProps {
  ids: { control: string; describedBy: string | undefined; invalid: boolean }
  testId: string
  /** What it is, for the name of the button. */
  what: string
  value: string
  onChange: (value: string) => void
}

export function SecretInput({ ids, testId, what, value, onChange }: SecretInputProps): ReactElement {
  const [shown, setShown] = useState(false)
  const shared = {
    id: ids.control,
    'data-testid': testId,
    autoComplete: 'new-password',
    spellCheck: false,
    'aria-invalid': ids.invalid || undefined,
    'aria-describedby': ids.describedBy,
    value,
  }
  return (
    <div className="secret" data-shown={shown || undefined}>
      {value.includes('\n') ? (
        <textarea {...shared} className="mono" rows={4} onChange={(event) => onChange(event.target.value)} />
      ) : (
        <input
          {...shared}
          type={shown ? 'text' : 'password'}
          className={shown ? 'mono' : undefined}
          onChange={(event) => onChange(event.target.value)}
          onPaste={(event) => {
            // An <input> would drop the ends of the lines.
            const text = event.clipboardData.getData('text').replace(/\r\n?/g, '\n')
            if (!text.trimEnd().includes('\n')) return
            event.preventDefault()
            const { selectionStart, selectionEnd } = event.currentTarget
            onChange(value.slice(0, selectionStart ?? 0) + text + value.slice(selectionEnd ?? value.length))
          }}
        />
      )}
      <Button kind="bare" icon="eye" iconOnly data-testid={`${testId}-show`} onClick={() => setShown(!shown)}>
        {`${shown ? 'Hide' : 'Show'} ${what}`}
      </Button>
    </div>
  )
}
