// A list of objects, each a card with the fields of its schema: for blocks whose lists have no editor of their own.

import type { ComponentType, ReactElement } from 'react'
import { isObject, withKey } from '../../net/json'
import type { Json, JsonObject } from '../../api/schemas'
import type { ControlProps, FieldProps } from './control'
import { hintOf, isNeeded, isShown } from './kind'
import { AddRow, moved, replaced, RowTools } from './rows'

interface ItemsProps extends ControlProps {
  /** What draws one field of an item: `Field`, which draws this. */
  field: ComponentType<FieldProps>
}

export function ItemsField({ field: Field, value, onChange, path, pointer, schema, label }: ItemsProps): ReactElement {
  const items: Json[] = Array.isArray(value) ? value : []
  const inner = schema.items ?? {}
  const parts = Object.entries(inner.properties ?? {})
  const defaults = Object.fromEntries(
    parts.flatMap(([key, part]) => (part.default === undefined ? [] : [[key, part.default] as const])),
  )
  return (
    <div className="rowlist">
      {items.map((item, i) => {
        const object: JsonObject = isObject(item) ? item : {}
        return (
          <div key={i} className="case" role="group" aria-label={`${label} ${i + 1}`}>
            <div className="case__head">
              <span className="label">{i + 1}</span>
              <RowTools
                at={i}
                count={items.length}
                name={`${label} ${i + 1}`}
                onMove={(to) => onChange(moved(items, i, to))}
                onRemove={() => onChange(replaced(items, i, undefined))}
              />
            </div>
            {parts
              .filter(([key, part]) => object[key] !== undefined || isShown(hintOf(null, key, part), object, defaults))
              .map(([key, part]) => (
                <Field
                  key={key}
                  type={null}
                  name={key}
                  schema={part}
                  value={object[key]}
                  path={`${path}.${i}.${key}`}
                  required={(inner.required?.includes(key) ?? false) || isNeeded(part, object, defaults)}
                  {...(pointer === undefined ? {} : { pointer: `${pointer}/${i}/${key}` })}
                  onChange={(next) => onChange(replaced(items, i, withKey(object, key, next)))}
                />
              ))}
          </div>
        )
      })}
      <AddRow testId={`add-${path}`} onClick={() => onChange([...items, {}])}>
        Add item
      </AddRow>
    </div>
  )
}
