// How the run that is shown has ended: its error with the way to the block, and its output.

import type { ReactElement } from 'react'
import { useStore } from 'zustand'
import { selectNode } from '../../actions/jump'
import type { ErrorInfo } from '../../api/types'
import { nameOf } from '../../document/document'
import { firstError } from '../../run'
import { runStore, type RunState } from '../../state/live'
import { Link } from '../../ui/navigation'
import { Status } from '../../ui/status'
import { durationText } from '../../ui/time'
import { ValueTree } from '../../ui/ValueTree'
import { ErrorCard, Section } from './parts'

/** What the run returned; undefined: nothing yet. */
export function outputOf({ view, meta }: RunState): RunState['view']['output'] {
  const recorded = view.finishedAt !== null && view.seq === meta?.seq ? (meta.output ?? undefined) : undefined
  return view.output ?? recorded
}

export function RunOutcome({ height }: { height: number }): ReactElement {
  const run = useStore(runStore)
  const { view, doc, id } = run
  const failed = firstError(view)
  const output = outputOf(run)
  return (
    <>
      {view.error ? (
        <Section
          label="Error"
          tools={
            failed && doc ? (
              <button type="button" className="linklike" onClick={() => selectNode(failed)}>
                {nameOf(doc, failed.block)}
              </button>
            ) : null
          }
        >
          <ErrorCard error={view.error as ErrorInfo} />
        </Section>
      ) : null}
      {output === undefined ? null : (
        <Section label="Output">
          <ValueTree value={output} name={`${id}-output`} label="Output of the run" height={height} />
        </Section>
      )}
    </>
  )
}

/** In the panel of the workflow: the last run, once it has ended. */
export function LastRun(): ReactElement | null {
  const { id, view } = useStore(runStore)
  if (id === null || view.finishedAt === null || view.startedAt === null) return null
  return (
    <section className="lastrun" aria-label="Last run" data-testid="last-run">
      <p className="lastrun__head">
        <b>Last run</b>
        <Status status={view.status} detail={`in ${durationText(view.finishedAt - view.startedAt)}`} />
        <Link to={`/runs/${id}`} className="linklike">
          Open
        </Link>
      </p>
      <RunOutcome height={180} />
    </section>
  )
}
