// A small window above the page that closes with a click outside it: for lists that one types into.

import { useEffect, useLayoutEffect, useRef, type ReactElement, type ReactNode } from 'react'

export interface OverlayProps {
  label: string
  /** Top left corner in the window; it moves to stay inside. Without it: in the upper middle. */
  at?: { x: number; y: number }
  onClose: () => void
  children: ReactNode
}

export function Overlay({ label, at, onClose, children }: OverlayProps): ReactElement {
  const ref = useRef<HTMLDivElement>(null)
  const x = at?.x
  const y = at?.y
  useLayoutEffect(() => {
    const back = document.activeElement as HTMLElement | null
    const window = ref.current!
    window.showPopover?.()
    window.querySelector('input')?.focus()
    return () => {
      // The action that closed it may have moved the focus already.
      if (document.activeElement === document.body || window.contains(document.activeElement))
        back?.focus?.({ preventScroll: true })
    }
  }, [])
  useLayoutEffect(() => {
    const window = ref.current!
    const { width, height } = window.getBoundingClientRect()
    const left = x === undefined ? (innerWidth - width) / 2 : x
    const top = y === undefined ? Math.max(48, innerHeight * 0.14) : y
    window.style.left = `${Math.max(8, Math.min(left, innerWidth - width - 8))}px`
    window.style.top = `${Math.max(8, Math.min(top, innerHeight - height - 8))}px`
  }, [x, y])
  useEffect(() => {
    const outside = (event: PointerEvent): void => {
      if (!ref.current?.contains(event.target as Node)) onClose()
    }
    addEventListener('pointerdown', outside, true)
    return () => removeEventListener('pointerdown', outside, true)
  }, [onClose])
  return (
    <div
      ref={ref}
      popover="manual"
      role="dialog"
      aria-label={label}
      className={at ? 'overlay overlay--small' : 'overlay'}
      onKeyDown={(event) => {
        if (event.key !== 'Escape') return
        event.preventDefault()
        event.stopPropagation()
        onClose()
      }}
    >
      {children}
    </div>
  )
}
