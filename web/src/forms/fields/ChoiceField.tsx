// A field whose options the service lists, such as a channel: what is typed is searched there, the title is shown and the value
// stored. A list of values has a row for each.

import { useEffect, useRef, useState, type KeyboardEvent, type ReactElement } from 'react'
import type { Choice, Json, JsonObject } from '../../api/schemas'
import { choicesOf } from '../../net/choices'
import { ApiError } from '../../net/http'
import { Icon } from '../../ui/icons'
import { messageOf, sentence } from '../../ui/words'
import { keepTitle, titleOfChoice } from './chosen'
import type { ControlProps } from './control'
import { OptionList } from './OptionList'
import { useFieldScope } from './scope'

const TYPED_MS = 250

export function ChoiceField(props: ControlProps): ReactElement {
  const { type, name, value, onChange, path, schema, label } = props
  const { readonly } = useFieldScope()
  if (schema.type !== 'array') return <OneChoice {...props} value={value} onChoose={onChange} />
  const items = Array.isArray(value) ? value.map(textOf) : []
  return (
    <div className="choices">
      {items.map((item) => (
        <span key={item} className="choices__item">
          {titleOfChoice(type ?? '', name, item) || item}
          {readonly ? null : (
            <button
              type="button"
              aria-label={`Remove ${titleOfChoice(type ?? '', name, item) || item}`}
              onClick={() => {
                const rest = items.filter((each) => each !== item)
                onChange(rest.length ? rest : undefined)
              }}
            >
              <Icon name="close" size={12} />
            </button>
          )}
        </span>
      ))}
      {readonly ? null : (
        <OneChoice
          {...props}
          path={`${path}.${items.length}`}
          label={label}
          value={undefined}
          onChoose={(next) => next !== undefined && !items.includes(textOf(next)) && onChange([...items, next])}
        />
      )}
    </div>
  )
}

interface Found {
  of: string
  choices: readonly Choice[]
  next: string | null
}

function OneChoice({
  type,
  name,
  value,
  onChoose,
  ids,
  path,
  label,
  params,
  schema,
  hint,
}: ControlProps & { onChoose: (value: Json | undefined) => void }): ReactElement {
  const { readonly } = useFieldScope()
  const input = useRef<HTMLInputElement>(null)
  const [open, setOpen] = useState(false)
  const [typed, setTyped] = useState('')
  const [active, setActive] = useState(-1)
  const text = textOf(value)
  const title = titleOfChoice(type ?? '', name, text)
  const lacking = lackingFor(hint.choices ?? [], params ?? {})
  const list = useChoices(type ?? '', name, params ?? {}, typed, open && !lacking)
  const own = typed.trim()
  const rows = list.choices.map((each) => ({
    key: String(each.value),
    name: each.title,
    detail: each.about || (each.title === String(each.value) ? '' : String(each.value)),
  }))
  const options = [
    ...rows,
    ...(list.next ? [{ key: ' more', name: 'Show more' }] : []),
    ...(own ? [{ key: ' typed', name: `Use \u201c${own}\u201d as it is` }] : []),
  ]
  const show = (): void => {
    if (readonly) return
    setTyped('')
    setActive(-1)
    setOpen(true)
  }
  const choose = (at: number): void => {
    const choice = list.choices[at]
    if (!choice && options[at]?.key === ' more') return list.more()
    if (choice) take(at)
    else onChoose(own)
    setTyped('')
    setOpen(false)
    input.current!.focus()
  }
  /** What was typed to its end is not lost: one with this name is chosen, and where nothing fits, it is taken as it is. */
  const leave = (): void => {
    setOpen(false)
    setTyped('')
    if (!own) return
    const at = list.choices.findIndex((each) =>
      [each.title, String(each.value)].some((text) => text.toLowerCase() === own.toLowerCase()),
    )
    if (at >= 0) take(at)
    else if (!list.choices.length) onChoose(own)
  }
  const take = (at: number): void => {
    const choice = list.choices[at]!
    keepTitle(type ?? '', name, String(choice.value), choice.title)
    onChoose(choice.value)
  }
  const onKey = (event: KeyboardEvent): void => {
    const count = options.length
    if (event.key === 'ArrowDown' || event.key === 'ArrowUp') {
      if (!open) show()
      else if (count) setActive((now) => (now + (event.key === 'ArrowDown' ? 1 : count - (now < 0 ? 0 : 1))) % count)
    } else if (event.key === 'Enter' && open && options[active]) choose(active)
    else if (event.key === 'Enter' && open && own) list.choices[0] ? choose(0) : leave()
    else if (event.key === 'Escape' && open) setOpen(false)
    else return
    event.preventDefault()
    event.stopPropagation()
  }
  const id = `${ids.control}-choices`
  return (
    <div className="model">
      <div className="model__box choice__box">
        <Icon name="search" size={14} />
        <input
          ref={input}
          type="text"
          role="combobox"
          id={ids.control}
          data-testid={`field-${path}`}
          value={open ? typed : title || text}
          readOnly={readonly}
          placeholder={open && text ? title || text : `Search ${label.toLowerCase()}`}
          autoComplete="off"
          spellCheck={false}
          aria-label={schema.type === 'array' ? `Add to ${label}` : undefined}
          aria-expanded={open}
          aria-controls={id}
          aria-autocomplete="list"
          aria-activedescendant={open && active >= 0 ? `${id}-${active}` : undefined}
          aria-describedby={ids.describedBy}
          aria-invalid={ids.invalid || undefined}
          onClick={() => (open ? undefined : show())}
          onBlur={leave}
          onKeyDown={onKey}
          onChange={(event) => {
            const next = event.target.value
            // A reference is no search: the field becomes one for text.
            if (/^(<|\$\{)/.test(next)) return onChoose(`${next}`)
            if (!next && !open) return onChoose(undefined)
            setTyped(next)
            setActive(-1)
            setOpen(true)
          }}
        />
        {text && !readonly ? (
          <button
            type="button"
            className="choice__clear"
            aria-label={`Clear ${label}`}
            onClick={() => onChoose(undefined)}
          >
            <Icon name="close" size={12} />
          </button>
        ) : (
          <Icon name="down" size={12} />
        )}
      </div>
      {title && text && title !== text ? <p className="model__price mono">{text}</p> : null}
      {type === 'knowledge' ? (
        <p className="model__price">
          <a
            href={text && !text.includes('<') ? `/knowledge/${encodeURIComponent(text)}` : '/knowledge'}
            target="_blank"
            rel="noreferrer"
          >
            {text ? 'Its documents' : 'Make a collection'}
          </a>
        </p>
      ) : null}
      {open ? (
        <OptionList
          id={id}
          label={label}
          options={options}
          active={active}
          below={() => input.current!.parentElement!.getBoundingClientRect()}
          onChoose={choose}
        >
          {lacking ??
            list.error ??
            (list.busy
              ? 'Asking the service'
              : rows.length
                ? null
                : own
                  ? 'Nothing there has this name'
                  : 'The service has none')}
        </OptionList>
      ) : null}
    </div>
  )
}

/** What the service lists for the text, a moment after it was typed. */
function useChoices(
  type: string,
  field: string,
  params: JsonObject,
  typed: string,
  open: boolean,
): { choices: readonly Choice[]; next: string | null; busy: boolean; error: string | null; more: () => void } {
  const [found, setFound] = useState<Found>({ of: '', choices: [], next: null })
  const [busy, setBusy] = useState(false)
  const [error, setError] = useState<string | null>(null)
  const turn = useRef(0)
  const asked = JSON.stringify([type, field, params, typed.trim()])
  const ask = (cursor: string | null, before: readonly Choice[]): void => {
    const mine = ++turn.current
    setBusy(true)
    setError(null)
    choicesOf(type, { field, params, search: typed.trim(), ...(cursor ? { cursor } : {}) })
      .then(
        ({ choices, next }) => {
          const seen = new Set(before.map((each) => each.value))
          const all = [...before, ...choices.filter((each) => !seen.has(each.value))]
          if (mine === turn.current) setFound({ of: asked, choices: all, next: next ?? null })
        },
        (reason: unknown) => mine === turn.current && setError(wrong(reason)),
      )
      .finally(() => mine === turn.current && setBusy(false))
  }
  useEffect(() => {
    if (!open) return
    const timer = setTimeout(() => ask(null, []), typed ? TYPED_MS : 0)
    return () => {
      clearTimeout(timer)
      turn.current++
    }
  }, [asked, open])
  const fresh = found.of === asked
  return {
    choices: fresh ? found.choices : [],
    next: fresh ? found.next : null,
    busy: busy || !(fresh || error),
    error,
    more: () => ask(found.next, found.choices),
  }
}

/** What has to be filled in before the service can be asked. */
function lackingFor(needs: readonly string[], params: JsonObject): string | null {
  const isFilled = (name: string): boolean =>
    textOf(params[name]) !== '' || (name === 'connection' && !!params.credential)
  const name = needs.find((each) => !isFilled(each))
  if (name === undefined) return null
  return name === 'connection' ? 'Choose or make a connection first.' : `Fill in ${name.replaceAll('_', ' ')} first.`
}

function wrong(error: unknown): string {
  const hint = error instanceof ApiError ? error.hint : ''
  return [messageOf(error), hint].filter(Boolean).map(sentence).join(' ')
}

const textOf = (value: Json | undefined): string =>
  value === undefined || value === null ? '' : typeof value === 'string' ? value : JSON.stringify(value)
