// When a schedule runs, in the few ways most of them do, and the cron expression of each. Other expressions stay text.

import { DAY_NAMES, numbers } from './cron'

/** `at` is 09:00; `days` count from Sunday, 0; `date` is a day of the month or L, its last. */
export type Plan =
  | { kind: 'minutes'; every: number }
  | { kind: 'hours'; every: number; minute: number }
  | { kind: 'daily' | 'weekdays'; at: string }
  | { kind: 'weekly'; days: readonly number[]; at: string }
  | { kind: 'monthly'; date: number | 'L'; at: string }

export type PlanKind = Plan['kind']

export const PLAN_WORDS: Readonly<Record<PlanKind, string>> = {
  minutes: 'Every few minutes',
  hours: 'Hourly',
  daily: 'Daily',
  weekdays: 'On weekdays',
  weekly: 'Weekly',
  monthly: 'Monthly',
}

/** They divide an hour, or a day: with others the last step would be shorter. */
export const MINUTE_STEPS: readonly number[] = [1, 2, 3, 4, 5, 6, 10, 12, 15, 20, 30]
export const HOUR_STEPS: readonly number[] = [1, 2, 3, 4, 6, 8, 12]

/** null: it is none of these. */
export function readPlan(expression: string): Plan | null {
  const fields = expression.trim().toUpperCase().split(/\s+/)
  const [minute, hour, date, month, day] = fields
  if (fields.length !== 5 || month !== '*') return null
  const isEveryDay = date === '*' && day === '*'
  const everyMinutes = stepOf(minute!)
  if (everyMinutes !== null)
    return isEveryDay && hour === '*' && MINUTE_STEPS.includes(everyMinutes)
      ? { kind: 'minutes', every: everyMinutes }
      : null
  const at = one(minute!, 59)
  if (at === null) return null
  const everyHours = stepOf(hour!)
  if (everyHours !== null)
    return isEveryDay && HOUR_STEPS.includes(everyHours) ? { kind: 'hours', every: everyHours, minute: at } : null
  const of = one(hour!, 23)
  if (of === null) return null
  const time = `${two(of)}:${two(at)}`
  if (isEveryDay) return { kind: 'daily', at: time }
  if (day === '*') {
    const dates = date === 'L' ? 'L' : one(date!, 31)
    return dates === null || dates === 0 ? null : { kind: 'monthly', date: dates, at: time }
  }
  const days = date === '*' ? numbers(day!, 0, 7, DAY_NAMES) : null
  if (!days) return null
  const all = [...new Set(days.map((n) => n % 7))].sort((a, b) => a - b)
  return all.join() === '1,2,3,4,5' ? { kind: 'weekdays', at: time } : { kind: 'weekly', days: all, at: time }
}

export function writePlan(plan: Plan): string {
  if (plan.kind === 'minutes') return plan.every === 1 ? '* * * * *' : `*/${plan.every} * * * *`
  if (plan.kind === 'hours') return `${plan.minute} ${plan.every === 1 ? '*' : `*/${plan.every}`} * * *`
  const [hour, minute] = plan.at.split(':').map(Number)
  const time = `${minute} ${hour}`
  switch (plan.kind) {
    case 'daily':
      return `${time} * * *`
    case 'weekdays':
      return `${time} * * MON-FRI`
    case 'weekly':
      return `${time} * * ${[...plan.days]
        .sort(byWeek)
        .map((n) => DAY_NAMES[n])
        .join()}`
    case 'monthly':
      return `${time} ${plan.date} * *`
  }
}

/** Another kind, with what of the old one it also has. */
export function planOf(kind: PlanKind, old: Plan | null): Plan {
  const at = old && 'at' in old ? old.at : '09:00'
  switch (kind) {
    case 'minutes':
      return { kind, every: 15 }
    case 'hours':
      return { kind, every: 1, minute: 0 }
    case 'weekly':
      return { kind, days: old?.kind === 'weekdays' ? [1, 2, 3, 4, 5] : [1], at }
    case 'monthly':
      return { kind, date: 1, at }
    default:
      return { kind, at }
  }
}

/** The week begins on Monday. */
export const byWeek = (a: number, b: number): number => ((a + 6) % 7) - ((b + 6) % 7)

function stepOf(field: string): number | null {
  if (field === '*') return 1
  const step = /^\*\/(\d{1,2})$/.exec(field)
  return step ? Number(step[1]) : null
}

function one(field: string, max: number): number | null {
  return /^\d{1,2}$/.test(field) && Number(field) <= max ? Number(field) : null
}

const two = (n: number): string => String(n).padStart(2, '0')
