// Pinned inputs of a draft, in this browser: they stay at the top of the list of recent inputs.

import type { Json } from '../../api/schemas'

const KEY = 'weft-pins'
export const PINS_MAX = 10
const DRAFTS_MAX = 50

export function pinsOf(draft: string): Json[] {
  return read()[draft] ?? []
}

export function isPinned(draft: string, input: Json): boolean {
  return pinsOf(draft).some((each) => same(each, input))
}

/** Pin it, or take the pin away. Returns whether it is pinned now; storage may be off or full, then it is not. */
export function togglePin(draft: string, input: Json): boolean {
  const all = read()
  const { [draft]: before = [], ...rest } = all
  const without = before.filter((each) => !same(each, input))
  const pinned = without.length === before.length
  const pins = (pinned ? [input, ...without] : without).slice(0, PINS_MAX)
  const stored = Object.entries(rest).slice(-DRAFTS_MAX + 1)
  try {
    localStorage.setItem(KEY, JSON.stringify(Object.fromEntries(pins.length ? [...stored, [draft, pins]] : stored)))
  } catch {
    return false
  }
  return pinned
}

/** Pinned ones first, then the others; none twice. */
export function withPins(draft: string, last: readonly Json[]): Json[] {
  const pins = pinsOf(draft)
  return [...pins, ...last.filter((each) => !pins.some((pin) => same(pin, each)))]
}

function read(): Record<string, Json[]> {
  try {
    const stored: unknown = JSON.parse(localStorage.getItem(KEY) ?? '{}')
    if (typeof stored !== 'object' || stored === null) return {}
    return Object.fromEntries(Object.entries(stored).filter(([, pins]) => Array.isArray(pins))) as Record<
      string,
      Json[]
    >
  } catch {
    return {}
  }
}

const same = (a: Json, b: Json): boolean => JSON.stringify(a) === JSON.stringify(b)
