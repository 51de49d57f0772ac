// The Tape of an agent alone: its turns, calls and waits in order. A wait is cut by a break. A click goes to that moment.

import type { ReactElement } from 'react'
import { useStore } from 'zustand'
import type { NodeState, StepState } from '../../run'
import { runStore, seek } from '../../state/live'
import { clockText, durationText } from '../../ui/time'
import { useClock } from '../../ui/useClock'
import type { Turn } from '../../run/talk'

interface Span {
  step: StepState
  label: string
  tone: 'ok' | 'run' | 'wait' | 'err'
  width: number
  broken: boolean
}

/** Longer than this, a step is drawn with a break, at this length. */
const LONG_MS = 5000

export function AgentTape({ node, turns }: { node: NodeState; turns: readonly Turn[] }): ReactElement {
  const at = useStore(runStore, (state) => state.view.at)
  const log = useStore(runStore, (state) => state.timeline.log)
  const now = useClock(1000)
  const spans = node.steps.map((step): Span => {
    const took = (step.endedAt ?? Math.max(now, step.startedAt)) - step.startedAt
    const turn = turns.find((each) => each.step === step)
    const going = step.endedAt === null
    const waits = step.kind === 'wait'
    const name = turn ? `turn ${turn.n}` : step.name.replace(/^approve /, '')
    return {
      step,
      label: waits && step.name.startsWith('approve ') ? `${name} waits, ${durationText(took)}` : name,
      tone:
        step.status === 'failed' || step.status === 'lost'
          ? 'err'
          : going
            ? waits
              ? 'wait'
              : 'run'
            : waits
              ? 'wait'
              : 'ok',
      width: Math.min(took, LONG_MS),
      broken: took > LONG_MS,
    }
  })
  const first = node.steps[0]!.startedAt
  const go = (step: StepState): void => {
    const event = log.find(
      (each) =>
        each.type === 'step.started' && each.block === node.block && each.path === node.path && each.data.n === step.n,
    )
    if (event) seek(event.seq)
  }
  return (
    <div className="agenttape" role="group" aria-label="Tape of the agent" data-testid="agent-tape">
      <b>Tape</b>
      <ol>
        {spans.map((span) => (
          <li key={span.step.n} style={{ flexGrow: Math.max(span.width, 120) }}>
            <button
              type="button"
              data-tone={span.tone}
              data-broken={span.broken || undefined}
              title={span.label}
              onClick={() => go(span.step)}
            >
              {span.label}
            </button>
          </li>
        ))}
      </ol>
      <span className="mono">{clockText(Math.max(0, (at ?? first) - first))}</span>
    </div>
  )
}
