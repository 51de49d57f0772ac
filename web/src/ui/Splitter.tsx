// The border between two panels: drag it, or move it with the arrow keys (16 px, with shift 64).

import { useRef, type KeyboardEvent, type PointerEvent, type ReactElement } from 'react'

export interface SplitterProps {
  label: string
  /** Size in pixels of the panel it belongs to. */
  value: number
  min: number
  max: number
  /** Which panel grows when it moves right (or down): the one before it, or the one after. */
  panel?: 'before' | 'after'
  orientation?: 'vertical' | 'horizontal'
  onChange: (value: number) => void
}

export function Splitter({
  label,
  value,
  min,
  max,
  panel = 'before',
  orientation = 'vertical',
  onChange,
}: SplitterProps): ReactElement {
  const drag = useRef<{ from: number; value: number } | null>(null)
  const sign = panel === 'before' ? 1 : -1
  const put = (next: number): void => onChange(Math.round(Math.max(min, Math.min(max, next))))
  const place = (event: PointerEvent): number => (orientation === 'vertical' ? event.clientX : event.clientY)
  const onKey = (event: KeyboardEvent): void => {
    const by = event.shiftKey ? 64 : 16
    const steps: Record<string, number> = { ArrowRight: by, ArrowDown: by, ArrowLeft: -by, ArrowUp: -by }
    const step = steps[event.key]
    if (step === undefined) return
    put(value + step * sign)
    event.preventDefault()
    event.stopPropagation()
  }
  return (
    <div
      role="separator"
      tabIndex={0}
      aria-label={label}
      aria-orientation={orientation}
      aria-valuenow={value}
      aria-valuemin={min}
      aria-valuemax={max}
      className="splitter"
      onKeyDown={onKey}
      onPointerDown={(event) => {
        event.currentTarget.setPointerCapture(event.pointerId)
        drag.current = { from: place(event), value }
      }}
      onPointerMove={(event) => {
        if (drag.current) put(drag.current.value + (place(event) - drag.current.from) * sign)
      }}
      onPointerUp={() => (drag.current = null)}
      onPointerCancel={() => (drag.current = null)}
    />
  )
}
