// Notices above the canvas: unsaved edits in this browser, a window too small to edit in, a draft that could not be opened.

import type { ReactElement } from 'react'
import { useStore } from 'zustand'
import { docStore, restoreLocal } from '../../state/doc'
import { uiStore } from '../../state/ui'
import { Button } from '../../ui/Button'
import { useReadOnly, useServerReadOnly } from '../../ui/rights'

export function Notices(): ReactElement | null {
  const restorable = useStore(docStore, (s) => s.restorable)
  const shown = useServerReadOnly() === null // else the top bar says why
  const readonly = useStore(docStore, (s) => s.readonly) && shown
  const mayNot = useReadOnly()
  // After the first edit what is stored is what is drawn.
  const faults = useStore(docStore, (s) => (s.repaired?.document === s.doc ? s.repaired.faults : null))
  if (!restorable && !readonly && !faults) return null
  return (
    <>
      {restorable ? (
        <div className="banner" data-tone="wait" role="status" data-testid="restore-bar">
          <p>This browser has unsaved changes from {new Date(restorable.at).toLocaleString()}.</p>
          <Button kind="primary" onClick={() => restoreLocal(true)}>
            Restore
          </Button>
          <Button onClick={() => restoreLocal(false)}>Discard</Button>
        </div>
      ) : null}
      {faults ? (
        <div className="banner" data-tone="wait" role="status" data-testid="repaired-bar">
          <p>
            {faults.length === 1 ? '1 part' : `${faults.length} parts`} of this document cannot be shown on the canvas:{' '}
            {faults[0]!.message} The next change on the canvas removes {faults.length === 1 ? 'it' : 'them'}.
          </p>
          <Button onClick={() => uiStore.setState({ view: 'json' })}>Show JSON</Button>
        </div>
      ) : null}
      {readonly ? (
        <div className="banner" role="status">
          <p>
            {mayNot
              ? mayNot.replace('This needs', 'Changing or running this workflow needs')
              : 'This window is too small to edit. You can run the workflow and answer approvals.'}
          </p>
        </div>
      ) : null}
    </>
  )
}
