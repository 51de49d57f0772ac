// The block types at the left: drag one onto the canvas, or choose it to add it behind what is selected. Collapses to a rail.

import { useRef, useState, type KeyboardEvent, type ReactElement } from 'react'
import { useStore } from 'zustand'
import { addBlock, fromSelection } from '../../actions/edit'
import { keyText } from '../../keys'
import type { BlockSpec } from '../../api/types'
import { docStore, specsStore } from '../../state/doc'
import { setPanels, uiStore } from '../../state/ui'
import { Button } from '../../ui/Button'
import { Icon, iconOf } from '../../ui/icons'
import { grouped, search } from './groups'
import { BLOCK_MIME } from '../../actions/picker'
import { remember } from '../../actions/picker'
import './palette.css'

export default function Palette(): ReactElement {
  const list = useStore(specsStore, (s) => s.list)
  const open = useStore(uiStore, (s) => s.panels.paletteOpen)
  const readonly = useStore(docStore, (s) => s.readonly)
  const [query, setQuery] = useState('')
  const frame = useRef<HTMLElement>(null)
  const groups = query.trim() ? [{ group: 'Results', specs: search(list, query) }] : grouped(list)
  const first = groups[0]?.specs[0]
  return (
    <nav
      ref={frame}
      className="palette"
      aria-label="Blocks"
      data-open={open}
      onKeyDown={(event) => move(event, frame.current)}
    >
      <div className="palette__top">
        {open ? (
          <input
            type="search"
            className="palette__search"
            placeholder={`Add a block   ${keyText('add')}`}
            aria-label="Find a block type"
            value={query}
            autoComplete="off"
            spellCheck={false}
            onChange={(event) => setQuery(event.target.value)}
            onKeyDown={(event) => {
              if (event.key === 'Enter' && first) {
                add(first)
                setQuery('')
              } else if (event.key === 'Escape' && query) {
                setQuery('')
                event.stopPropagation()
              }
            }}
          />
        ) : null}
        <Button
          kind="bare"
          icon={open ? 'back' : 'chevron'}
          iconOnly
          aria-expanded={open}
          onClick={() => setPanels({ paletteOpen: !open })}
        >
          {open ? 'Hide blocks' : 'Show blocks'}
        </Button>
      </div>
      <div className="palette__list">
        {groups.map(({ group, specs }) => (
          <section key={group} className="palette__group" aria-label={group}>
            {open ? <h2 className="label">{group}</h2> : null}
            {specs.map((spec) => (
              <Item key={spec.type} spec={spec} open={open} readonly={readonly} />
            ))}
          </section>
        ))}
        {groups[0]?.specs.length === 0 ? <p className="palette__none quiet">No results</p> : null}
      </div>
    </nav>
  )
}

function Item({ spec, open, readonly }: { spec: BlockSpec; open: boolean; readonly: boolean }): ReactElement {
  return (
    <button
      type="button"
      className="palette__item"
      data-testid={`palette-${spec.type}`}
      title={open ? spec.description : `${spec.title}: ${spec.description}`}
      aria-label={open ? undefined : spec.title}
      draggable={!readonly}
      aria-disabled={readonly || undefined}
      onDragStart={(event) => {
        event.dataTransfer.setData(BLOCK_MIME, spec.type)
        event.dataTransfer.effectAllowed = 'copy'
      }}
      onClick={() => (readonly ? undefined : add(spec))}
    >
      <Icon name={iconOf(spec.type)} />
      {open ? <span>{spec.title}</span> : null}
    </button>
  )
}

function add(spec: BlockSpec): void {
  remember(spec.type)
  const from = spec.trigger || spec.category === 'annotation' ? undefined : fromSelection()
  addBlock(spec.type, { from })
}

/** Up and down go through the list, from the search field too. */
function move(event: KeyboardEvent, frame: HTMLElement | null): void {
  const by = event.key === 'ArrowDown' ? 1 : event.key === 'ArrowUp' ? -1 : 0
  if (!by || !frame) return
  const stops = [...frame.querySelectorAll<HTMLElement>('.palette__search, .palette__item')]
  stops[stops.indexOf(document.activeElement as HTMLElement) + by]?.focus()
  event.preventDefault()
}

export { Palette }
