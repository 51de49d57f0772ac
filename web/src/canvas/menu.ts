// The menu on the canvas that is open, if one is: for a block, for empty space, or the two containers one can wrap in.

import { createStore } from 'zustand/vanilla'

export interface OpenMenu {
  kind: 'block' | 'pane' | 'wrap'
  x: number
  y: number
}

export const menuStore = createStore<{ open: OpenMenu | null }>(() => ({ open: null }))

export function openMenu(open: OpenMenu): void {
  menuStore.setState({ open })
}

export function closeMenu(): void {
  menuStore.setState({ open: null })
}
