// Joining blocks with the pointer: what is below it, whether an edge may lead there, and why not. Geometry comes from size.ts,
// so it does not matter what is mounted.

import { createStore } from 'zustand/vanilla'
import type { Block, Document, Point } from '../api/types'
import {
  absoluteAt,
  checkEdge,
  checkParent,
  handlesOf,
  indexOf,
  isInside,
  kindOf,
  parentOf,
  type Specs,
} from '../document/document'
import { handlePlace, sizeOf } from '../geometry/size'

export interface Connecting {
  /** Where the edge that is being drawn leaves; null when none is. */
  from: { source: string; handle: string } | null
  /** Set while an end of this edge is being moved. */
  edge: string | null
  /** Why an edge cannot lead to a block, by block; those that are not in it are fine. */
  reasons: ReadonlyMap<string, string>
  /** The block below the pointer. */
  over: string | null
  /** What stands at the pointer: the reason, or what will happen. Stays for a moment after a refused drop. */
  hint: { text: string; bad: boolean; x: number; y: number } | null
}

const NOT: Connecting = { from: null, edge: null, reasons: new Map(), over: null, hint: null }
export const connectStore = createStore<Connecting>(() => NOT)

/** Blocks that are dragged, and the container they would fall into ('' is the canvas, null: nothing is dragged). */
export const dropStore = createStore<{ into: string | null; refused: boolean }>(() => ({ into: null, refused: false }))

export function startConnecting(
  doc: Document,
  specs: Specs,
  source: string,
  handle: string,
  edge: string | null = null,
): void {
  const reasons = new Map<string, string>()
  for (const target of Object.keys(doc.blocks)) {
    const reason = checkEdge(doc, { source, handle, target }, specs, edge ?? undefined)
    if (reason) reasons.set(target, reason)
  }
  connectStore.setState({ ...NOT, from: { source, handle }, edge, reasons })
}

/** The pointer moved while an edge is drawn. */
export function connectTo(doc: Document, specs: Specs, at: Point, screen: { x: number; y: number }): void {
  const { from, reasons } = connectStore.getState()
  if (!from) return
  const over = targetAt(doc, specs, at, from.source, from.handle)
  const reason = over === null ? null : (reasons.get(over) ?? null)
  aim(over, reason, screen)
}

/** Blocks are dragged over `into` (as in `dropStore`), which refuses them for a reason. */
export function dragOver(into: string | null, reason: string | null, screen?: { x: number; y: number }): void {
  const refused = reason !== null
  dropStore.setState((now) => (now.into === into && now.refused === refused ? now : { into, refused }))
  aim(null, reason, screen)
}

/** Most moves of the pointer change nothing here: then no listener is called. */
function aim(over: string | null, reason: string | null, screen?: { x: number; y: number }): void {
  const hint = reason !== null && screen ? { text: reason, bad: true, ...screen } : null
  connectStore.setState((now) => (now.over === over && now.hint === null && hint === null ? now : { over, hint }))
}

let hiding: ReturnType<typeof setTimeout> | null = null

/** The edge is dropped or cancelled. A `refused` reason stays readable for a moment. */
export function stopConnecting(refused: string | null = null, screen?: { x: number; y: number }): void {
  if (hiding !== null) clearTimeout(hiding)
  connectStore.setState({ ...NOT, hint: refused && screen ? { text: refused, bad: true, ...screen } : null })
  if (refused) hiding = setTimeout(() => connectStore.setState({ hint: null }), 2600)
}

/** The block an edge from `source` would lead to if it were dropped at `at`. The inside of the container that `source` is in
 * (or, for `body`, of `source` itself) is empty space. */
export function targetAt(doc: Document, specs: Specs, at: Point, source: string, handle: string): string | null {
  const hit = blockAt(doc, specs, at, 12)
  if (hit === null || (hit === source && (handle === 'body' || handle === 'finally'))) return null
  if (isInside(doc, source, hit) && !nearLeft(doc, hit, at)) return null
  return hit
}

/** The innermost block at a point, `slack` pixels around it included. */
export function blockAt(doc: Document, specs: Specs, at: Point, slack = 0): string | null {
  let best: { id: string; area: number } | null = null
  for (const [id, block] of Object.entries(doc.blocks)) {
    if (!contains(doc, id, block, specs, at, slack)) continue
    const [w, h] = sizeOf(block, specs.get(block.type))
    if (!best || w * h < best.area) best = { id, area: w * h }
  }
  return best?.id ?? null
}

/** The innermost container at a point that is none of `except` and lies in none of them; '' is the canvas. */
export function containerAt(doc: Document, specs: Specs, at: Point, except: readonly string[] = []): string {
  let best: { id: string; area: number } | null = null
  for (const [id, block] of Object.entries(doc.blocks)) {
    if (!kindOf(doc, id, specs) || except.includes(id) || except.some((other) => isInside(doc, id, other))) continue
    if (!contains(doc, id, block, specs, at, 0)) continue
    const [w, h] = sizeOf(block, specs.get(block.type))
    if (!best || w * h < best.area) best = { id, area: w * h }
  }
  return best?.id ?? ''
}

/** Where blocks fall that are dropped at a point, and why they may not. */
export function fallInto(
  doc: Document,
  specs: Specs,
  ids: readonly string[],
  at: Point,
): { parent: string; reason: string | null } {
  const parent = containerAt(doc, specs, at, ids)
  const moving = ids.filter((id) => parentOf(doc, id) !== parent)
  return { parent, reason: moving.length ? checkParent(doc, moving, parent, specs) : null }
}

/** The handle a new edge leaves by: the first that is free, named ones before `out`, never `error`, `body` or `finally`. */
export function freeHandle(doc: Document, specs: Specs, id: string): string | null {
  const block = doc.blocks[id]
  if (!block) return null
  const handles = handlesOf(block, specs).filter((handle) => !['error', 'body', 'finally'].includes(handle))
  const named = handles.filter((handle) => handle !== 'out')
  const order = named.length ? [...named, ...handles.filter((handle) => handle === 'out')] : handles
  const used = new Set((indexOf(doc).outOf.get(id) ?? []).map((edge) => edge.handle))
  return order.find((handle) => !used.has(handle)) ?? order[0] ?? null
}

/** Where a handle is on the canvas. */
export function handleAt(doc: Document, specs: Specs, id: string, handle: string): Point {
  const block = doc.blocks[id]
  const [x, y] = absoluteAt(doc, id)
  if (!block) return [x, y]
  const place = handlePlace(block, specs.get(block.type), handle)
  return [x + place.x, y + place.y]
}

function contains(doc: Document, id: string, block: Block, specs: Specs, at: Point, slack: number): boolean {
  const [x, y] = absoluteAt(doc, id)
  const [w, h] = sizeOf(block, specs.get(block.type))
  return at[0] >= x - slack && at[0] <= x + w + slack && at[1] >= y - slack && at[1] <= y + h + slack
}

function nearLeft(doc: Document, id: string, at: Point): boolean {
  return at[0] - absoluteAt(doc, id)[0] < 16
}
