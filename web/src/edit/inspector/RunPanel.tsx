// No block of a run is selected: the run itself, with its input, output, error and variables.

import type { ReactElement } from 'react'
import { useStore } from 'zustand'
import type { Json } from '../../api/schemas'
import type { ErrorInfo } from '../../api/types'
import { nameOf } from '../../document/document'
import { runStore } from '../../state/live'
import { firstError } from '../../run'
import { EmptyState } from '../../ui/EmptyState'
import { Status } from '../../ui/status'
import { ValueTree } from '../../ui/ValueTree'
import { dateTime, durationText } from '../../ui/time'
import { useClock } from '../../ui/useClock'
import { whoOf } from '../../ui/words'
import { selectNode } from '../../actions/jump'
import { ErrorCard, Section } from './parts'

export function RunPanel(): ReactElement {
  const { view, meta, doc, error, id } = useStore(runStore, (state) => state)
  const now = useClock(500)
  if (!id) return <EmptyState title="No run" />
  if (error)
    return (
      <EmptyState icon="warning" title="Cannot show this run">
        {error}
      </EmptyState>
    )
  const failed = firstError(view)
  const output =
    view.output ?? (view.finishedAt !== null && view.seq === meta?.seq ? (meta.output ?? undefined) : undefined)
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
            <ValueTree value={output} name={`${id}-output`} label="Output of the run" height={280} />
          </Section>
        )}
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
