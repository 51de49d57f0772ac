// The rows of a value tree: a JSON value, flattened as far as it is open, cut after 64 kB.

import type { Json } from '../api/schemas'

export const PREVIEW_BYTES = 64 * 1024

/** `size`: number of items of a list or object, null for a plain value. `path` as the end of a reference: `.items[0]`. */
export interface Row {
  id: string
  key: string | null
  path: string
  depth: number
  value: Json
  size: number | null
  closed: boolean
}

/** `cut`: there is more than is listed. With a `query` only rows that hold it, and the way to them. */
export function rowsOf(value: Json, closed: ReadonlySet<string>, query = ''): { rows: Row[]; cut: boolean } {
  const rows: Row[] = []
  const wanted = query.trim().toLowerCase()
  let bytes = 0
  let cut = false
  const visit = (item: Json, key: string | null, path: string, depth: number): void => {
    if (bytes > PREVIEW_BYTES) {
      cut = true
      return
    }
    const inner = item !== null && typeof item === 'object'
    const size = inner ? (Array.isArray(item) ? item.length : Object.keys(item).length) : null
    if (wanted && !holds(item, key, wanted)) return
    // A long text costs what is shown of it.
    bytes += (key?.length ?? 0) + (typeof item === 'string' ? Math.min(item.length, 200) : 8)
    if (typeof item === 'string' && item.length > PREVIEW_BYTES) cut = true
    const shut = !wanted && closed.has(path)
    rows.push({ id: path, key, path, depth, value: item, size, closed: shut })
    if (!inner || shut) return
    if (Array.isArray(item))
      for (const [i, each] of item.entries()) {
        visit(each, String(i), `${path}[${i}]`, depth + 1)
        if (cut && bytes > PREVIEW_BYTES) return
      }
    else
      for (const [name, each] of Object.entries(item)) {
        visit(
          each,
          name,
          /^[\p{L}\p{N}_$@][\p{L}\p{N}_$@-]*$/u.test(name) ? `${path}.${name}` : `${path}["${name}"]`,
          depth + 1,
        )
        if (cut && bytes > PREVIEW_BYTES) return
      }
  }
  visit(value, null, '', 0)
  return { rows, cut }
}

/** About how many characters of JSON a value is; counting stops at 64 MB. */
export function sizeOfJson(value: Json): number {
  let size = 0
  const stack: Json[] = [value]
  while (stack.length && size < 1 << 26) {
    const item = stack.pop()!
    if (typeof item === 'string') size += item.length + 2
    else if (item === null || typeof item !== 'object') size += 5
    else if (Array.isArray(item)) for (const each of item) stack.push(each)
    else
      for (const [key, each] of Object.entries(item)) {
        size += key.length + 4
        stack.push(each)
      }
  }
  return size
}

function holds(value: Json, key: string | null, wanted: string): boolean {
  if (key?.toLowerCase().includes(wanted)) return true
  if (typeof value === 'string') return value.toLowerCase().includes(wanted)
  if (value === null || typeof value !== 'object') return String(value).includes(wanted)
  return Array.isArray(value)
    ? value.some((item) => holds(item, null, wanted))
    : Object.entries(value).some(([k, item]) => holds(item, k, wanted))
}
