// The run of a durable function: its calls, beside the code that makes them, and the one that is chosen.

import { useDeferredValue, useEffect, useMemo, useRef, useState, type ReactElement } from 'react'
import { useStore } from 'zustand'
import type { Document, WaitView } from '../../api/types'
import Inspector from '../../edit/inspector/beside'
import { PublishedValue, usePublished } from '../../edit/inspector/Published'
import { isEnded } from '../../run'
import { durableOf } from '../../document/durable'
import { laneItems, type LaneItem } from '../../run/lane'
import { isLoading, runStore } from '../../state/live'
import { select, uiStore } from '../../state/ui'
import { Button } from '../../ui/Button'
import { EmptyState } from '../../ui/EmptyState'
import { useWidthBelow } from '../../ui/useWidthBelow'
import '../loom/switch.css'
import { AnswerDialog } from '../run/AnswerDialog'
import { InspectorColumn } from '../run/InspectorColumn'
import { RunNotices } from '../run/RunNotices'
import { useWaitViews } from '../run/useWaitViews'
import { useChosen } from './choose'
import { ItemPanel } from './ItemPanel'
import { LaneRows } from './LaneRows'
import { idOf } from './rows'
import { Source } from './Source'
import './lane.css'

/** Below this many pixels the calls and the code take turns. */
const BOTH_MIN = 780

export default function Lane({ doc }: { doc: Document }): ReactElement {
  const view = useDeferredValue(useStore(runStore, (s) => s.view))
  const durable = useMemo(() => durableOf(doc), [doc])
  const blocks = durable?.blocks ?? []
  const items = useMemo(() => laneItems(view, blocks), [view, durable])
  const chosen = useChosen()
  const waits = useWaitViews()
  const [asked, setAsked] = useState<WaitView | null>(null)
  const block = useStore(uiStore, (s) => s.selection.blocks[0] ?? null)
  const narrow = useWidthBelow(900)
  const item = items.find((each) => idOf(each) === chosen)
  const beside =
    item !== undefined ? (
      <ItemPanel
        key={idOf(item)}
        item={item}
        view={item.wait?.id ? waits.get(item.wait.id) : undefined}
        onAnswer={setAsked}
      />
    ) : block !== null ? (
      <Inspector mode="run" />
    ) : null
  return (
    <>
      <div className="lane">
        <RunNotices lane />
        <State />
        <Panes doc={doc} items={items} chosen={chosen} waits={waits} onAnswer={setAsked} />
      </div>
      {beside && !narrow ? <InspectorColumn>{beside}</InspectorColumn> : null}
      {beside && narrow ? (
        <aside className="sheet" aria-label="Inspector">
          <div className="sheet__head">
            <Button kind="bare" icon="down" onClick={() => select({})}>
              Close
            </Button>
          </div>
          <div className="sheet__body">{beside}</div>
        </aside>
      ) : null}
      {asked ? <AnswerDialog key={asked.id} wait={asked} onClose={() => setAsked(null)} /> : null}
    </>
  )
}

interface PanesProps {
  doc: Document
  items: readonly LaneItem[]
  chosen: string | null
  waits: ReadonlyMap<string, WaitView>
  onAnswer: (wait: WaitView) => void
}

function Panes({ doc, items, chosen, waits, onAnswer }: PanesProps): ReactElement {
  const box = useRef<HTMLDivElement>(null)
  const listing = durableOf(doc)?.listing ?? null
  const [both, setBoth] = useState(true)
  const [shown, setShown] = useState<'calls' | 'source'>('calls')
  useEffect(() => {
    const watch = new ResizeObserver(([entry]) => setBoth(entry!.contentRect.width >= BOTH_MIN))
    watch.observe(box.current!)
    return () => watch.disconnect()
  }, [])
  const tabs = listing !== null && !both
  return (
    <div className="lane__panes" ref={box} data-both={(listing !== null && both) || undefined}>
      {tabs ? (
        <div className="lane__tabs">
          <div className="loomswitch" role="group" aria-label="Shown">
            <button type="button" aria-pressed={shown === 'calls'} onClick={() => setShown('calls')}>
              Calls
            </button>
            <button type="button" aria-pressed={shown === 'source'} onClick={() => setShown('source')}>
              Source
            </button>
          </div>
        </div>
      ) : null}
      {tabs && shown === 'source' ? null : (
        <div className="lane__list">
          {items.length ? <LaneRows items={items} chosen={chosen} waits={waits} onAnswer={onAnswer} /> : <Nothing />}
        </div>
      )}
      {listing && (both || shown === 'source') ? <Source listing={listing} items={items} chosen={chosen} /> : null}
    </div>
  )
}

/** What the function has published: in a line, and unfolded. */
function State(): ReactElement | null {
  const state = usePublished()
  if (!state) return null
  return (
    <details className="lane__state" data-testid="lane-state">
      <summary>
        <b>State</b>
        <code className="mono">{state.truncated ? state.preview : JSON.stringify(state.output)}</code>
      </summary>
      <PublishedValue state={state} />
    </details>
  )
}

/** No call yet. */
function Nothing(): ReactElement {
  const loading = useStore(runStore, isLoading)
  const ended = useStore(runStore, (s) => isEnded(s.view.status))
  if (loading) return <EmptyState title="Loading">The events of this run are on their way.</EmptyState>
  if (ended) return <EmptyState title="No calls">The function awaited no step and no wait.</EmptyState>
  return <EmptyState title="No calls yet">Steps and waits appear here when the function comes to them.</EmptyState>
}
