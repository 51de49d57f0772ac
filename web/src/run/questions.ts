// The questions the canvas, the trace and the inspector ask about a fold.

import type { Document, Edge } from '../api/types'
import { chainOf, indexOf, kindOf, nameOf } from '../document/document'
import {
  isDecided,
  cleanupText,
  keyOf,
  parsePath,
  scopeText,
  shownStatus,
  type BlockStatus,
  type NodeState,
  type NodeStatus,
  type RunFold,
  type ScopeState,
  type Totals,
} from './model'

/** Which iteration or branch is looked at, by container id. Containers that are not in it show their latest one. */
export type Iter = Readonly<Record<string, number>>
/** Path text of the scope that `block` is shown in. */
export function pathFor(view: RunFold, doc: Document, block: string, iter: Iter): string {
  const { cleanups } = indexOf(doc)
  const chain = chainOf(doc, block).reverse()
  let path = cleanups.has(chain[0] ?? block) ? cleanupText('', '') : ''
  for (const [depth, container] of chain.entries()) {
    if (cleanups.has(chain[depth + 1] ?? block)) {
      path = cleanupText(path, container)
      continue
    }
    const opened = view.nodes.get(keyOf(container, path))?.region?.opened ?? 0
    const index = Math.min(iter[container] ?? Infinity, Math.max(opened - 1, 0))
    path = scopeText(path, container, index, view.shape.kinds.get(container) ?? kindOf(doc, container) ?? 'loop')
  }
  return path
}

/** The node that is shown for a block; undefined before it has started. */
export function nodeAt(view: RunFold, doc: Document, block: string, iter: Iter): NodeState | undefined {
  return view.nodes.get(keyOf(block, pathFor(view, doc, block, iter)))
}

/** Status of a block in the scope that is shown. */
export function statusAt(view: RunFold, doc: Document, block: string, iter: Iter): BlockStatus {
  const path = pathFor(view, doc, block, iter)
  const node = view.nodes.get(keyOf(block, path))
  if (node) return shownStatus(node)
  if (view.seq === 0 || view.finishedAt !== null) return 'idle'
  const into = indexOf(doc).into.get(block) ?? []
  if (!into.length) return 'idle'
  let live = false
  for (const edge of into) {
    if (edge.handle === 'body' || edge.handle === 'finally') {
      if (!view.scopes.has(path)) return 'idle'
      live = true
      continue
    }
    const source = view.nodes.get(keyOf(edge.source, path))
    if (!source || !isDecided(source)) return 'idle'
    live ||= source.route === edge.handle
  }
  return live ? 'queued' : 'idle'
}

/** Status over all scopes, worst first, with the count of each: what a zoomed-out card, the minimap and totals show. */
export function totalsOf(view: RunFold, block: string): { worst: NodeStatus | null; counts: Totals } {
  const counts = view.totals.get(block) ?? {}
  return { worst: WORST.find((status) => (counts[status] ?? 0) > 0) ?? null, counts }
}

export interface EdgeView {
  /** active: live, and its target is running. */
  state: 'idle' | 'live' | 'dead' | 'active'
  /** Over all scopes. */
  live: number
  dead: number
}

/** An edge in the scope that is shown, and its counts over all scopes. */
export function edgeAt(view: RunFold, doc: Document, edge: Edge, iter: Iter): EdgeView {
  const handle = edge.handle ?? 'out'
  const counts = view.routes.get(edge.source)
  const live = counts?.get(handle) ?? 0
  let dead = 0
  for (const [other, count] of counts ?? []) {
    if (handle === 'body' ? other === '!body' : decides(handle) && decides(other) && other !== handle) dead += count
  }
  const node = nodeAt(view, doc, edge.source, iter)
  let state: EdgeView['state'] = 'idle'
  if (node && handle === 'body')
    state = node.region
      ? node.region.opened
        ? 'live'
        : isDecided(node)
          ? 'dead'
          : 'idle'
      : isDecided(node)
        ? 'dead'
        : 'idle'
  else if (handle === 'finally') state = live ? 'live' : view.finishedAt !== null ? 'dead' : 'idle'
  else if (node && isDecided(node)) state = node.route === handle ? 'live' : 'dead'
  if (state === 'live') {
    const target = nodeAt(view, doc, edge.target, iter)
    if (target?.status === 'running' || target?.status === 'retrying') state = 'active'
  }
  return { state, live, dead }
}

/** Whether the handle is one of those of which a block takes one. */
function decides(handle: string): boolean {
  return handle !== 'body' && handle !== '!body' && handle !== 'finally'
}

/** The scopes of the container that is shown, by index; undefined where one is not open yet. */
export function scopesAt(
  view: RunFold,
  doc: Document,
  container: string,
  iter: Iter,
): { path: string; scopes: (ScopeState | undefined)[]; index: number } {
  const outer = pathFor(view, doc, container, iter)
  const region = view.nodes.get(keyOf(container, outer))?.region
  const kind = view.shape.kinds.get(container) ?? kindOf(doc, container) ?? 'loop'
  const scopes = Array.from({ length: region?.count ?? 0 }, (_, index) =>
    view.scopes.get(scopeText(outer, container, index, kind)),
  )
  const index = Math.min(iter[container] ?? Infinity, Math.max((region?.opened ?? 0) - 1, 0))
  return { path: outer, scopes, index }
}

/** Index of the first scope with a failure; -1 for none. */
export function firstFailed(scopes: readonly (ScopeState | undefined)[]): number {
  return scopes.findIndex((scope) => !!scope && (scope.failed > 0 || scope.status === 'failed'))
}

/** Index of the scope that took longest; -1 for none. */
export function slowest(scopes: readonly (ScopeState | undefined)[], now: number): number {
  let best = -1
  let longest = -1
  for (const [index, scope] of scopes.entries()) {
    const took = scope ? (scope.finishedAt ?? now) - scope.startedAt : -1
    if (took > longest) [best, longest] = [index, took]
  }
  return best
}

/** The node to jump to: the first failure that was not caught, else the first failure at all. Its innermost, not its container. */
export function firstError(view: RunFold): NodeState | null {
  let found = firstErrors.get(view)
  if (found === undefined) firstErrors.set(view, (found = findFirstError(view)))
  return found
}

/** Asked for by several parts of a page for the same fold. */
const firstErrors = new WeakMap<RunFold, NodeState | null>()

function findFirstError(view: RunFold): NodeState | null {
  if (![...view.totals.values()].some((counts) => (counts.failed ?? 0) > 0)) return null
  let first: NodeState | null = null
  for (const node of view.nodes.values()) {
    if (node.status !== 'failed') continue
    const rank = (n: NodeState): number => (n.region ? 2e9 : n.handled ? 1e9 : 0) + n.lastSeq
    if (!first || rank(node) < rank(first)) first = node
  }
  return first
}

const WORST: readonly NodeStatus[] = ['failed', 'running', 'retrying', 'waiting', 'cancelled', 'succeeded', 'skipped']

/** "iteration 7 of Each invoice"; outer ones behind inner ones. Counted from 1. */
export function placeOf(path: string, doc: Document | null): string {
  return path
    .split('/')
    .filter(Boolean)
    .map((part) => {
      const [at] = parsePath(part)
      if (part.endsWith(':finally')) {
        const around = part.slice(0, -':finally'.length)
        return around ? `the cleanup of ${doc ? nameOf(doc, around) : around}` : 'the cleanup of the run'
      }
      return `${part.includes('#') ? 'iteration' : 'branch'} ${at!.index + 1} of ${doc ? nameOf(doc, at!.container) : at!.container}`
    })
    .reverse()
    .join(', ')
}
