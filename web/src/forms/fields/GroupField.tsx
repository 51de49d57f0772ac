// An object with fields of its own, such as the MCP server of a tool: added and removed as a whole, and drawn from its schema.

import type { ComponentType, ReactElement, ReactNode } from 'react'
import { isObject, withKey } from '../../net/json'
import type { ControlProps, FieldProps } from './control'
import { AddRow, RowTools } from './rows'

export interface GroupProps extends ControlProps {
  /** What draws one of its fields: `Field`, which draws this. */
  field: ComponentType<FieldProps>
  /** Below its fields. */
  children?: ReactNode
}

export function GroupField({
  field: Field,
  value,
  onChange,
  path,
  pointer,
  schema,
  label,
  children,
}: GroupProps): ReactElement {
  if (!isObject(value))
    return (
      <AddRow testId={`add-${path}`} onClick={() => onChange({})}>
        {`Add ${label}`}
      </AddRow>
    )
  return (
    <div className="case" role="group" aria-label={label}>
      <div className="case__head">
        <span className="label" />
        <RowTools at={0} count={1} name={label} onRemove={() => onChange(undefined)} />
      </div>
      {Object.entries(schema.properties ?? {}).map(([key, part]) => (
        <Field
          key={key}
          type={null}
          name={key}
          schema={part}
          value={value[key]}
          path={`${path}.${key}`}
          required={schema.required?.includes(key) ?? false}
          {...(pointer === undefined ? {} : { pointer: `${pointer}/${key}` })}
          onChange={(next) => onChange(withKey(value, key, next))}
        />
      ))}
      {children}
    </div>
  )
}
