// What a variables block does, one change in a row: name, how, value.

import { useId, type ReactElement } from 'react'
import { isObject, withKey } from '../../net/json'
import type { Json, JsonObject } from '../../api/schemas'
import type { ControlProps } from './control'
import { FindingsRow } from './FieldShell'
import { ValueField } from './JsonText'
import { FIELD_TYPES, TYPE_WORDS } from './properties'
import { AddRow, focusField, moved, replaced, RowTools } from './rows'
import { useFieldScope } from './scope'

const OPS = { set: 'Set', merge: 'Merge', append: 'Append', increment: 'Increment', del: 'Delete' } as const

export function AssignmentsField(props: ControlProps): ReactElement {
  const { value, onChange, path, pointer } = props
  const { doc, readonly } = useFieldScope()
  const names = useId()
  // {name: value} is short for setting each; it becomes a list when something is changed.
  const items: JsonObject[] = Array.isArray(value)
    ? value.map((item) => (isObject(item) ? item : {}))
    : isObject(value)
      ? Object.entries(value).map(([name, item]) => ({ name, value: item }))
      : []
  const put = (next: readonly JsonObject[]): void => onChange([...next] as Json[])
  return (
    <div className="rowlist">
      <datalist id={names}>
        {Object.keys(doc.variables ?? {}).map((name) => (
          <option key={name} value={name} />
        ))}
      </datalist>
      {items.map((item, i) => {
        const set = (key: string, next: Json | undefined): void => put(replaced(items, i, withKey(item, key, next)))
        const name = typeof item.name === 'string' ? item.name : ''
        const op = typeof item.op === 'string' ? item.op : 'set'
        const word = name || `assignment ${i + 1}`
        return (
          <FindingsRow
            key={i}
            label={`Assignment to ${word}`}
            pointer={pointer === undefined ? undefined : `${pointer}/${i}`}
          >
            {() => (
              <>
                <div className="case__head">
                  <input
                    type="text"
                    className="mono"
                    list={names}
                    aria-label={`Variable ${i + 1}`}
                    data-testid={`field-${path}.${i}.name`}
                    value={name}
                    placeholder="variable"
                    readOnly={readonly}
                    spellCheck={false}
                    autoComplete="off"
                    onChange={(event) => set('name', event.target.value)}
                  />
                  <select
                    aria-label={`Operation for ${word}`}
                    data-testid={`field-${path}.${i}.op`}
                    value={op}
                    disabled={readonly}
                    onChange={(event) => set('op', event.target.value === 'set' ? undefined : event.target.value)}
                  >
                    {Object.entries(OPS).map(([each, text]) => (
                      <option key={each} value={each}>
                        {text}
                      </option>
                    ))}
                  </select>
                  <RowTools
                    at={i}
                    count={items.length}
                    name={word}
                    onMove={(to) => put(moved(items, i, to))}
                    onRemove={() => put(items.filter((_, j) => j !== i))}
                  />
                </div>
                {op === 'del' ? null : (
                  <ValueField
                    {...props}
                    path={`${path}.${i}.value`}
                    label={`Value for ${word}`}
                    value={item.value}
                    schema={op === 'increment' ? { default: 1 } : {}}
                    hint={{}}
                    ids={{ ...props.ids, invalid: false, describedBy: undefined }}
                    onChange={(next) => set('value', next)}
                  />
                )}
                {op === 'del' ? null : (
                  <label className="case__foot">
                    <span className="label">Convert to</span>
                    <select
                      value={typeof item.type === 'string' ? item.type : 'any'}
                      disabled={readonly}
                      onChange={(event) => set('type', event.target.value === 'any' ? undefined : event.target.value)}
                    >
                      {FIELD_TYPES.map((each) => (
                        <option key={each} value={each}>
                          {each === 'any' ? 'No conversion' : TYPE_WORDS[each]}
                        </option>
                      ))}
                    </select>
                  </label>
                )}
              </>
            )}
          </FindingsRow>
        )
      })}
      <AddRow
        testId={`add-${path}`}
        onClick={() => (put([...items, { name: '', value: '' }]), focusField(`field-${path}.${items.length}.name`))}
      >
        Add assignment
      </AddRow>
    </div>
  )
}
