// The model of a block: one of those that this server can ask, with its price, or any other that is typed.

import { useEffect, useLayoutEffect, useMemo, useRef, useState, type KeyboardEvent, type ReactElement } from 'react'
import type { Json } from '../../api/schemas'
import { offeredModels } from '../../net/usage'
import { Icon } from '../../ui/icons'
import { useData } from '../../ui/useData'
import type { ControlProps } from './control'
import { modelOptions, priceOf, type ModelOption } from './models'
import { useFieldScope } from './scope'

export function ModelField({ value, onChange, ids, path }: ControlProps): ReactElement {
  const { doc, readonly } = useFieldScope()
  const offers = useData(offeredModels, [])
  const input = useRef<HTMLInputElement>(null)
  const [open, setOpen] = useState(false)
  const [typed, setTyped] = useState('')
  const [active, setActive] = useState(-1)
  const model = textOf(value)
  const options = useMemo(
    () => (open ? modelOptions(typed, offers.value ?? [], doc) : []),
    [open, typed, offers.value, doc],
  )
  const show = (): void => {
    if (readonly) return
    setTyped('')
    setActive(-1)
    setOpen(true)
  }
  const choose = (option: ModelOption): void => {
    onChange(option.model)
    setTyped(option.model)
    setActive(-1)
    setOpen(option.open)
    input.current!.focus()
  }
  const onKey = (event: KeyboardEvent): void => {
    const count = options.length
    if (event.key === 'ArrowDown' || event.key === 'ArrowUp') {
      if (!open) show()
      else if (count) setActive((now) => (now + (event.key === 'ArrowDown' ? 1 : count - (now < 0 ? 0 : 1))) % count)
    } else if (event.key === 'Enter' && open && options[active]) choose(options[active])
    else if (event.key === 'Escape' && open) setOpen(false)
    else return
    event.preventDefault()
    event.stopPropagation()
  }
  const list = `${ids.control}-models`
  return (
    <div className="model">
      <div className="model__box">
        <Icon name="agent" size={14} />
        <input
          ref={input}
          type="text"
          role="combobox"
          id={ids.control}
          data-testid={`field-${path}`}
          value={model}
          readOnly={readonly}
          placeholder="Choose a model"
          autoComplete="off"
          spellCheck={false}
          aria-expanded={open}
          aria-controls={list}
          aria-autocomplete="list"
          aria-activedescendant={open && active >= 0 ? `${list}-${active}` : undefined}
          aria-describedby={ids.describedBy}
          aria-invalid={ids.invalid || undefined}
          onClick={() => (open ? setOpen(false) : show())}
          onBlur={() => setOpen(false)}
          onKeyDown={onKey}
          onChange={(event) => {
            setTyped(event.target.value)
            setActive(-1)
            setOpen(true)
            onChange(event.target.value || undefined)
          }}
        />
        <Icon name="down" size={12} />
      </div>
      <p className="model__price" data-testid={`price-${path}`}>
        {offers.error ? 'The models of the server could not be read.' : model ? priceOf(model, offers.value ?? []) : ''}
      </p>
      {open ? (
        <Options
          id={list}
          options={options}
          active={active}
          waits={offers.value === null && !offers.error}
          below={() => input.current!.parentElement!.getBoundingClientRect()}
          onChoose={choose}
        />
      ) : null}
    </div>
  )
}

function Options({
  id,
  options,
  active,
  waits,
  below,
  onChoose,
}: {
  id: string
  options: readonly ModelOption[]
  active: number
  waits: boolean
  below: () => DOMRect
  onChoose: (option: ModelOption) => void
}): ReactElement {
  const ref = useRef<HTMLDivElement>(null)
  useLayoutEffect(() => {
    const list = ref.current!
    list.showPopover?.()
    const place = (): void => {
      const box = below()
      const { height } = list.getBoundingClientRect()
      list.style.width = `${box.width}px`
      list.style.left = `${box.left}px`
      list.style.top = `${box.bottom + 4 + height <= innerHeight - 4 ? box.bottom + 4 : Math.max(4, box.top - height - 4)}px`
    }
    place()
    addEventListener('scroll', place, true)
    addEventListener('resize', place)
    return () => {
      removeEventListener('scroll', place, true)
      removeEventListener('resize', place)
    }
  }, [options])
  useEffect(() => {
    ref.current?.querySelector('[aria-selected=true]')?.scrollIntoView({ block: 'nearest' })
  }, [active])
  return (
    <div ref={ref} popover="manual" className="menu model__list" onPointerDown={(event) => event.preventDefault()}>
      <div role="listbox" id={id} aria-label="Models">
        {options.map((option, i) => (
          <div key={option.model} role="presentation">
            {option.group !== options[i - 1]?.group ? (
              <div className="listbox__group label" role="presentation">
                {option.group}
              </div>
            ) : null}
            <div
              role="option"
              id={`${id}-${i}`}
              aria-selected={i === active}
              className="listbox__option"
              onClick={() => onChoose(option)}
            >
              <span className="mono model__name">{option.model}</span>
              <span className="listbox__detail">{option.price}</span>
            </div>
          </div>
        ))}
      </div>
      {options.length ? null : (
        <p className="listbox__group quiet">
          {waits ? 'Asking the server' : 'No such model is known. It is used as typed.'}
        </p>
      )}
    </div>
  )
}

const textOf = (value: Json | undefined): string => (typeof value === 'string' ? value : '')
