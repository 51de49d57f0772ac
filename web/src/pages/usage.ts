// What the page of tokens and costs shows: periods of days, the bars of its chart, amounts in words.

import type { SpentView } from '../api/schemas'

const DAY_MS = 86_400_000
const BARS_MAX = 92

export const dayOf = (at: number): string => new Date(at).toISOString().slice(0, 10)
export const daysBefore = (day: string, days: number): string => dayOf(Date.parse(day) - days * DAY_MS)
export const isDay = (text: string | null): text is string =>
  text !== null && /^\d{4}-\d\d-\d\d$/.test(text) && !Number.isNaN(Date.parse(text))
export const daysIn = (from: string, to: string): number =>
  Math.max(1, Math.round((Date.parse(to) - Date.parse(from)) / DAY_MS) + 1)

export interface Bar {
  /** The first day of it; a bar of a long period is of several. */
  from: string
  to: string
  spent: SpentView[]
  /** Of the highest bar, 0 to 1. */
  height: number
}

/** By cost, or by tokens where nothing has a price. */
export const isPriced = (items: readonly SpentView[]): boolean => items.some((item) => Number(item.cost) > 0)
const amount = (item: SpentView, priced: boolean): number =>
  priced ? Number(item.cost ?? 0) : item.input_tokens + item.output_tokens

/** A bar for each day, also for those without any use. */
export function barsOf(from: string, to: string, items: readonly SpentView[]): Bar[] {
  const days = daysIn(from, to)
  const each = Math.ceil(days / BARS_MAX)
  const priced = isPriced(items)
  const byDay = new Map(items.map((item) => [item.key, item]))
  const bars: (Bar & { sum: number })[] = []
  for (let n = 0; n < days; n += each) {
    const last = Math.min(n + each, days) - 1
    const spent: SpentView[] = []
    for (let day = n; day <= last; day++) {
      const found = byDay.get(daysBefore(from, -day))
      if (found) spent.push(found)
    }
    const sum = spent.reduce((before, item) => before + amount(item, priced), 0)
    bars.push({ from: daysBefore(from, -n), to: daysBefore(from, -last), spent, height: 0, sum })
  }
  const most = Math.max(...bars.map((bar) => bar.sum))
  return bars.map(({ sum, ...bar }) => ({ ...bar, height: most > 0 ? sum / most : 0 }))
}

/** "$0.0018", "no price known"; with what it is without. */
export function costText(spent: Pick<SpentView, 'calls' | 'unpriced' | 'cost'>): string {
  if (spent.cost === null) return 'no price known'
  return spent.unpriced ? `$${spent.cost} and ${callsText(spent.unpriced)} without a price` : `$${spent.cost}`
}

export const callsText = (calls: number): string => `${countText(calls)} ${calls === 1 ? 'call' : 'calls'}`
export const countText = (count: number): string => count.toLocaleString('en')
