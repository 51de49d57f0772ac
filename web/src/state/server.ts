// Whether the server that answers is read-only. Asked for once; a page that is loaded again asks again.

import { createStore } from 'zustand/vanilla'
import { api } from '../net/api'

export const READ_ONLY = 'This server is read-only.'

export const serverStore = createStore<{ readOnly: boolean | null }>(() => ({ readOnly: null }))

let asking: Promise<void> | null = null

/** Without an answer the buttons stay as they are: the server refuses what it does not do. */
export function loadServer(): Promise<void> {
  asking ??= api.server().then(
    ({ read_only }) => serverStore.setState({ readOnly: read_only }),
    () => {
      asking = null
    },
  )
  return asking
}
