// Run again from a block, asked for by a key or a menu wherever a run is painted.

import type { ReactElement } from 'react'
import { useStore } from 'zustand'
import { RerunDialog as Ask } from '../../watch/run/RerunDialog'
import { chainOf } from '../../document/document'
import { docStore } from '../../state/doc'
import { openRun, runStore } from '../../state/live'
import { isEnded } from '../../run'
import { rerunStore } from '../../actions/start'
import { navigate } from '../../ui/navigation'

export default function RerunDialog(): ReactElement | null {
  const { from: asked, draft } = useStore(rerunStore)
  const editing = useStore(docStore, (s) => s.id)
  const meta = useStore(runStore, (s) => s.meta)
  const doc = useStore(runStore, (s) => s.doc)
  const ended = useStore(runStore, (s) => isEnded(s.head.status))
  if (asked === null || !meta || !doc?.blocks[asked]) return null
  // A container runs as a whole.
  const from = chainOf(doc, asked).at(-1) ?? asked
  return (
    <Ask
      run={meta}
      doc={doc}
      ended={ended}
      from={from}
      draft={draft}
      onClose={() => rerunStore.setState({ from: null, draft: false })}
      // In the editor one stays there, and sees the run on the canvas.
      onStarted={(run) => (editing === null ? navigate(`/runs/${run}`) : void openRun(run))}
    />
  )
}
