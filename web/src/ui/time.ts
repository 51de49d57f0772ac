// Times in words: durations, clocks, dates.

/** 0.4 s, 41.2 s, 3 min 20 s, 2 h 5 min, 3 d 4 h. */
export function durationText(ms: number): string {
  const at = Math.max(0, ms)
  if (at < 1000) return `${Math.round(at)} ms`
  if (at < 60_000) return `${(Math.floor(at / 100) / 10).toFixed(1)} s`
  const s = Math.floor(at / 1000)
  const [d, h, m] = [Math.floor(s / 86_400), Math.floor(s / 3600) % 24, Math.floor(s / 60) % 60]
  if (d) return h ? `${d} d ${h} h` : `${d} d`
  if (h) return m ? `${h} h ${m} min` : `${h} h`
  return s % 60 ? `${m} min ${s % 60} s` : `${m} min`
}

/** Rounded to one unit: 85 s, 3 min, 2 h, 4 d. For what is left and what is long ago: 7 days just begun are 7 d, not 6 d 23 h. */
export function roughly(ms: number): string {
  const s = Math.max(0, Math.round(ms / 1000))
  if (s < 90) return `${s} s`
  if (s < 90 * 60) return `${Math.round(s / 60)} min`
  if (s < 36 * 3600) return `${Math.round(s / 3600)} h`
  return `${Math.round(s / 86_400)} d`
}

/** A clock for a run: 00:41.208, and 1:02:03 above an hour. */
export function clockText(ms: number): string {
  const at = Math.max(0, Math.round(ms))
  const two = (n: number): string => String(n).padStart(2, '0')
  const [h, m, s] = [Math.floor(at / 3_600_000), Math.floor(at / 60_000) % 60, Math.floor(at / 1000) % 60]
  return h ? `${h}:${two(m)}:${two(s)}` : `${two(m)}:${two(s)}.${String(at % 1000).padStart(3, '0')}`
}

// Made once: a formatter costs a hundred times what formatting costs.
const CLOCK = new Intl.DateTimeFormat(undefined, { timeStyle: 'medium', hourCycle: 'h23' })
const WHOLE = new Intl.DateTimeFormat(undefined, { dateStyle: 'medium', timeStyle: 'medium', hourCycle: 'h23' })

export const timeOfDay = (at: number): string => CLOCK.format(at)

/** 14:02:11.208: for what happens within one second. */
export const exactTime = (at: number): string =>
  `${timeOfDay(at)}.${String(((at % 1000) + 1000) % 1000).padStart(3, '0')}`

export function dateTime(at: number): string {
  return WHOLE.format(at)
}
