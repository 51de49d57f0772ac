// What every control of a field gets.

import type { Json, JsonObject } from '../../api/schemas'
import type { JsonSchema } from '../../api/types'
import type { FieldIds } from './FieldShell'
import type { Hint } from './kind'

/** undefined takes the value away. */
export type Change = (value: Json | undefined) => void

export interface FieldProps {
  /** Block type, for its hints; null in a form. */
  type: string | null
  name: string
  schema: JsonSchema
  value: Json | undefined
  onChange: Change
  /** Path below the params: `cases.0.when`; also the test id. */
  path: string
  pointer?: string
  /** The other params, for options and conditions. */
  params?: JsonObject
  required?: boolean
  error?: string | null
  /** False: it takes no references. */
  refers?: boolean
  /** The id of a case, route or action is another; what leads there should follow. */
  onRenameHandle?: (from: string, to: string) => void
}

export interface ControlProps extends Omit<FieldProps, 'error' | 'required'> {
  ids: FieldIds
  hint: Hint
  label: string
}
