// The runs that are kept as tests of the open draft, replayed with it.

import type { ReactElement } from 'react'
import { useStore } from 'zustand'
import { docStore } from '../../state/doc'
import { uiStore } from '../../state/ui'
import { Dialog } from '../../ui/Dialog'
import PublishReplay from './PublishReplay'
import './publish.css'

export default function TestsDialog(): ReactElement {
  const doc = useStore(docStore, (s) => s.doc)
  const name = useStore(docStore, (s) => s.baseName ?? s.doc.name ?? '')
  return (
    <Dialog
      title={`Tests of ${name}`}
      className="publish"
      open
      onClose={() => uiStore.setState({ overlay: null })}
      aside={<span className="publish__since">After each change these runs are replayed with the draft.</span>}
    >
      <PublishReplay name={name} doc={doc} first="kept" />
    </Dialog>
  )
}
