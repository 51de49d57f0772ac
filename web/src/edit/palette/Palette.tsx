// The block types at the left: a rail that opens the picker or one of the groups. Opened, a type is dragged onto the canvas, or
// chosen to be added after what is selected.

import { lazy, Suspense, useRef, useState, type ReactElement, type RefObject } from 'react'
import { flushSync } from 'react-dom'
import { useStore } from 'zustand'
import { fromSelection } from '../../actions/edit'
import { keyText } from '../../keys'
import { docStore, specsStore } from '../../state/doc'
import { setPanels, uiStore } from '../../state/ui'
import { Button } from '../../ui/Button'
import { GROUP_ICONS, grouped } from './groups'
import { openPicker } from '../../actions/picker'
import './palette.css'

const load = () => import('./Opened')
const Opened = lazy(load)
load().catch(() => undefined)

export default function Palette(): ReactElement {
  const open = useStore(uiStore, (s) => s.panels.paletteOpen)
  const [group, setGroup] = useState<string | null>(null)
  const rail = useRef<HTMLElement>(null)
  const show = (name: string | null): void => {
    flushSync(() => (setGroup(name), setPanels({ paletteOpen: name !== null })))
    if (name === null) rail.current?.querySelector<HTMLElement>(`[aria-label="${group}"]`)?.focus()
  }
  return open ? (
    <Suspense fallback={null}>
      <Opened group={group} onClose={() => show(null)} />
    </Suspense>
  ) : (
    <Rail rail={rail} onOpen={show} />
  )
}

function Rail({
  rail,
  onOpen,
}: {
  rail: RefObject<HTMLElement | null>
  onOpen: (group: string) => void
}): ReactElement {
  const list = useStore(specsStore, (s) => s.list)
  const readonly = useStore(docStore, (s) => s.readonly)
  return (
    <nav ref={rail} className="palette palette--rail" aria-label="Blocks">
      <Button
        className="palette__add"
        icon="plus"
        iconOnly
        keys={keyText('add')}
        why={readonly ? 'This workflow cannot be edited here.' : null}
        onClick={(event) => {
          const box = event.currentTarget.getBoundingClientRect()
          openPicker({ mode: 'add', screen: { x: box.right + 8, y: box.top }, from: fromSelection() })
        }}
      >
        Add a block
      </Button>
      {grouped(list).map(({ group }) => (
        <Button
          key={group}
          kind="bare"
          icon={GROUP_ICONS[group] ?? 'block'}
          iconOnly
          aria-expanded={false}
          onClick={() => onOpen(group)}
        >
          {group}
        </Button>
      ))}
      <Button
        kind="bare"
        className="palette__help"
        icon="help"
        iconOnly
        keys={keyText('shortcuts')}
        onClick={() => uiStore.setState({ overlay: 'shortcuts' })}
      >
        Keyboard shortcuts
      </Button>
    </nav>
  )
}
