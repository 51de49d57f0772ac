// Small checks of what an answer of the server must contain. They change nothing, and unknown fields pass. A page of another
// version than its server reports that, instead of failing later while it is drawn.

/** What is not as it must be, and where (a JSON pointer into the answer). */
export class Mismatch extends Error {
  readonly pointer: string

  constructor(pointer: string, expected: string) {
    super(`${pointer || 'the whole'} must be ${expected}`)
    this.name = 'Mismatch'
    this.pointer = pointer
  }
}

/** Raises Mismatch. `at` is where `value` stands. `lets`: the types it may be used for, those whose values all pass it; there is
 * no such member, it makes a check of another type an error of the compiler. */
export interface Check<T> {
  (value: unknown, at: string): void
  lets?: (value: T) => void
}

export const any: Check<unknown> = () => undefined
export const text: Check<string> = (value, at) => {
  if (typeof value !== 'string') throw new Mismatch(at, 'text')
}
export const number: Check<number> = (value, at) => {
  if (typeof value !== 'number') throw new Mismatch(at, 'a number')
}
export const flag: Check<boolean> = (value, at) => {
  if (typeof value !== 'boolean') throw new Mismatch(at, 'true or false')
}
export const record: Check<object> = (value, at) => {
  if (!isRecord(value)) throw new Mismatch(at, 'an object')
}

/** null will do, and so will a field that is not there. */
export const maybe =
  <T>(check: Check<T>): Check<T | null | undefined> =>
  (value, at) => {
    if (value !== null && value !== undefined) check(value, at)
  }

export const list =
  <T>(check: Check<T>): Check<readonly T[]> =>
  (value, at) => {
    if (!Array.isArray(value)) throw new Mismatch(at, 'a list')
    for (let i = 0; i < value.length; i++) check(value[i], `${at}/${i}`)
  }

/** An object with these fields; others are let through. */
export function shape<T extends object>(checks: { [K in keyof T]?: Check<T[K]> }): Check<T> {
  const named = Object.entries(checks) as [string, Check<unknown>][]
  return (value, at) => {
    if (!isRecord(value)) throw new Mismatch(at, 'an object')
    for (const [name, check] of named) check(value[name], `${at}/${name}`)
  }
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}
