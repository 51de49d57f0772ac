// The model of a block: one of those that this server can ask, with its price, or any other that is typed.

import { useRef, useState, type KeyboardEvent, type ReactElement } from 'react'
import type { Json, Offer } from '../../api/schemas'
import { offeredModels } from '../../net/usage'
import { Icon } from '../../ui/icons'
import { useData } from '../../ui/useData'
import type { ControlProps } from './control'
import type { FieldIds } from './FieldShell'
import { modelOptions, priceOf, type ModelOption } from './models'
import { OptionList } from './OptionList'
import { useFieldScope } from './scope'

export function ModelField({ value, onChange, ids, path }: ControlProps): ReactElement {
  const { doc, readonly } = useFieldScope()
  return (
    <ModelBox
      ids={ids}
      testId={path}
      value={textOf(value)}
      readonly={readonly}
      optionsOf={(typed, offers) => modelOptions(typed, offers, doc)}
      aboutOf={priceOf}
      onChange={onChange}
    />
  )
}

interface ModelBoxProps {
  ids: FieldIds
  testId: string
  value: string
  readonly?: boolean
  optionsOf: (typed: string, offers: readonly Offer[]) => readonly ModelOption[]
  /** What stands below, of a model. */
  aboutOf: (model: string, offers: readonly Offer[]) => string
  onChange: (model: string | undefined) => void
}

export function ModelBox(props: ModelBoxProps): ReactElement {
  const { ids, testId, value: model, readonly = false, optionsOf, aboutOf, onChange } = props
  const offers = useData(offeredModels, [])
  const input = useRef<HTMLInputElement>(null)
  const [open, setOpen] = useState(false)
  const [typed, setTyped] = useState('')
  const [active, setActive] = useState(-1)
  const options = open ? optionsOf(typed, offers.value ?? []) : []
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
          data-testid={`field-${testId}`}
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
      <p className="model__price" data-testid={`price-${testId}`}>
        {offers.error ? 'The models of the server could not be read.' : model ? aboutOf(model, offers.value ?? []) : ''}
      </p>
      {open ? (
        <OptionList
          id={list}
          label="Models"
          mono
          options={options.map((each) => ({
            key: each.model,
            name: each.model,
            detail: each.price,
            group: each.group,
          }))}
          active={active}
          below={() => input.current!.parentElement!.getBoundingClientRect()}
          onChoose={(at) => choose(options[at]!)}
        >
          {options.length
            ? null
            : offers.value === null && !offers.error
              ? 'Asking the server'
              : 'No such model is known. It is used as typed.'}
        </OptionList>
      ) : null}
    </div>
  )
}

const textOf = (value: Json | undefined): string => (typeof value === 'string' ? value : '')
