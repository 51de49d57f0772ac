// One run of the list: its state, workflow, where and why it failed, how long it was queued and ran.

import type { ReactElement, ReactNode } from 'react'
import type { RunSummary } from '../../api/schemas'
import { isEnded } from '../../run'
import { Ago } from '../../ui/Ago'
import { Icon } from '../../ui/icons'
import { Link, navigate } from '../../ui/navigation'
import { Status, toneOf } from '../../ui/status'
import { dateTime, durationText } from '../../ui/time'
import { shortId, whoOf } from '../../ui/words'

export const HEADS = ['State', 'Run', 'Workflow', 'What', 'Tape', 'Took', 'Started', 'By'] as const

/** A key that a client made up, for one request. */
const RANDOM = /^[0-9a-f-]{32,36}(:|$)/

export function Row({
  run,
  lost,
  text,
  title,
  blockName,
  longest,
  chosen,
  onChoose,
}: {
  run: RunSummary
  lost: boolean
  /** The text that was searched for, which is marked. */
  text: string
  /** What is shown in place of the name of its workflow. */
  title: string
  /** The name of a block by its id. */
  blockName: (block: string) => string
  /** The longest duration of the list. */
  longest: number
  chosen: boolean
  onChoose: (on: boolean) => void
}): ReactElement {
  const began = run.started_at_ms ?? run.created_at_ms
  const version = run.version ? `v${run.version}` : run.draft_rev ? `Draft r${run.draft_rev}` : ''
  return (
    <div
      role="row"
      className="runs__row"
      data-testid={`run-${run.id}`}
      data-status={run.status}
      data-chosen={chosen || undefined}
      onClick={(event) => {
        if (!(event.target as HTMLElement).closest('a, .runs__tick')) navigate(`/runs/${run.id}`)
      }}
    >
      <span role="cell" className="runs__tick">
        <input
          type="checkbox"
          aria-label={`Choose ${shortId(run.id)}`}
          checked={chosen}
          onChange={(event) => onChoose(event.target.checked)}
        />
      </span>
      <span role="cell">
        <Status status={lost && !isEnded(run.status) ? 'attention' : run.status} />
      </span>
      <span role="cell" className="mono runs__id" title={run.id}>
        <Marked text={shortId(run.id)} wanted={text} />
      </span>
      <span role="cell" className="runs__name">
        {run.step ? (
          <>
            <span className="runs__step" title="A block of a draft that ran alone">
              <Icon name="play" size={10} /> Step
            </span>{' '}
          </>
        ) : null}
        <Link to={`/runs/${run.id}`} title={run.workflow}>
          {run.step ? `${blockName(run.step)} of ${run.workflow.slice(0, -run.step.length - 1)}` : title}
        </Link>{' '}
        <span className="label">{version}</span>
        {run.key && !RANDOM.test(run.key) ? (
          <b className="runs__key" title="Its own key">
            {' '}
            <Marked text={run.key} wanted={text} />
          </b>
        ) : null}
        {run.parent_run_id ? (
          <Link className="label" to={`/runs/${run.parent_run_id}`} title="The run that started it">
            {' '}
            in {shortId(run.parent_run_id)}
          </Link>
        ) : null}
      </span>
      <What run={run} text={text} blockName={blockName} />
      <span role="cell" className="runs__tape">
        <Tape run={run} longest={longest} />
      </span>
      <span role="cell" className="runs__took">
        {run.duration_ms === null ? '' : durationText(run.duration_ms)}
      </span>
      <span role="cell" className="runs__when" title={dateTime(began)}>
        <Ago at={began} />
      </span>
      <span role="cell" className="runs__by" title={run.by ?? undefined}>
        {run.by ? whoOf(run.by) : ''}
      </span>
    </div>
  )
}

function What({
  run,
  text,
  blockName,
}: {
  run: RunSummary
  text: string
  blockName: (block: string) => string
}): ReactElement {
  const input = run.input_summary && run.input_summary !== '{}' && run.input_summary !== 'null' ? run.input_summary : ''
  const block = run.error?.block
  let what: ReactNode = <span className="mono">{input}</span>
  if (run.error)
    what = (
      <>
        {block ? (
          <b>{text === block ? <mark>{blockName(block)}</mark> : <Marked text={blockName(block)} wanted={text} />}</b>
        ) : null}{' '}
        <span className="runs__error">
          <Marked text={run.error.message} wanted={text} />
        </span>
      </>
    )
  else if (run.stale_since_ms !== null)
    what = (
      <span className="runs__stale" data-testid="stale">
        Worker stopped responding, <Ago at={run.stale_since_ms} />. Another one will continue.
      </span>
    )
  else if (run.lacks)
    what = (
      <span className="runs__stale" data-testid="lacks">
        Waits for {run.lacks}
      </span>
    )
  return (
    <span role="cell" className="runs__what" title={run.error?.message ?? run.lacks ?? input}>
      {what}
    </span>
  )
}

function Marked({ text, wanted }: { text: string; wanted: string }): ReactElement {
  const at = wanted ? text.toLowerCase().indexOf(wanted.toLowerCase()) : -1
  if (at < 0) return <>{text}</>
  return (
    <>
      {text.slice(0, at)}
      <mark>{text.slice(at, at + wanted.length)}</mark>
      {text.slice(at + wanted.length)}
    </>
  )
}

const WIDE = 96
const THIN = 3

/** First in the queue, then at work: lengths grow with the root of the time, so that short ones are seen. */
function Tape({ run, longest }: { run: RunSummary; longest: number }): ReactElement {
  const length = (ms: number): number => Math.max(THIN, WIDE * Math.sqrt(Math.min(1, ms / Math.max(1, longest))))
  const queued = run.started_at_ms === null ? 0 : run.started_at_ms - run.created_at_ms
  const wait = queued > 1000 ? Math.min(WIDE / 3, length(queued)) : 0
  const work = run.duration_ms === null ? WIDE - wait : Math.min(WIDE - wait, length(run.duration_ms))
  return (
    <svg width={WIDE} height="8" aria-hidden="true">
      {wait ? <rect className="runs__queued" width={wait - 2} height="8" rx="2" /> : null}
      <rect data-tone={toneOf(run.status)} x={wait} width={work} height="8" rx="2" />
    </svg>
  )
}
