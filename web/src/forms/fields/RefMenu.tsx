// The list below a reference that is typed: what can be read, nearest first, with its last value. The text keeps the focus; its
// field moves through the list.

import { useEffect, useLayoutEffect, useRef, type ReactElement } from 'react'
import type { Document } from '../../api/types'
import type { Option } from '../../refs/complete'
import { aroundOf, reachable, type Reader } from '../../refs/scope'
import { kindOf, nameOf, type Specs } from '../../document/document'
import { Icon, iconOf } from '../../ui/icons'

interface Group {
  title: string
  rank: number
  options: Option[]
}

/** Options in the order they are shown: by how far away their block runs. */
export function groupsOf(options: readonly Option[], doc: Document, reader: Reader, specs: Specs): Group[] {
  const distance = new Map(reachable(doc, reader, specs).map((each) => [each.block, each.distance]))
  const groups = new Map<string, Group>()
  for (const option of options) {
    const [title, rank] = placeOf(
      option,
      option.block === null ? 0 : (distance.get(option.block) ?? 0),
      doc,
      reader,
      specs,
    )
    const group = groups.get(title) ?? { title, rank, options: [] }
    group.options.push(option)
    groups.set(title, group)
  }
  return [...groups.values()].sort((a, b) => a.rank - b.rank)
}

function placeOf(option: Option, distance: number, doc: Document, reader: Reader, specs: Specs): [string, number] {
  switch (option.group) {
    case 'scope': {
      const container = option.block!
      const word = kindOf(doc, container, specs) === 'parallel' ? 'This branch' : 'This iteration'
      return [`${word} of ${nameOf(doc, container)}`, aroundOf(doc, reader).indexOf(container) * 0.1]
    }
    case 'upstream':
      if (distance <= 1) return ['Previous step', 1]
      if (distance < 1000) return ['Earlier steps', 2]
      return [
        `Before ${nameOf(doc, aroundOf(doc, reader)[Math.floor(distance / 1000) - 1] ?? '')}`.trim(),
        2 + distance / 1000,
      ]
    case 'loop':
      return ['Last iteration of an earlier loop', 30]
    case 'earlier':
      return ['Previous iteration', 31]
    case 'input':
      return ['Run input', 40]
    case 'variables':
      return ['Workflow variables', 41]
    case 'environment':
      return ['Environment', 42]
  }
}

interface RefMenuProps {
  id: string
  options: readonly Option[]
  active: number
  doc: Document
  reader: Reader
  specs: Specs
  anchor: () => DOMRect | null
  onActive: (index: number) => void
  onChoose: (option: Option) => void
  onInto: (option: Option) => void
}

export function RefMenu({
  id,
  options,
  active,
  doc,
  reader,
  specs,
  anchor,
  onActive,
  onChoose,
  onInto,
}: RefMenuProps): ReactElement {
  const ref = useRef<HTMLDivElement>(null)
  const titles = new Map(groupsOf(options, doc, reader, specs).map((group) => [group.options[0]!, group.title]))
  useLayoutEffect(() => {
    ref.current!.showPopover?.()
  }, [])
  useLayoutEffect(() => {
    const menu = ref.current!
    const place = (): void => {
      const at = anchor()
      if (!at) return
      const { width, height } = menu.getBoundingClientRect()
      const below = at.bottom + 10 + height <= innerHeight - 4
      menu.style.left = `${Math.max(4, Math.min(at.left, innerWidth - width - 4))}px`
      menu.style.top = `${Math.max(4, below ? at.bottom + 10 : at.top - height - 10)}px`
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
  }, [active, options])

  return (
    <div ref={ref} popover="manual" className="menu refmenu" onPointerDown={(event) => event.preventDefault()}>
      <div role="listbox" id={id} aria-label="References">
        {options.map((option, i) => (
          <div key={option.insert} role="presentation">
            {titles.has(option) ? (
              <div className="listbox__group label" role="presentation">
                {titles.get(option)}
              </div>
            ) : null}
            <div
              role="option"
              id={`${id}-${i}`}
              aria-selected={i === active}
              className="listbox__option refmenu__option"
              onPointerMove={() => onActive(i)}
              onClick={() => onChoose(option)}
            >
              {option.block && option.group !== 'scope' ? (
                <Icon name={iconOf(doc.blocks[option.block]?.type ?? '')} size={14} />
              ) : null}
              <span className="refmenu__name">{option.label}</span>
              <span className="refmenu__value">{option.value === undefined ? option.detail : brief(option.value)}</span>
              {option.more ? (
                <span
                  className="refmenu__into"
                  title="Fields (Right arrow)"
                  aria-hidden="true"
                  onClick={(event) => {
                    event.stopPropagation()
                    onInto(option)
                  }}
                >
                  <Icon name="chevron" size={12} />
                </span>
              ) : null}
            </div>
          </div>
        ))}
      </div>
      <p className="refmenu__keys label">
        Enter inserts it{options.some((option) => option.more) ? ', Right shows its fields' : ''}
      </p>
    </div>
  )
}

/** A value in few characters. */
export function brief(value: unknown, most = 40): string {
  if (Array.isArray(value)) return `list of ${value.length}`
  const text = JSON.stringify(value) ?? ''
  return text.length > most ? `${text.slice(0, most - 1)}…` : text
}
