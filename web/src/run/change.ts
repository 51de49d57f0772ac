// The changes a fold is made of: the record of a node, its counts, the scopes around it. All of them change a `Draft`, which
// only the fold has seen so far.

import type { ErrorInfo, WireEvent } from '../api/types'
import { LayeredMap } from './layered'
import {
  cleanupText,
  isCleanup,
  keyOf,
  scopeText,
  type NodeState,
  type NodeStatus,
  type OpenWait,
  type RunFold,
  type ScopeState,
  type Totals,
} from './model'

/** A fold while it is made. Records in it are never changed, only replaced. */
export interface Draft extends Mutable<Omit<RunFold, 'nodes' | 'scopes' | 'totals' | 'routes' | 'waits'>> {
  nodes: LayeredMap<NodeState>
  scopes: LayeredMap<ScopeState>
  totals: Map<string, Totals>
  routes: Map<string, ReadonlyMap<string, number>>
  waits: Map<string, OpenWait>
}

type Mutable<T> = { -readonly [K in keyof T]: T[K] }

export function draftOf(view: RunFold): Draft {
  return {
    ...view,
    nodes: LayeredMap.edit(view.nodes),
    scopes: LayeredMap.edit(view.scopes),
    totals: new Map(view.totals),
    routes: new Map(view.routes),
    waits: new Map(view.waits),
  }
}

export function sealed(draft: Draft): RunFold {
  draft.nodes.seal()
  draft.scopes.seal()
  return draft
}

export function put(view: Draft, node: NodeState, event: WireEvent, change: Partial<NodeState>): void {
  const known = view.nodes.has(node.key)
  const next: NodeState = { ...node, ...change, lastSeq: event.seq }
  view.nodes.set(node.key, next)
  if (known && node.status === next.status) return
  const totals = { ...view.totals.get(node.block) }
  if (known) totals[node.status] = (totals[node.status] ?? 1) - 1
  totals[next.status] = (totals[next.status] ?? 0) + 1
  view.totals.set(node.block, totals)
  const active = (status: NodeStatus): number => (status === 'running' || status === 'retrying' ? 1 : 0)
  const waiting = (status: NodeStatus): number => (status === 'waiting' ? 1 : 0)
  const running = active(next.status) - (known ? active(node.status) : 0)
  const paused = waiting(next.status) - (known ? waiting(node.status) : 0)
  if (node.path && (running || paused)) bumpScopes(view, node.path, { running, waiting: paused })
}

export function touch(view: Draft, node: NodeState, event: WireEvent): void {
  if (view.nodes.has(node.key)) view.nodes.set(node.key, { ...node, lastSeq: event.seq })
}

export function countRoute(view: Draft, block: string, handle: string): void {
  const counts = new Map(view.routes.get(block))
  counts.set(handle, (counts.get(handle) ?? 0) + 1)
  view.routes.set(block, counts)
}

export function ended(
  node: NodeState,
  event: WireEvent,
  error?: ErrorInfo,
): Pick<NodeState, 'finishedAt' | 'attempts'> {
  const last = node.attempts.at(-1)
  const attempts =
    last && last.endedAt === null
      ? [...node.attempts.slice(0, -1), { ...last, endedAt: event.at_ms, to: event.seq, error: error ?? null }]
      : node.attempts
  return { finishedAt: event.at_ms, attempts }
}

export function outputOf(event: WireEvent): Partial<NodeState> {
  const { output, size, truncated, preview, blob } = event.data
  if (truncated || blob)
    return { ...(size === undefined ? {} : { size }), ...(preview === undefined ? {} : { preview }) }
  return output === undefined ? {} : { output }
}

export function newNode(event: WireEvent): NodeState {
  return {
    key: keyOf(event.block!, event.path),
    block: event.block!,
    path: event.path,
    status: 'running',
    attempt: event.attempt,
    attempts: [],
    startedAt: null,
    finishedAt: null,
    route: null,
    error: null,
    dueAt: null,
    handled: false,
    reused: false,
    cached: false,
    pinned: false,
    lost: 0,
    wait: null,
    waits: [],
    left: false,
    steps: [],
    logs: [],
    said: null,
    region: null,
    firstSeq: event.seq,
    lastSeq: event.seq,
  }
}

export function openScopes(view: Draft, event: WireEvent): void {
  const node = event.block === null ? undefined : view.nodes.get(keyOf(event.block, event.path))
  if (!node || !event.block) return
  const first = event.data.first ?? 0
  const count = event.data.count ?? 0
  const loop = view.shape.kinds.get(event.block) !== 'parallel'
  if (loop && first > 0)
    closeScope(view, scopeText(event.path, event.block, first - 1, 'loop'), event.at_ms, 'succeeded')
  const now = view.nodes.get(node.key)!
  const region = now.region ?? { count: 0, opened: 0, closed: 0, failed: 0 }
  put(view, now, event, { region: { ...region, count: Math.max(region.count, first + count), opened: first + count } })
  for (let index = first; index < first + count; index++) {
    const path = scopeText(event.path, event.block, index, loop ? 'loop' : 'parallel')
    view.scopes.set(path, {
      path,
      container: node.key,
      index,
      status: 'running',
      startedAt: event.at_ms,
      finishedAt: null,
      running: 0,
      waiting: 0,
      failed: 0,
      uncaught: 0,
      decided: 0,
    })
  }
}

/** A cleanup is a scope beside the iterations or branches; it counts in none of their numbers. */
export function openCleanup(view: Draft, event: WireEvent, root: boolean): void {
  const path = cleanupText(event.path, root ? '' : (event.block ?? ''))
  const counts = { running: 0, waiting: 0, failed: 0, uncaught: 0, decided: 0 }
  const container = keyOf(event.block ?? '', event.path)
  const scope = { path, container, index: 0, startedAt: event.at_ms, finishedAt: null, ...counts }
  view.scopes.set(path, { ...scope, status: 'running' })
}

export function closeCleanup(view: Draft, event: WireEvent): void {
  const path = cleanupText(event.path, event.block ?? '')
  closeScope(view, path, event.at_ms, view.scopes.get(path)?.uncaught ? 'failed' : 'succeeded')
}

export function countDecided(view: Draft, path: string, count: number, at: number): void {
  const scope = view.scopes.get(path)
  if (!scope) return
  const next = { ...scope, decided: scope.decided + count }
  view.scopes.set(path, next)
  if (isCleanup(path)) return
  const container = view.nodes.get(scope.container)
  const total = container && view.shape.nodes.get(container.block)
  if (total && next.decided >= total && view.shape.kinds.get(container.block) === 'parallel')
    closeScope(view, path, at, next.uncaught ? 'failed' : 'succeeded')
}

export function closeScope(view: Draft, path: string, at: number, status: ScopeState['status']): void {
  const scope = view.scopes.get(path)
  if (!scope || scope.finishedAt !== null) return
  view.scopes.set(path, { ...scope, status, finishedAt: at, running: 0, waiting: 0 })
  const container = view.nodes.get(scope.container)
  if (!container?.region || isCleanup(path)) return
  const { region } = container
  view.nodes.set(container.key, {
    ...container,
    region: { ...region, closed: region.closed + 1, failed: region.failed + (status === 'failed' ? 1 : 0) },
  })
}

export function closeScopes(view: Draft, node: NodeState, at: number, status: ScopeState['status']): void {
  const kind = view.shape.kinds.get(node.block) ?? 'loop'
  for (let index = (node.region?.opened ?? 0) - 1; index >= 0; index--) {
    const scope = view.scopes.get(scopeText(node.path, node.block, index, kind))
    if (!scope || scope.finishedAt !== null) {
      if (kind === 'loop') return // earlier iterations closed when later ones opened
      continue
    }
    closeScope(view, scope.path, at, status === 'cancelled' && scope.failed ? 'failed' : status)
  }
}

/** Change the counts of a scope and of all scopes around it. */
export function bumpScopes(
  view: Draft,
  path: string,
  by: { running?: number; waiting?: number; failed?: number; uncaught?: number },
): void {
  for (let at = path; at; at = at.includes('/') ? at.slice(0, at.lastIndexOf('/')) : '') {
    const scope = view.scopes.get(at)
    if (!scope || scope.finishedAt !== null) continue
    view.scopes.set(at, {
      ...scope,
      running: scope.running + (by.running ?? 0),
      waiting: scope.waiting + (by.waiting ?? 0),
      failed: scope.failed + (by.failed ?? 0),
      uncaught: scope.uncaught + (by.uncaught ?? 0),
    })
  }
}
