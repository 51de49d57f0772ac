// The places where edges come in and leave. Each is a 12 px box whose outer side is where the edge ends; the ring is drawn on the
// card's border and the target around it is 24 px. `error` is a tab below the border, so that no text is under it.

import { Handle, Position } from '@xyflow/react'
import type { MouseEvent, ReactElement } from 'react'
import { useStore } from 'zustand'
import type { Block, BlockSpec } from '../api/types'
import { containerKind, handlesOf, namedHandles } from '../document/document'
import { docStore, specsStore } from '../state/doc'
import { connectStore } from '../actions/connect'
import { openPicker } from '../actions/picker'
import { handlePlace, inPlace, isCollapsed } from '../geometry/size'
import { useMode } from './mode'

export interface PortsProps {
  id: string
  block: Block
  spec: BlockSpec | undefined
  wired: string
}

export function Ports({ id, block, spec, wired }: PortsProps): ReactElement {
  const specs = useStore(specsStore, (s) => s.specs)
  const mode = useMode()
  const has = new Set(wired.split(' '))
  const titles = new Map(namedHandles(block, spec).map((named) => [named.id, named.title]))
  const trigger = spec?.trigger ?? block.type === 'start'
  const container = containerKind(block, spec) !== null
  return (
    <>
      {trigger ? null : (
        <Handle
          id="in"
          type="target"
          position={Position.Left}
          className="port port--in"
          data-wired={has.has('in')}
          data-testid={`target-${id}`}
          isConnectableStart={false}
          style={{ top: inPlace().y }}
        />
      )}
      {handlesOf(block, specs).map((handle) => {
        if (handle === 'error' || (handle === 'finally' && !container)) return null
        if (handle === 'body' && isCollapsed(block)) return null
        // Asked for in the menu of the block; without an edge it is not in the way.
        if (handle === 'finally' && !has.has('finally')) return null
        // Every button of an approval has its own handle; this one is for documents that use it.
        if (handle === 'out' && block.type === 'approval' && titles.size && !has.has('out')) return null
        return (
          <Handle
            key={handle}
            id={handle}
            type="source"
            position={Position.Right}
            className={handle === 'body' || handle === 'finally' ? `port port--body port--${handle}` : 'port'}
            data-wired={has.has(handle)}
            data-testid={`handle-${id}-${handle}`}
            isConnectableEnd={false}
            style={{ top: handlePlace(block, spec, handle).y }}
            {...(mode === 'edit' ? { onClick: (event) => addAfter(event, id, handle) } : {})}
          >
            <Label text={titleOf(handle, titles.get(handle))} inside={handle === 'body' || handle === 'finally'} />
          </Handle>
        )
      })}
    </>
  )
}

/** A click on a handle asks what follows; a drag says where it stands, or joins. */
function addAfter(event: MouseEvent, source: string, handle: string): void {
  if (docStore.getState().readonly) return
  event.stopPropagation()
  openPicker({ mode: 'add', screen: { x: event.clientX + 16, y: event.clientY - 16 }, from: { source, handle } })
}

/** Inside the card or the container: at the lower end of all that is drawn, also of what a run says below the card. A
 * trigger has its `finally` here, for the cleanup of the run. */
export function ErrorPort({ id, block, spec, wired }: PortsProps): ReactElement | null {
  const specs = useStore(specsStore, (s) => s.specs)
  const mode = useMode()
  const handles = handlesOf(block, specs)
  const handle = handles.includes('error') ? 'error' : handles.includes('finally') ? 'finally' : null
  const joined = handle !== null && wired.split(' ').includes(handle)
  if (handle === null || (handle === 'finally' && !joined)) return null
  return (
    <Handle
      id={handle}
      type="source"
      position={Position.Bottom}
      className={handle === 'error' ? 'port port--error' : 'port port--error port--after'}
      data-wired={joined}
      data-testid={`handle-${id}-${handle}`}
      isConnectableEnd={false}
      style={{ left: handlePlace(block, spec, handle).x }}
      {...(mode === 'edit' ? { onClick: (event) => addAfter(event, id, handle) } : {})}
    >
      <Label text={titleOf(handle, undefined)} />
    </Handle>
  )
}

/** The label of a handle, beside it while the pointer is there. */
function Label({ text, inside }: { text: string; inside?: boolean }): ReactElement {
  return (
    <span className="port__label" data-inside={inside || undefined} aria-hidden="true">
      {text}
    </span>
  )
}

function titleOf(handle: string, title: string | undefined): string {
  if (handle === 'body') return 'Each iteration'
  if (handle === 'error') return 'On error'
  if (handle === 'finally') return 'Finally'
  return title ?? (handle === 'out' ? 'Next' : handle)
}

/** How a block looks while an edge is drawn: where it comes from, where it may go, what is below the pointer. */
export function useAim(id: string): 'from' | 'over' | 'refused' | 'no' | 'yes' | undefined {
  return useStore(connectStore, ({ from, over, reasons }) => {
    if (!from) return undefined
    if (over === id) return reasons.has(id) ? 'refused' : 'over'
    if (from.source === id) return 'from'
    return reasons.has(id) ? 'no' : 'yes'
  })
}
