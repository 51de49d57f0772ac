// The pointer on the canvas: where it is, and whether it moves things freely.

import { useEffect, useState } from 'react'

export type PointerLike = MouseEvent | TouchEvent | React.MouseEvent

export function pointOf(event: PointerLike): { clientX: number; clientY: number } {
  return 'changedTouches' in event ? (event.changedTouches[0] ?? { clientX: 0, clientY: 0 }) : event
}

/** While Alt is held things are not snapped to the grid. */
export function useFreely(): boolean {
  const [free, setFree] = useState(false)
  useEffect(() => {
    const onKey = (event: KeyboardEvent): void => setFree(event.altKey)
    addEventListener('keydown', onKey)
    addEventListener('keyup', onKey)
    return () => {
      removeEventListener('keydown', onKey)
      removeEventListener('keyup', onKey)
    }
  }, [])
  return free
}
