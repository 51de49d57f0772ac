// The block picker's state: what it was opened for. One list, four uses: keys, double click, an edge dropped on empty space, and
// the plus on an edge. In `connect` mode it lists targets instead of block types.

import { createStore } from 'zustand/vanilla'
import type { Point } from '../api/types'

/** What a block type that is dragged out of the palette is called on the clipboard. */
export const BLOCK_MIME = 'application/x-weft-block'

export type PickerRequest =
  | {
      mode: 'add'
      screen: { x: number; y: number }
      at?: Point
      from?: { source: string; handle: string }
      edge?: string
      parent?: string
    }
  | { mode: 'connect'; screen: { x: number; y: number }; source: string; handle: string | null }

const KEY = 'weft-recent'
const RECENT_MAX = 4

export const pickerStore = createStore<{ request: PickerRequest | null; recent: readonly string[] }>(() => ({
  request: null,
  recent: remembered(),
}))

export function openPicker(request: PickerRequest): void {
  pickerStore.setState({ request })
}

export function closePicker(): void {
  pickerStore.setState({ request: null })
}

/** A block of this type was added: it stands first the next time. */
export function remember(type: string): void {
  const recent = [type, ...pickerStore.getState().recent.filter((other) => other !== type)].slice(0, RECENT_MAX)
  pickerStore.setState({ recent })
  try {
    localStorage.setItem(KEY, JSON.stringify(recent))
  } catch {
    // Storage may be off; then nothing is remembered.
  }
}

function remembered(): string[] {
  try {
    const stored: unknown = JSON.parse(localStorage.getItem(KEY) ?? '[]')
    return Array.isArray(stored) ? stored.filter((type): type is string => typeof type === 'string') : []
  } catch {
    return []
  }
}
