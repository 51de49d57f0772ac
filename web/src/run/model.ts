// What the events of a run add up to: the records of a fold, and how places in a run are written. Nothing here knows an event.

import type { Json, JsonObject } from '../api/schemas'
import type { Document, ErrorInfo, RunStatus, WaitKind } from '../api/types'
import type { StepState } from './steps'
import { indexOf, kindOf, leadsInside, NO_SPECS, type Specs } from '../document/document'

export type NodeStatus = 'running' | 'retrying' | 'waiting' | 'succeeded' | 'failed' | 'skipped' | 'cancelled'
/** What is shown: `handled` is a failure that was caught, `restored` a result reused from the run before,
 * `attention` a lost attempt that needs a decision. */
export type BlockStatus = NodeStatus | 'idle' | 'queued' | 'handled' | 'restored' | 'attention'

export interface Attempt {
  attempt: number
  startedAt: number
  endedAt: number | null
  error: ErrorInfo | null
  /** The events that began and ended it. */
  from: number
  to: number | null
}

/** Another process took the run, after the lease of the one before had lapsed: at event `seq`. `lastAt`: the time of the
 * last event before. */
export interface Tear {
  seq: number
  at: number
  lastAt: number
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
  /** The handle that the run took; null: none (yet). */
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
  /** An earlier output of the same params stands for its own. */
  cached: boolean
  /** The draft names its output: the block did not run. */
  pinned: boolean
  /** Attempts lost with their process: the run continued after a restart. */
  lost: number
  /** The last one; with others beside it, one of those that are open. */
  wait: OpenWait | null
  /** Those that are open, in order. */
  waits: readonly OpenWait[]
  /** Its handler receives the end of each wait, or is entered again for it, and may run while others are open. */
  left: boolean
  /** What its handler did as durable steps, by number. */
  steps: readonly StepState[]
  logs: readonly string[]
  /** Live text of the last attempt that has ended and had any. */
  said: string | null
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
  /** Of the failed ones, those that were not caught. */
  uncaught: number
  decided: number
}

export interface OpenWait {
  key: string
  block: string
  kind: WaitKind
  id: string
  title: string
  openedAt: number
  /** The event that opened it. */
  seq: number
  dueAt: number | null
  remindAt: number | null
  outcome: string | null
  by: string | null
  /** Of an attention: `code` if the code that is there does not fit the run. */
  reason?: string
  /** The run that it waits for. */
  child?: string
  /** The step that its end finishes; then the block continues in another attempt. */
  step?: number
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
  /** By block: how often the run took each handle; '' is none. */
  routes: ReadonlyMap<string, ReadonlyMap<string, number>>
  /** By id, open ones only. */
  waits: ReadonlyMap<string, OpenWait>
  variables: JsonObject
  /** The run this one began as a copy of, up to an event. */
  forkedFrom: { run: string; seq: number; at: number } | null
  /** The run that ended with this one as its next, and the run that continues this one. */
  continues: string | null
  continuedAs: string | null
  /** The version it moved to; null: it never did. */
  version: number | null
  /** Node keys that failed and were not caught, in order. */
  failures: readonly string[]
  /** The places at which the server died during the run. */
  tears: readonly Tear[]
}

/** What the fold needs of the document: nodes in each container's body (a container inside counts twice), and variables. */
export interface Shape {
  nodes: ReadonlyMap<string, number>
  kinds: ReadonlyMap<string, 'loop' | 'parallel'>
  variables: JsonObject
}

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
      for (const e of outOf.get(at) ?? []) if (!leadsInside(doc, e)) stack.push(e.target)
    }
    nodes.set(
      id,
      [...seen].reduce((sum, block) => sum + (kindOf(doc, block, specs) ? 2 : 1), 0),
    )
  }
  return { nodes, kinds, variables: doc.variables ?? {} }
}

export function emptyFold(shape: Shape = shapeOf(null)): RunFold {
  return {
    shape,
    seq: 0,
    status: 'queued',
    startedAt: null,
    finishedAt: null,
    at: null,
    error: null,
    nodes: new Map(),
    scopes: new Map(),
    totals: new Map(),
    routes: new Map(),
    waits: new Map(),
    variables: shape.variables,
    failures: [],
    tears: [],
    forkedFrom: null,
    continues: null,
    continuedAs: null,
    version: null,
  }
}

export function keyOf(block: string, path: string): string {
  return path ? `${block}@${path}` : block
}

/** `rounds#2` or `fan[2]` behind an outer path. */
export function scopeText(path: string, container: string, index: number, kind: 'loop' | 'parallel'): string {
  const part = kind === 'loop' ? `${container}#${index}` : `${container}[${index}]`
  return path ? `${path}/${part}` : part
}

/** `rounds:finally`, the cleanup of a container; that of the run is `:finally`. */
export function cleanupText(path: string, container: string): string {
  const part = `${container}:finally`
  return path ? `${path}/${part}` : part
}

export function isCleanup(path: string): boolean {
  return path.endsWith(':finally')
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

export function isDecided(node: NodeState): boolean {
  return (
    node.status === 'succeeded' || node.status === 'failed' || node.status === 'skipped' || node.status === 'cancelled'
  )
}

export function isEnded(status: RunFold['status']): boolean {
  return status === 'succeeded' || status === 'failed' || status === 'cancelled'
}

export function shownStatus(node: NodeState): BlockStatus {
  if (node.status === 'failed' && node.handled) return 'handled'
  if (node.status === 'succeeded' && node.reused) return 'restored'
  if (node.status === 'waiting' && node.wait?.kind === 'attention') return 'attention'
  // The end of a run closes what is open; a container that is closed over a failure inside has failed.
  if (node.status === 'cancelled' && node.region?.failed) return 'failed'
  return node.status
}
