// The lanes of a run: its main line, each container with its iterations or branches, each block with steps with its turns and
// tools. Pure: what is in them are stretches between two events, and the Tape gives the place of an event.

import type { Document } from '../../api/types'
import { nameOf } from '../../document/document'
import {
  isCleanup,
  shortName,
  shownStatus,
  type NodeState,
  type RunFold,
  type ScopeState,
  type StepState,
} from '../../run'
import { endingOf } from '../../run/ending'
import { iconOf, type IconName } from '../../ui/icons'
import { toneOf, type Tone } from '../../ui/status'
import { STEP_ICONS } from '../../ui/steps'
import { traceIndex } from '../trace/rows'
import { triesText } from '../tries'

/** A stretch of a lane, from one event to another; `to` null: it has no end yet. */
export interface Span {
  from: number
  to: number | null
  label: string
  tone: Tone
  /** A wait: named with its length. */
  wait: boolean
  /** It contains others: a stretch that the axis leaves out is no break in it. */
  whole: boolean
  node: NodeState
  step: StepState | null
  attempt: number
}

export interface Lane {
  id: string
  depth: number
  /** '' for a further lane of the same: blocks that ran side by side. */
  label: string
  icon: IconName | null
  /** null: nothing inside. */
  open: boolean | null
  spans: readonly Span[]
}

/** From so many on, iterations and branches that ended well share one lane. */
const SHARED_FROM = 5

/**
 * The lanes of a fold. `folded`: ids of lanes whose inside is not shown. `shares`: iterations and branches that ended well share a
 * lane, whose inside is shown only if `folded` has it.
 */
export function lanesOf(view: RunFold, doc: Document | null, folded: ReadonlySet<string>, shares = false): Lane[] {
  const lanes: Lane[] = []
  const index = traceIndex(view)
  const name = (node: NodeState): string => (doc ? nameOf(doc, node.block) : node.block)
  const icon = (node: NodeState): IconName => iconOf(doc?.blocks[node.block]?.type ?? '')

  const steps = (node: NodeState, depth: number): void => {
    const id = `${node.key}!steps`
    const tools = node.steps.filter((step) => step.kind === 'tool')
    const own = tools.length === node.steps.length ? [] : node.steps.filter((step) => step.kind !== 'tool')
    const open = tools.length ? !folded.has(id) : null
    lanes.push({ id, depth, label: name(node), icon: icon(node), open, spans: turnsOf(node, own) })
    if (open)
      rows(
        `${id}:tools`,
        depth + 1,
        'Tools',
        STEP_ICONS.tool,
        tools.map((step) => stepSpan(node, step, step.name)),
      )
  }
  const container = (node: NodeState, scopes: readonly ScopeState[], depth: number): void => {
    const { region } = node
    const open = scopes.length ? !folded.has(node.key) : null
    const label = region ? `${region.closed} of ${region.count}` : name(node)
    const span = { ...spanOf(node, node.firstSeq, node.finishedAt === null ? null : node.lastSeq, label), whole: true }
    lanes.push({ id: node.key, depth, label: name(node), icon: icon(node), open, spans: [span] })
    if (!open) return
    const ended = shares ? scopes.filter((scope) => scope.status === 'succeeded') : []
    const shared = ended.length >= SHARED_FROM
    const id = `${node.key}!ended`
    if (shared) {
      const inner = ended.flatMap((scope) => index.nodes.get(scope.path) ?? [])
      const ends = [Math.min(...inner.map((each) => each.firstSeq)), Math.max(...inner.map((each) => each.lastSeq))]
      const label = `${ended.length} finished`
      const spans = inner.length
        ? [{ ...spanOf(node, ends[0]!, ends[1]!, label), tone: 'ok' as const, whole: true }]
        : []
      lanes.push({ id, depth: depth + 1, label, icon: null, open: folded.has(id), spans })
    }
    for (const scope of scopes)
      if (!shared || folded.has(id) || scope.status !== 'succeeded')
        inside(scope.path, depth + 1, scopeName(scope), null)
  }
  /** Spans in as many lanes as it takes that none lies above another. */
  const rows = (id: string, depth: number, label: string, sign: IconName | null, spans: readonly Span[]): void => {
    for (const [at, packed] of pack(spans).entries())
      lanes.push({
        id: at ? `${id}+${at}` : id,
        depth,
        label: at ? '' : label,
        icon: at ? null : sign,
        open: null,
        spans: packed,
      })
  }
  const inside = (path: string, depth: number, label: string, sign: IconName | null): void => {
    const nodes = index.nodes.get(path) ?? []
    const plain = nodes.filter((node) => !node.region)
    rows(
      `${path}:main`,
      depth,
      label,
      sign,
      plain.flatMap((node) => spansOf(node, name(node))),
    )
    for (const node of nodes) {
      if (node.region) container(node, index.scopes.get(node.key) ?? [], depth + (path ? 1 : 0))
      else if (node.steps.length) steps(node, depth + (path ? 1 : 0))
    }
  }
  inside('', 0, 'Main', 'start')
  // The cleanup of the run is a scope of the trigger.
  for (const scope of view.scopes.values()) if (scope.path === ':finally') inside(scope.path, 0, 'Cleanup', null)
  return lanes
}

const scopeName = (scope: ScopeState): string => (isCleanup(scope.path) ? 'Cleanup' : `#${scope.index + 1}`)

/** Records of a fold are never changed: what was made of one stays right. */
const made = new WeakMap<NodeState, { name: string; spans: readonly Span[] }>()

function spansOf(node: NodeState, name: string): readonly Span[] {
  const known = made.get(node)
  if (known?.name === name) return known.spans
  const spans = attemptsOf(node, name)
  made.set(node, { name, spans })
  return spans
}

function spanOf(node: NodeState, from: number, to: number | null, label: string): Span {
  const tone = toneOf(shownStatus(node))
  return { from, to, label, tone, wait: false, whole: false, node, step: null, attempt: node.attempt }
}

/** One span for each attempt, and one for what it waited for. */
function attemptsOf(node: NodeState, name: string): Span[] {
  if (node.status === 'skipped') return []
  const end = node.finishedAt === null ? null : node.lastSeq
  if (!node.attempts.length) return [spanOf(node, node.firstSeq, end, name)]
  // Its steps have lanes of their own: here the block is one stretch.
  if (node.steps.length) return [{ ...spanOf(node, node.firstSeq, end, name), whole: true }]
  const spans: Span[] = []
  for (const [i, attempt] of node.attempts.entries()) {
    const last = i === node.attempts.length - 1
    const to = attempt.to ?? (last ? end : (node.attempts[i + 1]?.from ?? end))
    const label = attempt.attempt > 1 ? `${name}, attempt ${attempt.attempt}` : name
    const whole = { ...spanOf(node, attempt.from, to, label), attempt: attempt.attempt }
    if (!last || attempt.error) whole.tone = endingOf(true, attempt.error) === 'interrupted' ? 'quiet' : 'err'
    const asked = last && node.wait && node.wait.seq >= attempt.from ? node.wait.seq : null
    if (asked === null) spans.push(whole)
    else spans.push({ ...whole, from: asked, wait: true, tone: 'wait' })
  }
  return spans
}

function turnsOf(node: NodeState, steps: readonly StepState[]): Span[] {
  let turn = 0
  return steps.map((step) => stepSpan(node, step, step.kind === 'model' ? `turn ${++turn}` : nameOfStep(step)))
}

const nameOfStep = (step: StepState): string => (step.kind === 'step' ? shortName(step.name) : step.name)

function stepSpan(node: NodeState, step: StepState, label: string): Span {
  const status = step.status === 'lost' ? 'attention' : step.status
  const wait = step.kind === 'wait'
  const to = step.to ?? (node.finishedAt === null ? null : node.lastSeq)
  const tone = wait ? 'wait' : toneOf(status)
  const tries = triesText(step)
  return {
    from: step.from,
    to,
    label: tries ? `${label}, ${tries}` : label,
    tone,
    wait,
    whole: false,
    node,
    step,
    attempt: step.attempt,
  }
}

/** Spans in as many rows as it takes that none lies above another. The attempts of a block have one row, with their pauses. */
export function pack(spans: readonly Span[]): Span[][] {
  const groups = new Map<NodeState | StepState, Span[]>()
  for (const span of [...spans].sort((a, b) => a.from - b.from)) {
    const attempts = groups.get(span.step ?? span.node)
    if (attempts) attempts.push(span)
    else groups.set(span.step ?? span.node, [span])
  }
  const rows: Span[][] = []
  const ends: number[] = []
  for (const group of groups.values()) {
    const [first, last] = [group[0]!, group.at(-1)!]
    let row = ends.findIndex((end) => end <= first.from)
    if (row < 0) row = rows.push([]) - 1
    rows[row]!.push(...group)
    ends[row] = Math.max(last.to ?? Infinity, last.from)
  }
  return rows.length ? rows : [[]]
}

/** The pauses between the attempts of each block: the attempt that failed, and the next one. */
export function pausesOf(spans: readonly Span[]): [before: Span, next: Span][] {
  const last = new Map<NodeState, Span>()
  const found: [Span, Span][] = []
  for (const span of spans) {
    const before = span.step ? undefined : last.get(span.node)
    if (before && before.to !== null && span.attempt > before.attempt) found.push([before, span])
    if (!span.step) last.set(span.node, span)
  }
  return found
}
