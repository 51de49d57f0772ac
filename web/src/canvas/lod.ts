// Level of detail: seen from far away a block is one box with its rail, its name and its status. Handles stay, so that edges
// keep their ends.

/** Below this zoom nobody could read a sentence. */
export const FAR_ZOOM = 0.45
/** From this many blocks on only what is on the screen is mounted. */
export const CULL_FROM = 150
/** From this many blocks on the minimap is shown until somebody hides it. */
export const MINIMAP_FROM = 30

export const isFar = (zoom: number): boolean => zoom < FAR_ZOOM
/** The smallest zoom at which sentences can be read: a document opens no smaller. */
export const READABLE = 0.75
