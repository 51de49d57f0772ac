// No block is selected: the workflow itself, with its name, input, variables and limits.

import type { ReactElement } from 'react'
import type { Json, JsonObject } from '../../api/schemas'
import type { Document, JsonSchema, Settings } from '../../api/types'
import { dispatch, specsOf } from '../../state/doc'
import { Field } from '../../forms/fields/Field'
import { DrawnContext, useDrawn } from '../../forms/fields/calm'
import { Findings } from '../../forms/fields/FieldShell'
import { CommitInput } from '../../forms/fields/rows'
import { useFieldScope } from '../../forms/fields/scope'
import { isTrigger } from '../../document/document'
import { LastRun } from './RunOutcome'
import { SETTINGS } from './settings'
import { VariablesField } from './VariablesField'

export function WorkflowPanel(): ReactElement {
  const { doc, diagnostics, readonly } = useFieldScope()
  const drawn = useDrawn(true)
  const settings = doc.settings ?? {}
  const putMeta = (
    name: 'name' | 'description' | 'input' | 'variables' | 'settings',
    value: Document[typeof name],
  ): void => void dispatch({ type: 'setMeta', meta: { [name]: value } }, `meta ${name}`)
  const putSetting = (name: string, value: Json | undefined): void => {
    const { [name]: _, ...rest } = settings
    const next = value === undefined ? rest : { ...rest, [name]: value }
    putMeta('settings', Object.keys(next).length ? (next as Settings) : undefined)
  }
  const own = diagnostics.filter(
    (each) => !each.pointer.startsWith('/blocks/') && !/^\/(input|variables|settings|edges)(\/|$)/.test(each.pointer),
  )
  const starts = Object.entries(doc.blocks).filter(([, block]) => isTrigger(block, specsOf()))
  return (
    <>
      <header className="inspector__head">
        <div className="inspector__title">
          {readonly ? (
            <h2>{doc.name}</h2>
          ) : (
            <CommitInput
              label="Name of the workflow"
              testId="workflow-name"
              value={doc.name ?? ''}
              onCommit={(name) => putMeta('name', name.trim())}
              check={(text) => (text.trim() === '' ? 'A workflow needs a name.' : null)}
            />
          )}
        </div>
        <dl className="facts">
          <dt>Blocks</dt>
          <dd>{Object.keys(doc.blocks).length}</dd>
          <dt>Triggers</dt>
          <dd>{starts.map(([id, block]) => block.name ?? id).join(', ') || 'None'}</dd>
        </dl>
      </header>
      <div className="inspector__body">
        <LastRun />
        <Findings findings={own} />
        <div className="inspector__fields">
          <Field
            type={null}
            name="description"
            schema={{ title: 'Description', type: 'string', 'x-rows': 2 }}
            value={doc.description}
            path="description"
            onChange={(value) => putMeta('description', typeof value === 'string' ? value : '')}
          />
          <Field
            type={null}
            name="input"
            schema={{
              title: 'Input',
              'x-ui': { widget: 'schema' },
              description: 'Fields of the run form. Use <input.name> in references.',
            }}
            value={(doc.input ?? undefined) as Json | undefined}
            path="input"
            pointer="/input"
            onChange={(value) => putMeta('input', value as JsonSchema | undefined)}
          />
          <VariablesField
            value={doc.variables ?? {}}
            onChange={(value: JsonObject | undefined) => putMeta('variables', value)}
          />
        </div>
        <details className="fold" open={Object.keys(settings).length > 0 || undefined}>
          <summary>Settings</summary>
          <div className="inspector__fields">
            <DrawnContext value={drawn}>
              {Object.entries(SETTINGS).map(([name, schema]) => (
                <Field
                  key={name}
                  type={null}
                  name={name}
                  schema={schema}
                  value={settings[name] as Json | undefined}
                  path={`settings.${name}`}
                  pointer={`/settings/${name}`}
                  onChange={(value) => putSetting(name, name === 'groups' ? numbersOf(value) : value)}
                />
              ))}
            </DrawnContext>
          </div>
        </details>
      </div>
    </>
  )
}

/** Limits of groups are numbers, whatever was typed. */
function numbersOf(value: Json | undefined): Json | undefined {
  if (!value || typeof value !== 'object' || Array.isArray(value)) return value
  return Object.fromEntries(
    Object.entries(value).map(([name, item]) => [
      name,
      typeof item === 'string' && /^\d+$/.test(item) ? Number(item) : item === '' ? 1 : item,
    ]),
  )
}
