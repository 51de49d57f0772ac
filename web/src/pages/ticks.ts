// Where an axis of time has labels: at round times of this zone, each label once.

const SECOND = 1000
const MINUTE = 60 * SECOND
const HOUR = 60 * MINUTE
const DAY = 24 * HOUR

/** Between two labels, ascending. Each divides a day, or is a number of days. */
const STEPS: readonly number[] = [
  ...[1, 2, 5, 10, 20, 50, 100, 200, 500],
  ...[1, 2, 5, 10, 15, 30].map((n) => n * SECOND),
  ...[1, 2, 5, 10, 15, 30].map((n) => n * MINUTE),
  ...[1, 2, 3, 6, 12].map((n) => n * HOUR),
  ...[1, 2, 5, 10, 30, 90, 365].map((n) => n * DAY),
]

export interface Tick {
  /** Unix ms. */
  at: number
  label: string
}

/** At most `most` round times between two others. */
export function ticks(from: number, to: number, most: number): Tick[] {
  const step = STEPS.find((each) => (to - from) / each <= most) ?? STEPS.at(-1)!
  const midnight = new Date(from).setHours(0, 0, 0, 0)
  const found = new Map<string, Tick>() // at the end of summer time a label would come twice
  for (let n = Math.ceil((from - midnight) / step); found.size < most; n++) {
    const at =
      step < DAY ? midnight + n * step : new Date(midnight).setDate(new Date(midnight).getDate() + (n * step) / DAY)
    if (at > to) break
    const label = moment(at, step, to - from)
    if (!found.has(label)) found.set(label, { at, label })
  }
  return [...found.values()]
}

/** As exact as `step` needs it, with the day if the axis is longer than one. */
export function moment(at: number, step: number, span: number): string {
  const date = new Date(at)
  const day = date.toLocaleDateString('en-GB', { day: 'numeric', month: 'short' })
  if (step >= DAY) return day
  const time = date.toLocaleTimeString('en-GB', {
    hour: '2-digit',
    minute: '2-digit',
    ...(step < MINUTE ? { second: '2-digit' } : {}),
    ...(step < SECOND ? { fractionalSecondDigits: step < 10 ? 3 : step < 100 ? 2 : 1 } : {}),
  })
  return span > DAY ? `${day}, ${time}` : time
}
