// The rows of a lane: a row for each call, a band above those of a group, a line above those after a cancel.

import type { LaneItem, LaneTask } from '../../run/lane'

export type LaneRow =
  | { kind: 'item'; id: string; item: LaneItem; depth: number; chip: string }
  | { kind: 'band'; id: string; label: string; depth: number }
  | { kind: 'cut'; id: string }

export const idOf = (item: Pick<LaneItem, 'phase' | 'n'>): string => `${item.phase}-${item.n}`

/** A group whose calls follow each other has a band. One of branches whose calls alternate is named in each row. */
export function rowsOf(items: readonly LaneItem[]): LaneRow[] {
  const whole = wholeGroups(items)
  const rows: LaneRow[] = []
  let open: string[] = []
  let phase = items[0]?.phase
  for (const item of items) {
    if (item.phase !== phase) {
      phase = item.phase
      open = []
      rows.push({ kind: 'cut', id: `cut-${phase}` })
    }
    const parts = item.group ? item.group.split('/') : []
    const bands: string[] = []
    for (let depth = 1; depth <= parts.length; depth++) {
      const path = parts.slice(0, depth).join('/')
      if (!whole.has(`${item.phase} ${path}`)) break
      bands.push(path)
      if (open[depth - 1] !== path)
        rows.push({ kind: 'band', id: `band-${item.phase}-${path}`, label: parts[depth - 1]!, depth: depth - 1 })
    }
    open = bands
    const chip = parts.slice(bands.length).join(' / ')
    rows.push({ kind: 'item', id: idOf(item), item, depth: bands.length, chip })
  }
  return rows
}

/** The groups whose calls, with those of the groups in them, follow each other. */
function wholeGroups(items: readonly LaneItem[]): ReadonlySet<string> {
  const found = new Map<string, { first: number; last: number; count: number }>()
  for (const [at, item] of items.entries()) {
    const parts = item.group ? item.group.split('/') : []
    for (let depth = 1; depth <= parts.length; depth++) {
      const path = `${item.phase} ${parts.slice(0, depth).join('/')}`
      const known = found.get(path)
      if (known) Object.assign(known, { last: at, count: known.count + 1 })
      else found.set(path, { first: at, last: at, count: 1 })
    }
  }
  return new Set([...found].filter(([, { first, last, count }]) => last - first + 1 === count).map(([path]) => path))
}

/** The tasks that have begun and not ended at a call, by column. */
export function threadsAt(
  item: LaneItem,
  tasks: readonly LaneTask[],
  columns: ReadonlyMap<number, number>,
): readonly number[] {
  const open = tasks.filter((each) => each.from <= item.from && (each.until === null || each.until >= item.from))
  return [...new Set(open.map((each) => columns.get(each.task) ?? 0))]
}

/** The input in a line: `order="7", part=0`. */
export function shownText(item: LaneItem): string {
  const { shown } = item
  if (shown === null) return ''
  if (typeof shown !== 'object' || Array.isArray(shown))
    return typeof shown === 'string' ? shown : JSON.stringify(shown)
  return Object.entries(shown)
    .map(([name, value]) => `${name}=${JSON.stringify(value)}`)
    .join(', ')
}

export function grouped<T>(all: readonly T[], keyOf: (one: T) => number): ReadonlyMap<number, T[]> {
  const found = new Map<number, T[]>()
  for (const one of all) {
    const list = found.get(keyOf(one))
    if (list) list.push(one)
    else found.set(keyOf(one), [one])
  }
  return found
}
