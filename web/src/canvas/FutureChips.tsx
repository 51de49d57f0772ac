// At each block that two futures differ in: what it put out before, above it, and what it puts out now, below.

import { ViewportPortal } from '@xyflow/react'
import type { ReactElement } from 'react'
import { useStore } from 'zustand'
import type { Document } from '../api/types'
import { absoluteAt, type Specs } from '../document/document'
import { sizeOf } from '../geometry/size'
import { futuresStore } from '../state/futures'
import { useDetail } from './lod'
import './css/futures.css'

const ABOVE = 26
const BELOW = 6

export default function FutureChips({ doc, specs }: { doc: Document; specs: Specs }): ReactElement | null {
  const blocks = useStore(futuresStore, (s) => s.blocks)
  const values = useStore(futuresStore, (s) => s.values)
  const detail = useDetail()
  if (detail !== 'near') return null
  const chip = (id: string, when: 'before' | 'now', text: string, x: number, y: number): ReactElement => (
    <span
      key={`${id} ${when}`}
      className="futurechip"
      data-when={when}
      data-testid={`${when}-${id}`}
      style={{ transform: `translate(${x}px, ${y}px) translateX(-100%)` }}
    >
      <b>{when === 'before' ? 'Before' : 'Now'}</b>
      {text ? ` ${text}` : ''}
    </span>
  )
  return (
    <ViewportPortal>
      {[...values].flatMap(([id, { before, now }]) => {
        const block = doc.blocks[id]
        if (!block) return []
        const [x, y] = absoluteAt(doc, id)
        const [width, height] = sizeOf(block, specs.get(block.type))
        // At the right, where the values on edges are not.
        const right = x + width - 24
        const side = blocks.get(id)
        return [
          ...(side === 'you' ? [] : [chip(id, 'before', before, right, y - ABOVE)]),
          ...(side === 'before' ? [] : [chip(id, 'now', now, right, y + height + BELOW)]),
        ]
      })}
    </ViewportPortal>
  )
}
