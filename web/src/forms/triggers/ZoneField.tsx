// A time zone: typed, or one of those this browser knows.

import { useId, useMemo, type ReactElement } from 'react'

interface ZoneFieldProps {
  id: string
  testId: string
  value: string
  onChange: (zone: string) => void
  readonly?: boolean
  invalid?: boolean
  describedBy?: string | undefined
}

export function ZoneField({
  id,
  testId,
  value,
  onChange,
  readonly = false,
  invalid = false,
  describedBy,
}: ZoneFieldProps): ReactElement {
  const list = useId()
  const zones = useMemo(() => ['UTC', ...(Intl.supportedValuesOf?.('timeZone') ?? [])], [])
  return (
    <>
      <input
        type="text"
        id={id}
        list={list}
        data-testid={testId}
        value={value}
        placeholder="UTC"
        readOnly={readonly}
        spellCheck={false}
        autoComplete="off"
        aria-invalid={invalid || undefined}
        aria-describedby={describedBy}
        onChange={(event) => onChange(event.target.value)}
      />
      <datalist id={list}>
        {zones.map((each) => (
          <option key={each} value={each} />
        ))}
      </datalist>
    </>
  )
}
