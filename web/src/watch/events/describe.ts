// An event in words: "Score risk started", "Post entry failed in iteration 7 of Each invoice: 409 duplicate entry". The Tape speaks
// them, the list of events shows them.

import type { Document, EventData, WireEvent } from '../../api/types'
import { placeOf, usedText } from '../../run'
import { kindOf, namedHandles, nameOf } from '../../document/document'
import type { Tone } from '../../ui/status'
import { roughly } from '../../ui/time'
import { whoOf } from '../../ui/words'

export const EVENT_GROUPS = [
  {
    id: 'run',
    label: 'Run',
    types: [
      'run.started',
      'run.parked',
      'run.cancelling',
      'run.continuing',
      'run.finished',
      'run.forked',
      'run.migrated',
      'run.recovered',
    ],
  },
  {
    id: 'block',
    label: 'Blocks',
    types: ['node.started', 'node.succeeded', 'node.failed', 'node.skipped', 'region.exited'],
  },
  { id: 'retry', label: 'Failures and retries', types: ['node.failed', 'retry.scheduled', 'retry.hastened'] },
  { id: 'scope', label: 'Iterations and branches', types: ['region.sized', 'scope.opened', 'region.exited'] },
  { id: 'wait', label: 'Waits', types: ['wait.opened', 'wait.closed', 'update.answered', 'node.left', 'run.parked'] },
  { id: 'step', label: 'Steps of blocks', types: ['step.started', 'step.retrying', 'step.finished', 'step.lost'] },
  { id: 'data', label: 'State, variables and logs', types: ['node.state', 'variables.patched', 'node.log'] },
] as const

/** The tone of what an event says; 'quiet' for what is neither good nor bad. */
export function toneOfEvent(event: WireEvent): Tone {
  switch (event.type) {
    case 'run.started':
    case 'node.started':
      return 'run'
    case 'node.succeeded':
    case 'region.exited':
      return 'ok'
    case 'step.finished':
      return event.data.error ? 'err' : 'ok'
    case 'step.retrying':
      return 'err'
    case 'step.lost':
      return 'wait'
    case 'node.failed':
    case 'retry.scheduled':
    case 'run.recovered':
      return 'err'
    case 'wait.opened':
    case 'node.left':
    case 'run.parked':
      return 'wait'
    case 'wait.closed':
      return event.data.outcome === 'cancelled' || event.data.outcome === 'expired' ? 'quiet' : 'ok'
    case 'run.finished':
      return event.data.status === 'succeeded' ? 'ok' : event.data.status === 'failed' ? 'err' : 'quiet'
    default:
      return 'quiet'
  }
}

/** What happened, as a sentence without a full stop. Names come from `doc`; without one, ids. */
export function describe(event: WireEvent, doc: Document | null): string {
  const where = placeOf(event.path, doc)
  return `${happened(event, doc)}${where ? ` in ${where}` : ''}${detailOf(event.data)}`
}

export function reminderText(at: number, openedAt: number): string {
  return `Reminder after ${roughly(at - openedAt)}`
}

/** A node key in words: "Send in iteration 6 of Review". */
export function nodeText(key: string, doc: Document | null): string {
  const [node = '', path = ''] = key.split('@', 2)
  const block = node.replace(/:(start|end)$/, '')
  const where = placeOf(path, doc)
  return `${doc ? nameOf(doc, block) : block}${where ? ` in ${where}` : ''}`
}

function happened(event: WireEvent, doc: Document | null): string {
  const { data, type } = event
  const name = event.block === null ? '' : doc ? nameOf(doc, event.block) : event.block
  const isEnd = event.node?.endsWith(':end') ?? false
  const isParallel = event.block !== null && !!doc && kindOf(doc, event.block) === 'parallel'
  const word = isParallel ? 'branch' : 'iteration'
  switch (type) {
    case 'run.started':
      return `Run started${data.by ? ` by ${whoOf(data.by)}` : ''}${data.continues ? `, continues run ${data.continues}` : ''}`
    case 'run.parked':
      return 'Run paused'
    case 'run.cancelling':
      return 'Cancelling the run'
    case 'run.forked':
      return `Run forked from ${data.source ?? 'another run'} at event ${data.seq ?? 0}`
    case 'run.migrated':
      return `Run moved to version ${data.version ?? 'unknown'}`
    case 'run.recovered':
      return 'The server stopped, and the run continues in another process'
    case 'run.continuing':
      return `${name} ends the run, and a new run continues it`
    case 'run.finished':
      return data.continued_as
        ? `Run succeeded, continued as run ${data.continued_as}`
        : `Run ${data.status ?? 'finished'}`
    case 'node.started':
      return isEnd
        ? `${name}: ${isParallel ? 'branches collected' : 'loop condition checked'}`
        : event.attempt > 1
          ? `${name} started, attempt ${event.attempt}`
          : `${name} started`
    case 'node.succeeded': {
      if (data.pinned) return `${name} did not run: its output is pinned in the draft`
      if (data.cached) return `${name} succeeded, result from the cache`
      if (data.reused) return `${name} succeeded, result of the previous run`
      return data.route && data.route !== 'out'
        ? `${name} succeeded. Branch taken: ${branchOf(doc, event.block, data.route)}`
        : `${name} succeeded`
    }
    case 'node.failed':
      return data.route || data.caught ? `${name} failed, handled` : `${name} failed`
    case 'node.skipped':
      return `${name} skipped: ${SKIPS[data.reason ?? 'pruned'] ?? data.reason}`
    case 'retry.scheduled':
      return data.error?.code === 'attempt_lost'
        ? `${name} resumed after a restart`
        : data.error?.code === 'code_changed'
          ? `${name} is tried with the code that is here`
          : data.error?.code === 'run_forked'
            ? `${name} starts again in this run`
            : data.deferred === 'asked'
              ? `${name} was asked to try again later`
              : data.deferred === 'not_begun'
                ? `${name} could not start and is tried again`
                : `${name} failed, attempt ${event.attempt + 1} scheduled`
    case 'retry.hastened':
      return `${name}: attempt ${event.attempt} starts now`
    case 'region.sized':
      return data.count === 0
        ? `${name} has no items`
        : `${name} started, ${data.count === 1 ? `1 ${word}` : `${data.count} ${word}${isParallel ? 'es' : 's'}`}`
    case 'scope.opened': {
      const first = (data.first ?? 0) + 1
      const count = data.count ?? 1
      return count > 1
        ? `${name}: ${word}${isParallel ? 'es' : 's'} ${first} to ${first + count - 1} started`
        : `${name}: ${word} ${first} started`
    }
    case 'region.exited':
      return `${name} finished after ${data.count ?? 0} ${word}${data.count === 1 ? '' : isParallel ? 'es' : 's'}`
    case 'wait.opened':
      return `${name} is waiting for ${WAITS[data.kind ?? ''] ?? `a ${data.kind}`}${data.remind_ms ? `, ${reminderText(data.remind_ms, event.at_ms).toLowerCase()}` : ''}`
    case 'wait.closed':
      return `${name}: ${OUTCOMES[data.outcome ?? ''] ?? data.outcome}${data.by ? ` by ${data.by}` : ''}`
    case 'node.left':
      return `${name} waits, and continues ${data.again ? 'at once' : 'when one of its waits ends'}`
    case 'step.started':
      return `${name}: step ${data.n} started, ${data.name ?? ''}`
    case 'step.finished': {
      const used = usedText([{ usage: data.usage ?? {}, cost: data.cost ?? null }])
      return `${name}: step ${data.n} ${data.error ? 'failed' : data.cached ? 'has a cached result' : 'finished'}${used ? `, ${used}` : ''}`
    }
    case 'step.retrying':
      return `${name}: step ${data.n} failed, try ${(data.times ?? 0) + 1} in ${roughly((data.due_ms ?? 0) - event.at_ms)}`
    case 'step.lost':
      return `${name}: step ${data.n} was lost${data.again ? ' and is done again' : ''}`
    case 'node.state':
      return `${name} published its state`
    case 'update.answered':
      return `${name} ${data.refused === undefined ? 'answered' : 'refused'} update ${data.name ?? ''}${data.refused ? `: ${data.refused}` : ''}`
    case 'variables.patched':
      return `${name} set ${(data.ops ?? []).map(([, path]) => path.replace(/^\$\.?/, '')).join(', ') || 'variables'}`
    case 'node.log':
      return data.stream === 'text' ? `${name} streamed: ${data.message ?? ''}` : `${name}: ${data.message ?? ''}`
    default:
      return data.message ? `${name || 'Run'}: ${data.message}` : name ? `${name} ${type}` : type
  }
}

/** A branch by its title. */
function branchOf(doc: Document | null, id: string | null, route: string): string {
  const block = id === null ? undefined : doc?.blocks[id]
  return (
    (block && namedHandles(block).find((named) => named.id === route)?.title) ||
    (route === 'error' ? 'On error' : route)
  )
}

function detailOf(data: EventData): string {
  return data.error ? `: ${data.error.message}` : ''
}

const SKIPS: Record<string, string> = {
  pruned: 'branch not taken',
  skip_if: 'its skip condition was true',
  expired: 'no answer in time',
}
const OUTCOMES: Record<string, string> = {
  fired: 'wait finished',
  answered: 'answered',
  expired: 'expired',
  cancelled: 'wait cancelled',
}
const WAITS: Record<string, string> = {
  approval: 'a decision',
  form: 'an answer',
  timer: 'its due time',
  signal: 'a signal',
  webhook: 'a request',
  child: 'a run it started',
  attention: 'a decision about a lost attempt',
}
