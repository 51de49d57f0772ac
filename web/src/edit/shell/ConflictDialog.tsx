// The dialog for a draft that was saved elsewhere in between: what differs, and whose is to stay.

import { useMemo, type ReactElement } from 'react'
import { useStore } from 'zustand'
import type { Json } from '../../api/schemas'
import type { Document } from '../../api/types'
import { navigate } from '../../ui/navigation'
import { docStore, settle } from '../../state/doc'
import { diffDocuments } from '../../document/diff'
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
                <td>
                  <Text cut={row.mine} />
                </td>
                <td>
                  <Text cut={row.theirs} />
                </td>
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
  mine: Cut
  theirs: Cut
}

/** A text around what differs in it: before, the different part, after. */
type Cut = readonly [string, string, string]

function compare(theirs: Document, mine: Document): Difference[] {
  const diff = diffDocuments(theirs, mine)
  const rows: Difference[] = []
  const whole = (what: string, a: string, b: string): void =>
    void rows.push({ what, mine: ['', a, ''], theirs: ['', b, ''] })
  for (const { name, how, fields } of diff.blocks) {
    if (how !== 'changed') whole(name, how === 'added' ? 'Exists' : 'Deleted', how === 'added' ? 'Deleted' : 'Exists')
    for (const field of fields) rows.push({ what: `${name}, ${fieldWords(field.path)}`, ...cutBoth(field) })
  }
  if (diff.edges.length) whole('Connections', String(mine.edges.length), String(theirs.edges.length))
  for (const field of diff.fields) rows.push({ what: wordsOf(fieldWords(field.path)), ...cutBoth(field) })
  if (JSON.stringify(mine.notes) !== JSON.stringify(theirs.notes))
    rows.push({ what: 'Notes', ...cutBoth({ before: theirs.notes as Json, after: mine.notes as Json }) })
  return rows
}

/** `params.cases.0.when` -> `cases 1 when`. */
function fieldWords(path: string): string {
  const parts = path.split('.').filter((part) => part !== 'params')
  return parts.map((part) => (/^\d+$/.test(part) ? String(Number(part) + 1) : wordsOf(part).toLowerCase())).join(' ')
}

/** Characters that are shown before the first difference, and of the difference itself. */
const BEFORE = 24
const SHOWN = 90

function cutBoth({ before, after }: { before: Json | undefined; after: Json | undefined }): Omit<Difference, 'what'> {
  const [theirs, mine] = [textOf(before), textOf(after)]
  let start = 0
  while (start < mine.length && start < theirs.length && mine[start] === theirs[start]) start++
  let end = 0
  while (end < Math.min(mine.length, theirs.length) - start && mine.at(-1 - end) === theirs.at(-1 - end)) end++
  const cut = (text: string): Cut => {
    const from = Math.max(0, start - BEFORE)
    const different = text.slice(start, text.length - end)
    const more = text.slice(text.length - end)
    return [
      (from ? '…' : '') + text.slice(from, start),
      different.length > SHOWN ? `${different.slice(0, SHOWN)}…` : different,
      different.length > SHOWN ? '' : more.length > BEFORE ? `${more.slice(0, BEFORE)}…` : more,
    ]
  }
  return { mine: cut(mine), theirs: cut(theirs) }
}

const textOf = (value: Json | undefined): string =>
  typeof value === 'string' ? value : value === undefined ? 'nothing' : JSON.stringify(value)

function Text({ cut: [before, different, after] }: { cut: Cut }): ReactElement {
  return (
    <>
      {before}
      <mark>{different}</mark>
      {after}
    </>
  )
}
