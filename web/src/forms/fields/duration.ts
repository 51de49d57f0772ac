// Lengths of time: the document has a number of seconds (or of milliseconds), people read 7 days.

export type Unit = 'ms' | 's' | 'min' | 'h' | 'd'
export type Base = 'ms' | 's'

const LENGTH_MS: Readonly<Record<Unit, number>> = { ms: 1, s: 1000, min: 60_000, h: 3_600_000, d: 86_400_000 }
export const UNIT_WORDS: Readonly<Record<Unit, string>> = {
  ms: 'milliseconds',
  s: 'seconds',
  min: 'minutes',
  h: 'hours',
  d: 'days',
}

/** Those that a value may have: nothing above the maximum. */
export function unitsOf(base: Base, maximum?: number): Unit[] {
  const units: Unit[] = base === 'ms' ? ['ms', 's', 'min', 'h'] : ['s', 'min', 'h', 'd']
  return units.filter((unit) => unit === base || maximum === undefined || LENGTH_MS[unit] <= maximum * LENGTH_MS[base])
}

/** The largest unit in which the value is a whole number. */
export function unitOf(value: number, base: Base, units: readonly Unit[]): Unit {
  if (value === 0) return base
  return [...units].reverse().find((unit) => Number.isInteger(amountIn(unit, value, base))) ?? base
}

export const amountIn = (unit: Unit, value: number, base: Base): number =>
  rounded((value * LENGTH_MS[base]) / LENGTH_MS[unit])

export function valueFrom(amount: number, unit: Unit, base: Base, whole: boolean): number {
  const value = rounded((amount * LENGTH_MS[unit]) / LENGTH_MS[base])
  return whole ? Math.round(value) : value
}

/** 0.1 hours are 360 seconds, not 360.00000000000006. */
const rounded = (n: number): number => Number(n.toPrecision(12))
