// The name of a stored workflow: one of those there are, and the way to it. What is not stored (yet) stays as it is written.

import type { ReactElement } from 'react'
import { api } from '../../net/api'
import { useData } from '../../ui/useData'
import { Link } from '../../routes'
import type { ControlProps } from './Field'
import { useFieldScope } from './scope'

export function WorkflowField({ value, onChange, ids, path }: ControlProps): ReactElement {
  const { readonly } = useFieldScope()
  const stored = useData(() => api.workflows(), [])
  const name = typeof value === 'string' ? value : ''
  const names = (stored.value ?? []).map((each) => each.name)
  const isKnown = name === '' || names.includes(name)
  const missing = !isKnown && stored.value !== null
  return (
    <>
      <select
        id={ids.control} data-testid={`field-${path}`} disabled={readonly} value={name} aria-describedby={ids.describedBy} aria-invalid={ids.invalid || missing || undefined}
        onChange={(event) => onChange(event.target.value || undefined)}
      >
        <option value="">choose</option>
        {isKnown ? null : <option value={name}>{missing ? `${name} (not stored)` : name}</option>}
        {names.map((each) => <option key={each} value={each}>{each}</option>)}
      </select>
      {name && !missing ? <p className="fld__about"><Link to={`/runs?workflow=${encodeURIComponent(name)}`}>Runs of {name}</Link></p> : null}
      {missing ? <p className="ref__wrong">No workflow of this name is stored. Save a version of it before this runs.</p> : null}
      {stored.error ? <p className="ref__wrong">{stored.error.message}</p> : null}
      {!name && stored.value?.length === 0 ? <p className="ref__wrong">No workflow is stored yet. Save a version of one, then choose it here.</p> : null}
    </>
  )
}
