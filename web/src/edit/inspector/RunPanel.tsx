// No block of a run is selected: the run itself, with its input, output, error and variables.

import type { ReactElement } from 'react'
import { useStore } from 'zustand'
import type { Json } from '../../api/schemas'
import { runStore } from '../../state/live'
import { EmptyState } from '../../ui/EmptyState'
import { Status } from '../../ui/status'
import { ValueTree } from '../../ui/ValueTree'
import { dateTime, durationText } from '../../ui/time'
import { useClock } from '../../ui/useClock'
import { whoOf } from '../../ui/words'
import { Section } from './parts'
import { Published } from './Published'
import { outputOf, RunOutcome } from './RunOutcome'

export function RunPanel(): ReactElement {
  const run = useStore(runStore)
  const { view, meta, error, id } = run
  const now = useClock(500)
  if (!id) return <EmptyState title="No run" />
  if (error)
    return (
      <EmptyState icon="warning" title="Cannot show this run">
        {error}
      </EmptyState>
    )
  const output = outputOf(run)
  const input = meta?.input
  return (
    <>
      <header className="inspector__head">
        <div className="inspector__title">
          <h2>{meta?.workflow ?? 'Run'}</h2>
          <Status status={view.status} />
        </div>
        <dl className="facts">
          <dt>Run</dt>
          <dd className="mono facts__id">{id}</dd>
          {meta?.version ? (
            <>
              <dt>Version</dt>
              <dd>{meta.version}</dd>
            </>
          ) : null}
          {view.startedAt ? (
            <>
              <dt>Started</dt>
              <dd>{dateTime(view.startedAt)}</dd>
              <dt>Duration</dt>
              <dd>{durationText((view.finishedAt ?? now) - view.startedAt)}</dd>
            </>
          ) : null}
          {meta?.by ? (
            <>
              <dt>Started by</dt>
              <dd>{whoOf(meta.by)}</dd>
            </>
          ) : null}
        </dl>
      </header>
      <div className="inspector__body">
        <RunOutcome height={280} />
        <Published />
        {input === undefined || input === null ? null : (
          <Section label="Input">
            <ValueTree value={input} base="input" name={`${id}-input`} label="Input of the run" height={220} />
          </Section>
        )}
        {Object.keys(view.variables).length ? (
          <Section label="Variables">
            <ValueTree
              value={view.variables as Json}
              base="workflow"
              name={`${id}-variables`}
              label="Variables"
              height={220}
            />
          </Section>
        ) : null}
        {output === undefined && !view.error && (input === undefined || input === null) ? (
          <EmptyState title="Select a block">Its input, output and events appear here.</EmptyState>
        ) : null}
      </div>
    </>
  )
}
