// The plate of a kind: a circle for what starts runs, a diamond for what chooses or repeats, ink for agents, a square for all others.

import type { ReactElement } from 'react'
import type { Block, BlockSpec } from '../api/types'
import type { Shape } from '../geometry/silhouette'
import { Icon, iconOf } from '../ui/icons'

export function Plate({
  block,
  spec,
  shape,
}: {
  block: Block
  spec: BlockSpec | undefined
  shape: Shape
}): ReactElement {
  return (
    <span className="plate" data-shape={shape}>
      <Icon name={iconOf(block.type, spec?.icon)} size={shape === 'container' ? 14 : 16} />
    </span>
  )
}
