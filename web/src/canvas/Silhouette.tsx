// The background of a card: the outline of its kind, a halo when it is selected, the rail of its state along the left side.

import { memo, useMemo, type ReactElement } from 'react'
import type { Block, BlockSpec } from '../api/types'
import { STUB, type Shape } from '../geometry/silhouette'
import { CARD_H, outlineOf, sizeOf } from '../geometry/size'

export const Silhouette = memo(function Silhouette({
  block,
  spec,
  shape,
}: {
  block: Block
  spec: BlockSpec | undefined
  shape: Shape
}): ReactElement {
  const path = useMemo(() => outlineOf(block, spec), [block, spec])
  const [width, height] = sizeOf(block, spec)
  return (
    <>
      <svg className="shape" width={width} height={height} aria-hidden="true">
        <path className="shape__shadow" d={path} />
        <path className="shape__halo" d={path} />
        <path className="shape__outline" d={path} />
        {shape === 'ticket' ? (
          <path className="shape__tear" d={`M${width - STUB} 10V${Math.min(height, CARD_H) - 10}`} />
        ) : null}
      </svg>
      <span className="card__rail" style={{ clipPath: `path("${path}")` }} />
    </>
  )
})
