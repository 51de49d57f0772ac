// The sheet behind `?`, made from the table that the handlers read.

import type { ReactElement } from 'react'
import { useStore } from 'zustand'
import { KEYS, wordsOf, type KeyRow } from '../../keys'
import { uiStore } from '../../state/ui'
import { Dialog } from '../../ui/Dialog'

const GROUPS: readonly KeyRow['group'][] = ['Build', 'Move', 'Edit', 'Run', 'Tape', 'View']
const PLACES: Readonly<Record<KeyRow['where'], string>> = {
  app: 'Anywhere on the page',
  canvas: 'When the canvas is focused',
  tape: 'When the Tape is focused',
}

export default function ShortcutSheet(): ReactElement | null {
  const open = useStore(uiStore, (s) => s.overlay === 'shortcuts')
  const rows: readonly KeyRow[] = KEYS
  return (
    <Dialog title="Keyboard shortcuts" open={open} wide onClose={() => uiStore.setState({ overlay: null })}>
      <div className="shortcuts">
        {GROUPS.map((group) => (
          <section key={group} className="shortcuts__group">
            <h3 className="label">{group}</h3>
            <dl>
              {rows
                .filter((row) => row.group === group)
                .map((row) => (
                  <div key={row.id} className="shortcuts__row" title={PLACES[row.where]}>
                    <dt>{row.does}</dt>
                    <dd>
                      {row.keys.map((keys) => (
                        <kbd key={keys}>{wordsOf(keys)}</kbd>
                      ))}
                    </dd>
                  </div>
                ))}
            </dl>
          </section>
        ))}
      </div>
      <p className="quiet">Single-key shortcuts work when the canvas is focused: click it, or press Esc.</p>
    </Dialog>
  )
}

export { ShortcutSheet }
