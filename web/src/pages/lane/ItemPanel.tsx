// One call of a durable function: what it got, what came back, when; and a run that continues from there.

import { useState, type ReactElement } from 'react'
import { useStore } from 'zustand'
import type { WaitView } from '../../api/types'
import { ErrorCard, Section, sizeText } from '../../edit/inspector/parts'
import '../../edit/inspector/inspector.css'
import { shortName, usedText } from '../../run'
import type { LaneItem } from '../../run/lane'
import { runStore, seek } from '../../state/live'
import { Button } from '../../ui/Button'
import { Icon } from '../../ui/icons'
import { useReadOnly } from '../../ui/rights'
import { Status } from '../../ui/status'
import { durationText, exactTime } from '../../ui/time'
import { ValueTree } from '../../ui/ValueTree'
import { triesText } from '../../watch/tries'
import { ForkDialog } from '../../watch/run/ForkDialog'
import { iconOfItem } from './icon'
import { WaitAction } from './WaitAction'

const EFFECTS: Readonly<Record<string, string>> = {
  none: 'changes nothing',
  read: 'reads',
  write: 'changes something outside',
}

interface ItemPanelProps {
  item: LaneItem
  view: WaitView | undefined
  onAnswer: (wait: WaitView) => void
}

export function ItemPanel({ item, view, onAnswer }: ItemPanelProps): ReactElement {
  const status = item.status === 'lost' ? 'attention' : item.status
  return (
    <div className="inspector" data-testid="lane-item">
      <header className="inspector__head">
        <div className="inspector__title">
          <Icon name={iconOfItem(item)} />
          <h2 title={item.name}>{shortName(item.name)}</h2>
          <Status status={status} />
        </div>
        <p className="label">
          {[`Call ${item.n}`, item.line ? `line ${item.line}` : '', item.group, factsOf(item)]
            .filter(Boolean)
            .join(' · ')}
        </p>
        {view || item.wait?.child ? (
          <div className="laneitem__action">
            <WaitAction item={item} view={view} onAnswer={onAnswer} />
          </div>
        ) : null}
      </header>
      <div className="laneitem__body">
        {item.error ? <ErrorCard error={item.error} /> : null}
        {item.shown === null ? null : (
          <Section label="Input">
            {typeof item.shown === 'string' ? (
              <pre className="rawvalue" tabIndex={0} aria-label="Beginning of the input">
                {item.shown}
              </pre>
            ) : (
              <ValueTree value={item.shown} name={`call-${item.n}-input`} label="Input" height={220} />
            )}
          </Section>
        )}
        <Output item={item} />
        <Times item={item} />
      </div>
    </div>
  )
}

function factsOf(item: LaneItem): string {
  const effect = item.kind === 'wait' ? '' : (EFFECTS[item.effect] ?? '')
  return [item.task ? `task ${item.task}` : '', effect, triesText(item), usedText([item])].filter(Boolean).join(' · ')
}

function Output({ item }: { item: LaneItem }): ReactElement | null {
  if (item.output === undefined && item.size === undefined) return null
  return (
    <Section label="Output">
      {item.output !== undefined ? (
        <ValueTree value={item.output} name={`call-${item.n}`} label="Output" height={260} />
      ) : (
        <p className="part__words">
          The output has {sizeText(item.size!)}: event {item.seq} has it.
        </p>
      )}
    </Section>
  )
}

function Times({ item }: { item: LaneItem }): ReactElement {
  const run = useStore(runStore, (s) => s.meta)
  const doc = useStore(runStore, (s) => s.doc)
  const mayNot = useReadOnly()
  const [forking, setForking] = useState(false)
  return (
    <Section label="Times">
      <dl className="laneitem__times">
        <dt>Began</dt>
        <dd>
          <Moment at={item.startedAt} seq={item.from} />
        </dd>
        {item.endedAt === null ? null : (
          <>
            <dt>Ended</dt>
            <dd>
              <Moment at={item.endedAt} seq={item.to} />
            </dd>
            <dt>Took</dt>
            <dd className="mono">{durationText(item.endedAt - item.startedAt)}</dd>
          </>
        )}
        {item.wait?.id && item.wait.dueAt !== null ? (
          <>
            <dt>{item.wait.kind === 'timer' ? 'Until' : 'Expires'}</dt>
            <dd className="mono">{exactTime(item.wait.dueAt)}</dd>
          </>
        ) : null}
      </dl>
      {item.to !== null && run ? (
        <Button
          icon="router"
          why={mayNot}
          data-testid="lane-fork"
          title="A new run that continues after this call"
          onClick={() => setForking(true)}
        >
          Fork from here
        </Button>
      ) : null}
      {forking && run ? <ForkDialog run={run} doc={doc} seq={item.to!} onClose={() => setForking(false)} /> : null}
    </Section>
  )
}

function Moment({ at, seq }: { at: number; seq: number | null }): ReactElement {
  return (
    <>
      <span className="mono">{exactTime(at)}</span>
      {seq === null ? null : (
        <button type="button" className="linklike" onClick={() => seek(seq)}>
          event {seq}
        </button>
      )}
    </>
  )
}
