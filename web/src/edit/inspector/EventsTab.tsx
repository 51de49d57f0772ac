// The events of one block in the scope that is shown, up to the moment that is shown. Choosing one moves the Tape there.

import { useMemo, useState, type ReactElement } from 'react'
import { useStore } from 'zustand'
import { runStore, seek } from '../../state/live'
import { iterOf, type NodeState } from '../../run'
import { uiStore } from '../../state/ui'
import { Button } from '../../ui/Button'
import { EmptyState } from '../../ui/EmptyState'
import { describe, toneOfEvent } from '../../watch/events/describe'
import { useFieldScope } from '../../forms/fields/scope'
import { clockText } from '../../ui/time'

const SHOWN = 200

export function EventsTab({ id, node }: { id: string; node: NodeState | undefined }): ReactElement {
  const { doc } = useFieldScope()
  const timeline = useStore(runStore, (state) => state.timeline)
  const head = useStore(runStore, (state) => state.head.seq)
  const cursor = useStore(runStore, (state) => state.view.seq)
  const started = useStore(runStore, (state) => state.head.startedAt)
  const [all, setAll] = useState(false)
  const path = node?.path
  const events = useMemo(
    () => (path === undefined ? [] : timeline.log.filter((event) => event.block === id && event.path === path)),
    [timeline, head, id, path],
  )
  if (!events.length) return <EmptyState title="No events yet" />
  const shown = all ? events : events.slice(-SHOWN)
  return (
    <>
      {shown.length < events.length ? (
        <Button onClick={() => setAll(true)}>{`Show ${events.length - shown.length} earlier events`}</Button>
      ) : null}
      <ol className="nodeevents">
        {shown.map((event) => (
          <li key={event.seq}>
            <button
              type="button"
              className="nodeevent"
              data-later={event.seq > cursor || undefined}
              aria-current={event.seq === cursor ? 'step' : undefined}
              title={new Date(event.at_ms).toLocaleString()}
              onClick={() => {
                seek(event.seq)
                uiStore.setState(({ iter }) => ({ iter: { ...iter, ...iterOf(event.path) } }))
              }}
            >
              <span className="nodeevent__seq">{event.seq}</span>
              <span className="nodeevent__at">{clockText(event.at_ms - (started ?? event.at_ms))}</span>
              <span className="nodeevent__text" data-tone={toneOfEvent(event)}>
                {describe({ ...event, path: '' }, doc)}
              </span>
            </button>
          </li>
        ))}
      </ol>
    </>
  )
}
