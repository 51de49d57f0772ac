// The name of a stored workflow: one of those there are, and the way to it. What is not stored (yet) stays as it is written.

import type { ReactElement } from 'react'
import { api } from '../../net/api'
import { useData } from '../../ui/useData'
import { Link } from '../../ui/navigation'
import { sentence } from '../../ui/words'
import type { ControlProps } from './control'
import { useFieldScope } from './scope'

export function WorkflowField({ type, value, onChange, ids, path }: ControlProps): ReactElement {
  const { readonly } = useFieldScope()
  const stored = useData(() => api.workflows(), [])
  const name = typeof value === 'string' ? value : ''
  const names = (stored.value ?? []).map((each) => each.name)
  const isKnown = name === '' || names.includes(name)
  const missing = !isKnown && stored.value !== null
  return (
    <>
      <select
        id={ids.control}
        data-testid={`field-${path}`}
        disabled={readonly}
        value={name}
        aria-describedby={ids.describedBy}
        aria-invalid={ids.invalid || missing || undefined}
        onChange={(event) => onChange(event.target.value || undefined)}
      >
        <option value="">{type === null ? 'None' : 'Select a workflow'}</option>
        {isKnown ? null : <option value={name}>{missing ? `${name} (not published)` : name}</option>}
        {names.map((each) => (
          <option key={each} value={each}>
            {each}
          </option>
        ))}
      </select>
      {name && !missing ? (
        <p className="fld__about">
          <Link to={`/runs?workflow=${encodeURIComponent(name)}`}>Runs of {name}</Link>
        </p>
      ) : null}
      {missing ? (
        <p className="ref__wrong">
          No published workflow has this name.{type === null ? '' : ' Publish it before you run this one.'}
        </p>
      ) : null}
      {stored.error ? <p className="ref__wrong">{sentence(stored.error.message)}</p> : null}
      {type !== null && !name && stored.value?.length === 0 ? (
        <p className="ref__wrong">No workflow is published yet. Publish one, then choose it here.</p>
      ) : null}
    </>
  )
}
