// A text field with a list of options below it (a combobox): for the block picker, the command palette, connecting by keyboard.
// The caller filters; this moves, chooses and says what is active.

import { useEffect, useId, useRef, useState, type KeyboardEvent, type ReactElement } from 'react'
import { Icon, type IconName } from './icons'

export interface ListOption {
  id: string
  label: string
  detail?: string
  /** A sentence that is shown below the list while this is the active option. */
  about?: string
  icon?: IconName
  /** Options of one group stand together; its name is shown above the first. */
  group?: string
}

export interface ListboxProps {
  label: string
  placeholder?: string
  options: readonly ListOption[]
  query: string
  onQuery: (query: string) => void
  onChoose: (option: ListOption) => void
  onCancel?: () => void
  autoFocus?: boolean
  /** Shown when there is no option. */
  empty?: string
}

export function Listbox({
  label,
  placeholder,
  options,
  query,
  onQuery,
  onChoose,
  onCancel,
  autoFocus,
  empty,
}: ListboxProps): ReactElement {
  const id = useId()
  const list = useRef<HTMLDivElement>(null)
  const [active, setActive] = useState(0)
  const now = Math.min(active, Math.max(options.length - 1, 0))
  useEffect(() => setActive(0), [query])
  // In braces: what scrollIntoView returns (a promise, in new browsers) is no cleanup.
  useEffect(() => {
    list.current?.querySelector('[aria-selected=true]')?.scrollIntoView({ block: 'nearest' })
  }, [now])

  const onKey = (event: KeyboardEvent): void => {
    const count = options.length
    if (event.key === 'ArrowDown' && count) setActive((now + 1) % count)
    else if (event.key === 'ArrowUp' && count) setActive((now + count - 1) % count)
    else if (event.key === 'Enter' && options[now]) onChoose(options[now])
    else if (event.key === 'Escape' && onCancel) onCancel()
    else return
    event.preventDefault()
    event.stopPropagation()
  }

  return (
    <div className="combobox">
      <input
        type="search"
        role="combobox"
        aria-label={label}
        aria-expanded="true"
        aria-controls={id}
        aria-autocomplete="list"
        autoComplete="off"
        spellCheck={false}
        aria-activedescendant={options[now] ? `${id}-${options[now].id}` : undefined}
        placeholder={placeholder}
        value={query}
        autoFocus={autoFocus}
        onChange={(event) => onQuery(event.target.value)}
        onKeyDown={onKey}
      />
      <div ref={list} role="listbox" id={id} aria-label={label} className="listbox">
        {options.map((option, i) => (
          <div key={option.id} role="presentation">
            {option.group && option.group !== options[i - 1]?.group ? (
              <div className="listbox__group label" role="presentation">
                {option.group}
              </div>
            ) : null}
            <div
              role="option"
              id={`${id}-${option.id}`}
              aria-selected={i === now}
              className="listbox__option"
              onPointerMove={() => setActive(i)}
              onPointerDown={(event) => event.preventDefault()}
              onClick={() => onChoose(option)}
            >
              {option.icon ? <Icon name={option.icon} /> : null}
              {option.label}
              {option.detail ? <span className="listbox__detail">{option.detail}</span> : null}
            </div>
          </div>
        ))}
        {options.length ? null : <div className="listbox__group quiet">{empty ?? 'No results'}</div>}
      </div>
      {options.some((option) => option.about) ? <p className="listbox__about">{options[now]?.about}</p> : null}
    </div>
  )
}

/** How well `typed` fits `text`: its letters in order; 0 is no fit, more is better (starts of words count most). */
export function fuzzy(text: string, typed: string): number {
  const wanted = typed.trim().toLowerCase()
  if (!wanted) return 1
  const lower = text.toLowerCase()
  const at = lower.indexOf(wanted)
  if (at >= 0) return 1000 - at - (at === 0 || !/[a-z0-9]/.test(lower[at - 1]!) ? 0 : 300) - lower.length / 100
  let score = 400
  let from = 0
  for (const char of wanted) {
    const next = lower.indexOf(char, from)
    if (next < 0) return 0
    score -= (next - from) * 4
    from = next + 1
  }
  return Math.max(1, score)
}
