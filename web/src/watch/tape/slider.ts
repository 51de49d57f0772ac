// The Tape as a slider: its keys, and its text for a screen reader. The strip and the lanes share it.

import type { KeyboardEvent } from 'react'
import { useStore } from 'zustand'
import { keyOfEvent } from '../../keys'
import { runStore, seek, stepBy } from '../../state/live'
import { isEnded } from '../../run'
import { describe } from '../events/describe'
import { pause, togglePlay } from './play'

export interface Slider {
  /** The attributes of the element. */
  slider: Record<string, unknown> & { onKeyDown: (event: KeyboardEvent) => void }
  /** Go to an event; beyond the last one is live. */
  goTo: (seq: number) => void
}

/** `more`: keys of its own. True: the key was one of them. */
export function useSlider(more: (event: KeyboardEvent) => boolean = () => false): Slider {
  const log = useStore(runStore, (s) => s.timeline.log)
  const length = useStore(runStore, (s) => s.head.seq)
  const cursor = useStore(runStore, (s) => s.cursor)
  const doc = useStore(runStore, (s) => s.doc)
  const isOver = useStore(runStore, (s) => isEnded(s.head.status))
  const seq = cursor === 'live' ? length : Math.min(cursor, length)
  const goTo = (to: number): void => {
    pause()
    seek(to >= length ? (isOver || to > length ? 'live' : to) : to)
  }
  const onKeyDown = (event: KeyboardEvent): void => {
    if (event.ctrlKey || event.metaKey || event.altKey) return
    const page = Math.max(1, Math.round(length / 10))
    const unit = event.shiftKey ? 'block' : 'event'
    const means = keyOfEvent(event.nativeEvent, ['canvas'])
    if (event.key === 'ArrowRight' || event.key === 'ArrowUp') stepBy(1, unit)
    else if (event.key === 'ArrowLeft' || event.key === 'ArrowDown') stepBy(-1, unit)
    else if (means === 'nextEvent' || means === 'nextBlock') stepBy(1, means === 'nextBlock' ? 'block' : 'event')
    else if (means === 'previousEvent' || means === 'previousBlock')
      stepBy(-1, means === 'previousBlock' ? 'block' : 'event')
    else if (event.key === 'PageUp') goTo(seq + page)
    else if (event.key === 'PageDown') goTo(Math.max(0, seq - page))
    else if (event.key === 'Home') goTo(0)
    else if (event.key === 'End') seek('live')
    else if (event.key === ' ') togglePlay()
    else if (!more(event)) return
    event.preventDefault()
    event.stopPropagation()
  }
  const shown = log[seq - 1]
  const slider = {
    role: 'slider',
    tabIndex: 0,
    'data-testid': 'tape',
    'aria-label': 'Tape',
    'aria-valuemin': 0,
    'aria-valuemax': length,
    'aria-valuenow': seq,
    'aria-valuetext': shown ? `Event ${seq} of ${length}, ${describe(shown, doc)}` : 'Before the first event',
    'aria-orientation': 'horizontal',
    onKeyDown,
  }
  return { slider, goTo }
}
