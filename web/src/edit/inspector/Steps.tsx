// The durable steps of a block: what its handler did, in order, each with its output. A finished one is not done again.

import { useEffect, useRef, useState, type ReactElement } from 'react'
import { useStore } from 'zustand'
import type { JsonObject } from '../../api/schemas'
import type { NodeState, StepState } from '../../run'
import { askedOf, usedText } from '../../run'
import { uiStore } from '../../state/ui'
import { seek } from '../../state/live'
import { Icon } from '../../ui/icons'
import { Status } from '../../ui/status'
import { STEP_ICONS } from '../../ui/steps'
import { durationText } from '../../ui/time'
import { ValueTree } from '../../ui/ValueTree'
import { ErrorCard, Section, sizeText } from './parts'
import { triesText } from '../../watch/tries'

export function Steps({ node }: { node: NodeState }): ReactElement | null {
  const [open, setOpen] = useState<number | null>(null)
  const chosen = useStore(uiStore, (s) => s.step)
  const list = useRef<HTMLOListElement>(null)
  useEffect(() => {
    if (chosen === null) return
    setOpen(chosen)
    list.current?.querySelector(`[data-testid="step-${chosen}"]`)?.scrollIntoView({ block: 'nearest' })
  }, [chosen])
  if (!node.steps.length) return null
  const used = usedText(node.steps)
  return (
    <Section label={node.steps.length === 1 ? '1 step' : `${node.steps.length} steps`}>
      {used ? <p className="label">{used}</p> : null}
      <ol className="attempts" data-testid="steps" ref={list}>
        {node.steps.map((step) => (
          <li key={step.n}>
            <button
              type="button"
              className="attempt attempt--step"
              aria-expanded={open === step.n}
              data-testid={`step-${step.n}`}
              onClick={() => setOpen(open === step.n ? null : step.n)}
            >
              <Icon name={STEP_ICONS[step.kind]} size={14} />
              <span className="attempt__name">{step.name}</span>
              <Status status={step.status === 'lost' ? 'attention' : step.status} />
              <span className="attempt__took mono">
                {step.endedAt === null ? '' : durationText(step.endedAt - step.startedAt)}
              </span>
            </button>
            {open === step.n ? <Step step={step} asked={askedOf(node.steps, step)} /> : null}
          </li>
        ))}
      </ol>
    </Section>
  )
}

function Step({ step, asked }: { step: StepState; asked: JsonObject | undefined }): ReactElement {
  const used = usedText([step])
  const facts = [`Step ${step.n}`, step.kind, step.kind === 'wait' ? '' : EFFECTS[step.effect], triesText(step), used]
  return (
    <div className="stepdetail">
      <p className="label">{facts.filter(Boolean).join(' · ')}</p>
      {asked === undefined ? null : (
        <>
          <p className="label">Asked with</p>
          <ValueTree value={asked} name={`step-${step.n}-asked`} label={`Arguments of step ${step.n}`} height={160} />
          <p className="label">Came back</p>
        </>
      )}
      {step.error ? <ErrorCard error={step.error} /> : null}
      {step.output !== undefined ? (
        <ValueTree value={step.output} name={`step-${step.n}`} label={`Output of step ${step.n}`} height={200} />
      ) : step.size !== undefined ? (
        <p className="part__words">
          The output has {sizeText(step.size)}: event {step.seq} has it.
        </p>
      ) : null}
      <p className="label mono" title="Hash of kind, name and input">
        input {step.inputHash.slice(0, 12)}
        {step.seq === null ? null : (
          <>
            {' · '}
            <button type="button" className="linklike" onClick={() => seek(step.seq!)}>
              event {step.seq}
            </button>
          </>
        )}
      </p>
    </div>
  )
}

const EFFECTS: Readonly<Record<string, string>> = {
  none: 'changes nothing',
  read: 'reads, or can be repeated without harm',
  write: 'changes something outside',
}
