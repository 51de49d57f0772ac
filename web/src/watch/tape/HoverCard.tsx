// The event under the pointer on the Tape: a card above it, with block, time, attempt, and the value before and after.

import type { ReactElement, ReactNode } from 'react'
import { useStore } from 'zustand'
import type { WireEvent } from '../../api/types'
import { nameOf } from '../../document/document'
import { placeOf, shortName, type Tear } from '../../run'
import { runStore } from '../../state/live'
import { durationText, exactTime } from '../../ui/time'
import { describe } from '../events/describe'
import { changeAt, takenOver, type Change } from './changes'
import type { Span } from './lanes'

const WIDTH = 288

/** `x` in pixels from the left of the Tape. */
export function HoverCard({ x, width, children }: { x: number; width: number; children: ReactNode }): ReactElement {
  const left = Math.max(8, Math.min(width - WIDTH - 8, x - WIDTH / 2))
  return (
    <div className="tape__card" data-testid="tape-card" style={{ left, width: WIDTH }} aria-hidden="true">
      {children}
    </div>
  )
}

function Head({ title, at }: { title: string; at: number | undefined }): ReactElement {
  return (
    <p className="tape__card-head">
      <b>{title}</b>
      <span className="mono">{at === undefined ? '' : exactTime(at)}</span>
    </p>
  )
}

function Changed({ change }: { change: Change | null }): ReactElement | null {
  if (!change) return null
  return (
    <div className="tape__change">
      <span>{change.name}</span>
      {change.before === null ? null : (
        <code data-when="before">
          <i>Before</i> {change.before}
        </code>
      )}
      <code data-when="now">
        <i>{change.before === null ? 'Value' : 'After'}</i> {change.after}
      </code>
    </div>
  )
}

/** One event of the strip. */
export function EventFacts({ event }: { event: WireEvent }): ReactElement {
  const { doc, timeline } = runStore.getState()
  const title = event.block === null ? 'Run' : doc ? nameOf(doc, event.block) : event.block
  return (
    <>
      <Head title={title} at={event.at_ms} />
      <p>{describe(event, doc)}</p>
      <Changed change={changeAt(timeline, event.seq)} />
    </>
  )
}

/** One stretch of a lane. */
export function SpanFacts({ span }: { span: Span }): ReactElement {
  const doc = useStore(runStore, (s) => s.doc)
  const timeline = useStore(runStore, (s) => s.timeline)
  const { log } = timeline
  const [from, to] = [log[span.from - 1], span.to === null ? undefined : log[span.to - 1]]
  const place = placeOf(span.node.path, doc)
  const block = doc ? nameOf(doc, span.node.block) : span.node.block
  const facts = [
    to && from ? durationText(to.at_ms - from.at_ms) : span.wait ? 'Still waiting' : 'Still running',
    span.attempt > 1 ? `attempt ${span.attempt}` : '',
    place,
  ].filter(Boolean)
  // The lane has its name without the module.
  const called = span.step?.kind === 'step' ? span.label.replace(shortName(span.step.name), span.step.name) : span.label
  const error = span.step ? span.step.error : span.node.attempts.find((each) => each.attempt === span.attempt)?.error
  return (
    <>
      <Head title={span.step ? `${block}: ${called}` : block} at={from?.at_ms} />
      <p>{facts.join(', ')}</p>
      {error ? <p className="tape__card-error">{error.message}</p> : null}
      <Changed change={span.to === null ? null : changeAt(timeline, span.to)} />
    </>
  )
}

/** The facts about a place at which the server died. */
export function TearFacts({ tear }: { tear: Tear }): ReactElement {
  const { kept, again } = takenOver(runStore.getState().timeline, tear.seq)
  const steps = kept === 1 ? '1 finished step was' : `${kept} finished steps were`
  return (
    <>
      <Head title="Server stopped" at={tear.lastAt} />
      <p>
        Back {durationText(tear.at - tear.lastAt)} later. {steps} taken from the log,{' '}
        {again ? `${again} ${again === 1 ? 'was' : 'were'} started again` : 'none was started again'}.
      </p>
    </>
  )
}
