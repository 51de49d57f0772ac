// Long chains wrap: what would be far wider than a screen is cut where a single edge continues, and stands in rows like lines of text.
// Pure.

import { GAP_Y } from './place'
import type { Link } from './layers'

interface Placed {
  x: number
  y: number
  w: number
  h: number
}

/** About eight columns; rows are cut before they are wider. */
const ROW_W = 2176
/** A layout narrower than this stays in one row, even if it is a little wider than `ROW_W`. */
const WRAP_FROM = 2720
/** Room for the edge that leads back to the beginning of the next row. */
const ROW_GAP = GAP_Y + 48

/** The corners of the boxes, in as many rows as needed; in the order given. */
export function wrapped(boxes: readonly Placed[], links: readonly Link[]): { x: number; y: number }[] {
  const right = Math.max(0, ...boxes.map((box) => box.x + box.w))
  if (right < WRAP_FROM) return [...boxes]
  const rows = rowStarts(boxes, links)
  let top = 0
  const out: { x: number; y: number }[] = boxes.map(({ x, y }) => ({ x, y }))
  for (const [at, from] of rows.entries()) {
    const to = rows[at + 1] ?? Infinity
    const inside = boxes.flatMap((box, i) => (box.x >= from && box.x < to ? [i] : []))
    const highest = Math.min(...inside.map((i) => boxes[i]!.y))
    const lowest = Math.max(...inside.map((i) => boxes[i]!.y + boxes[i]!.h))
    for (const i of inside) out[i] = { x: boxes[i]!.x - from, y: boxes[i]!.y - highest + top }
    top += lowest - highest + ROW_GAP
  }
  return out
}

/** The beginnings of rows: columns that one edge alone leads to, over which no box reaches. */
function rowStarts(boxes: readonly Placed[], links: readonly Link[]): number[] {
  const columns = [...new Set(boxes.map((box) => box.x))].sort((a, b) => a - b)
  const cuts = columns.filter((x) => {
    if (boxes.some((box) => box.x < x && box.x + box.w > x)) return false
    const across = links.filter(({ source, target }) => boxes[source]!.x < x !== boxes[target]!.x < x)
    return across.length === 1 && boxes[across[0]!.source]!.x < x
  })
  const starts = [0]
  for (const [at, cut] of cuts.entries()) {
    const next = cuts[at + 1] ?? Infinity
    const from = starts.at(-1)!
    const end = Number.isFinite(next) ? next : Math.max(...boxes.map((box) => box.x + box.w))
    if (end - from > ROW_W && cut > from) starts.push(cut)
  }
  return starts
}
