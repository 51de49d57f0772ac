// The state that a durable function had published at the moment that is looked at.

import { useMemo, type ReactElement } from 'react'
import { useStore } from 'zustand'
import type { EventData } from '../../api/types'
import { runStore } from '../../state/live'
import { ValueTree } from '../../ui/ValueTree'
import { Section, sizeText } from './parts'

export function Published(): ReactElement | null {
  const state = usePublished()
  return state ? (
    <Section label="State">
      <PublishedValue state={state} />
    </Section>
  ) : null
}

/** The data of the event, or null if none was published by then. */
export function usePublished(): EventData | null {
  const timeline = useStore(runStore, (s) => s.timeline)
  const seq = useStore(runStore, (s) => s.view.seq)
  return useMemo(() => {
    let at = seq - 1
    while (at >= 0 && timeline.log[at]?.type !== 'node.state') at--
    return timeline.log[at]?.data ?? null
  }, [timeline, seq])
}

export function PublishedValue({ state }: { state: EventData }): ReactElement {
  const id = useStore(runStore, (s) => s.id)
  const { output, truncated, preview, size } = state
  return truncated ? (
    <>
      <span className="label">First 64 kB of {sizeText(size ?? 0)}</span>
      <pre className="rawvalue" tabIndex={0} aria-label="State, beginning">
        {preview}
      </pre>
    </>
  ) : (
    <ValueTree value={output ?? null} name={`${id}-state`} label="State that the run published" height={220} />
  )
}
