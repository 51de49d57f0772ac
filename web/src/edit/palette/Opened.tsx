// The opened palette: all block types in their groups, found by words, dragged onto the canvas or added by a click.

import { useEffect, useRef, useState, type KeyboardEvent, type ReactElement } from 'react'
import { flushSync } from 'react-dom'
import { useStore } from 'zustand'
import { addBlock, fromSelection } from '../../actions/edit'
import type { BlockSpec } from '../../api/types'
import { docStore, specsStore } from '../../state/doc'
import { Button } from '../../ui/Button'
import { Icon, iconOf } from '../../ui/icons'
import { grouped } from './groups'
import { search } from './search'
import { BLOCK_MIME, remember } from '../../actions/picker'

/** `group`: the one that is looked for. */
export default function Opened({ group: asked, onClose }: { group: string | null; onClose: () => void }): ReactElement {
  const list = useStore(specsStore, (s) => s.list)
  const readonly = useStore(docStore, (s) => s.readonly)
  const [query, setQuery] = useState('')
  const frame = useRef<HTMLElement>(null)
  const groups = query.trim() ? [{ group: 'Results', specs: search(list, query) }] : grouped(list)
  const first = groups[0]?.specs[0]
  useEffect(() => {
    const group = frame.current?.querySelector(`[aria-label="${asked}"]`)
    group?.scrollIntoView({ block: 'start' })
    group?.querySelector<HTMLElement>('.palette__item')?.focus({ preventScroll: true })
  }, [asked])
  const close = (): void => {
    flushSync(onClose)
    document.querySelector<HTMLElement>(`.palette--rail [aria-label="${asked}"]`)?.focus()
  }
  return (
    <nav ref={frame} className="palette" aria-label="Blocks" onKeyDown={(event) => move(event, frame.current)}>
      <div className="palette__top">
        <input
          type="search"
          className="palette__search"
          placeholder="Find a block"
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
        <Button kind="bare" icon="back" iconOnly aria-expanded onClick={close}>
          Hide blocks
        </Button>
      </div>
      <div className="palette__list">
        {groups.map(({ group, specs }) => (
          <section key={group} className="palette__group" aria-label={group}>
            <h2 className="label">{group}</h2>
            {specs.map((spec) => (
              <Item key={spec.type} spec={spec} readonly={readonly} />
            ))}
          </section>
        ))}
        {groups[0]?.specs.length === 0 ? <p className="palette__none quiet">No results</p> : null}
      </div>
    </nav>
  )
}

function Item({ spec, readonly }: { spec: BlockSpec; readonly: boolean }): ReactElement {
  return (
    <button
      type="button"
      className="palette__item"
      data-testid={`palette-${spec.type}`}
      title={spec.description}
      draggable={!readonly}
      aria-disabled={readonly || undefined}
      onDragStart={(event) => {
        event.dataTransfer.setData(BLOCK_MIME, spec.type)
        event.dataTransfer.effectAllowed = 'copy'
      }}
      onClick={() => (readonly ? undefined : add(spec))}
    >
      <Icon name={iconOf(spec.type, spec.icon)} />
      <span>{spec.title}</span>
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
