// The places where edges come in and leave. Each is a 12 px box whose outer side is where the edge ends; the ring is drawn on the
// card's border and the target around it is 24 px.

import { Handle, Position } from '@xyflow/react'
import type { ReactElement } from 'react'
import type { Block, BlockSpec } from '../net/types'
import { handlesOf, namedHandles } from '../state/document'
import { useSelect } from '../state/store'
import { specsStore } from '../state/doc'
import { connectStore } from './connect'
import { handlePlace, inPlace } from './size'

export interface PortsProps {
  id: string
  block: Block
  spec: BlockSpec | undefined
  wired: string
}

export function Ports({ id, block, spec, wired }: PortsProps): ReactElement {
  const specs = useSelect(specsStore, (s) => s.specs)
  const has = new Set(wired.split(' '))
  const titles = new Map(namedHandles(block, spec).map((named) => [named.id, named.title]))
  const trigger = spec?.trigger ?? block.type === 'start'
  return (
    <>
      {trigger ? null : (
        <Handle
          id="in" type="target" position={Position.Left} className="port port--in" data-wired={has.has('in')} data-testid={`target-${id}`}
          isConnectableStart={false} style={{ top: inPlace().y }}
        />
      )}
      {handlesOf(block, specs).map((handle) => {
        const place = handlePlace(block, spec, handle)
        const kind = handle === 'error' ? 'port port--error' : handle === 'body' ? 'port port--body' : 'port'
        return (
          <Handle
            key={handle} id={handle} type="source" position={place.side === 'bottom' ? Position.Bottom : Position.Right} className={kind}
            data-wired={has.has(handle)} data-testid={`handle-${id}-${handle}`} isConnectableEnd={false} title={titleOf(handle, titles.get(handle))}
            style={place.side === 'bottom' ? { left: place.x } : { top: place.y }}
          />
        )
      })}
    </>
  )
}

function titleOf(handle: string, title: string | undefined): string {
  if (handle === 'error') return 'error: where it goes on when it fails'
  if (handle === 'body') return 'body: the blocks inside begin here'
  return title ?? handle
}

/** How a block looks while an edge is drawn: where it comes from, where it may go, what is below the pointer. */
export function useAim(id: string): 'from' | 'over' | 'refused' | 'no' | 'yes' | undefined {
  return useSelect(connectStore, ({ from, over, reasons }) => {
    if (!from) return undefined
    if (over === id) return reasons.has(id) ? 'refused' : 'over'
    if (from.source === id) return 'from'
    return reasons.has(id) ? 'no' : 'yes'
  })
}
