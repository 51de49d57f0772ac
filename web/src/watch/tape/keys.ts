// The keys of a run, wherever the focus is on the page: step through it, jump to its first error. What another listener has
// already handled (`preventDefault`) is ignored.

import { useEffect } from 'react'
import { keyOfEvent } from '../../keys'
import { runStore, seek, stepBy } from '../../state/live'
import { goToFirstError } from '../../actions/jump'
import { pause } from './play'

export function useRunKeys(): void {
  useEffect(() => {
    const onKey = (event: KeyboardEvent): void => {
      if (event.defaultPrevented || runStore.getState().id === null || document.querySelector('dialog[open]')) return
      const target = event.target
      // Lists, trees and sliders have their own Home and End.
      if (target instanceof HTMLElement && target.closest('[role=tree], [role=listbox], [role=slider], [role=menu]'))
        return
      switch (keyOfEvent(event, ['app', 'canvas'])) {
        case 'previousEvent':
          pause()
          stepBy(-1)
          break
        case 'nextEvent':
          pause()
          stepBy(1)
          break
        case 'previousBlock':
          pause()
          stepBy(-1, 'block')
          break
        case 'nextBlock':
          pause()
          stepBy(1, 'block')
          break
        case 'tapeStart':
          pause()
          seek(0)
          break
        case 'live':
          pause()
          seek('live')
          break
        case 'firstError':
          if (!goToFirstError()) return
          break
        default:
          return
      }
      event.preventDefault()
    }
    addEventListener('keydown', onKey)
    return () => removeEventListener('keydown', onKey)
  }, [])
}
