// Coordinates for columns: each box as near as can be to where its edges want it, in order, with room in between.

import { GRID, PORT_Y, up } from '../size'
import type { Place } from './layers'

export const GAP_X = 64
export const GAP_Y = 48
/** Columns never stand further apart, however much runs between them. */
const GAP_X_MAX = 192
const BESIDE = 24
const TRACK = 8
const LANE = 16
/** From a card to a lane below it: what hangs below the card while it runs has room above the lane. */
const ABOVE_LANE = 32
const BELOW_LANE = 16
const PASSES = 3

/** `lead`: room for what stands on the edges that leave it. */
export interface Box {
  w: number
  h: number
  lead: number
}

/** Top left corners by box, the topmost at y 0 and the first column at x 0. Not yet on the grid. */
export function place(columns: readonly Place[][], boxes: readonly Box[]): { x: number; y: number }[] {
  const y = new Map<Place, number>()
  const height = (at: Place): number => (at.box < 0 ? LANE : boxes[at.box]!.h)
  const entry = (at: Place): number => (at.box < 0 ? LANE / 2 : PORT_Y)
  for (const column of columns)
    stack(
      column,
      column.map(() => 0),
      height,
      y,
    )
  for (let pass = 0; pass < PASSES; pass++) {
    const forward = pass % 2 === 0
    for (const column of forward ? columns : [...columns].reverse()) {
      const wanted = column.map((at) => {
        const near = forward ? at.before : at.after
        if (!near.length) return y.get(at)!
        const wishes = near.map(({ place: other, port }) =>
          forward
            ? y.get(other)! + (other.box < 0 ? LANE / 2 : port) - entry(at)
            : y.get(other)! + entry(other) - (at.box < 0 ? LANE / 2 : port),
        )
        return wishes.reduce((a, b) => a + b, 0) / wishes.length
      })
      stack(column, wanted, height, y)
    }
  }
  const real = columns.flat().filter((at) => at.box >= 0)
  const top = Math.min(...real.map((at) => y.get(at)!))
  const result = boxes.map(() => ({ x: 0, y: 0 }))
  let x = 0
  for (const column of columns) {
    const own = column.filter((at) => at.box >= 0)
    for (const at of own) result[at.box] = { x, y: y.get(at)! - top }
    if (own.length) x += Math.max(...own.map((at) => boxes[at.box]!.w)) + gapAfter(column)
  }
  return result

  /** Room for labels, and for a lane to each place that is reached by going up or down. */
  function gapAfter(column: readonly Place[]): number {
    const lead = Math.max(0, ...column.map((at) => (at.box < 0 ? 0 : boxes[at.box]!.lead)))
    const bent = new Set(
      column.flatMap((at) =>
        at.after
          .filter(
            ({ place: to, port }) =>
              Math.abs(y.get(at)! + (at.box < 0 ? LANE / 2 : port) - y.get(to)! - entry(to)) > GRID / 2,
          )
          .map(({ place: to }) => to),
      ),
    )
    return up(Math.min(GAP_X_MAX, Math.max(GAP_X, lead + BESIDE, 2 * BESIDE + TRACK * bent.size)))
  }
}

function gapBetween(above: Place, below: Place): number {
  if (above.box < 0) return below.box < 0 ? 0 : BELOW_LANE
  return below.box < 0 ? ABOVE_LANE : GAP_Y
}

/** The places of a column as near as possible (least squares) to where they want to be, in order and apart: pool the
 * neighbours that would overlap and let them share their shift. */
function stack(
  column: readonly Place[],
  wanted: readonly number[],
  height: (at: Place) => number,
  y: Map<Place, number>,
): void {
  const pools: { sum: number; count: number }[] = []
  const offsets: number[] = []
  let offset = 0
  for (const [i, at] of column.entries()) {
    const before = column[i - 1]
    if (before) offset += height(before) + gapBetween(before, at)
    offsets.push(offset)
    pools.push({ sum: wanted[i]! - offset, count: 1 })
    while (pools.length > 1) {
      const last = pools.at(-1)!
      const above = pools.at(-2)!
      if (above.sum / above.count <= last.sum / last.count) break
      pools.pop()
      above.sum += last.sum
      above.count += last.count
    }
  }
  let i = 0
  for (const pool of pools)
    for (let n = 0; n < pool.count; n++, i++) y.set(column[i]!, pool.sum / pool.count + offsets[i]!)
}
