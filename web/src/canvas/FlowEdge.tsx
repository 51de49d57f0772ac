// An edge: orthogonal, around the cards, corners of 12 px, the name of its branch on it. In a run it shows whether the run took it. The
// plus in its middle puts a block into it.

import { EdgeLabelRenderer, Position, type EdgeProps } from '@xyflow/react'
import { memo, useMemo, type ReactElement } from 'react'
import { useShallow } from 'zustand/react/shallow'
import { useStore } from 'zustand'
import { openPicker } from '../actions/picker'
import { docStore } from '../state/doc'
import { futuresStore } from '../state/futures'
import { runStore } from '../state/live'
import { uiStore } from '../state/ui'
import { connectStore } from '../actions/connect'
import { edgeValue, type EdgeValue } from './edgeValue'
import type { FlowLine } from './flow'
import { hoverStore, leaveEdge, overEdge } from './hover'
import { CHAR } from '../geometry/layout/routes'
import { useDetail } from './lod'
import { useMode } from './mode'
import { useEdgePaint } from './paint'
import { lineOf } from './path'

/** A long label extends beyond the first turn, but not far: other cards may stand there. */
const BEYOND = 120

export const FlowEdge = memo(function FlowEdge(props: EdgeProps<FlowLine>): ReactElement {
  const { id, source, target, data, selected, sourceX, sourceY, targetX, targetY, sourcePosition, targetPosition } =
    props
  const { handle, label, names, way } = data!
  const mode = useMode()
  const far = useDetail() !== 'near'
  const { state, tone, title } = useEdgePaint(source, handle, target)
  const value = useEdgeValue(source, handle, target, !far && (state === 'live' || state === 'active'))
  const future = useStore(futuresStore, (s) => s.edges.get(id))
  const moving = useStore(connectStore, (s) => s.edge === id)
  const hovered = useStore(hoverStore, (s) => s.edge === id)
  const alone = useStore(
    uiStore,
    ({ selection }) => selection.edges.length === 1 && selection.edges[0] === id && !selection.blocks.length,
  )
  const {
    path,
    x: midX,
    y: midY,
    long,
    lead,
    top,
  } = useMemo(
    () => lineOf({ sourceX, sourceY, targetX, targetY, sourcePosition, targetPosition }, way),
    [sourceX, sourceY, targetX, targetY, sourcePosition, targetPosition, way],
  )
  const inside = useStore(docStore, (s) => !!s.doc.blocks[target]?.parent)
  const down = sourcePosition === Position.Bottom
  // What hangs below a card would hide a label there: it goes to the other end.
  const under = down && targetX - sourceX > 60
  const room = down ? 16 : Math.floor((Math.max(lead, Math.min(targetX - sourceX, lead + BEYOND)) - 14) / CHAR)
  const full = state === 'dead' && label && handle !== 'error' ? `${label} · skipped` : label
  // Cut to a few letters it says nothing, and the row of its card has the whole.
  const shown =
    full.length <= room ? full : label.length <= room ? label : room < 8 ? '' : `${label.slice(0, room - 1)}…`
  return (
    <g
      className="edge"
      data-testid={`edge-${id}`}
      data-state={state}
      data-tone={tone}
      data-selected={selected}
      data-moving={moving || undefined}
      data-handle={handle}
      data-future={future}
    >
      <title>{[names, full, title].filter(Boolean).join(', ')}</title>
      <path className="react-flow__edge-interaction edge__hit" d={path} fill="none" strokeWidth={20} />
      <path className="edge__line" d={path} fill="none" />
      {state === 'active' ? <path className="edge__flow" d={path} fill="none" /> : null}
      {shown && !far ? (
        <text
          className="edge__label"
          x={under ? targetX - 8 : sourceX + 8}
          y={under ? targetY - 5 : down ? sourceY + 16 : sourceY + top - 5}
          textAnchor={under ? 'end' : 'start'}
        >
          {shown}
        </text>
      ) : null}
      {value ? <Value value={value} x={midX} y={midY} long={long} inside={inside} /> : null}
      {mode === 'edit' && !far && (hovered || alone) ? (
        <EdgeLabelRenderer>
          <button
            type="button"
            className="edge__plus nodrag nopan"
            data-id={id}
            data-testid={`insert-${id}`}
            aria-label={`Add a block: ${names}`}
            title="Add a block here"
            style={{
              transform: `translate(-50%, -50%) translate(${midX}px, ${midY + (value && !long.across ? 24 : 0)}px)`,
            }}
            onPointerEnter={() => overEdge(id)}
            onPointerLeave={leaveEdge}
            onClick={(event) =>
              openPicker({ mode: 'add', screen: { x: event.clientX + 8, y: event.clientY + 8 }, edge: id })
            }
          >
            <svg width="10" height="10" viewBox="0 0 10 10" aria-hidden="true">
              <path d="M5 1v8M1 5h8" stroke="currentColor" strokeWidth="1.5" fill="none" />
            </svg>
          </button>
        </EdgeLabelRenderer>
      ) : null}
    </g>
  )
})

function useEdgeValue(source: string, handle: string, target: string, on: boolean): EdgeValue | null {
  const iter = useStore(uiStore, (s) => s.iter)
  return useStore(
    runStore,
    useShallow((run) => (on ? edgeValue(run, source, handle, target, iter) : null)),
  )
}

/** A letter of 11 px, and what stands around the letters. */
const LETTER = 5.8
const AROUND = 16

/** On a part that is long enough it stands on the line, or just above it; else above or below the cards that it joins. */
function Value({
  value: { name, short, whole },
  x,
  y,
  long,
  inside,
}: {
  value: EdgeValue
  x: number
  y: number
  long: { across: boolean; length: number }
  inside: boolean
}): ReactElement {
  const width = (name.length + short.length + 1) * LETTER + AROUND
  const up = !long.across ? 0 : long.length >= width + 12 ? -20 : inside ? 46 : -46
  return (
    <EdgeLabelRenderer>
      <span
        className="edge__value nodrag nopan"
        tabIndex={-1}
        style={{ transform: `translate(-50%, -50%) translate(${x}px, ${y + up}px)` }}
      >
        {name ? <span className="edge__field">{name}</span> : null}
        {short}
        <span className="edge__whole" role="tooltip">
          {whole}
        </span>
      </span>
    </EdgeLabelRenderer>
  )
}
