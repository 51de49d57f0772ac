// All edges of a large document seen from far away: one line for each state that edges can be in, instead of an element for each
// edge. They cannot be selected at that size.

import { ViewportPortal } from '@xyflow/react'
import { useMemo, type ReactElement } from 'react'
import { useStore } from 'zustand'
import type { Document } from '../api/types'
import { leadsInside, absoluteAt, indexOf, type Specs } from '../document/document'
import { runStore } from '../state/live'
import { uiStore } from '../state/ui'
import { handleAt } from '../actions/connect'
import type { Ways } from '../geometry/layout/routes'
import { useDetail } from './lod'
import { edgePaint } from './paint'
import { BODY_X, inPlace } from '../geometry/size'

export function EdgeSheet({ doc, specs, ways }: { doc: Document; specs: Specs; ways: Ways }): ReactElement {
  const iter = useStore(uiStore, (s) => s.iter)
  const view = useStore(runStore, (s) => s.view)
  const ran = useStore(runStore, (s) => s.doc)
  const tiny = useDetail() === 'tiny'
  const lines = useMemo(() => linesOf(doc, specs, ways), [doc, specs, ways])
  const sheets = useMemo(() => {
    const found = new Map<string, string>()
    for (const { source, handle, target, path } of lines) {
      const { state, tone } = edgePaint({ doc: ran, view }, source, handle, target, iter)
      const key = `${state} ${tone}`
      found.set(key, (found.get(key) ?? '') + path)
    }
    return [...found]
  }, [lines, ran, view, iter])
  return (
    <ViewportPortal>
      <svg className="edgesheet" data-tiny={tiny || undefined} aria-hidden="true" data-testid="edge-sheet">
        {sheets.map(([key, path]) => {
          const [state, tone] = key.split(' ')
          return (
            <g key={key} className="edge" data-state={state} data-tone={tone}>
              <path className="edge__line" d={path} fill="none" />
            </g>
          )
        })}
      </svg>
    </ViewportPortal>
  )
}

interface SheetLine {
  source: string
  handle: string
  target: string
  path: string
}

/** Without round corners: they could not be seen. */
function linesOf(doc: Document, specs: Specs, ways: Ways): SheetLine[] {
  return indexOf(doc).edges.flatMap(({ id, source, handle, target }): SheetLine[] => {
    if (!doc.blocks[source] || !doc.blocks[target]) return []
    const [hx, y] = handleAt(doc, specs, source, handle)
    const x = leadsInside(doc, { source, handle, target }) ? hx + BODY_X : hx
    const way = ways.get(id)
    if (way) return [{ source, handle, target, path: `M${way.map(([dx, dy]) => `${x + dx},${y + dy}`).join('L')}` }]
    const [tx, ty] = absoluteAt(doc, target)
    return [{ source, handle, target, path: `M${x},${y}L${tx},${ty + inPlace().y}` }]
  })
}
