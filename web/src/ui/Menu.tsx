// A menu at a point or below a button: arrow keys, Home, End, first letters; Escape and a click outside close it.

import { useEffect, useLayoutEffect, useRef, useState, type KeyboardEvent, type ReactElement } from 'react'
import { Button, type ButtonProps } from './Button'
import { Icon, type IconName } from './icons'
import { useServerReadOnly } from './rights'

export interface MenuItem {
  label: string
  icon?: IconName
  keys?: string
  /** Why it cannot be chosen. */
  why?: string | null | undefined
  /** It changes something on the server: disabled when that is read-only. */
  changes?: boolean
  onSelect: () => void
}

/** `line` separates. */
export type MenuEntry = MenuItem | 'line'

export interface MenuProps {
  entries: MenuEntry[]
  /** Top left corner in the window; it moves to stay inside. */
  at: { x: number; y: number }
  label: string
  onClose: () => void
}

export function Menu({ entries, at, label, onClose }: MenuProps): ReactElement {
  const ref = useRef<HTMLDivElement>(null)
  const readOnly = useServerReadOnly()
  const whyNot = (entry: MenuItem): string | null => (entry.changes ? readOnly : null) ?? entry.why ?? null
  useLayoutEffect(() => {
    const menu = ref.current!
    const back = document.activeElement as HTMLElement | null
    menu.showPopover?.()
    const { width, height } = menu.getBoundingClientRect()
    menu.style.left = `${Math.max(4, Math.min(at.x, innerWidth - width - 4))}px`
    menu.style.top = `${Math.max(4, Math.min(at.y, innerHeight - height - 4))}px`
    menu.querySelector<HTMLElement>('[role=menuitem]')?.focus()
    return () => back?.focus?.()
  }, [at.x, at.y])
  useEffect(() => {
    const outside = (event: PointerEvent): void => {
      if (!ref.current?.contains(event.target as Node)) onClose()
    }
    addEventListener('pointerdown', outside, true)
    return () => removeEventListener('pointerdown', outside, true)
  }, [onClose])

  // With some icons every label begins behind one.
  const icons = entries.some((entry) => entry !== 'line' && entry.icon)
  const move = (event: KeyboardEvent): void => {
    const items = [...ref.current!.querySelectorAll<HTMLElement>('[role=menuitem]')]
    const now = items.indexOf(document.activeElement as HTMLElement)
    const to = { ArrowDown: now + 1, ArrowUp: now - 1, Home: 0, End: items.length - 1 }[event.key]
    if (event.key === 'Escape' || event.key === 'Tab') onClose()
    else if (to !== undefined) items[(to + items.length) % items.length]?.focus()
    else if (event.key.length === 1 && event.key !== ' ') {
      const wanted = event.key.toLowerCase()
      const after = [...items.slice(now + 1), ...items.slice(0, now + 1)]
      after.find((item) => item.textContent?.toLowerCase().startsWith(wanted))?.focus()
    } else return
    event.preventDefault()
    event.stopPropagation()
  }

  return (
    <div ref={ref} popover="manual" role="menu" aria-label={label} className="menu" onKeyDown={move}>
      {entries.map((entry, i) =>
        entry === 'line' ? (
          <div key={i} role="separator" className="menu__line" />
        ) : (
          <button
            key={i}
            type="button"
            role="menuitem"
            tabIndex={-1}
            className="menu__item"
            aria-disabled={whyNot(entry) ? true : undefined}
            title={whyNot(entry) ?? undefined}
            onClick={() => {
              if (whyNot(entry)) return
              onClose()
              entry.onSelect()
            }}
          >
            {entry.icon ? <Icon name={entry.icon} /> : icons ? <span className="menu__blank" /> : null}
            {entry.label}
            {entry.keys ? <kbd>{entry.keys}</kbd> : null}
          </button>
        ),
      )}
    </div>
  )
}

/** A button that opens a menu below itself. */
export function MenuButton({
  entries,
  label,
  ...button
}: { entries: MenuEntry[]; label: string } & Omit<ButtonProps, 'onClick'>): ReactElement {
  const [at, setAt] = useState<{ x: number; y: number } | null>(null)
  return (
    <>
      <Button
        {...button}
        aria-haspopup="menu"
        aria-expanded={at !== null}
        onClick={(event) => {
          const box = event.currentTarget.getBoundingClientRect()
          setAt({ x: box.left, y: box.bottom + 4 })
        }}
      />
      {at ? <Menu entries={entries} at={at} label={label} onClose={() => setAt(null)} /> : null}
    </>
  )
}
