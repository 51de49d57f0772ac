// The drawn line of an edge: along its way with rounded corners, or, while one of its ends is being moved, the plain line.

import { getSmoothStepPath, Position } from '@xyflow/react'
import type { Way } from '../geometry/layout/routes'

export interface Ends {
  sourceX: number
  sourceY: number
  targetX: number
  targetY: number
  sourcePosition: Position
  targetPosition: Position
}

export interface Line {
  path: string
  /** A place on it for the plus: the middle of its longest part. */
  x: number
  y: number
  /** The direction of that part, left to right or not, and its length. */
  long: { across: boolean; length: number }
  /** How far it runs before it first turns. */
  lead: number
  /** How far above its beginning that part comes, in pixels; 0 or less. */
  top: number
}

const RADIUS = 12

export function lineOf(ends: Ends, way: Way | undefined): Line {
  const end = way?.at(-1)
  const fits =
    end && Math.abs(ends.sourceX + end[0] - ends.targetX) < 1 && Math.abs(ends.sourceY + end[1] - ends.targetY) < 1
  if (way && fits) return along(way, ends.sourceX, ends.sourceY)
  const [path, x, y] = plainPath(ends)
  const long = { across: true, length: Math.abs(ends.targetX - ends.sourceX) }
  return { path, x, y, long, lead: ends.targetX > ends.sourceX ? ends.targetX - ends.sourceX : 96, top: 0 }
}

/** Corners to a path. `x`, `y`: where the way begins. */
export function along(way: Way, x: number, y: number): Line {
  let path = `M${x},${y}`
  let [midX, midY, longest, across] = [x, y, -1, true]
  for (let i = 1; i < way.length; i++) {
    const [ax, ay] = way[i - 1]!
    const [bx, by] = way[i]!
    const long = Math.abs(bx - ax) + Math.abs(by - ay)
    if (long > longest) [midX, midY, longest, across] = [x + (ax + bx) / 2, y + (ay + by) / 2, long, ay === by]
    const after = way[i + 1]
    if (!after) {
      path += `L${x + bx},${y + by}`
      break
    }
    const next = Math.abs(after[0] - bx) + Math.abs(after[1] - by)
    const reach = reachOf(way, i)
    if (reach) {
      const to = `${y + after[1]}`
      path += `L${x + bx - reach},${y + by}C${x + bx},${y + by} ${x + bx},${to} ${x + bx + reach},${to}`
      i++
      continue
    }
    const r = Math.min(RADIUS, long / 2, next / 2)
    path += `L${x + bx - Math.sign(bx - ax) * r},${y + by - Math.sign(by - ay) * r}Q${x + bx},${y + by} ${x + bx + Math.sign(after[0] - bx) * r},${y + by + Math.sign(after[1] - by) * r}`
  }
  return { path, x: midX, y: midY, long: { across, length: longest }, ...leadOf(way) }
}

/** Less than the grid: a card was put beside a row, and rows are not on the grid. */
const SMALL = 8
const REACH = 24

/** A step up or down at corner `i` that is too small for two corners: how far its curve reaches to each side; else 0. */
function reachOf(way: Way, i: number): number {
  const [a, b, c, d] = way.slice(i - 1, i + 3)
  if (!d || a![1] !== b![1] || Math.abs(c![1] - b![1]) > SMALL) return 0
  const [before, after] = [b![0] - a![0], d[0] - c![0]]
  const reach = Math.min(REACH, Math.abs(before) / 2, Math.abs(after) / 2)
  return before * after > 0 ? Math.sign(before) * reach : 0
}

/** A step of the way that a label can stand over all the same. */
const STEP_UP = 4
const STEP_DOWN = 8

/** How far it goes before it turns away, and its highest point up to there: where its label has room. */
function leadOf(way: Way): { lead: number; top: number } {
  const first = way[1]
  if (!first) return { lead: 0, top: 0 }
  let lead = Math.abs(first[0]) + Math.abs(first[1])
  let top = 0
  for (let i = 2; first[1] === 0 && i < way.length; i++) {
    const [x, y] = way[i]!
    if (y < -STEP_UP || y > STEP_DOWN || x < lead) break
    lead = x
    top = Math.min(top, y)
  }
  return { lead, top }
}

/** While an edge is drawn or dragged: turns just before its target. */
export function plainPath(ends: Ends): [path: string, x: number, y: number] {
  const { sourceX, targetX, sourcePosition } = ends
  const gap = targetX - sourceX
  const wide = sourcePosition === Position.Right && gap > 56
  const offset = gap > 0 && gap < 48 ? Math.max(4, gap / 2 - 1) : 24
  const [path, x, y] = getSmoothStepPath({
    ...ends,
    borderRadius: RADIUS,
    offset,
    ...(wide ? { centerX: targetX - 32 } : {}),
  })
  return [path, x, y]
}
