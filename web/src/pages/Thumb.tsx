// A workflow as a small drawing: its blocks where they stand, its edges as lines. Decoration; the text beside it says the rest.

import type { ReactElement } from 'react'
import { handlePlace, inPlace, sizeOf } from '../geometry/size'
import type { BlockSpec, Document } from '../api/types'
import { absoluteAt, indexOf } from '../document/document'

export function Thumb({
  doc,
  specs,
  height = 84,
}: {
  doc: Document
  specs: ReadonlyMap<string, BlockSpec>
  height?: number
}): ReactElement | null {
  const boxes = Object.entries(doc.blocks)
    .filter(([, block]) => block.type !== 'note')
    .map(([id, block]) => {
      const [x, y] = absoluteAt(doc, id)
      const [w, h] = sizeOf(block, specs.get(block.type))
      return { id, block, x, y, w, h, isContainer: block.type === 'loop' || block.type === 'parallel' }
    })
  if (!boxes.length) return null
  const left = Math.min(...boxes.map((box) => box.x))
  const top = Math.min(...boxes.map((box) => box.y))
  const width = Math.max(...boxes.map((box) => box.x + box.w)) - left
  const tall = Math.max(...boxes.map((box) => box.y + box.h)) - top
  const at = new Map(boxes.map((box) => [box.id, box]))
  return (
    <svg
      className="thumb"
      viewBox={`${left - 12} ${top - 12} ${width + 24} ${tall + 24}`}
      height={height}
      preserveAspectRatio="xMidYMid meet"
      aria-hidden="true"
    >
      {boxes
        .filter((box) => box.isContainer)
        .map((box) => (
          <rect key={box.id} className="thumb__container" x={box.x} y={box.y} width={box.w} height={box.h} rx="16" />
        ))}
      {indexOf(doc).edges.map((edge) => {
        const [source, target] = [at.get(edge.source), at.get(edge.target)]
        if (!source || !target) return null
        const from = handlePlace(source.block, specs.get(source.block.type), edge.handle)
        const to = inPlace()
        const [x1, y1, x2, y2] = [source.x + from.x, source.y + from.y, target.x + to.x, target.y + to.y]
        const mid = (x1 + x2) / 2
        return (
          <path
            key={edge.id}
            className="thumb__edge"
            d={from.side === 'bottom' ? `M${x1} ${y1}V${y2}H${x2}` : `M${x1} ${y1}H${mid}V${y2}H${x2}`}
          />
        )
      })}
      {boxes
        .filter((box) => !box.isContainer)
        .map((box) => (
          <g key={box.id}>
            <rect className="thumb__block" x={box.x} y={box.y} width={box.w} height={box.h} rx="10" />
            <rect className="thumb__rail" x={box.x} y={box.y} width="14" height={box.h} rx="6" />
          </g>
        ))}
    </svg>
  )
}
