// The filter of the list: what was chosen as tokens, then words, for which choices are offered. Backspace opens the last token.

import { useId, useRef, useState, type KeyboardEvent, type ReactElement } from 'react'
import { Button } from '../../ui/Button'
import { Icon } from '../../ui/icons'
import { setQuery, useLocation } from '../../ui/navigation'
import { choicesOf, PARAMS, tokensOf, type Choice, type Known } from './filter'

export function Filter({
  known,
  found,
}: {
  known: Known
  /** The number of runs found, of all of them, and the time of the query. */
  found: string
}): ReactElement {
  const { query } = useLocation()
  const id = useId()
  const [typed, setTyped] = useState('')
  const [open, setOpen] = useState(false)
  const [at, setAt] = useState(0)
  const field = useRef<HTMLInputElement>(null)
  const tokens = tokensOf(query, known.titleOf)
  const choices = open ? choicesOf(typed, known) : []
  const active = choices[Math.min(at, choices.length - 1)]
  const choose = (choice: Choice): void => {
    setQuery({ [choice.param]: choice.value })
    setTyped('')
    setAt(0)
    field.current?.focus()
    setOpen(false) // what was found lies below
  }
  const onKey = (event: KeyboardEvent<HTMLInputElement>): void => {
    const last = tokens.at(-1)
    if (event.key === 'ArrowDown') setAt((at + 1) % Math.max(1, choices.length))
    else if (event.key === 'ArrowUp') setAt((at - 1 + choices.length) % Math.max(1, choices.length))
    else if (event.key === 'Enter' && active) choose(active)
    else if (event.key === 'Escape' && open) setOpen(false)
    else if (event.key === 'Backspace' && !typed && last) {
      setTyped(`${last.param.startsWith('not_') ? '-' : ''}${last.value}`)
      setQuery({ [last.param]: null })
    } else return
    if (event.key.startsWith('Arrow')) setOpen(true)
    event.preventDefault()
  }
  return (
    <div className="runfilter" onBlur={(event) => event.currentTarget.contains(event.relatedTarget) || setOpen(false)}>
      <div className="runfilter__field" onPointerDown={() => setTimeout(() => field.current?.focus())}>
        <Icon name="search" size={14} />
        {tokens.map((token) => (
          <button
            key={token.param}
            type="button"
            className="runfilter__token"
            title="Remove"
            aria-label={`Remove: ${token.key} ${token.value}`}
            onClick={() => setQuery({ [token.param]: null })}
          >
            <span>{token.key}</span> <b>{token.value}</b>
          </button>
        ))}
        <input
          ref={field}
          type="text"
          role="combobox"
          aria-label="Filter runs"
          aria-expanded={choices.length > 0}
          aria-controls={`${id}-list`}
          aria-activedescendant={active ? `${id}-${active.id}` : undefined}
          placeholder={tokens.length ? '' : 'Filter by status, workflow or time, or by a text of the error'}
          value={typed}
          onChange={(event) => {
            setTyped(event.target.value)
            setOpen(true)
            setAt(0)
          }}
          onFocus={() => setOpen(true)}
          onClick={() => setOpen(true)}
          onKeyDown={onKey}
        />
        <span className="runfilter__found">{found}</span>
        {tokens.length ? (
          <Button
            kind="bare"
            icon="close"
            iconOnly
            onClick={() => setQuery(Object.fromEntries(PARAMS.map((param) => [param, null])))}
          >
            Clear the filter
          </Button>
        ) : null}
      </div>
      <div className="runfilter__list" role="listbox" id={`${id}-list`} aria-label="Filters" hidden={!choices.length}>
        {choices.map((choice) => (
          <div
            key={choice.id}
            id={`${id}-${choice.id}`}
            role="option"
            aria-selected={choice === active}
            onPointerDown={(event) => {
              event.preventDefault()
              choose(choice)
            }}
          >
            <span className="label">{choice.group}</span>
            <span>{choice.words}</span>
            {choice.count === undefined ? null : <span className="label">{choice.count}</span>}
          </div>
        ))}
        <p className="runfilter__keys" aria-hidden="true">
          <kbd>Enter</kbd> choose <kbd>-</kbd> not
        </p>
      </div>
    </div>
  )
}
