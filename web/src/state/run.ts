// What the events of a run add up to. `fold` is the ONLY place that knows what an event means; live view, history and replay
// are the same fold. Below it: the questions the canvas, the trace and the inspector ask about a `RunFold`.
//
// A container's two ends (`review:start`, `review:end`) are folded into one entry under the container's own key.

import type { Document, Edge, ErrorInfo, Json, JsonObject, RunStatus, WaitKind, WireEvent } from '../net/types'
import { chainOf, indexOf, kindOf, NO_SPECS, type Specs } from './document'
import { applyOps } from './variables'

export type NodeStatus = 'running' | 'retrying' | 'waiting' | 'succeeded' | 'failed' | 'skipped' | 'cancelled'
/** What is shown: `handled` is a failure somebody caught, `restored` a result taken over from the run before. */
export type BlockStatus = NodeStatus | 'idle' | 'queued' | 'handled' | 'restored'

export interface Attempt {
  attempt: number
  startedAt: number
  endedAt: number | null
  error: ErrorInfo | null
}

/** One node key: a block in one scope. Times are Unix ms, null when not yet. */
export interface NodeState {
  key: string
  block: string
  path: string
  status: NodeStatus
  attempt: number
  attempts: readonly Attempt[]
  startedAt: number | null
  finishedAt: number | null
  /** Handle taken; null: none (yet). */
  route: string | null
  /** undefined: none yet, or too large for the log; then `size` is set, `preview` begins its JSON, and `api.node` has it. */
  output?: Json
  size?: number
  preview?: string
  error: ErrorInfo | null
  /** Why it was skipped, and by whom (node key). */
  reason?: string
  because?: string | null
  /** Next attempt, or the end of a wait. */
  dueAt: number | null
  handled: boolean
  reused: boolean
  /** Attempts lost with their process: the run went on after a restart. */
  lost: number
  wait: OpenWait | null
  logs: readonly string[]
  /** Set for loops and parallels. */
  region: RegionState | null
  firstSeq: number
  lastSeq: number
}

/** `count`: scopes known so far; `opened`, `closed`: of them; `failed`: closed by an error. */
export interface RegionState {
  count: number
  opened: number
  closed: number
  failed: number
}

/** One iteration or branch; its key is the path text `teams[1]/rounds#2`. */
export interface ScopeState {
  path: string
  container: string
  index: number
  status: 'running' | 'succeeded' | 'failed' | 'cancelled'
  startedAt: number
  finishedAt: number | null
  running: number
  waiting: number
  failed: number
  decided: number
}

export interface OpenWait {
  key: string
  block: string
  kind: WaitKind
  id: string
  title: string
  openedAt: number
  dueAt: number | null
  outcome: string | null
  by: string | null
}

export type Totals = Readonly<Partial<Record<NodeStatus, number>>>

/** Maps are not changed once a fold is out of `fold`; records never. */
export interface RunFold {
  shape: Shape
  seq: number
  status: RunStatus | 'cancelling'
  startedAt: number | null
  finishedAt: number | null
  /** Time of the last event. */
  at: number | null
  error: ErrorInfo | null
  output?: Json
  nodes: ReadonlyMap<string, NodeState>
  scopes: ReadonlyMap<string, ScopeState>
  /** By block, over all scopes. */
  totals: ReadonlyMap<string, Totals>
  /** By block: how often each handle was taken; '' is none. */
  routes: ReadonlyMap<string, ReadonlyMap<string, number>>
  /** By node key, open ones only. */
  waits: ReadonlyMap<string, OpenWait>
  variables: JsonObject
  /** Node keys that failed and were not caught, in order. */
  failures: readonly string[]
}

/** What the fold needs of the document: nodes in each container's body (a container inside counts twice), and variables. */
export interface Shape {
  nodes: ReadonlyMap<string, number>
  kinds: ReadonlyMap<string, 'loop' | 'parallel'>
  variables: JsonObject
}

type Draft = { -readonly [K in keyof RunFold]: RunFold[K] extends ReadonlyMap<infer A, infer B> ? Map<A, B> : RunFold[K] }

export function shapeOf(doc: Document | null, specs: Specs = NO_SPECS): Shape {
  const nodes = new Map<string, number>()
  const kinds = new Map<string, 'loop' | 'parallel'>()
  if (!doc) return { nodes, kinds, variables: {} }
  const { outOf } = indexOf(doc)
  const on = (id: string): boolean => doc.blocks[id]?.enabled !== false && doc.blocks[id]?.type !== 'note'
  for (const id of Object.keys(doc.blocks)) {
    const kind = kindOf(doc, id, specs)
    if (!kind) continue
    kinds.set(id, kind)
    const stack = (outOf.get(id) ?? []).filter((e) => e.handle === 'body').map((e) => e.target)
    const seen = new Set<string>()
    while (stack.length) {
      const at = stack.pop()!
      if (seen.has(at) || !on(at)) continue
      seen.add(at)
      for (const e of outOf.get(at) ?? []) if (e.handle !== 'body') stack.push(e.target)
    }
    nodes.set(id, [...seen].reduce((sum, block) => sum + (kindOf(doc, block, specs) ? 2 : 1), 0))
  }
  return { nodes, kinds, variables: doc.variables ?? {} }
}

export function emptyFold(shape: Shape = shapeOf(null)): RunFold {
  return {
    shape, seq: 0, status: 'queued', startedAt: null, finishedAt: null, at: null, error: null, nodes: new Map(), scopes: new Map(),
    totals: new Map(), routes: new Map(), waits: new Map(), variables: shape.variables, failures: [],
  }
}

/** The fold after one event. Events of unknown types only move `seq`. */
export function reduce(view: RunFold, event: WireEvent): RunFold {
  return fold(view, [event])
}

/** The fold after `events`, which follow `view.seq` without a gap. O(keys + events). */
export function fold(view: RunFold, events: readonly WireEvent[]): RunFold {
  if (!events.length) return view
  const draft: Draft = {
    ...view, nodes: new Map(view.nodes), scopes: new Map(view.scopes), totals: new Map(view.totals), routes: new Map(view.routes),
    waits: new Map(view.waits),
  }
  for (const event of events) apply(draft, event)
  return draft
}

function apply(view: Draft, event: WireEvent): void {
  const { data } = event
  view.seq = event.seq
  view.at = event.at
  if (view.status === 'waiting') view.status = 'running'
  switch (event.type) {
    case 'run.started':
      view.status = 'running'
      view.startedAt = event.at
      return
    case 'run.parked':
      if (view.status !== 'cancelling') view.status = 'waiting'
      return
    case 'run.cancelling':
      view.status = 'cancelling'
      return
    case 'run.finished':
      finish(view, event)
      return
    case 'variables.patched':
      view.variables = applyOps(view.variables, data.ops ?? [])
      return
    case 'scope.opened':
      openScopes(view, event)
      return
  }
  if (event.block === null) return
  const node = view.nodes.get(keyOf(event.block, event.path)) ?? newNode(event)
  const end = event.node !== event.block ? (event.node ?? '').slice(event.block.length + 1) : null
  switch (event.type) {
    case 'node.started': {
      if (end === 'end') return touch(view, node, event)
      const attempts = [...node.attempts, { attempt: event.attempt, startedAt: event.at, endedAt: null, error: null }]
      return put(view, node, event, { status: 'running', attempt: event.attempt, attempts, startedAt: node.startedAt ?? event.at, dueAt: null })
    }
    case 'node.succeeded': {
      const route = data.route === undefined ? 'out' : data.route
      put(view, node, event, { status: 'succeeded', ...ended(node, event), route, ...outputOf(event), error: null, reused: data.reused ?? false })
      return decided(view, event, route)
    }
    case 'region.sized': {
      const count = data.count ?? 0
      put(view, node, event, { status: 'running', startedAt: node.startedAt ?? event.at, region: { count, opened: 0, closed: 0, failed: 0 } })
      taken(view, event.block, count ? 'body' : '!body')
      return countDecided(view, event.path, 1, event.at)
    }
    case 'region.exited': {
      closeScopes(view, node, event.at, 'succeeded')
      const now = view.nodes.get(node.key) ?? node
      const region = { ...(now.region ?? { opened: 0, closed: 0, failed: 0 }), count: data.count ?? now.region?.count ?? 0 }
      put(view, now, event, { status: 'succeeded', ...ended(now, event), route: 'out', ...outputOf(event), region, reused: data.reused ?? false })
      return decided(view, event, 'out')
    }
    case 'node.failed':
      return failed(view, node, event, end)
    case 'node.skipped': {
      const route = data.reason === 'pruned' ? null : 'out'
      if (end !== 'end' || node.status === 'running')
        put(view, node, event, { status: 'skipped', ...ended(node, event), route, reason: data.reason ?? 'pruned', because: data.because ?? null })
      if (end === 'start') return countDecided(view, event.path, 1, event.at)
      return decided(view, event, route)
    }
    case 'retry.scheduled': {
      const lost = node.lost + (data.error?.code === 'attempt_lost' ? 1 : 0)
      const { attempts } = ended(node, event, data.error)
      return put(view, node, event, { status: 'retrying', attempts, error: data.error ?? null, dueAt: data.due_ms ?? null, lost })
    }
    case 'wait.opened': {
      const wait: OpenWait = {
        key: node.key, block: node.block, kind: data.kind ?? 'signal', id: data.wait ?? node.key, title: data.title ?? '', openedAt: event.at,
        dueAt: data.due_ms ?? null, outcome: null, by: null,
      }
      view.waits.set(node.key, wait)
      return put(view, node, event, { status: 'waiting', wait, dueAt: wait.dueAt })
    }
    case 'wait.closed': {
      view.waits.delete(node.key)
      const wait = node.wait && { ...node.wait, outcome: data.outcome ?? null, by: data.by ?? null }
      if (data.outcome === 'cancelled') return put(view, node, event, { status: 'cancelled', wait, dueAt: null, ...ended(node, event) })
      return put(view, node, event, { status: 'running', wait, dueAt: null })
    }
    case 'node.log':
      return put(view, node, event, { logs: [...node.logs, data.message ?? ''] })
  }
}

function failed(view: Draft, node: NodeState, event: WireEvent, end: string | null): void {
  const { data } = event
  const route = data.route ?? null
  const caught = data.caught as [string, unknown[]] | null | undefined
  if (end) closeScopes(view, node, event.at, 'cancelled')
  const now = view.nodes.get(node.key) ?? node
  // The journal has one word for both; an attempt that was stopped with its run has not failed.
  const stopped = data.error?.code === 'cancelled'
  put(view, now, event, {
    status: stopped ? 'cancelled' : 'failed', ...ended(now, event, data.error), route, error: data.error ?? null, handled: route !== null || !!caught, dueAt: null,
  })
  if (route === null && !caught && !stopped) view.failures = [...view.failures, node.key]
  if (!stopped) bumpScopes(view, event.path, { failed: 1 })
  if (caught?.[0] === 'branch') {
    const parts = event.path.split('/').slice(0, caught[1].length)
    closeScope(view, parts.join('/'), event.at, 'failed')
  }
  if (end === 'start') countDecided(view, event.path, 1, event.at)
  decided(view, event, route)
}

/** A node has its final state: its edges resolve, and its scope is one nearer to its end. */
function decided(view: Draft, event: WireEvent, route: string | null): void {
  if (event.block) taken(view, event.block, route ?? '')
  countDecided(view, event.path, 1, event.at)
}

function openScopes(view: Draft, event: WireEvent): void {
  const node = event.block === null ? undefined : view.nodes.get(keyOf(event.block, event.path))
  if (!node || !event.block) return
  const first = event.data.first ?? 0
  const count = event.data.count ?? 0
  const loop = view.shape.kinds.get(event.block) !== 'parallel'
  if (loop && first > 0) closeScope(view, scopeText(event.path, event.block, first - 1, 'loop'), event.at, 'succeeded')
  const now = view.nodes.get(node.key)!
  const region = now.region ?? { count: 0, opened: 0, closed: 0, failed: 0 }
  put(view, now, event, { region: { ...region, count: Math.max(region.count, first + count), opened: first + count } })
  for (let index = first; index < first + count; index++) {
    const path = scopeText(event.path, event.block, index, loop ? 'loop' : 'parallel')
    view.scopes.set(path, {
      path, container: node.key, index, status: 'running', startedAt: event.at, finishedAt: null, running: 0, waiting: 0, failed: 0, decided: 0,
    })
  }
}

function countDecided(view: Draft, path: string, count: number, at: number): void {
  const scope = view.scopes.get(path)
  if (!scope) return
  const next = { ...scope, decided: scope.decided + count }
  view.scopes.set(path, next)
  const container = view.nodes.get(scope.container)
  const total = container && view.shape.nodes.get(container.block)
  if (total && next.decided >= total && view.shape.kinds.get(container.block) === 'parallel') closeScope(view, path, at, 'succeeded')
}

function closeScope(view: Draft, path: string, at: number, status: ScopeState['status']): void {
  const scope = view.scopes.get(path)
  if (!scope || scope.finishedAt !== null) return
  view.scopes.set(path, { ...scope, status, finishedAt: at, running: 0, waiting: 0 })
  const container = view.nodes.get(scope.container)
  if (!container?.region) return
  const { region } = container
  view.nodes.set(container.key, { ...container, region: { ...region, closed: region.closed + 1, failed: region.failed + (status === 'failed' ? 1 : 0) } })
}

function closeScopes(view: Draft, node: NodeState, at: number, status: ScopeState['status']): void {
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

function finish(view: Draft, event: WireEvent): void {
  view.status = event.data.status ?? 'succeeded'
  view.finishedAt = event.at
  view.error = event.data.error ?? null
  if (event.data.output !== undefined && !event.data.truncated) view.output = event.data.output
  for (const node of [...view.nodes.values()]) {
    if (node.status !== 'running' && node.status !== 'retrying' && node.status !== 'waiting') continue
    put(view, node, event, { status: 'cancelled', ...ended(node, event), dueAt: null })
  }
  for (const scope of [...view.scopes.values()]) if (scope.finishedAt === null) closeScope(view, scope.path, event.at, scope.failed ? 'failed' : 'cancelled')
  view.waits.clear()
}

function put(view: Draft, node: NodeState, event: WireEvent, change: Partial<NodeState>): void {
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

/** Change the counts of a scope and of all scopes around it. */
function bumpScopes(view: Draft, path: string, by: { running?: number; waiting?: number; failed?: number }): void {
  for (let at = path; at; at = at.includes('/') ? at.slice(0, at.lastIndexOf('/')) : '') {
    const scope = view.scopes.get(at)
    if (!scope || scope.finishedAt !== null) continue
    view.scopes.set(at, {
      ...scope, running: scope.running + (by.running ?? 0), waiting: scope.waiting + (by.waiting ?? 0), failed: scope.failed + (by.failed ?? 0),
    })
  }
}

function touch(view: Draft, node: NodeState, event: WireEvent): void {
  if (view.nodes.has(node.key)) view.nodes.set(node.key, { ...node, lastSeq: event.seq })
}

function taken(view: Draft, block: string, handle: string): void {
  const counts = new Map(view.routes.get(block))
  counts.set(handle, (counts.get(handle) ?? 0) + 1)
  view.routes.set(block, counts)
}

function ended(node: NodeState, event: WireEvent, error?: ErrorInfo): Pick<NodeState, 'finishedAt' | 'attempts'> {
  const last = node.attempts.at(-1)
  const attempts = last && last.endedAt === null ? [...node.attempts.slice(0, -1), { ...last, endedAt: event.at, error: error ?? null }] : node.attempts
  return { finishedAt: event.at, attempts }
}

function outputOf(event: WireEvent): Partial<NodeState> {
  const { output, size, truncated, preview, blob } = event.data
  if (truncated || blob) return { ...(size === undefined ? {} : { size }), ...(preview === undefined ? {} : { preview }) }
  return output === undefined ? {} : { output }
}

function newNode(event: WireEvent): NodeState {
  return {
    key: keyOf(event.block!, event.path), block: event.block!, path: event.path, status: 'running', attempt: event.attempt, attempts: [],
    startedAt: null, finishedAt: null, route: null, error: null, dueAt: null, handled: false, reused: false, lost: 0, wait: null, logs: [],
    region: null, firstSeq: event.seq, lastSeq: event.seq,
  }
}

// --- questions -------------------------------------------------------------------------------------------------------

/** Which iteration or branch is looked at, by container id. Containers that are not in it show their latest one. */
export type Iter = Readonly<Record<string, number>>

export function keyOf(block: string, path: string): string {
  return path ? `${block}@${path}` : block
}

/** `rounds#2` or `fan[2]` behind an outer path. */
export function scopeText(path: string, container: string, index: number, kind: 'loop' | 'parallel'): string {
  const part = kind === 'loop' ? `${container}#${index}` : `${container}[${index}]`
  return path ? `${path}/${part}` : part
}

/** `teams[1]/rounds#2` -> [{container: "teams", index: 1}, {container: "rounds", index: 2}]. */
export function parsePath(path: string): { container: string; index: number }[] {
  if (!path) return []
  return path.split('/').map((part) => {
    const match = /^(.*?)(?:#(\d+)|\[(\d+)\])$/.exec(part)
    return { container: match?.[1] ?? part, index: Number(match?.[2] ?? match?.[3] ?? 0) }
  })
}

/** The selection that shows the scope of a path: put it into `ui.iter`. */
export function iterOf(path: string): Record<string, number> {
  return Object.fromEntries(parsePath(path).map(({ container, index }) => [container, index]))
}

/** Path text of the scope that `block` is shown in. */
export function pathFor(view: RunFold, doc: Document, block: string, iter: Iter): string {
  let path = ''
  for (const container of chainOf(doc, block).reverse()) {
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
    if (edge.handle === 'body') {
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
    if (handle === 'body' ? other === '!body' : other !== handle && other !== 'body' && other !== '!body') dead += count
  }
  const node = nodeAt(view, doc, edge.source, iter)
  let state: EdgeView['state'] = 'idle'
  if (node && handle === 'body') state = node.region ? (node.region.opened ? 'live' : isDecided(node) ? 'dead' : 'idle') : isDecided(node) ? 'dead' : 'idle'
  else if (node && isDecided(node)) state = node.route === handle ? 'live' : 'dead'
  if (state === 'live') {
    const target = nodeAt(view, doc, edge.target, iter)
    if (target?.status === 'running' || target?.status === 'retrying') state = 'active'
  }
  return { state, live, dead }
}

/** The scopes of the container that is shown, by index; undefined where one is not open yet. */
export function scopesAt(view: RunFold, doc: Document, container: string, iter: Iter): { path: string; scopes: (ScopeState | undefined)[]; index: number } {
  const outer = pathFor(view, doc, container, iter)
  const region = view.nodes.get(keyOf(container, outer))?.region
  const kind = view.shape.kinds.get(container) ?? kindOf(doc, container) ?? 'loop'
  const scopes = Array.from({ length: region?.count ?? 0 }, (_, index) => view.scopes.get(scopeText(outer, container, index, kind)))
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

/** The node to jump to: the first failure nobody caught, else the first failure at all. Its innermost, not its container. */
export function firstError(view: RunFold): NodeState | null {
  let first: NodeState | null = null
  for (const node of view.nodes.values()) {
    if (node.status !== 'failed') continue
    const rank = (n: NodeState): number => (n.region ? 2e9 : n.handled ? 1e9 : 0) + n.lastSeq
    if (!first || rank(node) < rank(first)) first = node
  }
  return first
}

export function isDecided(node: NodeState): boolean {
  return node.status === 'succeeded' || node.status === 'failed' || node.status === 'skipped' || node.status === 'cancelled'
}

export function isEnded(status: RunFold['status']): boolean {
  return status === 'succeeded' || status === 'failed' || status === 'cancelled'
}

export function shownStatus(node: NodeState): BlockStatus {
  if (node.status === 'failed' && node.handled) return 'handled'
  if (node.status === 'succeeded' && node.reused) return 'restored'
  return node.status
}

const WORST: readonly NodeStatus[] = ['failed', 'running', 'retrying', 'waiting', 'cancelled', 'succeeded', 'skipped']
