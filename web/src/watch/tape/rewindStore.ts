// The rewind that is being prepared. It is small: the page of a run has it from the start.

import { createStore } from 'zustand/vanilla'
import type { Json } from '../../api/schemas'

export interface Changes {
  /** Words of the block, by param. */
  params: Readonly<Record<string, string>>
  /** Results of steps, by number. */
  steps: Readonly<Record<number, Json>>
}

export const NO_CHANGES: Changes = { params: {}, steps: {} }

/** `place`: the turn that the changes are of. `moment`, `text`: where one is, and what Continue would do. `continued`: Continue
 * was pressed, and its run is not shown yet. */
export const rewindStore = createStore<
  Changes & { open: boolean; place: string; moment: string; text: string; continued: boolean }
>(() => ({
  ...NO_CHANGES,
  open: false,
  place: '',
  moment: '',
  text: '',
  continued: false,
}))

export function closeRewind(): void {
  rewindStore.setState({ ...NO_CHANGES, open: false, place: '', moment: '', text: '' })
}
