// The keys of the canvas. One listener for the page: `app` keys count everywhere, `canvas` keys while the canvas (or nothing)
// has the keyboard. Copy, cut and paste come as the browser's own events, so the real clipboard is used.

import { useEffect } from 'react'
import { isTextField, keyOfEvent, type KeyId } from '../keys'
import { pickerStore } from '../actions/picker'
import { uiStore } from '../state/ui'
import { runCommand, type CanvasMode } from './commands'
import { copySelection, pasteText } from '../actions/clipboard'
import { deleteSelection } from '../actions/edit'

/** Handled by the clipboard events below, by the run's own keys, and by the bar. */
const ELSEWHERE = new Set<KeyId>([
  'copy',
  'cut',
  'paste',
  'previousEvent',
  'nextEvent',
  'previousBlock',
  'nextBlock',
  'tapeStart',
  'live',
  'play',
  'firstError',
  'commands',
  'shortcuts',
])
/** Fields and editors undo and search by themselves. */
const FIELD_OWN = new Set<KeyId>(['undo', 'redo', 'find'])

export function useCanvasKeys(mode: CanvasMode): void {
  useEffect(() => {
    const onKey = (event: KeyboardEvent): void => {
      if (event.defaultPrevented || isBusy()) return
      const target = event.target instanceof HTMLElement ? event.target : null
      const here = isHere(target)
      const key = keyOfEvent(event, here ? ['canvas', 'app'] : ['app'])
      if (!key || ELSEWHERE.has(key)) return
      if (FIELD_OWN.has(key) && target?.shadowRoot) return
      // A button keeps the keys that press it; with `mod` they are none.
      if (
        target?.closest('button, a') &&
        !event.ctrlKey &&
        !event.metaKey &&
        (event.key === 'Enter' || event.key === ' ')
      )
        return
      if (isUnheard(event)) return
      const done = runCommand(key, mode, event)
      if (done) event.preventDefault()
      if (key === 'rename') unheardUntil = done ? 0 : event.timeStamp + UNHEARD_MS
    }
    const onClip = (event: ClipboardEvent): void => {
      if (event.defaultPrevented || isBusy() || isTextField(document.activeElement) || !isHere(document.activeElement))
        return
      if (event.type === 'paste') {
        if (mode !== 'edit' || !pasteText(event.clipboardData?.getData('text/plain') ?? '')) return
        return event.preventDefault()
      }
      if (!getSelection()?.isCollapsed) return
      const text = copySelection()
      if (text === null) return
      event.clipboardData?.setData('text/plain', text)
      event.preventDefault()
      if (event.type === 'cut' && mode === 'edit') deleteSelection()
    }
    addEventListener('keydown', onKey)
    for (const type of ['copy', 'cut', 'paste'] as const) document.addEventListener(type, onClip)
    return () => {
      removeEventListener('keydown', onKey)
      for (const type of ['copy', 'cut', 'paste'] as const) document.removeEventListener(type, onClip)
    }
  }, [mode])
}

/** After a rename that found no block: the letters of the name that follows are no shortcuts, nor is a correction. A pause ends
 * that. */
const UNHEARD_MS = 1000
let unheardUntil = 0

function isUnheard(event: KeyboardEvent): boolean {
  const letter = (event.key.length === 1 || event.key === 'Backspace') && !event.ctrlKey && !event.metaKey
  if (!letter || event.timeStamp > unheardUntil) {
    unheardUntil = 0
    return false
  }
  unheardUntil = event.timeStamp + UNHEARD_MS
  return true
}

/** Does the canvas have the keyboard? */
function isHere(target: Element | null): boolean {
  return target === null || target === document.body || target.closest('.canvas') !== null
}

/** Something lies above the canvas and has the keys. */
function isBusy(): boolean {
  return (
    uiStore.getState().overlay !== null ||
    pickerStore.getState().request !== null ||
    document.querySelector('dialog[open], [role=menu]') !== null
  )
}
