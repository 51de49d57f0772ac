// Names that weft gave are mostly replaced as a whole: the first click selects one, the next puts the caret.

import type { MouseEvent } from 'react'

export function selectFirst(event: MouseEvent<HTMLInputElement>): void {
  const input = event.currentTarget
  if (event.button !== 0 || input.readOnly || document.activeElement === input) return
  event.preventDefault()
  input.focus()
  input.select()
}
