// A workflow that is a durable function, before it runs: its code, with what became of its calls in the run that is painted. The
// drawing has its triggers.

import { useMemo, useState, type ReactElement } from 'react'
import { useStore } from 'zustand'
import { durableOf } from '../../document/durable'
import { laneItems } from '../../run/lane'
import { docStore } from '../../state/doc'
import { runStore } from '../../state/live'
import '../loom/switch.css'
import { useChosen } from './choose'
import { Source } from './Source'
import './lane.css'

const NONE: readonly string[] = []

export default function Code({ drawing }: { drawing: ReactElement }): ReactElement {
  const [drawn, setDrawn] = useState(false)
  return (
    <div className="code">
      <div className="code__which">
        <div className="loomswitch" role="group" aria-label="Shown">
          <button type="button" aria-pressed={!drawn} onClick={() => setDrawn(false)}>
            Source
          </button>
          <button type="button" aria-pressed={drawn} onClick={() => setDrawn(true)}>
            Drawing
          </button>
        </div>
      </div>
      {drawn ? drawing : <Painted />}
    </div>
  )
}

function Painted(): ReactElement | null {
  const doc = useStore(docStore, (s) => s.doc)
  const durable = useMemo(() => durableOf(doc), [doc])
  const view = useStore(runStore, (s) => s.view)
  const painted = useStore(runStore, (s) => durableOf(s.doc)?.listing?.text)
  // Lines of another text would be other lines.
  const blocks = durable && painted === durable.listing?.text ? durable.blocks : NONE
  const items = useMemo(() => laneItems(view, blocks), [view, blocks])
  const chosen = useChosen()
  return durable?.listing ? <Source listing={durable.listing} items={items} chosen={chosen} /> : null
}
