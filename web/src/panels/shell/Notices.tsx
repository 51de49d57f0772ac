// What the editor says above the canvas: edits that were left in this browser, a window too small to edit in, a draft that could
// not be opened. And the dialog for when somebody else saved in between.

import { useMemo, type ReactElement } from 'react'
import type { Document } from '../../net/types'
import { navigate } from '../../routes'
import { docStore, restoreLocal, settle } from '../../state/doc'
import { nameOf } from '../../state/document'
import { useSelect } from '../../state/store'
import { uiStore } from '../../state/ui'
import { Button } from '../../ui/Button'
import { Dialog } from '../../ui/Dialog'
import { toast } from '../../ui/Toast'

export function Notices(): ReactElement | null {
  const restorable = useSelect(docStore, (s) => s.restorable)
  const readonly = useSelect(docStore, (s) => s.readonly)
  // After the first edit what is stored is what is drawn.
  const faults = useSelect(docStore, (s) => (s.mended?.document === s.doc ? s.mended.faults : null))
  if (!restorable && !readonly && !faults) return null
  return (
    <>
      {restorable ? (
        <div className="banner" data-tone="wait" role="status" data-testid="restore-bar">
          <p>Edits of {new Date(restorable.at).toLocaleString()} are in this browser and never reached the server.</p>
          <Button kind="primary" onClick={() => restoreLocal(true)}>Take them back</Button>
          <Button onClick={() => restoreLocal(false)}>Forget them</Button>
        </div>
      ) : null}
      {faults ? (
        <div className="banner" data-tone="wait" role="status" data-testid="mended-bar">
          <p>
            {faults.length === 1 ? 'A part' : `${faults.length} parts`} of this document can not be drawn: {faults[0]!.message} The next edit on the canvas saves it without {faults.length === 1 ? 'that part' : 'them'}.
          </p>
          <Button onClick={() => uiStore.set({ view: 'json' })}>Show it as JSON</Button>
        </div>
      ) : null}
      {readonly ? <div className="banner" role="status"><p>This window is too small to edit in. Everything can be read, run and decided.</p></div> : null}
    </>
  )
}

export function ConflictDialog(): ReactElement | null {
  const conflict = useSelect(docStore, (s) => s.conflict)
  const mine = useSelect(docStore, (s) => s.doc)
  const changes = useMemo(() => (conflict ? compare(conflict.document, mine) : []), [conflict, mine])
  if (!conflict) return null
  const choose = async (choice: 'theirs' | 'mine' | 'copy'): Promise<void> => {
    try {
      const copied = await settle(choice)
      if (copied) toast('Yours is a draft of its own now.', 'ok', { label: 'Open it', onSelect: () => navigate(`/w/${copied}`) })
    } catch (error) {
      toast(error instanceof Error ? error.message : String(error), 'err')
    }
  }
  return (
    <Dialog
      title="Somebody else saved this draft" open wide onClose={() => void choose('copy')}
      foot={
        <>
          <Button onClick={() => void choose('copy')}>Keep mine as a copy</Button>
          <Button data-testid="take-theirs" onClick={() => void choose('theirs')}>Take theirs</Button>
          <Button kind="primary" data-testid="keep-mine" onClick={() => void choose('mine')}>Keep mine</Button>
        </>
      }
    >
      <div data-testid="conflict">
        <p>Their revision {conflict.rev} is of {new Date(conflict.updated_at).toLocaleString()}. Nothing is lost whichever you choose: taking theirs can be undone.</p>
        <table className="compare">
          <thead><tr><th>what differs</th><th>mine</th><th>theirs</th></tr></thead>
          <tbody>{changes.map((row) => <tr key={row.what}><th scope="row">{row.what}</th><td>{row.mine}</td><td>{row.theirs}</td></tr>)}</tbody>
        </table>
        {changes.length ? null : <p className="quiet">Only positions differ.</p>}
      </div>
    </Dialog>
  )
}

interface Difference {
  what: string
  mine: string
  theirs: string
}

function compare(theirs: Document, mine: Document): Difference[] {
  const rows: Difference[] = []
  for (const id of new Set([...Object.keys(mine.blocks), ...Object.keys(theirs.blocks)])) {
    const [a, b] = [mine.blocks[id], theirs.blocks[id]]
    const what = nameOf(a ? mine : theirs, id)
    if (!a || !b) rows.push({ what, mine: a ? 'there' : 'not there', theirs: b ? 'there' : 'not there' })
    else {
      const fields = [...new Set([...Object.keys(a), ...Object.keys(b)])].filter((key) => key !== 'at' && key !== 'size' && JSON.stringify(a[key]) !== JSON.stringify(b[key]))
      if (fields.length) rows.push({ what, mine: fields.map((key) => brief(a[key])).join(', '), theirs: fields.map((key) => brief(b[key])).join(', ') })
    }
  }
  if (JSON.stringify(mine.edges) !== JSON.stringify(theirs.edges)) rows.push({ what: 'connections', mine: String(mine.edges.length), theirs: String(theirs.edges.length) })
  for (const key of ['name', 'description', 'variables', 'settings', 'input', 'notes'] as const) {
    if (JSON.stringify(mine[key]) !== JSON.stringify(theirs[key])) rows.push({ what: key, mine: brief(mine[key]), theirs: brief(theirs[key]) })
  }
  return rows
}

function brief(value: unknown): string {
  const text = typeof value === 'string' ? value : (JSON.stringify(value) ?? 'nothing')
  return text.length > 80 ? `${text.slice(0, 80)}…` : text
}
