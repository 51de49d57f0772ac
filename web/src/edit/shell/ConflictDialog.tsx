// The dialog for a draft that was saved elsewhere in between: what differs, and whose is to stay.

import { useMemo, type ReactElement } from 'react'
import { useStore } from 'zustand'
import type { Document } from '../../api/types'
import { navigate } from '../../ui/navigation'
import { docStore, settle } from '../../state/doc'
import { nameOf } from '../../document/document'
import { Button } from '../../ui/Button'
import { Dialog } from '../../ui/Dialog'
import { toast } from '../../ui/Toast'
import { messageOf, wordsOf } from '../../ui/words'

export default function ConflictDialog(): ReactElement | null {
  const conflict = useStore(docStore, (s) => s.conflict)
  const mine = useStore(docStore, (s) => s.doc)
  const changes = useMemo(() => (conflict ? compare(conflict.document, mine) : []), [conflict, mine])
  if (!conflict) return null
  const choose = async (choice: 'theirs' | 'mine' | 'copy'): Promise<void> => {
    try {
      const copied = await settle(choice)
      if (copied)
        toast('Saved your changes as a new draft.', 'ok', { label: 'Open', onSelect: () => navigate(`/w/${copied}`) })
    } catch (error) {
      toast(messageOf(error), 'err')
    }
  }
  return (
    <Dialog
      title="This draft was changed in another window"
      open
      wide
      onClose={() => void choose('copy')}
      foot={
        <>
          <Button onClick={() => void choose('copy')}>Save mine as a copy</Button>
          <Button data-testid="take-theirs" onClick={() => void choose('theirs')}>
            Use theirs
          </Button>
          <Button kind="primary" data-testid="keep-mine" onClick={() => void choose('mine')}>
            Use mine
          </Button>
        </>
      }
    >
      <div data-testid="conflict">
        <p>
          The other version was saved on {new Date(conflict.updated_at_ms).toLocaleString()}. You can undo your choice.
        </p>
        <table className="compare">
          <thead>
            <tr>
              <th>Difference</th>
              <th>Mine</th>
              <th>Theirs</th>
            </tr>
          </thead>
          <tbody>
            {changes.map((row) => (
              <tr key={row.what}>
                <th scope="row">{row.what}</th>
                <td>{row.mine}</td>
                <td>{row.theirs}</td>
              </tr>
            ))}
          </tbody>
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
    if (!a || !b) rows.push({ what, mine: a ? 'Exists' : 'Deleted', theirs: b ? 'Exists' : 'Deleted' })
    else {
      const fields = [...new Set([...Object.keys(a), ...Object.keys(b)])].filter(
        (key) => key !== 'at' && key !== 'size' && JSON.stringify(a[key]) !== JSON.stringify(b[key]),
      )
      if (fields.length)
        rows.push({
          what,
          mine: fields.map((key) => brief(a[key])).join(', '),
          theirs: fields.map((key) => brief(b[key])).join(', '),
        })
    }
  }
  if (JSON.stringify(mine.edges) !== JSON.stringify(theirs.edges))
    rows.push({ what: 'Connections', mine: String(mine.edges.length), theirs: String(theirs.edges.length) })
  for (const key of ['name', 'description', 'variables', 'settings', 'input', 'notes'] as const) {
    if (JSON.stringify(mine[key]) !== JSON.stringify(theirs[key]))
      rows.push({ what: wordsOf(key), mine: brief(mine[key]), theirs: brief(theirs[key]) })
  }
  return rows
}

function brief(value: unknown): string {
  const text = typeof value === 'string' ? value : (JSON.stringify(value) ?? 'nothing')
  return text.length > 80 ? `${text.slice(0, 80)}…` : text
}
