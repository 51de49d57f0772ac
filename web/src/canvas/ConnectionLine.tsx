// The edge that is being drawn.

import { Position, type ConnectionLineComponentProps } from '@xyflow/react'
import type { ReactElement } from 'react'
import { useStore } from 'zustand'
import { connectStore } from '../actions/connect'
import { plainPath } from './path'

export function ConnectionLine({ fromX, fromY, toX, toY, fromPosition }: ConnectionLineComponentProps): ReactElement {
  const aim = useStore(connectStore, ({ over, reasons }) =>
    over === null ? 'free' : reasons.has(over) ? 'refused' : 'over',
  )
  const [path] = plainPath({
    sourceX: fromX,
    sourceY: fromY,
    targetX: toX,
    targetY: toY,
    sourcePosition: fromPosition,
    targetPosition: Position.Left,
  })
  return (
    <g className="drawing" data-aim={aim}>
      <path className="drawing__line" d={path} fill="none" />
      <circle className="drawing__end" cx={toX} cy={toY} r={4} />
    </g>
  )
}
