// Small checks to say what an answer of the server must hold at least. They look and change nothing; fields nobody asks for
// pass. A page of another version than its server should say so, and not break somewhere in the middle of a drawing.

/** What is not as it must be, and where (a JSON pointer into the answer). */
export class Mismatch extends Error {
  readonly pointer: string

  constructor(pointer: string, expected: string) {
    super(`${pointer || 'the whole'} must be ${expected}`)
    this.name = 'Mismatch'
    this.pointer = pointer
  }
}

/** Raises Mismatch. `at` is where `value` stands. */
export type Check = (value: unknown, at: string) => void

export const any: Check = () => undefined
export const text: Check = (value, at) => {
  if (typeof value !== 'string') throw new Mismatch(at, 'text')
}
export const number: Check = (value, at) => {
  if (typeof value !== 'number') throw new Mismatch(at, 'a number')
}
export const flag: Check = (value, at) => {
  if (typeof value !== 'boolean') throw new Mismatch(at, 'true or false')
}
export const record: Check = (value, at) => {
  if (!isRecord(value)) throw new Mismatch(at, 'an object')
}

/** null will do, and so will a field that is not there. */
export const maybe =
  (check: Check): Check =>
  (value, at) => {
    if (value !== null && value !== undefined) check(value, at)
  }

export const list =
  (check: Check): Check =>
  (value, at) => {
    if (!Array.isArray(value)) throw new Mismatch(at, 'a list')
    for (let i = 0; i < value.length; i++) check(value[i], `${at}/${i}`)
  }

/** An object with these fields; others are let through. */
export function shape<T extends object>(checks: { [K in keyof T]?: Check }): Check {
  const named = Object.entries(checks) as [string, Check][]
  return (value, at) => {
    if (!isRecord(value)) throw new Mismatch(at, 'an object')
    for (const [name, check] of named) check(value[name], `${at}/${name}`)
  }
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}
