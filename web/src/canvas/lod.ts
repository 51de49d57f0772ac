// Level of detail: seen from far away a block is one box with its rail, its name and its status, and in large documents all
// edges are a handful of lines. React Flow knows where handles are without seeing them, so nothing else is needed.

import { createContext, useContext } from 'react'

/** Below this zoom a sentence cannot be read. */
export const FAR_ZOOM = 0.45
/** Below this zoom a name cannot be read. */
export const TINY_ZOOM = 0.16
/** From this many blocks on only what is on the screen is mounted. */
export const CULL_FROM = 150
/** From this many blocks on the minimap is shown until it is hidden. */
export const MINIMAP_FROM = 30
/** The smallest zoom at which sentences can be read. */
export const READABLE = 0.75
export const ZOOM_MIN = 0.05

export type Detail = 'near' | 'far' | 'tiny'

export const detailAt = (zoom: number): Detail => (zoom < TINY_ZOOM ? 'tiny' : zoom < FAR_ZOOM ? 'far' : 'near')

/** Set by the canvas, for everything on it. */
export const DetailContext = createContext<Detail>('near')
export const useDetail = (): Detail => useContext(DetailContext)
