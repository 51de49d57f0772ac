// The name or text that is being changed in place on the canvas, and whether things glide.

import { createStore } from 'zustand/vanilla'

/** Changed in place on the canvas: the name of a block, the text of a note. `tidying`: things glide. */
export const inPlaceStore = createStore<{ rename: string | null; note: string | null; tidying: boolean }>(() => ({
  rename: null,
  note: null,
  tidying: false,
}))

const GLIDE_MS = 240

let gliding: ReturnType<typeof setTimeout> | undefined

/** Animate the blocks that the next change moves. */
export function glide(): void {
  clearTimeout(gliding)
  inPlaceStore.setState({ tidying: true })
  gliding = setTimeout(() => inPlaceStore.setState({ tidying: false }), GLIDE_MS)
}
