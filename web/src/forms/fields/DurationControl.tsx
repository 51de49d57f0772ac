// A length of time: a number and its unit, or a reference. The document has the number in the unit of the param.

import { useState, type ReactElement } from 'react'
import { amountIn, unitOf, unitsOf, UNIT_WORDS, valueFrom, type Unit } from './duration'
import type { ControlProps } from './control'
import { readNumber } from './number'
import { ReferenceField } from './ReferenceField'
import { baseOf } from './schema'
import { useFieldScope } from './scope'

export function DurationControl({ value, onChange, ids, path, schema, label }: ControlProps): ReactElement {
  const { readonly } = useFieldScope()
  const [chosen, setChosen] = useState<Unit | null>(null)
  const [typed, setTyped] = useState<string | null>(null)
  const base = baseOf(schema) ?? 's'
  const whole = schema.type === 'integer'
  const units = unitsOf(base, schema.maximum)
  const byDefault = typeof schema.default === 'number' ? schema.default : null
  const isText = typeof value === 'string'
  const unit = isText
    ? base
    : (chosen ??
      (typeof value === 'number'
        ? unitOf(value, base, units)
        : byDefault === null
          ? base
          : unitOf(byDefault, base, units)))

  const read = (text: string, as: Unit) => {
    const number = readNumber(text)
    return typeof number === 'number' ? valueFrom(number, as, base, whole) : number
  }
  const stored = typeof value === 'number' ? String(amountIn(unit, value, base)) : isText ? value : ''
  const shown = typed !== null && Object.is(read(typed, unit), value) ? typed : stored
  return (
    <div className="duration">
      <ReferenceField
        id={ids.control}
        testId={`field-${path}`}
        describedBy={ids.describedBy ?? ''}
        invalid={ids.invalid}
        value={shown}
        mono
        placeholder={byDefault === null ? '' : String(amountIn(unit, byDefault, base))}
        onChange={(text) => {
          // What is typed counts in the unit that is shown, whatever the number would be shown in later.
          setChosen(unit)
          setTyped(text)
          onChange(read(text, unit))
        }}
      />
      <select
        aria-label={`Unit of ${label}`}
        data-testid={`unit-${path}`}
        value={unit}
        disabled={readonly || isText}
        title={isText ? `References are in ${UNIT_WORDS[base]}` : undefined}
        onChange={(event) => {
          const next = event.target.value as Unit
          setChosen(next)
          if (typeof value === 'number') onChange(read(shown, next))
        }}
      >
        {units.map((each) => (
          <option key={each} value={each}>
            {UNIT_WORDS[each]}
          </option>
        ))}
      </select>
    </div>
  )
}
