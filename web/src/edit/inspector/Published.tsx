// The state that a durable function had published at the moment that is looked at.

import { useMemo, type ReactElement } from 'react'
import { useStore } from 'zustand'
import { runStore } from '../../state/live'
import { ValueTree } from '../../ui/ValueTree'
import { Section, sizeText } from './parts'

export function Published(): ReactElement | null {
  const { timeline, view, id } = useStore(runStore)
  const { seq } = view
  const event = useMemo(() => timeline.log.slice(0, seq).findLast((one) => one.type === 'node.state'), [timeline, seq])
  if (!event) return null
  const { output, truncated, preview, size } = event.data
  return (
    <Section label="State">
      {truncated ? (
        <>
          <span className="label">First 64 kB of {sizeText(size ?? 0)}</span>
          <pre className="rawvalue" tabIndex={0} aria-label="State, beginning">
            {preview}
          </pre>
        </>
      ) : (
        <ValueTree value={output ?? null} name={`${id}-state`} label="State that the run published" height={220} />
      )}
    </Section>
  )
}
