// Cron expressions in words: "At 09:00 on weekdays". An expression that has no simple words gets none.

export const DAYS = ['Sunday', 'Monday', 'Tuesday', 'Wednesday', 'Thursday', 'Friday', 'Saturday'] as const
const MONTHS = [
  'January',
  'February',
  'March',
  'April',
  'May',
  'June',
  'July',
  'August',
  'September',
  'October',
  'November',
  'December',
] as const
export const DAY_NAMES = DAYS.map((day) => day.slice(0, 3).toUpperCase())
const MONTH_NAMES = MONTHS.map((month) => month.slice(0, 3).toUpperCase())

const NICKNAMES: Readonly<Record<string, string>> = {
  '@YEARLY': '0 0 1 1 *',
  '@ANNUALLY': '0 0 1 1 *',
  '@MONTHLY': '0 0 1 * *',
  '@WEEKLY': '0 0 * * 0',
  '@DAILY': '0 0 * * *',
  '@MIDNIGHT': '0 0 * * *',
  '@HOURLY': '0 * * * *',
}

/** Begins with a capital letter. null: there are no simple words for it. */
export function cronWords(expression: string): string | null {
  const upper = expression.trim().toUpperCase()
  const seconds = /^@EVERY (\d+)S$/.exec(upper)
  if (seconds) return `Every ${seconds[1]} seconds`
  const fields = (NICKNAMES[upper] ?? upper).split(/\s+/)
  if (fields.length !== 5) return null
  const [minute, hour, date, month, day] = fields as [string, string, string, string, string]
  const time = timeWords(minute, hour)
  const on = dayWords(date, day)
  const of = month === '*' ? '' : listWords(month, 1, 12, MONTH_NAMES, (n) => MONTHS[n - 1]!)
  if (time === null || on === null || of === null) return null
  const words = [time, on, of && `in ${of}`].filter(Boolean).join(' ')
  return words.charAt(0).toUpperCase() + words.slice(1)
}

function timeWords(minute: string, hour: string): string | null {
  const step = minute === '*' ? 1 : stepOf(minute, 60)
  if (step !== null) {
    const every = step === 1 ? 'every minute' : `every ${step} minutes`
    if (hour === '*') return every
    const hours = numbers(hour, 0, 23)
    const [first, last] = [hours?.[0], hours?.at(-1)]
    if (!hours || first === undefined || last === undefined || last - first !== hours.length - 1) return null
    return `${every} from ${two(first)}:00 to ${two(last)}:${two(60 - step)}`
  }
  const minutes = numbers(minute, 0, 59)
  if (!minutes) return null
  if (hour === '*')
    return minutes.length === 1 ? (minutes[0] === 0 ? 'every hour' : `${minutes[0]} min past every hour`) : null
  const hourStep = stepOf(hour, 24)
  if (hourStep !== null)
    return minutes.length === 1 ? `every ${hourStep} hours${minutes[0] ? `, ${minutes[0]} min past` : ''}` : null
  const hours = numbers(hour, 0, 23)
  if (!hours || hours.length * minutes.length > 6) return null
  return `at ${joined(hours.flatMap((h) => minutes.map((m) => `${two(h)}:${two(m)}`)))}`
}

// The step of a field, of 60 minutes or 24 hours. null where steps are not equal: one of 45 means 0 and 45 minutes past each hour.
function stepOf(field: string, all: number): number | null {
  const step = Number(/^\*\/(\d+)$/.exec(field)?.[1] ?? 0)
  return step > 0 && step < all && all % step === 0 ? step : null
}

function dayWords(date: string, day: string): string | null {
  const week = day === '*' || day === '?' ? '' : weekWords(day)
  const dates = date === '*' || date === '?' ? '' : (LAST[date] ?? datesWords(date))
  if (week === null || dates === null) return null
  // With both a run is due on either, as in cron.
  return dates && week ? `on ${dates} or ${week}` : dates || week ? `on ${dates || week}` : ''
}

const LAST: Readonly<Record<string, string>> = {
  L: 'the last day of the month',
  LW: 'the last weekday of the month',
}
const NTH = ['first', 'second', 'third', 'fourth', 'fifth'] as const

function weekWords(day: string): string | null {
  const nth = /^([0-7]|[A-Z]{3})(?:#([1-5])|(L))$/.exec(day)
  if (nth) {
    const of = numbers(nth[1]!, 0, 7, DAY_NAMES)?.[0]
    return of === undefined ? null : `the ${nth[3] ? 'last' : NTH[Number(nth[2]) - 1]} ${DAYS[of % 7]} of the month`
  }
  const days = numbers(day, 0, 7, DAY_NAMES)
  if (!days) return null
  const all = [...new Set(days.map((n) => n % 7))].sort((a, b) => a - b)
  const text = all.join()
  if (text === '1,2,3,4,5') return 'weekdays'
  if (text === '0,6') return 'weekends'
  if (text === '0,1,2,3,4,5,6') return ''
  // The week begins on Monday.
  return joined([...all.filter((n) => n > 0), ...all.filter((n) => n === 0)].map((n) => `${DAYS[n]}s`))
}

function datesWords(date: string): string | null {
  const dates = numbers(date, 1, 31)
  return dates && dates.length <= 6 ? `the ${joined(dates.map(ordinal))}` : null
}

function listWords(
  field: string,
  min: number,
  max: number,
  names: readonly string[],
  word: (n: number) => string,
): string | null {
  const found = numbers(field, min, max, names)
  return found && joined(found.map(word))
}

/** `1,3-5`, names too; null for what is more than that. */
export function numbers(field: string, min: number, max: number, names: readonly string[] = []): number[] | null {
  const found: number[] = []
  const one = (text: string): number =>
    names.includes(text) ? names.indexOf(text) + min : /^\d{1,2}$/.test(text) ? Number(text) : NaN
  for (const part of field.split(',')) {
    const [from, to, ...rest] = part.split('-').map(one)
    const last = to ?? from
    if (from === undefined || last === undefined || rest.length || !(from >= min && last <= max && from <= last))
      return null
    for (let n = from; n <= last; n++) found.push(n)
  }
  return [...new Set(found)].sort((a, b) => a - b)
}

const two = (n: number): string => String(n).padStart(2, '0')

export function ordinal(n: number): string {
  const end = n % 100 >= 11 && n % 100 <= 13 ? 'th' : (['th', 'st', 'nd', 'rd'][n % 10] ?? 'th')
  return `${n}${end}`
}

function joined(words: readonly string[]): string {
  return words.length < 2 ? (words[0] ?? '') : `${words.slice(0, -1).join(', ')} and ${words.at(-1)}`
}
