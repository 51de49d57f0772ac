// The titles of what was chosen, for this browser: a document has ids, which the service alone can name.

const KEY = 'weft-chosen'
const TITLES_MAX = 300

const idOf = (type: string, field: string, value: string): string => JSON.stringify([type, field, value])

function known(): Record<string, string> {
  try {
    const stored: unknown = JSON.parse(localStorage.getItem(KEY) ?? '{}')
    return stored && typeof stored === 'object' ? (stored as Record<string, string>) : {}
  } catch {
    return {}
  }
}

export function titleOfChoice(type: string, field: string, value: string): string {
  const title = known()[idOf(type, field, value)]
  return typeof title === 'string' ? title : ''
}

export function keepTitle(type: string, field: string, value: string, title: string): void {
  const { [idOf(type, field, value)]: _, ...others } = known()
  const next = Object.entries({ ...others, [idOf(type, field, value)]: title }).slice(-TITLES_MAX)
  try {
    localStorage.setItem(KEY, JSON.stringify(Object.fromEntries(next)))
  } catch {
    // Storage may be off; then ids are shown.
  }
}
