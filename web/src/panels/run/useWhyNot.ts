// Why a run cannot be changed at this moment.

import { runStore } from '../../state/live'
import { netStore } from '../../state/net'
import { useSelect } from '../../state/store'

/** null: it can. */
export function useWhyNot(): string | null {
  const live = useSelect(runStore, (s) => s.cursor === 'live')
  const offline = useSelect(netStore, (s) => s.mode === 'offline')
  if (!live) return 'Go back to live first'
  return offline ? 'The server cannot be reached' : null
}
