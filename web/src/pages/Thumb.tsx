// A workflow as a small drawing: its blocks where they stand, in the outlines of their kinds, in the colours of what they did in
// a run. Decoration; the text beside it has the rest.

import { memo, useEffect, useState, type ReactElement } from 'react'
import { outline, shapeOf, type Shape } from '../geometry/silhouette'
import { handlePlace, inPlace, sizeOf } from '../geometry/size'
import type { BlockSpec, Document } from '../api/types'
import { absoluteAt, indexOf } from '../document/document'

const WIDE = 328
const HIGH = 124
const PAD = 16
/** A block is at most so large; corners and notches are drawn larger than they are, or they could not be seen. */
const SCALE_MAX = 0.22
const CORNERS: Record<Shape, number> = { trigger: 1, action: 2, flow: 2, ticket: 1.3, agent: 2, container: 2 }

const TONES: Record<string, string> = {
  succeeded: 'ok',
  restored: 'ok',
  failed: 'err',
  needs_attention: 'wait',
  running: 'run',
  retrying: 'run',
  waiting: 'wait',
  skipped: 'skip',
}

export const Thumb = memo(function Thumb({
  doc: given,
  specs,
  states = {},
}: {
  doc: Document
  specs: ReadonlyMap<string, BlockSpec>
  /** The state of each block in the run that is shown. */
  states?: Readonly<Record<string, string>>
}): ReactElement {
  const doc = usePlaced(given, specs)
  const boxes = Object.entries(doc.blocks)
    .filter(([, block]) => block.type !== 'note')
    .map(([id, block]) => {
      const spec = specs.get(block.type)
      const [x, y] = absoluteAt(doc, id)
      const [w, h] = sizeOf(block, spec)
      return { id, block, x, y, w, h, shape: shapeOf(block, spec), tone: TONES[states[id] ?? ''] }
    })
  const left = Math.min(...boxes.map((box) => box.x))
  const top = Math.min(...boxes.map((box) => box.y))
  const width = Math.max(...boxes.map((box) => box.x + box.w)) - left
  const tall = Math.max(...boxes.map((box) => box.y + box.h)) - top
  const scale = Math.min(SCALE_MAX, (WIDE - 2 * PAD) / width, (HIGH - 2 * PAD) / tall)
  const at = new Map(boxes.map((box) => [box.id, box]))
  const place = `translate(${WIDE / 2} ${HIGH / 2}) scale(${scale}) translate(${-left - width / 2} ${-top - tall / 2})`
  return (
    <svg className="thumb" viewBox={`0 0 ${WIDE} ${HIGH}`} aria-hidden="true">
      {boxes.length ? (
        <g transform={place}>
          {boxes.map((box) => (box.shape === 'container' ? <Box key={box.id} {...box} /> : null))}
          {indexOf(doc).edges.map((edge) => {
            const [source, target] = [at.get(edge.source), at.get(edge.target)]
            if (!source || !target) return null
            const from = handlePlace(source.block, specs.get(source.block.type), edge.handle)
            const to = inPlace()
            const [x1, y1, x2, y2] = [source.x + from.x, source.y + from.y, target.x + to.x, target.y + to.y]
            const mid = (x1 + x2) / 2
            const went = source.tone === 'ok' && target.tone !== undefined && target.tone !== 'skip'
            return (
              <path
                key={edge.id}
                className="thumb__edge"
                data-tone={went ? 'ok' : target.tone === 'skip' ? 'skip' : undefined}
                d={from.side === 'bottom' ? `M${x1} ${y1}V${y2}H${x2}` : `M${x1} ${y1}H${mid}V${y2}H${x2}`}
              />
            )
          })}
          {boxes.map((box) => (box.shape === 'container' ? null : <Box key={box.id} {...box} />))}
        </g>
      ) : null}
    </svg>
  )
})

/** The document with a place for each block: without blocks until it is laid out, if a program wrote it without places. */
function usePlaced(doc: Document, specs: ReadonlyMap<string, BlockSpec>): Document {
  const [placed, setPlaced] = useState<Document>({ ...doc, blocks: {}, edges: [] })
  const lacks = Object.values(doc.blocks).some((block) => !block.at)
  useEffect(() => {
    let current = true
    if (lacks) void import('../state/placed').then((found) => current && setPlaced(found.placed(doc, specs)))
    return () => {
      current = false
    }
  }, [doc, specs, lacks])
  return lacks ? placed : doc
}

function Box(props: {
  x: number
  y: number
  w: number
  h: number
  shape: Shape
  tone?: string | undefined
}): ReactElement {
  const { x, y, w, h, shape, tone } = props
  return (
    <g transform={`translate(${x} ${y})`} className="thumb__box" data-tone={tone} data-shape={shape}>
      <path className="thumb__shape" d={outline(shape, w, h, CORNERS[shape])} />
      {shape === 'container' ? (
        <path className="thumb__inner" transform="translate(14 14)" d={outline(shape, w - 28, h - 28, 1.4)} />
      ) : (
        <path className="thumb__word" d={`M${shape === 'trigger' ? 44 : 28} ${Math.min(h / 2, 32)}h${w * 0.42}`} />
      )}
      {shape === 'agent'
        ? [0, 1, 2].map((n) => <rect key={n} x={28 + n * 54} y={h - 26} width="42" height="16" rx="8" />)
        : null}
    </g>
  )
}
