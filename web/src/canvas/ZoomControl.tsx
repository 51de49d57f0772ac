// At the lower left of the canvas: the zoom, and the camera that follows a run. It stops when the view is moved by hand.

import { useStore as useFlow } from '@xyflow/react'
import { useEffect, type ReactElement } from 'react'
import { useStore } from 'zustand'
import { announce } from '../a11y'
import { followStore, reveal, zoomBy, zoomTo } from '../actions/view'
import type { Document } from '../api/types'
import { absoluteAt, kindOf } from '../document/document'
import { sizeOf } from '../geometry/size'
import { keyText } from '../keys'
import { isEnded, statusAt, type Iter, type RunFold } from '../run'
import { collapsedOf, collapsedStore, setCollapsed } from '../state/collapsed'
import { specsOf } from '../state/doc'
import { runStore } from '../state/live'
import { uiStore } from '../state/ui'
import { Button } from '../ui/Button'

const STEP = 1.25
/** Blocks that end faster than this are not followed one by one. */
const CALM_MS = 320

export function ZoomControl(): ReactElement {
  const zoom = useFlow((s) => Math.round(s.transform[2] * 100))
  const shown = useStore(runStore, (s) => s.id !== null)
  const on = useStore(followStore, (s) => s.on)
  useFollow(on)
  return (
    <div className="zoom nodrag nopan" role="group" aria-label="Zoom">
      <Button kind="bare" icon="minus" iconOnly keys={keyText('zoomOut')} onClick={() => zoomBy(1 / STEP)}>
        Zoom out
      </Button>
      <button
        type="button"
        className="zoom__text"
        title={`Zoom to 100 %  ${keyText('zoom100')}`}
        onClick={() => zoomTo(1)}
      >
        {zoom}%
      </button>
      <Button kind="bare" icon="plus" iconOnly keys={keyText('zoomIn')} onClick={() => zoomBy(STEP)}>
        Zoom in
      </Button>
      {shown ? (
        <button
          type="button"
          className="zoom__follow"
          aria-pressed={on}
          data-testid="follow"
          title={on ? 'The view follows what runs' : 'Keep what runs in view'}
          onClick={() => followStore.setState({ on: !on })}
        >
          Follow the action
        </button>
      ) : null}
      {shown ? <Finished /> : null}
    </div>
  )
}

/** Collapses the containers that have ended well, so that what is open or failed has the room; and expands all of them again. */
function Finished(): ReactElement | null {
  const doc = useStore(runStore, (s) => s.doc)
  const collapsed = useStore(collapsedStore, (s) => (doc ? collapsedOf(s.byName, doc) : NONE))
  const iter = useStore(uiStore, (s) => s.iter)
  const ended = useStore(runStore, (s) => endedIn(s.view, doc, iter).join(' '))
  const open = ended.split(' ').filter((id) => id && !collapsed.includes(id))
  if (!doc || (!open.length && !collapsed.some((id) => doc.blocks[id]))) return null
  return (
    <button
      type="button"
      className="zoom__follow"
      data-testid="collapse-finished"
      onClick={() => {
        for (const id of open.length ? open : collapsed) setCollapsed(doc, id, open.length > 0)
        announce(open.length ? `${open.length} finished collapsed` : 'All expanded')
      }}
    >
      {open.length ? 'Collapse finished' : 'Expand all'}
    </button>
  )
}

const NONE: readonly string[] = []

function endedIn(view: RunFold, doc: Document | null, iter: Iter): string[] {
  if (!doc) return []
  const ids = Object.keys(doc.blocks).filter((id) => kindOf(doc, id, specsOf()) !== null)
  return ids.filter((id) => statusAt(view, doc, id, iter) === 'succeeded')
}

function useFollow(on: boolean): void {
  useEffect(() => {
    if (!on) return
    let last: string | null = null
    let timer: ReturnType<typeof setTimeout> | null = null
    const look = (): void => {
      timer = null
      const { doc, view } = runStore.getState()
      const id = actionOf(view)
      const block = id === null ? undefined : doc?.blocks[id]
      if (!doc || !block || id === last) return
      last = id
      reveal(absoluteAt(doc, id!), sizeOf(block, specsOf().get(block.type)))
    }
    const soon = (): void => {
      timer ??= setTimeout(look, CALM_MS)
    }
    look()
    const stop = runStore.subscribe((now, before) => {
      if (now.view !== before.view) soon()
    })
    return () => {
      stop()
      if (timer !== null) clearTimeout(timer)
    }
  }, [on])
}

/** The block that did something last: one that runs or waits before one that has ended; containers only when nothing else is there. */
function actionOf(view: RunFold): string | null {
  let best: { block: string; rank: number; seq: number } | null = null
  for (const node of view.nodes.values()) {
    const open = node.status === 'running' || node.status === 'retrying' || node.status === 'waiting'
    if (!open && !isEnded(view.status) && best?.rank === 2) continue
    const rank = node.region ? 0 : open ? 2 : 1
    if (!best || rank > best.rank || (rank === best.rank && node.lastSeq > best.seq))
      best = { block: node.block, rank, seq: node.lastSeq }
  }
  return best?.block ?? null
}
