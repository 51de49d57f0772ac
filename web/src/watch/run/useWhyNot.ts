// Why the shown run cannot be changed now.

import { useStore } from 'zustand'
import { runStore } from '../../state/live'
import { netStore } from '../../state/net'
import { useServerReadOnly } from '../../ui/rights'

/** null: it can. */
export function useWhyNot(): string | null {
  const live = useStore(runStore, (s) => s.cursor === 'live')
  const offline = useStore(netStore, (s) => s.mode === 'offline')
  const readOnly = useServerReadOnly()
  if (readOnly) return readOnly
  if (!live) return 'Go back to live first'
  return offline ? 'The server cannot be reached' : null
}
