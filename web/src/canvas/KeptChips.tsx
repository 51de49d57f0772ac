// Below each block: how it does in the runs that are kept as tests, replayed with the draft as it is.

import { ViewportPortal } from '@xyflow/react'
import { useEffect, type ReactElement } from 'react'
import { useStore } from 'zustand'
import type { Document } from '../api/types'
import { absoluteAt, type Specs } from '../document/document'
import { sizeOf } from '../geometry/size'
import { chipOf } from '../run/replays'
import { backtestStore, watchDraft } from '../state/backtest'
import { uiStore } from '../state/ui'
import { useDetail } from './lod'
import type { Local } from './flow'
import './css/kept.css'

const GAP = 6

export default function KeptChips({
  doc,
  specs,
  local,
}: {
  doc: Document
  specs: Specs
  local: Local
}): ReactElement | null {
  const runs = useStore(backtestStore, (s) => s.runs)
  const old = useStore(backtestStore, (s) => s.old)
  const detail = useDetail()
  useEffect(watchDraft, [])
  if (!runs.length || detail !== 'near') return null
  return (
    <ViewportPortal>
      {Object.entries(doc.blocks).map(([id, block]) => {
        const chip = local.has(id) ? null : chipOf(id, runs)
        if (!chip) return null
        const [x, y] = absoluteAt(doc, id)
        const height = sizeOf(block, specs.get(block.type))[1]
        return (
          <button
            key={id}
            type="button"
            className="keptchip nopan"
            data-tone={chip.tone}
            data-old={old || undefined}
            data-testid={`kept-${id}`}
            title={`${chip.title ? `${chip.title}. ` : ''}Click to see these runs`}
            onClick={() => uiStore.setState({ overlay: 'tests' })}
            style={{ transform: `translate(${x + 10}px, ${y + height + GAP}px)` }}
          >
            {chip.text}
          </button>
        )
      })}
    </ViewportPortal>
  )
}
