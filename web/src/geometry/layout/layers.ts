// Layers and their order: which boxes stand in one column, and who is above whom. Longest path, then barycentre sweeps over
// columns in which long edges have place holders. Depends on the graph alone, never on positions, so that a second run gives
// the same.

/** `port`: height at which the edge leaves its source's box; of several edges the lower one leads lower. */
export interface Link {
  source: number
  target: number
  port: number
}

/** One place in a column: a box, or (box -1) a long edge passing by. `before` and `after` are places next to it. */
export interface Place {
  box: number
  layer: number
  before: { place: Place; port: number }[]
  after: { place: Place; port: number }[]
}

const SWEEPS = 4

/** Boxes 0 .. count - 1 into columns; each column from top to bottom. Edges that close a circle are left out. */
export function columns(count: number, links: readonly Link[]): Place[][] {
  const acyclic = withoutCircles(count, links)
  const layer = layersOf(count, acyclic)
  const depth = Math.max(0, ...layer) + 1
  const result: Place[][] = Array.from({ length: depth }, () => [])
  const places = layer.map((at, box): Place => ({ box, layer: at, before: [], after: [] }))
  for (const place of visitOrder(count, acyclic)) result[layer[place]!]!.push(places[place]!)
  for (const link of acyclic) {
    let from = places[link.source]!
    let port = link.port
    for (let at = from.layer + 1; at < layer[link.target]!; at++) {
      const passing: Place = { box: -1, layer: at, before: [], after: [] }
      result[at]!.push(passing)
      join(from, passing, port)
      from = passing
      port = 0
    }
    join(from, places[link.target]!, port)
  }
  sortColumns(result)
  return result
}

function join(from: Place, to: Place, port: number): void {
  from.after.push({ place: to, port })
  to.before.push({ place: from, port })
}

/** Sweep left to right and back; keep the order with the fewest crossings (the earliest of equals). */
function sortColumns(result: Place[][]): void {
  let best = result.map((column) => [...column])
  let least = crossings(result)
  for (let sweep = 0; sweep < SWEEPS && least > 0; sweep++) {
    const forward = sweep % 2 === 0
    for (let i = 1; i < result.length; i++) {
      const column = result[forward ? i : result.length - 1 - i]!
      const order = orderOf(result)
      const weight = new Map(column.map((place) => [place, centre(place, forward, order)]))
      column.sort((a, b) => weight.get(a)! - weight.get(b)!)
    }
    const now = crossings(result)
    if (now < least) [least, best] = [now, result.map((column) => [...column])]
  }
  for (const [i, column] of best.entries()) result[i] = column
}

function centre(place: Place, forward: boolean, order: Map<Place, number>): number {
  const near = forward ? place.before : place.after
  if (!near.length) return order.get(place)!
  return (
    near.reduce((sum, { place: other, port }) => sum + order.get(other)! + (forward ? port / 10_000 : 0), 0) /
    near.length
  )
}

function orderOf(result: Place[][]): Map<Place, number> {
  return new Map(result.flatMap((column) => column.map((place, i): [Place, number] => [place, i])))
}

/** Pairs of edges between neighbouring columns that cross: inversions, counted by insertion into a sorted list. */
function crossings(result: Place[][]): number {
  const order = orderOf(result)
  let count = 0
  for (const column of result) {
    const ends = column.flatMap((place) =>
      [...place.after]
        .sort((a, b) => a.port - b.port || order.get(a.place)! - order.get(b.place)!)
        .map((e) => order.get(e.place)!),
    )
    const seen: number[] = []
    for (const end of ends) {
      let low = 0
      let high = seen.length
      while (low < high) {
        const mid = (low + high) >> 1
        if (seen[mid]! <= end) low = mid + 1
        else high = mid
      }
      count += seen.length - low
      seen.splice(low, 0, end)
    }
  }
  return count
}

function withoutCircles(count: number, links: readonly Link[]): Link[] {
  const out: Link[][] = Array.from({ length: count }, () => [])
  for (const link of links) if (link.source !== link.target) out[link.source]!.push(link)
  const state = new Uint8Array(count)
  const acyclic: Link[] = []
  for (let root = 0; root < count; root++) {
    if (state[root]) continue
    const stack: [number, number][] = [[root, 0]]
    state[root] = 1
    while (stack.length) {
      const top = stack.at(-1)!
      const link = out[top[0]]![top[1]++]
      if (!link) {
        state[top[0]] = 2
        stack.pop()
      } else if (state[link.target] !== 1) {
        acyclic.push(link)
        if (state[link.target] === 0) {
          state[link.target] = 1
          stack.push([link.target, 0])
        }
      }
    }
  }
  return acyclic
}

/** Longest path from the left; what has nothing before it then moves right, next to what it leads to. */
function layersOf(count: number, links: readonly Link[]): number[] {
  const layer = new Array<number>(count).fill(0)
  const into = new Array<number>(count).fill(0)
  const out: Link[][] = Array.from({ length: count }, () => [])
  for (const link of links) {
    into[link.target]!++
    out[link.source]!.push(link)
  }
  const left = [...into]
  const ready = left.flatMap((n, box) => (n ? [] : [box]))
  while (ready.length) {
    const box = ready.shift()!
    for (const { target } of out[box]!) {
      layer[target] = Math.max(layer[target]!, layer[box]! + 1)
      if (--left[target]! === 0) ready.push(target)
    }
  }
  // The first root stays at the left: it is where the run begins.
  const first = into.indexOf(0)
  for (let box = 0; box < count; box++) {
    if (into[box] || box === first || !out[box]!.length) continue
    layer[box] = Math.min(...out[box]!.map((link) => layer[link.target]!)) - 1
  }
  return layer
}

/** Depth first from the roots, upper ports first, of one port in the order of the edges: what belongs together starts out
 * together. */
function visitOrder(count: number, links: readonly Link[]): number[] {
  const out: Link[][] = Array.from({ length: count }, () => [])
  const into = new Array<number>(count).fill(0)
  for (const link of links) {
    out[link.source]!.push(link)
    into[link.target]!++
  }
  const seen = new Set<number>()
  const visit = (root: number): void => {
    const stack = [root]
    while (stack.length) {
      const box = stack.pop()!
      if (seen.has(box)) continue
      seen.add(box)
      for (const link of [...out[box]!].sort((a, b) => a.port - b.port).reverse()) stack.push(link.target)
    }
  }
  for (let box = 0; box < count; box++) if (!into[box]) visit(box)
  for (let box = 0; box < count; box++) visit(box)
  return [...seen]
}
