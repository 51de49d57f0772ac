// The foot of a sheet: the blocks before and after it in the flow, and its keys.

import type { ReactElement } from 'react'
import { chainOf, indexOf, nameOf } from '../../document/document'
import { openSheet } from '../../state/ui'
import { Icon } from '../../ui/icons'
import { useFieldScope } from '../../forms/fields/scope'

export function Foot({ id }: { id: string }): ReactElement {
  const { doc } = useFieldScope()
  const { into, outOf } = indexOf(doc)
  const before = into.get(id)?.[0]?.source
  const after = outOf.get(id)?.[0]?.target
  return (
    <footer className="wsheet__foot">
      {before === undefined ? (
        <span />
      ) : (
        <button type="button" data-testid="sheet-before" onClick={() => openSheet(before)}>
          <Icon name="back" size={12} />
          {nameOf(doc, before)}
        </button>
      )}
      <p>
        <span>
          <kbd>Enter</kbd> on a value puts it into the field
        </span>
        {chainOf(doc, id).length ? (
          <span>
            <kbd>[</kbd> <kbd>]</kbd> other iteration
          </span>
        ) : null}
        <span>
          <kbd>Esc</kbd> back to the canvas
        </span>
      </p>
      {after === undefined ? (
        <span />
      ) : (
        <button type="button" data-testid="sheet-after" onClick={() => openSheet(after)}>
          {nameOf(doc, after)}
          <Icon name="chevron" size={12} />
        </button>
      )}
    </footer>
  )
}
