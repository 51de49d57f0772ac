// Long lists of rows of one height: only those in view exist.

import { useEffect, useState, type RefObject } from 'react'

export interface Virtual {
  /** The first and behind the last row to draw. */
  from: number
  to: number
  height: number
  /** Bring a row into view. */
  reveal: (row: number) => void
  /** Is the end in view? */
  atEnd: () => boolean
}

const EXTRA = 6

export function useVirtual(ref: RefObject<HTMLElement | null>, count: number, rowHeight: number): Virtual {
  const [{ top, height }, set] = useState({ top: 0, height: 400 })
  useEffect(() => {
    const box = ref.current
    if (!box) return
    const read = (): void => set({ top: box.scrollTop, height: box.clientHeight })
    const watch = new ResizeObserver(read)
    watch.observe(box)
    box.addEventListener('scroll', read, { passive: true })
    read()
    return () => {
      watch.disconnect()
      box.removeEventListener('scroll', read)
    }
    // Without rows the list itself may not be there yet.
  }, [ref, count === 0])
  return {
    from: Math.max(0, Math.min(count, Math.floor(top / rowHeight) - EXTRA)),
    to: Math.min(count, Math.ceil((top + height) / rowHeight) + EXTRA),
    height: count * rowHeight,
    reveal(row) {
      const box = ref.current
      if (!box) return
      if (row * rowHeight < box.scrollTop) box.scrollTop = row * rowHeight
      else if ((row + 1) * rowHeight > box.scrollTop + box.clientHeight)
        box.scrollTop = (row + 1) * rowHeight - box.clientHeight
    },
    atEnd() {
      const box = ref.current
      return !box || box.scrollHeight - box.scrollTop - box.clientHeight < rowHeight * 2
    },
  }
}
