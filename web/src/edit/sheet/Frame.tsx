// The frame of every sheet: a window over the dimmed canvas, 64 px from the sides, that leaves its block above it and the Tape below
// it to be seen and used. Tab stays inside, Escape closes, the keyboard goes back to the block.

import {
  useEffect,
  useLayoutEffect,
  useRef,
  useState,
  type KeyboardEvent,
  type ReactElement,
  type ReactNode,
} from 'react'
import { useStore } from 'zustand'
import { focusNode, park } from '../../actions/view'
import { isTextField } from '../../keys'
import { absoluteAt } from '../../document/document'
import { sizeOf } from '../../geometry/size'
import { stepBy } from '../../state/live'
import { uiStore } from '../../state/ui'
import { useFieldScope } from '../../forms/fields/scope'
import './sheet.css'

interface Place {
  top: number
  bottom: number
  hole: { x: number; y: number; width: number; height: number } | null
}

/** Room for the block above the sheet, where the window has it: an agent, the tallest, can still be read there. */
const STRIP = [104, 136] as const
const ROOM_MIN = 520
const BAR = 44
const INSIDE =
  'a[href], button:not([tabindex="-1"]), input, select, textarea, summary, [tabindex]:not([tabindex="-1"]), [data-editor]'

export function Frame({
  label,
  testId,
  onKey,
  children,
}: {
  label: string
  testId: string
  /** Keys that mean something outside of text fields. True: it was one. */
  onKey?: (event: KeyboardEvent) => boolean
  children: ReactNode
}): ReactElement {
  const { block } = useFieldScope()
  const ref = useRef<HTMLElement>(null)
  const place = usePlace(block!)
  const main = useRef<HTMLElement | null>(null)
  useEffect(() => {
    const behind = document.querySelector<HTMLElement>('.editor__main, .run__body')
    main.current = behind
    behind?.setAttribute('inert', '')
    return () => {
      behind?.removeAttribute('inert')
      const { selection } = uiStore.getState()
      focusNode(selection.blocks[0] ?? null)
    }
  }, [])
  useEffect(() => {
    const sheet = ref.current!
    const first = sheet.querySelector<HTMLElement>('[data-column=settings] :is(textarea, input, select), [data-first]')
    ;(first ?? sheet).focus({ preventScroll: true })
  }, [block])
  const onKeyDown = (event: KeyboardEvent<HTMLElement>): void => {
    if (event.defaultPrevented) return
    if (event.key === 'Escape') {
      event.preventDefault()
      event.stopPropagation()
      return close()
    }
    if (event.key === 'Tab') return keepInside(event, ref.current!)
    if (event.altKey || event.ctrlKey || event.metaKey || isTextField(event.target)) return
    const moved = { ',': -1, '.': 1 }[event.key] as 1 | -1 | undefined
    if (moved) stepBy(moved)
    else if (!onKey?.(event)) return
    event.preventDefault()
    event.stopPropagation()
  }
  const { hole } = place
  return (
    <>
      <div className="sheetscrim" style={{ bottom: place.bottom }} onClick={close} aria-hidden="true">
        <span
          className="sheetscrim__hole"
          data-none={hole === null || undefined}
          style={hole ? { left: hole.x, top: hole.y - BAR, width: hole.width, height: hole.height } : undefined}
        />
      </div>
      <section
        ref={ref}
        role="dialog"
        aria-label={label}
        tabIndex={-1}
        className="wsheet"
        data-testid={testId}
        style={{ top: place.top, bottom: place.bottom + 12 }}
        onKeyDown={onKeyDown}
      >
        {children}
      </section>
    </>
  )
}

export function close(): void {
  uiStore.setState({ sheet: null })
}

/** The place of the sheet: below the block if there is room, above the Tape always. */
function usePlace(block: string): Place {
  const { doc, specs } = useFieldScope()
  const drawer = useStore(uiStore, (state) => state.drawer)
  const [place, setPlace] = useState<Place>({ top: BAR + 20, bottom: 44, hole: null })
  useLayoutEffect(() => {
    const below = document.querySelector<HTMLElement>('.drawer')
    const canvas = document.querySelector<HTMLElement>('.canvas')
    const is = doc.blocks[block]
    const size = is ? sizeOf(is, specs.get(is.type)) : ([0, 0] as const)
    const strip = Math.min(STRIP[1], Math.max(STRIP[0], size[1] * 0.62 + 24))
    const measure = (): void => {
      const end = below ? Math.round(below.getBoundingClientRect().top) : innerHeight
      const upper = Math.max(BAR, canvas ? Math.round(canvas.getBoundingClientRect().top) : 0)
      const wide = innerWidth >= 760
      const parked = is && wide && end - upper >= ROOM_MIN ? park(absoluteAt(doc, block), [...size], strip) : null
      setPlace({
        top: parked ? upper + strip : wide ? upper + 20 : upper,
        bottom: innerHeight - end,
        hole: parked ? parked.box : null,
      })
      back ??= parked?.back ?? null
    }
    let back: (() => void) | null = null
    measure()
    const observer = new ResizeObserver(measure)
    if (below) observer.observe(below)
    addEventListener('resize', measure)
    return () => {
      observer.disconnect()
      removeEventListener('resize', measure)
      back?.()
    }
  }, [block, drawer])
  return place
}

/** From the last control Tab leads to the first one, and back. */
function keepInside(event: KeyboardEvent, sheet: HTMLElement): void {
  const all = [...sheet.querySelectorAll<HTMLElement>(INSIDE)].filter((each) => each.offsetParent !== null)
  const [first, last] = [all[0], all.at(-1)]
  const now = document.activeElement
  if (!first || !last) return event.preventDefault()
  if (event.shiftKey && (now === first || now === sheet)) last.focus()
  else if (!event.shiftKey && now === last) first.focus()
  else return
  event.preventDefault()
}
