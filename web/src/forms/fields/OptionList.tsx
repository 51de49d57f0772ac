// The list below a field in which one of many is chosen. The field keeps the focus, and moves through the list.

import { useEffect, useLayoutEffect, useRef, type ReactElement, type ReactNode } from 'react'

export interface ListedOption {
  key: string
  name: string
  detail?: string
  group?: string
}

interface Props {
  id: string
  label: string
  options: readonly ListedOption[]
  active: number
  /** Options are names of the kind that code has. */
  mono?: boolean
  below: () => DOMRect
  onChoose: (at: number) => void
  /** A line in place of options, or after them. */
  children?: ReactNode
}

export function OptionList({ id, label, options, active, mono, below, onChoose, children }: Props): ReactElement {
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
  }, [options, children])
  useEffect(() => {
    ref.current?.querySelector('[aria-selected=true]')?.scrollIntoView({ block: 'nearest' })
  }, [active])
  return (
    <div ref={ref} popover="manual" className="menu optionlist" onPointerDown={(event) => event.preventDefault()}>
      <div role="listbox" id={id} aria-label={label}>
        {options.map((option, i) => (
          <div key={option.key} role="presentation">
            {option.group && option.group !== options[i - 1]?.group ? (
              <div className="listbox__group label" role="presentation">
                {option.group}
              </div>
            ) : null}
            <div
              role="option"
              id={`${id}-${i}`}
              aria-selected={i === active}
              className="listbox__option"
              onClick={() => onChoose(i)}
            >
              <span className={`optionlist__name${mono ? ' mono' : ''}`}>{option.name}</span>
              {option.detail ? <span className="listbox__detail">{option.detail}</span> : null}
            </div>
          </div>
        ))}
      </div>
      {children ? (
        <p className="listbox__group quiet" role="status">
          {children}
        </p>
      ) : null}
    </div>
  )
}
