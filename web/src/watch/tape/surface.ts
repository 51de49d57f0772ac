// The facts of the page that a painter needs: its width, and the colours of the theme.

import { useEffect, useState, type RefObject } from 'react'
import { useStore } from 'zustand'
import { uiStore } from '../../state/ui'
import { coloursOf, type Colours } from './paint'

export function useWidth(ref: RefObject<HTMLElement | null>): number {
  const [width, setWidth] = useState(0)
  useEffect(() => {
    const watch = new ResizeObserver(([entry]) => setWidth(Math.floor(entry!.contentRect.width)))
    watch.observe(ref.current!)
    return () => watch.disconnect()
  }, [ref])
  return width
}

/** The colours of the theme, read again when it changes and when the font has come. */
export function useColours(ref: RefObject<HTMLElement | null>): Colours | null {
  const theme = useStore(uiStore, (s) => s.theme)
  const [colours, setColours] = useState<Colours | null>(null)
  useEffect(() => {
    const read = (): void => {
      if (ref.current) setColours(coloursOf(ref.current))
    }
    // After the theme is on the page: it is put there by another listener of the same store.
    const frame = requestAnimationFrame(read)
    const dark = matchMedia('(prefers-color-scheme: dark)')
    dark.addEventListener('change', read)
    void document.fonts.ready.then(read)
    return () => {
      cancelAnimationFrame(frame)
      dark.removeEventListener('change', read)
    }
  }, [ref, theme])
  return colours
}
