// The rows of the trace: blocks in the order they started, inside them iterations and branches, inside those blocks again.

import type { Document } from '../../api/types'
import { nameOf } from '../../document/document'
import {
  keyOf,
  isCleanup,
  parsePath,
  shownStatus,
  type BlockStatus,
  type NodeState,
  type RunFold,
  type ScopeState,
  type StepState,
} from '../../run'

export interface TraceRow {
  /** Node key, or the path of an iteration or branch. */
  id: string
  depth: number
  label: string
  block: string
  /** Path text of the scope the row stands for: a node's own, or the iteration itself. */
  path: string
  status: BlockStatus
  startedAt: number | null
  finishedAt: number | null
  node: NodeState | null
  scope: ScopeState | null
  /** A durable step of the block; `node` is null then. */
  step: StepState | null
  /** null: nothing inside. */
  open: boolean | null
}

/** Few scopes are shown at once; of many only those that are looked at or failed. */
const SCOPES_OPEN_MAX = 3
const STEPS_OPEN_MAX = 50

export interface TraceIndex {
  nodes: ReadonlyMap<string, readonly NodeState[]>
  scopes: ReadonlyMap<string, readonly ScopeState[]>
}

export function traceIndex(view: RunFold): TraceIndex {
  const nodes = new Map<string, NodeState[]>()
  for (const node of view.nodes.values()) {
    const list = nodes.get(node.path)
    if (list) list.push(node)
    else nodes.set(node.path, [node])
  }
  const scopes = new Map<string, ScopeState[]>()
  for (const scope of view.scopes.values()) {
    const list = scopes.get(scope.container)
    if (list) list.push(scope)
    else scopes.set(scope.container, [scope])
  }
  return { nodes, scopes }
}

/** `fold`: the rows that were opened or closed by hand; `looked`: the selected paths. A `query` leaves the rows that contain it,
 * `only` those in one of these states, each with its ancestors. */
export function traceRows(
  index: TraceIndex,
  doc: Document | null,
  fold: ReadonlyMap<string, boolean>,
  looked: ReadonlySet<string>,
  query = '',
  only: readonly BlockStatus[] = [],
): TraceRow[] {
  const rows: TraceRow[] = []
  const wanted = query.trim().toLowerCase()
  const narrow = wanted !== '' || only.length > 0
  const visit = (path: string, depth: number): boolean => {
    let found = false
    for (const node of index.nodes.get(path) ?? []) {
      const label = doc ? nameOf(doc, node.block) : node.block
      const inner = index.scopes.get(node.key) ?? []
      const few = node.steps.length <= STEPS_OPEN_MAX
      const open = inner.length || node.steps.length ? narrow || (fold.get(node.key) ?? few) : null
      const at = rows.length
      rows.push({
        id: node.key,
        depth,
        label,
        block: node.block,
        path,
        status: shownStatus(node),
        startedAt: node.startedAt ?? node.finishedAt,
        finishedAt: node.finishedAt,
        node,
        scope: null,
        step: null,
        open,
      })
      const words =
        !wanted ||
        label.toLowerCase().includes(wanted) ||
        node.key.toLowerCase().includes(wanted) ||
        !!node.error?.message.toLowerCase().includes(wanted)
      let hit = words && (!only.length || only.includes(shownStatus(node)))
      if (open) for (const step of node.steps) hit = visitStep(step, node, depth + 1, words) || hit
      if (open) for (const scope of inner) hit = visitScope(scope, node, depth + 1, inner.length) || hit
      if (!hit) rows.length = at
      found ||= hit
    }
    return found
  }
  /** `around`: its block is found, and with it what is in it. */
  const visitStep = (step: StepState, node: NodeState, depth: number, around: boolean): boolean => {
    const status: BlockStatus = step.status === 'lost' ? 'attention' : step.status
    const words = step.name.toLowerCase().includes(wanted) || !!step.error?.message.toLowerCase().includes(wanted)
    if (!(around || words) || (only.length && !only.includes(status))) return false
    rows.push({
      id: `${node.key}!step${step.n}`,
      depth,
      label: step.name,
      block: node.block,
      path: node.path,
      status,
      startedAt: step.startedAt,
      finishedAt: step.endedAt,
      node: null,
      scope: null,
      step,
      open: null,
    })
    return true
  }
  const visitScope = (scope: ScopeState, node: NodeState, depth: number, siblings: number): boolean => {
    const open = narrow || (fold.get(scope.path) ?? (siblings <= SCOPES_OPEN_MAX || looked.has(scope.path)))
    const at = rows.length
    rows.push({
      id: scope.path,
      depth,
      label: isCleanup(scope.path)
        ? 'Cleanup'
        : `${scope.path.endsWith(']') ? 'Branch' : 'Iteration'} ${scope.index + 1}`,
      block: node.block,
      path: scope.path,
      status: scopeStatus(scope),
      startedAt: scope.startedAt,
      finishedAt: scope.finishedAt,
      node: null,
      scope,
      step: null,
      open,
    })
    const hit = open ? visit(scope.path, depth + 1) : false
    if (narrow && !hit) rows.length = at
    return hit
  }
  visit('', 0)
  return rows
}

/** The paths around and of a scope: `teams[1]`, `teams[1]/rounds#2`. */
export function pathsTo(path: string): string[] {
  const parts = path.split('/').filter(Boolean)
  return parts.map((_, i) => parts.slice(0, i + 1).join('/'))
}

/** Index of the row one level up; -1 for the outermost. */
export function parentRow(rows: readonly TraceRow[], at: number): number {
  const depth = rows[at]?.depth ?? 0
  for (let i = at - 1; i >= 0; i--) if (rows[i]!.depth < depth) return i
  return -1
}

/** The row that shows a block in a scope, or the nearest one around it that is not folded away. */
export function rowOf(rows: readonly TraceRow[], block: string, path: string): number {
  const ids = [
    keyOf(block, path),
    ...pathsTo(path)
      .reverse()
      .flatMap((each) => [
        each,
        keyOf(parsePath(each).at(-1)!.container, each.slice(0, Math.max(0, each.lastIndexOf('/')))),
      ]),
  ]
  for (const id of ids) {
    const at = rows.findIndex((row) => row.id === id)
    if (at >= 0) return at
  }
  return -1
}

function scopeStatus(scope: ScopeState): BlockStatus {
  if (scope.status !== 'running') return scope.status
  return scope.waiting > 0 && scope.running === 0 ? 'waiting' : 'running'
}
