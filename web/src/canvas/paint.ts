// What the shown run says about a block, an edge or a container: everything here reads the fold at the Tape's cursor, in the
// iteration that is looked at. The edited document may have changed since; then the block is marked stale.

import { useMemo } from 'react'
import { useShallow } from 'zustand/react/shallow'
import { useStore } from 'zustand'
import type { Diagnostic } from '../api/schemas'
import type { Block } from '../api/types'
import { calmStore } from '../state/calm'
import { docStore, specsOf } from '../state/doc'
import { namedHandles, nameOf } from '../document/document'
import { runStore, type RunState } from '../state/live'
import {
  edgeAt,
  isEnded,
  nodeAt,
  pathFor,
  scopesAt,
  statusAt,
  totalsOf,
  type BlockStatus,
  type EdgeView,
  type NodeState,
  type RunFold,
  type ScopeState,
} from '../run'
import { unfinishedFindings, unfinishedStore } from '../state/unfinished'
import { uiStore } from '../state/ui'

export interface Paint {
  status: BlockStatus
  node: NodeState | undefined
  /** Streamed text of the running block. */
  text: string
  /** The block was edited since this run. */
  stale: boolean
}

const IDLE: Paint = { status: 'idle', node: undefined, text: '', stale: false }

export function usePaint(id: string, block: Block): Paint {
  const iter = useStore(uiStore, (s) => s.iter)
  return useStore(
    runStore,
    useShallow(({ doc, view, live, cursor }) => {
      const ran = doc?.blocks[id]
      if (!doc || !ran || view.seq === 0) return IDLE
      const node = nodeAt(view, doc, id, iter)
      const status = node || !isEnded(view.status) ? statusAt(view, doc, id, iter) : skippedAround(view, doc, id, iter)
      const text = node && cursor === 'live' && node.status === 'running' ? (live.get(node.key) ?? '') : ''
      return { status, node, text, stale: isStale(ran, block) }
    }),
  )
}

/** A block in a container that never started has no state of its own: it was skipped with the container. */
function skippedAround(
  view: RunFold,
  doc: Parameters<typeof nodeAt>[1],
  id: string,
  iter: Readonly<Record<string, number>>,
): BlockStatus {
  const parent = doc.blocks[id]?.parent
  const around = parent ? nodeAt(view, doc, parent, iter) : undefined
  if (around?.status === 'skipped' || (around?.region && around.region.opened === 0)) return 'skipped'
  return 'idle'
}

export interface Rounds {
  count: number
  opened: number
  closed: number
  failed: number
  running: number
  /** The one that is looked at. */
  index: number
  scopes: readonly (ScopeState | undefined)[]
}

const rounds = new WeakMap<RunFold, Map<string, Rounds | null>>()

/** Counts of a container, null before it has begun. */
export function useRounds(id: string): Rounds | null {
  const iter = useStore(uiStore, (s) => s.iter)
  return useStore(runStore, ({ doc, view }) => {
    if (!doc || !view.shape.kinds.has(id)) return null
    // One answer for a fold and a place, so that the selection stays equal.
    const key = `${pathFor(view, doc, id, iter)}|${id}|${iter[id] ?? ''}`
    let known = rounds.get(view)
    if (!known) rounds.set(view, (known = new Map()))
    if (!known.has(key)) {
      const region = nodeAt(view, doc, id, iter)?.region
      const { scopes, index } = scopesAt(view, doc, id, iter)
      const running = scopes.reduce((sum, scope) => sum + (scope && scope.finishedAt === null ? 1 : 0), 0)
      known.set(
        key,
        region
          ? {
              count: region.count,
              opened: region.opened,
              closed: region.closed,
              failed: region.failed,
              running,
              index,
              scopes,
            }
          : null,
      )
    }
    return known.get(key) ?? null
  })
}

export interface EdgePaint {
  state: EdgeView['state']
  /** Its target failed or its source did: the colour of an error edge. */
  tone: 'ok' | 'err' | 'run'
  title: string
}

const PLAIN: EdgePaint = { state: 'idle', tone: 'ok', title: '' }

export function useEdgePaint(source: string, handle: string, target: string): EdgePaint {
  const iter = useStore(uiStore, (s) => s.iter)
  return useStore(
    runStore,
    useShallow((run) => edgePaint(run, source, handle, target, iter)),
  )
}

export function edgePaint(
  { doc, view }: Pick<RunState, 'doc' | 'view'>,
  source: string,
  handle: string,
  target: string,
  iter: Readonly<Record<string, number>>,
): EdgePaint {
  if (!doc?.blocks[source] || !doc.blocks[target] || view.seq === 0) return PLAIN
  const { state, live, dead } = edgeAt(view, doc, { source, target, handle }, iter)
  if (state === 'idle') {
    const around =
      isEnded(view.status) && !nodeAt(view, doc, source, iter) && skippedAround(view, doc, source, iter) === 'skipped'
    return around ? { state: 'dead', tone: 'ok', title: 'Skipped: its container did not start' } : PLAIN
  }
  const tone = state === 'active' ? 'run' : handle === 'error' ? 'err' : 'ok'
  const counts = live + dead > 1 ? `, taken ${live} of ${live + dead} times` : ''
  const title = state === 'dead' ? `Skipped: ${whyDead(view, doc, source, handle, iter)}${counts}` : `Taken${counts}`
  return { state, tone, title }
}

function whyDead(
  view: RunFold,
  doc: Parameters<typeof nodeAt>[1],
  source: string,
  handle: string,
  iter: Readonly<Record<string, number>>,
): string {
  const node = nodeAt(view, doc, source, iter)
  const name = nameOf(doc, source)
  if (node?.status === 'skipped') return `${name} was skipped`
  if (node?.status === 'failed' && handle !== 'error') return `${name} failed`
  if (handle === 'error') return `${name} did not fail`
  if (node?.route) return `${name} took branch “${branchOf(doc, source, node.route)}”`
  return `${name} took no branch`
}

/** A branch as it is called on the card. */
function branchOf(doc: Parameters<typeof nodeAt>[1], id: string, route: string): string {
  const block = doc.blocks[id]
  return (block && namedHandles(block, specsOf().get(block.type)).find((named) => named.id === route)?.title) || route
}

/** Why a block was skipped, in a sentence. */
export function whySkipped(node: NodeState | undefined): string {
  const { doc } = runStore.getState()
  if (!node) return 'its container did not start'
  const by = node.because
    ? nameOf(doc ?? docStore.getState().doc, node.because.split('@')[0]!.replace(/:(start|end)$/, ''))
    : null
  switch (node.reason) {
    case 'pruned':
      return by ? `branch of ${by} not taken` : 'branch not taken'
    case 'skip_if':
      return 'its skip condition was true'
    case 'expired':
      return 'no answer in time'
    default:
      return node.reason ?? 'branch not taken'
  }
}

/** Worst status over all iterations: for the minimap. */
export function worstOf(id: string): string {
  const { view } = runStore.getState()
  return totalsOf(view, id).worst ?? 'idle'
}

const stale = new WeakMap<Block, WeakMap<Block, boolean>>()

function isStale(ran: Block, now: Block): boolean {
  if (ran === now) return false
  let known = stale.get(ran)
  if (!known) stale.set(ran, (known = new WeakMap()))
  let answer = known.get(now)
  if (answer === undefined) known.set(now, (answer = essence(ran) !== essence(now)))
  return answer
}

/** What counts for a run: not where a block stands nor what it is called. */
function essence({ type, params, policy, enabled, assign }: Block): string {
  return JSON.stringify([type, params ?? {}, policy ?? {}, enabled ?? true, assign ?? null])
}

const marks = new WeakMap<readonly Diagnostic[], Map<string, Diagnostic>>()

/** The worst finding about a block. */
export function useMark(id: string): Diagnostic | null {
  const unfinished = useStore(unfinishedStore, ({ list }) =>
    list.find((each) => each.block === id && each.draft === docStore.getState().id),
  )
  const found = useStore(docStore, ({ diagnostics }) => {
    let byBlock = marks.get(diagnostics)
    if (!byBlock) {
      marks.set(diagnostics, (byBlock = new Map()))
      for (const found of diagnostics) {
        const block = found.block ?? /^\/blocks\/([^/]+)/.exec(found.pointer)?.[1]
        if (block && (found.severity === 'error' || !byBlock.has(block)) && byBlock.get(block)?.severity !== 'error')
          byBlock.set(block, found)
      }
    }
    return byBlock.get(id) ?? null
  })
  // As in its form: what is missing is not held against a block that was just added.
  const calm = useStore(calmStore, (s) => s.fresh.has(id))
  return useMemo(
    () => (unfinished ? unfinishedFindings([unfinished], unfinished.draft)[0]! : calm ? null : found),
    [unfinished, found, calm],
  )
}
