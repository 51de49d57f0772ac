// Whether the window is narrow, for what CSS alone cannot leave out.

import { useSyncExternalStore } from 'react'

/** Is the window narrower than so many pixels? */
export function useWidthBelow(width: number): boolean {
  const query = `(max-width: ${width - 0.02}px)`
  return useSyncExternalStore(
    (listener) => {
      const list = matchMedia(query)
      list.addEventListener('change', listener)
      return () => list.removeEventListener('change', listener)
    },
    () => matchMedia(query).matches,
  )
}
