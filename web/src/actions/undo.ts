// Undoes and redoes edits and announces it, and announces the reason when an edit is refused.

import { announce } from '../a11y'
import { docStore, redo, undo } from '../state/doc'
import { toast } from '../ui/Toast'
import { glide } from './inPlace'

export function undoStep(): void {
  glide()
  const label = undo()
  announce(label === null ? 'Nothing to undo' : `Undone: ${label}`)
}

export function redoStep(): void {
  glide()
  const label = redo()
  announce(label === null ? 'Nothing to redo' : `Redone: ${label}`)
}

/** Say what was just done, with a button that undoes it. It goes with the next change of the document. */
export function toastUndo(text: string, tone: 'plain' | 'ok' = 'plain'): void {
  const { doc } = docStore.getState()
  const dismiss = toast(text, tone, { label: 'Undo', onSelect: undoStep })
  const stop = docStore.subscribe(() => {
    if (docStore.getState().doc === doc) return
    stop()
    dismiss()
  })
}

/** Say why an edit was not made. */
export function refuse(reason: string): null {
  toast(reason, 'wait')
  return null
}
