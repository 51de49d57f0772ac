// The edge below the pointer: it shows its plus. It stays hovered for a moment, so that the way to the plus does not lose it.

import { createStore } from 'zustand/vanilla'

export const hoverStore = createStore<{ edge: string | null }>(() => ({ edge: null }))

let timer: ReturnType<typeof setTimeout> | null = null

export function overEdge(edge: string): void {
  if (timer !== null) clearTimeout(timer)
  timer = null
  hoverStore.setState({ edge })
}

export function leaveEdge(): void {
  if (timer !== null) clearTimeout(timer)
  timer = setTimeout(() => hoverStore.setState({ edge: null }), 250)
}
