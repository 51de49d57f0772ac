// When a form shows what is wrong: not while a person types, and in a field that has just appeared not before it was left.

import { createContext, useContext, useEffect, useRef, useState, type FocusEvent, type RefObject } from 'react'
import { useStore } from 'zustand'
import type { Diagnostic } from '../../api/schemas'
import { calmStore } from '../../state/calm'
import { useFieldScope } from './scope'

/** Whether the form around was drawn before: what appears in it from then on was added or chosen by a person. */
export const DrawnContext = createContext<RefObject<boolean>>({ current: false })

/** `ready`: what the form shows from its start is known. */
export function useDrawn(ready: boolean): RefObject<boolean> {
  const drawn = useRef(false)
  useEffect(() => {
    drawn.current = ready
  }, [ready])
  return drawn
}

interface Calm {
  /** The findings that are shown. */
  shown: readonly Diagnostic[]
  onFocus: (event: FocusEvent<HTMLElement>) => void
  onBlur: (event: FocusEvent<HTMLElement>) => void
}

/** `found`: of a field, or of a row of fields; the handlers are for the element around it. */
export function useCalm(found: readonly Diagnostic[]): Calm {
  const { calm } = useFieldScope()
  const drawn = useContext(DrawnContext)
  const asked = useStore(calmStore, (state) => state.asked)
  const [appeared] = useState(() => (drawn.current ? asked : null))
  const [at, setAt] = useState<'never' | 'in' | 'left'>('never')
  const before = useRef<ReadonlySet<string>>(new Set())
  const quiet = at === 'never' && (calm || appeared === asked)
  // While a person types, no other findings are shown than before.
  const shown = at === 'in' ? found.filter((each) => before.current.has(each.message)) : quiet ? [] : found
  return {
    shown,
    onFocus: (event) => {
      if (event.currentTarget.contains(event.relatedTarget)) return
      before.current = new Set(shown.map((each) => each.message))
      setAt('in')
    },
    onBlur: (event) => {
      if (!event.currentTarget.contains(event.relatedTarget)) setAt('left')
    },
  }
}
