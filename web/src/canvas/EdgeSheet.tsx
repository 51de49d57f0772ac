// All edges of a large document seen from far away: one line for each state that edges can be in, instead of an element for each
// edge. They cannot be selected at that size.

import { ViewportPortal } from '@xyflow/react'
import { useMemo, type ReactElement } from 'react'
import { useStore } from 'zustand'
import type { Document } from '../api/types'
import type { Specs } from '../document/document'
import { runStore } from '../state/live'
import { uiStore } from '../state/ui'
import type { Ways } from '../geometry/layout/routes'
import { linesOf } from './farItems'
import { edgePaint } from './paint'

export function EdgeSheet({ doc, specs, ways }: { doc: Document; specs: Specs; ways: Ways }): ReactElement {
  const iter = useStore(uiStore, (s) => s.iter)
  const view = useStore(runStore, (s) => s.view)
  const ran = useStore(runStore, (s) => s.doc)
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
      <svg className="edgesheet" aria-hidden="true" data-testid="edge-sheet">
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
