// The log itself: every event, by seq. Choosing one puts the Tape there.

import { useEffect, useMemo, useRef, useState, type KeyboardEvent, type ReactElement } from 'react'
import { useStore } from 'zustand'
import type { Json } from '../../api/schemas'
import type { WireEvent } from '../../api/types'
import { runStore, seek } from '../../state/live'
import { nameOf } from '../../document/document'
import { EmptyState } from '../../ui/EmptyState'
import { ValueTree } from '../../ui/ValueTree'
import { pause } from '../tape/play'
import { timeOfDay } from '../../ui/time'
import { selectNode } from '../../actions/jump'
import { useVirtual } from '../trace/virtual'
import { describe, EVENT_GROUPS, toneOfEvent } from './describe'
import { placeOf } from '../../run'
import './events.css'

const ROW_H = 22

export default function Events(): ReactElement {
  const timeline = useStore(runStore, (s) => s.timeline)
  const length = useStore(runStore, (s) => s.head.seq)
  const cursor = useStore(runStore, (s) => s.cursor)
  const doc = useStore(runStore, (s) => s.doc)
  const [group, setGroup] = useState('')
  const [block, setBlock] = useState('')
  const [active, setActive] = useState<number | null>(null)
  const box = useRef<HTMLDivElement>(null)

  const blocks = useMemo(
    () => [...new Set(timeline.log.flatMap((event) => (event.block ? [event.block] : [])))],
    [timeline, length],
  )
  const shown = useMemo(() => {
    const types: readonly string[] | undefined = EVENT_GROUPS.find((each) => each.id === group)?.types
    if (!types && !block) return timeline.log.slice()
    return timeline.log.filter((event) => (!types || types.includes(event.type)) && (!block || event.block === block))
  }, [timeline, length, group, block])
  const virtual = useVirtual(box, shown.length, ROW_H)
  const seq = cursor === 'live' ? length : cursor

  // New events scroll in while the end is in view; in a replay the list follows the cursor.
  const wasAtEnd = useRef(true)
  useEffect(() => {
    if (cursor !== 'live') virtual.reveal(Math.max(0, lastBefore(shown, cursor)))
    else if (wasAtEnd.current) virtual.reveal(shown.length - 1)
  }, [cursor, shown])

  const choose = (event: WireEvent): void => {
    setActive(event.seq)
    pause()
    seek(event.seq)
    if (event.block !== null) selectNode({ block: event.block, path: event.path })
  }
  const at =
    active !== null && cursor === active ? shown.findIndex((event) => event.seq === active) : lastBefore(shown, seq)
  const onKey = (event: KeyboardEvent): void => {
    if (event.ctrlKey || event.metaKey || event.altKey) return
    const page = Math.max(1, Math.floor((box.current?.clientHeight ?? 0) / ROW_H) - 1)
    const to = {
      ArrowDown: at + 1,
      ArrowUp: at - 1,
      Home: 0,
      End: shown.length - 1,
      PageDown: at + page,
      PageUp: at - page,
    }[event.key]
    const target = to === undefined ? undefined : shown[Math.max(0, Math.min(shown.length - 1, to))]
    if (!target) return
    choose(target)
    event.preventDefault()
    event.stopPropagation()
  }
  const detail = shown[at]
  return (
    <div className="events">
      <div className="events__list">
        <div className="events__bar">
          <label className="visually-hidden" htmlFor="events-group">
            Kind of event
          </label>
          <select id="events-group" value={group} onChange={(event) => setGroup(event.target.value)}>
            <option value="">All events</option>
            {EVENT_GROUPS.map((each) => (
              <option key={each.id} value={each.id}>
                {each.label}
              </option>
            ))}
          </select>
          <label className="visually-hidden" htmlFor="events-block">
            Block
          </label>
          <select id="events-block" value={block} onChange={(event) => setBlock(event.target.value)}>
            <option value="">All blocks</option>
            {blocks.map((id) => (
              <option key={id} value={id}>
                {doc ? nameOf(doc, id) : id}
              </option>
            ))}
          </select>
          <span className="label">{shown.length === length ? `${length} events` : `${shown.length} of ${length}`}</span>
        </div>
        <div
          ref={box}
          role="listbox"
          tabIndex={0}
          aria-label="Events"
          className="events__rows"
          onKeyDown={onKey}
          onScroll={() => (wasAtEnd.current = virtual.atEnd())}
          aria-activedescendant={detail ? `event-${detail.seq}` : undefined}
        >
          <div style={{ height: virtual.height }} role="presentation" className="events__all">
            {shown.slice(virtual.from, virtual.to).map((event, i) => (
              <div
                key={event.seq}
                id={`event-${event.seq}`}
                role="option"
                aria-selected={virtual.from + i === at}
                className="events__row mono"
                data-tone={toneOfEvent(event)}
                data-future={event.seq > seq || undefined}
                style={{ top: (virtual.from + i) * ROW_H, height: ROW_H }}
                onClick={() => choose(event)}
              >
                <span className="events__seq">{event.seq}</span>
                <span className="events__at">{timeOfDay(event.at_ms)}</span>
                <span className="events__type">{event.type}</span>
                <span className="events__text">{describe(event, doc)}</span>
              </div>
            ))}
          </div>
          {shown.length ? null : <EmptyState title={length ? 'No matching events' : 'No events yet'} />}
        </div>
      </div>
      {detail ? (
        <div className="events__detail">
          <p className="label">
            Event {detail.seq}: {detail.block === null ? 'run' : doc ? nameOf(doc, detail.block) : detail.block}
            {detail.path ? `, ${placeOf(detail.path, doc)}` : ''}
            {detail.attempt > 1 ? `, attempt ${detail.attempt}` : ''}
          </p>
          <ValueTree
            key={detail.seq}
            value={detail.data as Json}
            name={`event-${detail.seq}`}
            label="Data of the event"
            height={600}
          />
        </div>
      ) : null}
    </div>
  )
}

/** Index of the last event that is not behind `seq`; -1 before all. */
function lastBefore(events: readonly WireEvent[], seq: number): number {
  let [low, high] = [0, events.length]
  while (low < high) {
    const mid = (low + high) >> 1
    if (events[mid]!.seq <= seq) low = mid + 1
    else high = mid
  }
  return low - 1
}
