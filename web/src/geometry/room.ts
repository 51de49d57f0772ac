// Room for what is put between other blocks: a container that is wrapped around some of them, a copy of them. Pure; boxes of one
// container, in its own pixels.

import type { Point } from '../api/types'
import { GRID, up } from './size'

export interface Box {
  x: number
  y: number
  w: number
  h: number
}

/** Room that edges need between a container and what stands beside it. */
const BESIDE = 48
const ABOVE = 32

/** A container `outer` is wrapped around `inner`. How far it has to move away from what stands left of and above it, and where
 * others have to move, to the right or down. `others`: the blocks that are not wrapped. */
export function roomAround(
  inner: Box,
  outer: Box,
  others: readonly (Box & { id: string })[],
  beside = BESIDE,
  above = ABOVE,
): { shift: Point; moves: Record<string, Point> } {
  const wider = (x: number, y: number): Box => ({
    x: outer.x - x,
    y: outer.y - y,
    w: outer.w + 2 * x,
    h: outer.h + 2 * y,
  })
  const near =
    (x: number, y: number) =>
    (box: Box): boolean =>
      across(box, wider(x, y)) && along(box, wider(x, y))
  const left = others.filter((box) => right(box) <= inner.x)
  const higher = others.filter((box) => right(box) > inner.x && bottom(box) <= inner.y && box.x < right(inner))
  const shift: Point = [
    most(left.filter(near(beside, GRID)).map((box) => right(box) + beside - outer.x)),
    most(higher.filter(near(GRID, above)).map((box) => bottom(box) + above - outer.y)),
  ]
  const placed = { ...outer, x: outer.x + shift[0], y: outer.y + shift[1] }
  const rest = others.filter((box) => !left.includes(box) && !higher.includes(box))
  const behind = rest.filter((box) => box.x >= right(inner))
  const below = rest.filter((box) => !behind.includes(box))
  const dx = most(behind.filter((box) => across(box, placed)).map((box) => right(placed) + beside - box.x))
  const dy = most(below.filter((box) => along(box, placed)).map((box) => bottom(placed) + above - box.y))
  const moves: Record<string, Point> = {}
  if (dx) for (const box of behind) moves[box.id] = [box.x + dx, box.y]
  if (dy) for (const box of below) moves[box.id] = [box.x, box.y + dy]
  return { shift, moves }
}

/** A box grew to the right or downwards: where others have to move that stood behind or below it. */
export function roomBehind(before: Box, now: Box, others: readonly (Box & { id: string })[]): Record<string, Point> {
  const reached = others.filter((box) => box.x >= right(before) || box.y >= bottom(before))
  return roomAround(
    { ...now, w: before.x + before.w - now.x, h: before.y + before.h - now.y },
    now,
    reached,
    GRID,
    GRID,
  ).moves
}

/** The first place from `at` downwards where a box of this size touches none of the others. */
export function freePlace(at: Point, size: Point, others: readonly Box[]): Point {
  const inTheWay = (y: number): boolean =>
    others.some(
      (box) =>
        at[0] < right(box) + GRID &&
        at[0] + size[0] + GRID > box.x &&
        y < bottom(box) + GRID &&
        y + size[1] + GRID > box.y,
    )
  let y = at[1]
  for (let tries = 0; tries < 400 && inTheWay(y); tries++) y += GRID
  return [at[0], y]
}

const right = (box: Box): number => box.x + box.w
const bottom = (box: Box): number => box.y + box.h
/** Do they share some height, or some width? */
const across = (a: Box, b: Box): boolean => a.y < bottom(b) && b.y < bottom(a)
const along = (a: Box, b: Box): boolean => a.x < right(b) && b.x < right(a)
/** The largest of them on the grid; 0 when none is needed. */
const most = (distances: readonly number[]): number => up(Math.max(0, ...distances))
