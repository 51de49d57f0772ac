// Where edges run: orthogonal, around the boxes, apart from each other where there is room. Pure. First the plain ways (straight,
// or with one turn up or down between the columns); what those cannot do is searched for (A*) on the lines beside the boxes
// between both ends. Ways that lead to one target, or that leave by one handle, may lie on each other.

import type { Point } from '../../api/types'

export interface Rect {
  x: number
  y: number
  w: number
  h: number
}

/** An edge. `down`: it leaves downwards, others to the right; all come in from the left. `lead`: how far it should run before it
 * turns, so that what stands on it is not crossed. `from`: the handle it leaves by; `to`: the block it leads to. */
export interface Wire {
  start: Point
  end: Point
  down: boolean
  lead: number
  from: string
  to: string
}

/** Edges keep this far from boxes where they can; nearer costs. */
const CLEAR = 8
const CLOSE = 300
/** Lanes are this far apart. */
const STEP = 8
const BEND = 40
const CROSSING = 24
const OVERLAP = 3
/** What hangs below a card while it runs or after it failed. */
const FOOT = 38
const FOOT_COST = 1.5
const LABEL_COST = 30
const REACH = [192, 1200] as const
const LEVELS_MAX = 12
/** A plain way that costs no more than this beyond its length is accepted without a search. */
const GOOD_ENOUGH = 120
/** A search stops after this many steps: a longer way would be too winding to read. */
const STEPS_MAX = 20_000

/** The corners of each wire, its ends included. `within`: what they may not leave. */
export function route(boxes: readonly Rect[], wires: readonly Wire[], within: Rect | null = null): Point[][] {
  const plan = new Plan(boxes, within)
  const result: Point[][] = new Array<Point[]>(wires.length)
  const far = ({ start, end }: Wire): number => Math.abs(end[0] - start[0]) + 2 * Math.abs(end[1] - start[1])
  const order = wires.map((_, i) => i).sort((a, b) => far(wires[a]!) - far(wires[b]!) || a - b)
  for (const i of order) {
    const wire = wires[i]!
    const way = simple(plan, wire) ?? search(plan, wire, REACH[0]) ?? search(plan, wire, REACH[1]) ?? unhindered(wire)
    result[i] = way
    plan.lay(way, wire)
  }
  return result
}

/** A way that needs no search; null when boxes stand in all of them. */
function simple(plan: Plan, wire: Wire): Point[] | null {
  const short = plain(plan, wire)
  const [[sx, sy], [tx, ty]] = [wire.start, wire.end]
  const ideal = Math.abs(tx - sx) + Math.abs(ty - sy) + ((short?.way.length ?? 2) - 2) * BEND
  if (short && short.cost <= ideal + GOOD_ENOUGH) return short.way
  const long = around(plan, wire, short?.cost ?? Infinity)
  return (long ?? short)?.way ?? null
}

/** The best of the ways with at most one lane in them. */
function plain(plan: Plan, wire: Wire): Found | null {
  const {
    start: [sx, sy],
    end: [tx, ty],
    down,
    lead,
  } = wire
  const ways: Point[][] = []
  if (down) {
    if (ty - sy >= 16 && tx - sx >= 16)
      ways.push([
        [sx, sy],
        [sx, ty],
        [tx, ty],
      ])
  } else if (Math.abs(sy - ty) < 0.5 && tx > sx)
    ways.push([
      [sx, sy],
      [tx, ty],
    ])
  else if (tx - sx >= 2 * CLEAR) {
    for (const x of lanesBetween(sx + CLEAR, tx - CLEAR, lead, tx))
      ways.push([
        [sx, sy],
        [x, sy],
        [x, ty],
        [tx, ty],
      ])
  }
  return cheapest(plan, wire, ways)
}

interface Found {
  way: Point[]
  cost: number
}

/** The cheapest of ways that cost less than `limit`. */
function cheapest(plan: Plan, wire: Wire, ways: readonly Point[][], limit = Infinity): Found | null {
  let best: Point[] | null = null
  let least = limit
  for (const way of ways) {
    const cost = plan.costOf(way, wire, least)
    if (cost < least) [best, least] = [way, cost]
  }
  return best && { way: best, cost: least }
}

/** The best of the ways that turn beside both ends and run level between the boxes in between: above them, below, through a gap. */
function around(plan: Plan, wire: Wire, limit: number): Found | null {
  const {
    start: [sx, sy],
    end: [tx, ty],
    down,
  } = wire
  const between = {
    x: Math.min(sx, tx) - REACH[0],
    y: Math.min(sy, ty) - REACH[0],
    w: Math.abs(tx - sx) + 2 * REACH[0],
    h: Math.abs(ty - sy) + 2 * REACH[0],
  }
  const detour = (y: number): number => Math.abs(y - sy) + Math.abs(y - ty)
  const levels = linesOf([], plan.boxesIn(between), plan.within, 1)
    .filter((y) => !down || y > sy)
    .sort((a, b) => detour(a) - detour(b))
    .slice(0, LEVELS_MAX)
  const out = down ? [sx] : [sx + 16, sx + 32]
  const into = [tx - 32, tx - 16]
  const ways = levels.flatMap((y) =>
    out.flatMap((a) =>
      into.map((b): Point[] =>
        down
          ? [
              [sx, sy],
              [a, y],
              [b, y],
              [b, ty],
              [tx, ty],
            ]
          : [
              [sx, sy],
              [a, sy],
              [a, y],
              [b, y],
              [b, ty],
              [tx, ty],
            ],
      ),
    ),
  )
  const best = cheapest(plan, wire, ways, limit)
  return best && { way: straightened(best.way), cost: best.cost }
}

/** Where to turn: best 32 before the target, so that ways that come together run together; else as near to that as can be. */
function lanesBetween(from: number, to: number, lead: number, tx: number): number[] {
  if (to - from <= STEP) return [(from + to) / 2]
  const lanes: number[] = []
  for (const by of [32, 24, 40, 16, 48, 56, 64]) if (tx - by >= from && tx - by <= to) lanes.push(tx - by)
  const first = from + Math.max(0, lead - CLEAR)
  for (const by of [8, 16, 24, 0])
    if (first + by < to && !lanes.includes(Math.round(first + by))) lanes.push(Math.round(first + by))
  return lanes
}

/** When nothing is free (boxes on each other): the shape of a way, through whatever stands there. */
function unhindered({ start: [sx, sy], end: [tx, ty], down }: Wire): Point[] {
  if (down)
    return ty > sy && tx > sx
      ? [
          [sx, sy],
          [sx, ty],
          [tx, ty],
        ]
      : [
          [sx, sy],
          [sx, sy + 16],
          [tx - 16, sy + 16],
          [tx - 16, ty],
          [tx, ty],
        ]
  if (Math.abs(sy - ty) < 0.5 && tx > sx)
    return [
      [sx, sy],
      [tx, ty],
    ]
  if (tx - sx > 8)
    return [
      [sx, sy],
      [(sx + tx) / 2, sy],
      [(sx + tx) / 2, ty],
      [tx, ty],
    ]
  const y = (sy + ty) / 2
  return straightened([
    [sx, sy],
    [sx + 16, sy],
    [sx + 16, y],
    [tx - 16, y],
    [tx - 16, ty],
    [tx, ty],
  ])
}

/** The cheapest way on the lines beside the boxes in reach of both ends; null when there is none. */
function search(plan: Plan, wire: Wire, reach: number): Point[] | null {
  const { start, end, down } = wire
  const first: Point = down ? [start[0], start[1] + CLEAR] : [start[0] + CLEAR, start[1]]
  const last: Point = [end[0] - CLEAR, end[1]]
  const area = {
    x: Math.min(start[0], end[0]) - reach,
    y: Math.min(start[1], end[1]) - reach,
    w: Math.abs(start[0] - end[0]) + 2 * reach,
    h: Math.abs(start[1] - end[1]) + 2 * reach,
  }
  const near = plan.boxesIn(area)
  const xs = linesOf([first[0], last[0]], near, plan.within, 0)
  const ys = linesOf([first[1], last[1]], near, plan.within, 1)
  const wide = xs.length
  const count = wide * ys.length * 2
  const cost = new Float64Array(count).fill(Infinity)
  const before = new Int32Array(count).fill(-1)
  const goal = ys.indexOf(last[1]) * wide + xs.indexOf(last[0])
  const begin = (ys.indexOf(first[1]) * wide + xs.indexOf(first[0])) * 2 + (down ? 1 : 0)
  // A state is a crossing of lines and the direction one came along: 0 sideways, 1 up or down.
  const guess = (state: number): number => {
    const at = state >> 1
    const dx = Math.abs(xs[at % wide]! - last[0])
    const dy = Math.abs(ys[Math.floor(at / wide)]! - last[1])
    return dx + dy + (dy > 0 || (state & 1) === 1 ? BEND : 0)
  }
  const heap = new Heap()
  cost[begin] = 0
  heap.push(begin, guess(begin))
  for (let steps = 0; steps < STEPS_MAX; steps++) {
    const state = heap.pop()
    if (state < 0) return null
    const at = state >> 1
    const way = state & 1
    if (at === goal && way === 0) return walked(before, state, xs, ys, start, end)
    const ix = at % wide
    const iy = (at - ix) / wide
    const spent = cost[state]!
    for (const [dx, dy] of [
      [1, 0],
      [-1, 0],
      [0, 1],
      [0, -1],
    ] as const) {
      const nx = ix + dx
      const ny = iy + dy
      if (nx < 0 || ny < 0 || nx >= wide || ny >= ys.length) continue
      const next = (ny * wide + nx) * 2 + (dx ? 0 : 1)
      const bend = (dx ? 0 : 1) === way ? 0 : BEND
      if (spent + bend >= cost[next]!) continue
      // The first step continues as it left; the last one comes from the left.
      if (state === begin && (down ? dy < 0 : dx < 0)) continue
      if (ny * wide + nx === goal && dx < 0) continue
      const step = plan.stepCost(xs[ix]!, ys[iy]!, xs[nx]!, ys[ny]!, wire)
      const total = spent + bend + step
      if (total >= cost[next]!) continue
      cost[next] = total
      before[next] = state
      heap.push(next, total + guess(next))
    }
  }
  return null
}

function walked(
  before: Int32Array,
  state: number,
  xs: readonly number[],
  ys: readonly number[],
  start: Point,
  end: Point,
): Point[] {
  const points: Point[] = [end]
  for (let at = state; at >= 0; at = before[at]!)
    points.push([xs[(at >> 1) % xs.length]!, ys[Math.floor((at >> 1) / xs.length)]!])
  points.push(start)
  return straightened(points.reverse())
}

/** Lines to run along: beside each box, in lanes, and through both ends. `axis` 0: their x, 1: their y. */
function linesOf(ends: readonly number[], boxes: readonly Rect[], within: Rect | null, axis: 0 | 1): number[] {
  const lines = new Set(ends)
  const low = within ? (axis ? within.y : within.x) + CLEAR : -Infinity
  const high = within ? (axis ? within.y + within.h : within.x + within.w) - CLEAR : Infinity
  const add = (at: number): void => {
    if (at >= low && at <= high) lines.add(at)
  }
  for (const { x, y, w, h } of boxes) {
    const [from, to] = axis ? [y, y + h] : [x, x + w]
    const many = boxes.length > 16
    for (const by of many ? [16] : [8, 16, 24]) add(Math.floor((from - by) / STEP) * STEP)
    for (const by of many ? [16] : axis ? [8, 16, 40] : [8, 16, 24]) add(Math.ceil((to + by) / STEP) * STEP)
  }
  return [...lines].sort((a, b) => a - b)
}

/** Without corners that are none. */
function straightened(points: readonly Point[]): Point[] {
  const out: Point[] = []
  for (const point of points) {
    const [a, b] = [out.at(-2), out.at(-1)]
    if (b && Math.abs(b[0] - point[0]) < 0.01 && Math.abs(b[1] - point[1]) < 0.01) continue
    if (
      a &&
      b &&
      ((Math.abs(a[0] - b[0]) < 0.01 && Math.abs(b[0] - point[0]) < 0.01) ||
        (Math.abs(a[1] - b[1]) < 0.01 && Math.abs(b[1] - point[1]) < 0.01))
    )
      out.pop()
    out.push(point)
  }
  return out
}

interface Run {
  /** Place on the other axis, from, to. */
  at: number
  low: number
  high: number
  from: string
  to: string
}

const CELL = 256

/** What stands where: boxes, and the ways that are laid already. */
class Plan {
  private readonly cells = new Map<number, Rect[]>()
  /** Level and upright parts of ways. */
  private readonly level = new Map<number, Run[]>()
  private readonly upright = new Map<number, Run[]>()

  constructor(
    boxes: readonly Rect[],
    readonly within: Rect | null,
  ) {
    for (const box of boxes) {
      for (let cx = band(box.x - CLEAR); cx <= band(box.x + box.w + CLEAR); cx++)
        for (let cy = band(box.y - CLEAR); cy <= band(box.y + box.h + FOOT); cy++) push(this.cells, cellOf(cx, cy), box)
    }
  }

  boxesIn({ x, y, w, h }: Rect): Rect[] {
    const found = new Set<Rect>()
    for (let cx = band(x); cx <= band(x + w); cx++)
      for (let cy = band(y); cy <= band(y + h); cy++)
        for (const box of this.cells.get(cellOf(cx, cy)) ?? [])
          if (box.x < x + w && box.x + box.w > x && box.y < y + h && box.y + box.h > y) found.add(box)
    return [...found]
  }

  /** Infinity when a box stands in the way, or as soon as it is not below `limit`. */
  costOf(way: readonly Point[], wire: Wire, limit: number): number {
    let cost = (way.length - 2) * BEND
    if (way.length > 2 && !wire.down && way[1]![0] - way[0]![0] < wire.lead) cost += LABEL_COST
    for (let i = 1; i < way.length && cost < limit; i++) {
      let [x1, y1] = way[i - 1]!
      let [x2] = way[i]!
      const y2 = way[i]![1]
      // Both ends lie on a box; what counts begins beside it.
      if (i === 1 && wire.down) y1 += CLEAR
      else if (i === 1) x1 = Math.min(x1 + CLEAR, x2)
      if (i === way.length - 1) x2 = Math.max(x2 - CLEAR, x1)
      cost += this.stepCost(x1, y1, x2, y2, wire)
    }
    return cost
  }

  /** Of a level or upright piece: its length, and more for what it crosses, lies on, passes closely or below. */
  stepCost(x1: number, y1: number, x2: number, y2: number, wire: Wire): number {
    const left = Math.min(x1, x2)
    const right = Math.max(x1, x2)
    const top = Math.min(y1, y2)
    const bottom = Math.max(y1, y2)
    const isLevel = top === bottom
    let cost = right - left + bottom - top
    const [cx1, cx2, cy1, cy2] = [band(left), band(right), band(top), band(bottom)]
    for (let cx = cx1; cx <= cx2; cx++) {
      for (let cy = cy1; cy <= cy2; cy++) {
        const boxes = this.cells.get(cellOf(cx, cy))
        if (!boxes) continue
        for (const box of boxes) {
          const far = box.x + box.w
          const floor = box.y + box.h
          if (right <= box.x - CLEAR || left >= far + CLEAR || bottom <= box.y - CLEAR || top >= floor + FOOT) continue
          if (top < floor + CLEAR) {
            if (left < far && right > box.x && top < floor && bottom > box.y) return Infinity
            cost += CLOSE
          } else if (isLevel)
            cost += FOOT_COST * Math.max(0, Math.min(right, far, (cx + 1) * CELL) - Math.max(left, box.x, cx * CELL))
        }
      }
    }
    const along = isLevel ? this.level : this.upright
    const across = isLevel ? this.upright : this.level
    const [at, low, high] = isLevel ? [top, left, right] : [left, top, bottom]
    for (let cx = cx1; cx <= cx2; cx++) {
      for (let cy = cy1; cy <= cy2; cy++) {
        const cell = cellOf(cx, cy)
        const start = (isLevel ? cx : cy) * CELL
        for (const run of along.get(cell) ?? NONE) {
          if (Math.abs(run.at - at) >= STEP - 1 || friends(run, wire)) continue
          const shared = Math.min(run.high, high, start + CELL) - Math.max(run.low, low, start)
          if (shared > 0) cost += BEND + OVERLAP * shared
        }
        for (const run of across.get(cell) ?? NONE) {
          // A crossing counts in the one cell that it lies in.
          if (
            run.at > low &&
            run.at < high &&
            at > run.low &&
            at < run.high &&
            run.at >= start &&
            run.at < start + CELL &&
            !friends(run, wire)
          )
            cost += CROSSING
        }
      }
    }
    return cost
  }

  lay(way: readonly Point[], { from, to }: Wire): void {
    for (let i = 1; i < way.length; i++) {
      const [x1, y1] = way[i - 1]!
      const [x2, y2] = way[i]!
      const isLevel = Math.abs(y1 - y2) < 0.01
      const [at, low, high] = isLevel
        ? [y1, Math.min(x1, x2), Math.max(x1, x2)]
        : [x1, Math.min(y1, y2), Math.max(y1, y2)]
      const run: Run = { at, low, high, from, to }
      for (let along = band(low); along <= band(high); along++)
        for (let beside = band(at - STEP); beside <= band(at + STEP); beside++)
          push(isLevel ? this.level : this.upright, isLevel ? cellOf(along, beside) : cellOf(beside, along), run)
    }
  }
}

const NONE: readonly Run[] = []

function friends(run: Run, wire: Wire): boolean {
  return run.to === wire.to || run.from === wire.from
}

function band(at: number): number {
  return Math.floor(at / CELL)
}

function cellOf(cx: number, cy: number): number {
  return cx * 65_536 + cy
}

function push<V>(map: Map<number, V[]>, key: number, value: V): void {
  const list = map.get(key)
  if (list) list.push(value)
  else map.set(key, [value])
}

/** States by their cost, the least first. */
class Heap {
  private readonly states: number[] = []
  private readonly costs: number[] = []

  push(state: number, cost: number): void {
    let at = this.states.length
    while (at > 0) {
      const up = (at - 1) >> 1
      if (this.costs[up]! <= cost) break
      this.states[at] = this.states[up]!
      this.costs[at] = this.costs[up]!
      at = up
    }
    this.states[at] = state
    this.costs[at] = cost
  }

  /** -1 when it is empty. */
  pop(): number {
    const first = this.states[0]
    if (first === undefined) return -1
    const state = this.states.pop()!
    const cost = this.costs.pop()!
    const size = this.states.length
    if (!size) return first
    let at = 0
    for (;;) {
      let down = at * 2 + 1
      if (down >= size) break
      if (down + 1 < size && this.costs[down + 1]! < this.costs[down]!) down++
      if (this.costs[down]! >= cost) break
      this.states[at] = this.states[down]!
      this.costs[at] = this.costs[down]!
      at = down
    }
    this.states[at] = state
    this.costs[at] = cost
    return first
  }
}
