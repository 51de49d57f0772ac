// A list of objects, each a card with the fields of its schema: for blocks whose lists have no editor of their own.

import type { ReactElement } from 'react'
import type { Json, JsonObject } from '../../net/types'
import { Field, type ControlProps } from './Field'
import { isObject } from './PairsField'
import { AddRow, moved, replaced, RowTools } from './rows'

export function ItemsField({ value, onChange, path, pointer, schema, label }: ControlProps): ReactElement {
  const items: Json[] = Array.isArray(value) ? value : []
  const inner = schema.items ?? {}
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
            {Object.entries(inner.properties ?? {}).map(([key, part]) => (
              <Field
                key={key}
                type={null}
                name={key}
                schema={part}
                value={object[key]}
                path={`${path}.${i}.${key}`}
                required={inner.required?.includes(key) ?? false}
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

/** A copy with `key` set, or without it. */
export function withKey(object: JsonObject, key: string, value: Json | undefined): JsonObject {
  if (value !== undefined) return { ...object, [key]: value }
  const { [key]: _, ...rest } = object
  return rest
}
