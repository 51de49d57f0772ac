// The outline of a block: its shape alone names its kind, at every zoom. Pure; paths for SVG, `clip-path` and canvas elements.

import type { Block, BlockSpec } from '../api/types'
import { containerKind } from '../document/document'

export type Shape = 'trigger' | 'action' | 'flow' | 'ticket' | 'agent' | 'container'

/** The length of the point at the right side of a condition. */
export const POINT = 14
/** The stub of a ticket, right of its tear line, and the notches in that line. */
export const STUB = 58
const NOTCH = 6
const RADIUS = 8

const FLOW = new Set(['condition', 'router', 'model_router', 'guardrail'])
const TICKETS = new Set(['wait', 'signal', 'callback', 'approval', 'form'])

export function shapeOf(block: Block, spec?: BlockSpec): Shape {
  if (containerKind(block, spec)) return 'container'
  if (spec?.trigger ?? block.type === 'start') return 'trigger'
  if (block.type === 'agent') return 'agent'
  return FLOW.has(block.type) ? 'flow' : TICKETS.has(block.type) ? 'ticket' : 'action'
}

/** The path of a shape in a box of this size; the stroke of 1 px lies inside the box. `scale` is that of corners and notches; `tip`:
 * between which heights the point of a condition touches the right side, where its edges leave. */
export function outline(
  shape: Shape,
  w: number,
  h: number,
  scale = 1,
  tip: readonly [number, number] = [h / 2, h / 2],
): string {
  const r = Math.min(RADIUS * scale, h / 2)
  const x = w - 0.5
  const y = h - 0.5
  const topRight = `H${x - r}a${r} ${r} 0 0 1 ${r} ${r}`
  const right = `V${y - r}a${r} ${r} 0 0 1 ${-r} ${r}`
  const left = `H${0.5 + r}a${r} ${r} 0 0 1 ${-r} ${-r}V${0.5 + r}a${r} ${r} 0 0 1 ${r} ${-r}z`
  if (shape === 'trigger') {
    const round = (h - 1) / 2
    return `M${0.5 + round} 0.5${topRight}${right}H${0.5 + round}a${round} ${round} 0 0 1 0 ${-2 * round}z`
  }
  const start = `M${0.5 + r} 0.5`
  if (shape === 'flow') {
    const point = POINT * scale
    return `${start}H${x - point}L${x} ${tip[0]}V${tip[1]}L${x - point} ${y}${left}`
  }
  if (shape === 'ticket') {
    const n = NOTCH * scale
    const tear = w - STUB * scale
    return `${start}H${tear - n}a${n} ${n} 0 0 0 ${2 * n} 0${topRight}${right}H${tear + n}a${n} ${n} 0 0 0 ${-2 * n} 0${left}`
  }
  return `${start}${topRight}${right}${left}`
}
