// What lists of rows share: buttons to move and take away a row, a text that is committed when it is left, an add button.

import { useState, type ReactElement } from 'react'
import { flushSync } from 'react-dom'
import { Button } from '../../ui/Button'
import { selectFirst } from '../../ui/selectFirst'
import { useFieldScope } from './scope'

export function RowTools({
  at,
  count,
  name,
  onMove,
  onRemove,
}: {
  at: number
  count: number
  name: string
  onMove?: (to: number) => void
  onRemove?: () => void
}): ReactElement | null {
  const { readonly } = useFieldScope()
  if (readonly) return null
  return (
    <span className="rowtools">
      {onMove ? (
        <>
          <Button
            kind="bare"
            icon="down"
            iconOnly
            className="rowtools__up"
            why={at === 0 ? 'Already first' : null}
            onClick={() => onMove(at - 1)}
          >{`Move ${name} up`}</Button>
          <Button
            kind="bare"
            icon="down"
            iconOnly
            why={at === count - 1 ? 'Already last' : null}
            onClick={() => onMove(at + 1)}
          >{`Move ${name} down`}</Button>
        </>
      ) : null}
      {onRemove ? <Button kind="bare" icon="trash" iconOnly onClick={onRemove}>{`Remove ${name}`}</Button> : null}
    </span>
  )
}

/** Put the keyboard into a field that was just added, with its text selected: what is typed replaces it. Drawn and focused before
 * the next event, so that no letter is lost. */
export function focusField(testId: string): void {
  flushSync(() => undefined)
  const field = document.querySelector<HTMLElement>(`[data-testid="${CSS.escape(testId)}"]`)
  field?.focus()
  if (field instanceof HTMLInputElement || field instanceof HTMLTextAreaElement) field.select()
}

export function AddRow({
  children,
  onClick,
  testId,
}: {
  children: string
  onClick: () => void
  testId?: string
}): ReactElement | null {
  const { readonly } = useFieldScope()
  if (readonly) return null
  return (
    <Button kind="bare" icon="plus" className="addrow" data-testid={testId} onClick={onClick}>
      {children}
    </Button>
  )
}

/** A text that takes effect when it is left or Enter is pressed: ids and names, whose every letter would move edges. */
export function CommitInput({
  value,
  onCommit,
  label,
  check,
  testId,
  placeholder,
  mono,
}: {
  value: string
  onCommit: (text: string) => void
  label: string
  check?: (text: string) => string | null
  testId?: string
  placeholder?: string
  mono?: boolean
}): ReactElement {
  const { readonly } = useFieldScope()
  const [typed, setTyped] = useState<string | null>(null)
  const [typing, setTyping] = useState(false)
  const shown = typed ?? value
  const why = typed === null ? null : (check?.(typed) ?? null)
  const commit = (): void => {
    setTyping(false)
    if (why) return // it stays, with what is wrong with it
    if (typed !== null && typed !== value) onCommit(typed)
    setTyped(null)
  }
  const wrong = typing ? null : why
  return (
    <>
      <input
        type="text"
        aria-label={label}
        data-testid={testId}
        className={mono ? 'mono' : undefined}
        value={shown}
        readOnly={readonly}
        placeholder={placeholder}
        spellCheck={false}
        autoComplete="off"
        aria-invalid={wrong ? true : undefined}
        onMouseDown={selectFirst}
        onChange={(event) => {
          setTyping(true)
          setTyped(event.target.value)
        }}
        onBlur={commit}
        onKeyDown={(event) => {
          if (event.key === 'Enter') commit()
          else if (event.key === 'Escape' && typed !== null) setTyped(null)
          else return
          event.stopPropagation()
        }}
      />
      {wrong ? <p className="ref__wrong">{wrong}</p> : null}
    </>
  )
}

export function moved<T>(list: readonly T[], from: number, to: number): T[] {
  const next = [...list]
  const [item] = next.splice(from, 1)
  next.splice(to, 0, item!)
  return next
}

export function replaced<T>(list: readonly T[], at: number, item: T | undefined): T[] {
  return item === undefined ? list.filter((_, i) => i !== at) : list.map((old, i) => (i === at ? item : old))
}

/** Names of handles: what the server accepts. */
export function checkHandle(text: string, used: readonly string[]): string | null {
  if (!/^[A-Za-z0-9_.-]{1,128}$/.test(text)) return 'Use letters, digits, dots, dashes and underscores only.'
  if (text === 'out' || text === 'error') return 'The ids out and error are reserved.'
  return used.includes(text) ? 'This name is already used.' : null
}
