// A list of texts. Those of an approval's actions are handles: they are named once and then renamed, so that edges follow.

import type { ReactElement } from 'react'
import type { Json } from '../../api/schemas'
import { freshId } from '../../document/document'
import type { ControlProps } from './control'
import { ReferenceField } from './ReferenceField'
import { AddRow, checkHandle, CommitInput, focusField, moved, replaced, RowTools } from './rows'

export function TextsField({
  type,
  name,
  value,
  onChange,
  path,
  schema,
  label,
  onRenameHandle,
}: ControlProps): ReactElement {
  const stored = value ?? schema.default
  const items: Json[] = Array.isArray(stored) ? stored : []
  const handles = type === 'approval' && name === 'actions'
  const put = (next: Json[]): void => onChange(next)
  return (
    <div className="rowlist">
      {items.map((item, i) => {
        const text = typeof item === 'string' ? item : JSON.stringify(item)
        const others = items.filter((_, j) => j !== i).map(String)
        return (
          <div key={i} className="pair pair--one">
            {handles ? (
              <CommitInput
                mono
                label={`Action ${i + 1}`}
                testId={`field-${path}.${i}`}
                value={text}
                check={(next) => checkHandle(next, others)}
                onCommit={(next) =>
                  onRenameHandle && text ? onRenameHandle(text, next) : put(replaced(items, i, next))
                }
              />
            ) : (
              <ReferenceField
                label={`${label} ${i + 1}`}
                testId={`field-${path}.${i}`}
                value={text}
                onChange={(next) => put(replaced(items, i, next))}
              />
            )}
            <RowTools
              at={i}
              count={items.length}
              name={text || `row ${i + 1}`}
              onMove={(to) => put(moved(items, i, to))}
              onRemove={() => put(replaced(items, i, undefined))}
            />
          </div>
        )
      })}
      <AddRow
        testId={`add-${path}`}
        onClick={() => (
          put([...items, handles ? freshId((id) => items.includes(id), 'action') : '']),
          focusField(`field-${path}.${items.length}`)
        )}
      >
        {handles ? 'Add button' : 'Add item'}
      </AddRow>
    </div>
  )
}
