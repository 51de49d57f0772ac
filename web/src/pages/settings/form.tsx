// What the forms of schedules and webhooks share: the workflow they start, their name, and their fields.

import { useState, type ReactElement, type ReactNode } from 'react'
import { api } from '../../net/api'
import { FieldShell, type FieldIds } from '../../forms/fields/FieldShell'
import { useData, type Loaded } from '../../ui/useData'
import type { Refusal } from './EditDialog'
import '../../forms/fields/fields.css'

interface PartProps {
  name: string
  label: string
  about?: string
  needed?: boolean
  found: Refusal | null
  /** What is known to be wrong before the server is asked. */
  error?: string | null
  children: (ids: FieldIds) => ReactNode
}

export function Part({ name, label, about, needed, found, error, children }: PartProps): ReactElement {
  return (
    <FieldShell
      label={label}
      description={about}
      required={needed}
      error={error ?? (found?.field === name ? found.message : null)}
    >
      {children}
    </FieldShell>
  )
}

/** What schedules and webhooks have in common, as the form holds it. */
export interface Target {
  workflow: string
  /** Empty: the active one. */
  version: string
  /** null: not typed, so it follows the workflow. */
  named: string | null
}

export interface TargetForm {
  target: Target
  set: (change: Partial<Target>) => void
  id: string
  /** Why the name cannot be used. */
  idError: string | null
  /** Why the form cannot be sent. */
  why: string | null
  /** What the server gets: the trigger's block only while the workflow is the same. */
  stored: { workflow: string; version: number | null; trigger: string | null }
}

/** `before` null: a new one. `ids`: those in use. */
export function useTarget(
  what: 'schedule' | 'webhook',
  before: { id: string; workflow: string; version: number | null; trigger: string | null } | null,
  ids: ReadonlySet<string>,
): TargetForm {
  const [target, setTarget] = useState<Target>({
    workflow: before?.workflow ?? '',
    version: before?.version ? String(before.version) : '',
    named: before?.id ?? null,
  })
  const { workflow, version, named } = target
  const id = named ?? (workflow ? idFor(workflow, ids) : '')
  const idError = before === null && ids.has(id) ? `Another ${what} has this name.` : null
  return {
    target,
    set: (change) => setTarget((now) => ({ ...now, ...change })),
    id,
    idError,
    why: !workflow ? 'Choose a workflow.' : !id ? 'Enter a name.' : idError,
    stored: {
      workflow,
      version: version ? Number(version) : null,
      trigger: before && before.workflow === workflow ? before.trigger : null,
    },
  }
}

/** Which stored workflow, and which version of it. */
export function TargetPart({ form, found }: { form: TargetForm; found: Refusal | null }): ReactElement {
  const value = form.target
  const stored = useData(() => api.workflows(), [])
  const names = (stored.value ?? []).map((each) => each.name)
  const chosen = stored.value?.find((each) => each.name === value.workflow)
  const newest = chosen?.newest ?? 0
  const known = value.workflow === '' || names.includes(value.workflow)
  return (
    <div className="triggerform__pair">
      <Part name="workflow" label="Workflow" needed found={found} error={whyNone(stored)}>
        {(ids) => (
          <select
            id={ids.control}
            data-testid="trigger-workflow"
            value={value.workflow}
            aria-invalid={ids.invalid || undefined}
            aria-describedby={ids.describedBy}
            onChange={(event) => form.set({ workflow: event.target.value, version: '' })}
          >
            <option value="">{stored.loading && !stored.value ? 'Loading' : 'Select a workflow'}</option>
            {known ? null : <option value={value.workflow}>{value.workflow}</option>}
            {names.map((name) => (
              <option key={name} value={name}>
                {name}
              </option>
            ))}
          </select>
        )}
      </Part>
      <Part name="version" label="Version" found={found}>
        {(ids) => (
          <select
            id={ids.control}
            data-testid="trigger-version"
            value={value.version}
            disabled={!value.workflow}
            onChange={(event) => form.set({ version: event.target.value })}
          >
            <option value="">{chosen ? `Active version (now ${chosen.version})` : 'Active version'}</option>
            {value.version && Number(value.version) > newest ? (
              <option value={value.version}>{value.version}</option>
            ) : null}
            {Array.from({ length: newest }, (_, i) => newest - i).map((each) => (
              <option key={each} value={each}>
                {each}
              </option>
            ))}
          </select>
        )}
      </Part>
    </div>
  )
}

function whyNone(stored: Loaded<readonly unknown[]>): string | null {
  if (stored.error) return stored.error.message
  return stored.value?.length === 0 ? 'No workflow is published yet. Open one and publish it.' : null
}

/** The name, of new ones: it cannot be changed later. */
export function NamePart({
  form,
  found,
  testId,
  about,
}: {
  form: TargetForm
  found: Refusal | null
  testId: string
  about: string
}): ReactElement {
  return (
    <Part name="id" label="Name" found={found} error={form.idError} about={about}>
      {(ids) => <CodeInput ids={ids} testId={testId} value={form.id} onChange={(named) => form.set({ named })} />}
    </Part>
  )
}

/** One line that is no prose: a name, an expression. */
export function CodeInput({
  ids,
  testId,
  value,
  onChange,
}: {
  ids: FieldIds
  testId: string
  value: string
  onChange: (value: string) => void
}): ReactElement {
  return (
    <input
      type="text"
      id={ids.control}
      className="mono"
      data-testid={testId}
      value={value}
      spellCheck={false}
      autoComplete="off"
      aria-invalid={ids.invalid || undefined}
      aria-describedby={ids.describedBy}
      onChange={(event) => onChange(event.target.value)}
    />
  )
}

export function Choice<T extends string>({
  id,
  options,
  value,
  onChange,
}: {
  id: string
  options: Record<T, string>
  value: T
  onChange: (next: T) => void
}): ReactElement {
  return (
    <select id={id} value={value} onChange={(event) => onChange(event.target.value as T)}>
      {Object.entries<string>(options).map(([key, words]) => (
        <option key={key} value={key}>
          {words}
        </option>
      ))}
    </select>
  )
}

/** The name of the workflow; `report-2` when there is a `report`. */
function idFor(workflow: string, ids: ReadonlySet<string>): string {
  const plain = workflow.replace(/[^A-Za-z0-9_.-]+/g, '-').slice(0, 120)
  for (let n = 1; ; n++) {
    const id = n === 1 ? plain : `${plain}-${n}`
    if (!ids.has(id)) return id
  }
}
