// The variables of a workflow with what they begin as.

import type { ReactElement } from 'react'
import type { JsonObject } from '../../api/schemas'
import { VARIABLE_NAME } from '../../refs/renameVariable'
import { dispatch } from '../../state/doc'
import { FieldShell } from '../../forms/fields/FieldShell'
import { ValueField } from '../../forms/fields/JsonText'
import { AddRow, CommitInput, focusField, RowTools } from '../../forms/fields/rows'
import { useFieldScope } from '../../forms/fields/scope'

export function VariablesField({
  value,
  onChange,
}: {
  value: JsonObject
  onChange: (value: JsonObject | undefined) => void
}): ReactElement {
  const { readonly } = useFieldScope()
  const rows = Object.entries(value)
  const put = (next: [string, JsonObject[string]][]): void =>
    onChange(next.length ? Object.fromEntries(next) : undefined)
  const fresh = (): string => {
    let name = 'variable'
    for (let n = 2; name in value; n++) name = `variable_${n}`
    return name
  }
  return (
    <FieldShell
      label="Variables"
      description="Use <workflow.name> in references. Variables blocks change them."
      pointer="/variables"
      group
    >
      {(ids) => (
        <div className="rowlist">
          {rows.map(([name, item], i) => (
            <div key={i} className="case" role="group" aria-label={`Variable ${name}`}>
              <div className="case__head">
                <CommitInput
                  mono
                  label={`Name of variable ${i + 1}`}
                  testId={`field-variables.${i}.name`}
                  value={name}
                  onCommit={(next) => void dispatch({ type: 'renameVariable', from: name, to: next.trim() })}
                  check={(text) =>
                    !text.trim()
                      ? 'A variable needs a name.'
                      : !VARIABLE_NAME.test(text.trim())
                        ? 'Use letters, digits, _ and - only.'
                        : rows.some(([other], j) => j !== i && other === text.trim())
                          ? 'Another variable has this name.'
                          : null
                  }
                />
                <RowTools at={i} count={rows.length} name={name} onRemove={() => put(rows.filter((_, j) => j !== i))} />
              </div>
              <ValueField
                type={null}
                name={name}
                schema={{}}
                hint={{ placeholder: 'Initial value' }}
                label={`Value of ${name}`}
                path={`variables.${i}.value`}
                value={item}
                ids={{ ...ids, invalid: false, describedBy: undefined }}
                onChange={(next) => put(rows.map((row, j) => (j === i ? [row[0], next ?? ''] : row)))}
              />
            </div>
          ))}
          {rows.length === 0 && readonly ? <span className="quiet">None</span> : null}
          <AddRow
            testId="add-variables"
            onClick={() => (put([...rows, [fresh(), '']]), focusField(`field-variables.${rows.length}.name`))}
          >
            Add variable
          </AddRow>
        </div>
      )}
    </FieldShell>
  )
}
