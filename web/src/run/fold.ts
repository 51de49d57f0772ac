// The ONLY place that knows what an event means: live view, history and replay are the same fold. A container's two ends
// (`review:start`, `review:end`) are folded into one entry under the container's own key.

import type { WaitKind, WireEvent } from '../api/types'
import { applyOps } from '../document/variables'
import {
  bumpScopes,
  closeScope,
  closeCleanup,
  closeScopes,
  countDecided,
  draftOf,
  ended,
  newNode,
  openCleanup,
  openScopes,
  outputOf,
  put,
  sealed,
  countRoute,
  touch,
  type Draft,
} from './change'
import { stepDropped, stepsAfter, stepsEnded, stepWaits } from './steps'
import { keyOf, type NodeState, type OpenWait, type RunFold } from './model'

/** The fold after one event. Events of unknown types only move `seq`. */
export function reduce(view: RunFold, event: WireEvent): RunFold {
  return fold(view, [event])
}

/** The fold after `events`, which follow `view.seq` without a gap. O(keys + events). */
export function fold(view: RunFold, events: readonly WireEvent[]): RunFold {
  if (!events.length) return view
  const draft = draftOf(view)
  for (const event of events) apply(draft, event)
  return sealed(draft)
}

function apply(view: Draft, event: WireEvent): void {
  const { data } = event
  const before = view.at
  view.seq = event.seq
  view.at = event.at_ms
  if (view.status === 'waiting') view.status = 'running'
  switch (event.type) {
    case 'run.started':
      view.status = 'running'
      view.startedAt = event.at_ms
      view.continues = data.continues ?? null
      return
    case 'run.parked':
      if (view.status !== 'cancelling') view.status = 'waiting'
      return
    case 'run.cancelling':
      view.status = 'cancelling'
      return
    case 'run.finished':
      finish(view, event)
      view.continuedAs = data.continued_as ?? null
      return
    case 'variables.patched':
      view.variables = applyOps(view.variables, data.ops ?? [])
      return
    case 'scope.opened':
      openScopes(view, event)
      return
    case 'run.forked':
      view.forkedFrom = { run: data.source ?? '', seq: data.seq ?? 0, at: event.at_ms }
      return
    case 'run.migrated':
      view.version = data.version ?? view.version
      return
    case 'run.recovered':
      view.tears = [...view.tears, { seq: event.seq, at: event.at_ms, lastAt: before ?? event.at_ms }]
      return
  }
  if (event.block === null) return
  const node = view.nodes.get(keyOf(event.block, event.path)) ?? newNode(event)
  const end = event.node !== event.block ? (event.node ?? '').slice(event.block.length + 1) : null
  switch (event.type) {
    case 'node.started': {
      if (end === 'end') return touch(view, node, event)
      const attempts = [
        ...node.attempts,
        { attempt: event.attempt, startedAt: event.at_ms, endedAt: null, error: null, from: event.seq, to: null },
      ]
      return put(view, node, event, {
        status: 'running',
        attempt: event.attempt,
        attempts,
        startedAt: node.startedAt ?? event.at_ms,
        dueAt: null,
      })
    }
    case 'node.succeeded': {
      const route = data.route === undefined ? 'out' : data.route
      put(view, node, event, {
        status: 'succeeded',
        ...ended(node, event),
        route,
        ...outputOf(event),
        error: null,
        reused: Boolean(data.reused ?? data.from_run),
        cached: data.cached ?? false,
        pinned: data.pinned ?? false,
      })
      return decided(view, event, route)
    }
    case 'region.sized': {
      const count = data.count ?? 0
      put(view, node, event, {
        status: 'running',
        startedAt: node.startedAt ?? event.at_ms,
        region: { count, opened: 0, closed: 0, failed: 0 },
      })
      countRoute(view, event.block, count ? 'body' : '!body')
      return countDecided(view, event.path, 1, event.at_ms)
    }
    case 'region.exited': {
      closeScopes(view, node, event.at_ms, 'succeeded')
      closeCleanup(view, event)
      const now = view.nodes.get(node.key) ?? node
      const region = {
        ...(now.region ?? { opened: 0, closed: 0, failed: 0 }),
        count: data.count ?? now.region?.count ?? 0,
      }
      put(view, now, event, {
        status: 'succeeded',
        ...ended(now, event),
        route: 'out',
        ...outputOf(event),
        region,
        reused: data.reused ?? false,
      })
      return decided(view, event, 'out')
    }
    case 'cleanup.opened':
      countRoute(view, event.block, 'finally')
      return openCleanup(view, event, end === null)
    case 'node.failed':
      return failed(view, node, event, end)
    case 'node.skipped': {
      const route = data.reason === 'pruned' ? null : 'out'
      if (end !== 'end' || node.status === 'running')
        put(view, node, event, {
          status: 'skipped',
          ...ended(node, event),
          route,
          reason: data.reason ?? 'pruned',
          because: data.because ?? null,
        })
      if (end === 'start') return countDecided(view, event.path, 1, event.at_ms)
      return decided(view, event, route)
    }
    case 'retry.scheduled': {
      const { attempts } = ended(node, event, data.error)
      return put(view, node, event, {
        status: 'retrying',
        attempts,
        error: data.error ?? null,
        dueAt: data.due_ms ?? null,
        lost: lostAfter(node, event),
      })
    }
    case 'retry.hastened':
      return put(view, node, event, { dueAt: data.due_ms ?? event.at_ms })
    case 'wait.opened': {
      const wait: OpenWait = {
        key: node.key,
        block: node.block,
        kind: (data.kind as WaitKind | undefined) ?? 'signal',
        id: data.wait ?? node.key,
        title: data.title ?? '',
        openedAt: event.at_ms,
        seq: event.seq,
        dueAt: data.due_ms ?? null,
        remindAt: data.remind_ms ?? null,
        outcome: null,
        by: null,
        ...(data.reason === undefined ? {} : { reason: data.reason }),
        ...(data.child === undefined ? {} : { child: data.child }),
        ...(data.step === undefined ? {} : { step: data.step }),
      }
      view.waits.set(wait.id, wait)
      return put(view, node, event, {
        // `each`: of a handler that runs; `node.left` follows if it leaves.
        status: data.each ? 'running' : 'waiting',
        left: node.left || data.each === true,
        wait,
        waits: [...node.waits, wait],
        dueAt: wait.dueAt,
        steps: stepWaits(node.steps, data),
        // That of a step: its attempt was lost before, and counted.
        lost: node.lost + (wait.kind === 'attention' && data.step === undefined && !data.reason ? 1 : 0),
      })
    }
    case 'wait.closed': {
      const closed = node.waits.find((each) => each.id.endsWith(`!${event.attempt}`))
      if (closed) view.waits.delete(closed.id)
      const waits = node.waits.filter((each) => each !== closed)
      if (node.left && closed?.step !== undefined)
        return put(view, node, event, closedAfterLeaving(node, event, closed, waits))
      const other = waits.at(-1)
      if (other) return put(view, node, event, { status: 'waiting', wait: other, waits, dueAt: other.dueAt })
      const wait = closed ? { ...closed, outcome: data.outcome ?? null, by: data.by ?? null } : node.wait
      if (data.outcome === 'cancelled')
        return put(view, node, event, { status: 'cancelled', wait, waits, dueAt: null, ...ended(node, event) })
      return put(view, node, event, { status: 'running', wait, waits, dueAt: null })
    }
    case 'node.left':
      return put(view, node, event, { status: 'waiting', attempts: ended(node, event).attempts, left: true })
    case 'step.started':
    case 'step.retrying':
    case 'step.lost':
      return put(view, node, event, { steps: stepsAfter(node.steps, event) })
    case 'step.finished': {
      // The handler has left and its last wait is over: the attempt has done its part, and another one begins.
      const over = !node.left && node.wait?.step === data.n && node.wait?.id.endsWith(`!${event.attempt}`)
      const attempts = over ? ended(node, event).attempts : node.attempts
      return put(view, node, event, { steps: stepsAfter(node.steps, event), attempts })
    }
    case 'node.log':
      return put(
        view,
        node,
        event,
        data.stream === 'text' ? { said: data.message ?? '' } : { logs: [...node.logs, data.message ?? ''] },
      )
  }
}

/** After the end of a wait of a node whose handler has left. It is entered, unless it runs already, is to be tried again
 * later, or waits as a whole, such as for what became of an attempt. */
function closedAfterLeaving(
  node: NodeState,
  event: WireEvent,
  closed: OpenWait,
  waits: readonly OpenWait[],
): Partial<NodeState> {
  const cancelled = event.data.outcome === 'cancelled'
  const wait = waits.at(-1) ?? { ...closed, outcome: event.data.outcome ?? null, by: event.data.by ?? null }
  const steps = cancelled ? stepDropped(node.steps, closed.step, event.at_ms) : node.steps
  const now = { wait, waits, steps, dueAt: wait.outcome === null ? wait.dueAt : null }
  const asked = waits.some((each) => each.step === undefined)
  if (!asked && node.attempts.at(-1)?.endedAt === null) return { ...now, status: 'running' }
  if (cancelled) return waits.length ? now : { ...now, status: 'cancelled', ...ended(node, event) }
  return asked || node.status === 'retrying' ? now : { ...now, status: 'running' }
}

function failed(view: Draft, node: NodeState, event: WireEvent, end: string | null): void {
  const { data } = event
  const route = data.route ?? null
  const caught = data.caught as [string, unknown[]] | null | undefined
  if (end) closeScopes(view, node, event.at_ms, 'cancelled')
  if (end) closeCleanup(view, event)
  const now = view.nodes.get(node.key) ?? node
  // The journal has one word for both; an attempt that was stopped with its run has not failed.
  const stopped = data.error?.code === 'cancelled' && route === null
  put(view, now, event, {
    status: stopped ? 'cancelled' : 'failed',
    ...ended(now, event, data.error),
    route,
    error: data.error ?? null,
    handled: route !== null || !!caught,
    dueAt: null,
    lost: lostAfter(now, event),
  })
  if (route === null && !caught && !stopped) view.failures = [...view.failures, node.key]
  if (!stopped) bumpScopes(view, event.path, { failed: 1, uncaught: route === null && !caught ? 1 : 0 })
  if (caught?.[0] === 'branch') {
    const parts = event.path.split('/').slice(0, caught[1].length)
    closeScope(view, parts.join('/'), event.at_ms, 'failed')
  }
  if (end === 'start') countDecided(view, event.path, 1, event.at_ms)
  decided(view, event, route)
}

/** Attempts lost so far. One that a person was asked about was counted when the question was put. */
function lostAfter(node: NodeState, event: WireEvent): number {
  const asked = node.wait?.kind === 'attention' && node.wait.id.endsWith(`!${event.attempt}`)
  return node.lost + (event.data.error?.code === 'attempt_lost' && !asked ? 1 : 0)
}

/** A node has its final state: its edges resolve, and its scope is one nearer to its end. */
function decided(view: Draft, event: WireEvent, route: string | null): void {
  if (event.block) countRoute(view, event.block, route ?? '')
  countDecided(view, event.path, 1, event.at_ms)
}
function finish(view: Draft, event: WireEvent): void {
  view.status = event.data.status ?? 'succeeded'
  view.finishedAt = event.at_ms
  view.error = event.data.error ?? null
  if (event.data.output !== undefined && !event.data.truncated) view.output = event.data.output
  for (const node of [...view.nodes.values()]) {
    if (node.status !== 'running' && node.status !== 'retrying' && node.status !== 'waiting') continue
    const steps = stepsEnded(node.steps)
    put(view, node, event, { status: 'cancelled', ...ended(node, event), waits: [], dueAt: null, steps })
  }
  for (const scope of [...view.scopes.values()])
    if (scope.finishedAt === null) closeScope(view, scope.path, event.at_ms, scope.failed ? 'failed' : 'cancelled')
  view.waits.clear()
}
