// Level of detail: above 60 % a block shows everything, then its plate and its name, which stay the same size on the screen; below
// 25 % the whole document is one canvas element. React Flow knows where handles are without seeing them, so nothing else is needed.

import { useStoreApi } from '@xyflow/react'
import { createContext, useContext, useEffect, useState, type RefObject } from 'react'

/** Below this zoom a sentence cannot be read. */
export const FAR_ZOOM = 0.6
/** Below this zoom a name has no room. */
export const TINY_ZOOM = 0.25
/** Below this zoom there is one mark for each block. */
export const WEAVE_ZOOM = 0.14
/** Below this zoom a plate takes the room of the name. */
const TIGHT_ZOOM = 0.4
/** From this many blocks on only what is on the screen is mounted. */
export const CULL_FROM = 150
/** From this many blocks on the minimap is shown until it is hidden. */
export const MINIMAP_FROM = 30
/** The smallest zoom at which sentences can be read. */
export const READABLE = 0.75
export const ZOOM_MIN = 0.05
/** The time for which two levels are seen at once. */
const FADE_MS = 120

export type Detail = 'near' | 'far' | 'tiny'

export const detailAt = (zoom: number): Detail => (zoom < TINY_ZOOM ? 'tiny' : zoom < FAR_ZOOM ? 'far' : 'near')

/** Set by the canvas, for everything on it. */
export const DetailContext = createContext<Detail>('near')
export const useDetail = (): Detail => useContext(DetailContext)

/** Keep names at one size on the screen: `--px` is one pixel of it in pixels of the canvas, in steps of 5 %, so that a zoom
 * does not lay out every card in every frame. */
export function useConstantSize(frame: RefObject<HTMLElement | null>): void {
  const store = useStoreApi()
  useEffect(() => {
    let last = 0
    const set = (): void => {
      const zoom = store.getState().transform[2]
      const step = zoom < FAR_ZOOM && zoom >= TINY_ZOOM ? Math.round(Math.log(zoom) / Math.log(1.05)) : 0
      if (step === last) return
      last = step
      frame.current?.style.setProperty('--px', `${step ? 1.05 ** -step : 1}px`)
      frame.current?.toggleAttribute('data-tight', step !== 0 && zoom < TIGHT_ZOOM)
    }
    set()
    return store.subscribe(set)
  }, [store, frame])
}

/** The levels that are mounted: both for as long as they cross-fade. */
export function useLevels(tiny: boolean, fade: boolean): { blocks: boolean; weave: boolean } {
  const [settled, setSettled] = useState(tiny)
  useEffect(() => {
    if (settled === tiny) return
    const timer = setTimeout(() => setSettled(tiny), fade ? FADE_MS : 0)
    return () => clearTimeout(timer)
  }, [tiny, settled, fade])
  return { blocks: !tiny || !settled, weave: tiny || settled }
}
