// Typed text as a number.

import type { Json } from '../../api/schemas'

const NUMBER = /^-?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?$/

/** `3` -> 3; text that is no number stays text (a reference, or a mistake the server names); '' is nothing. */
export function readNumber(text: string): Json | undefined {
  const trimmed = text.trim()
  if (!trimmed) return undefined
  return NUMBER.test(trimmed) ? Number(trimmed) : text
}
