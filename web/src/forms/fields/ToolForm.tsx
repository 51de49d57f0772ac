// The settings of one tool: what the model sees of it, what is called, and when a person is asked.

import type { ComponentType, ReactElement } from 'react'
import type { Json, JsonObject } from '../../api/schemas'
import type { JsonSchema } from '../../api/types'
import { isObject, withKey } from '../../net/json'
import { Button } from '../../ui/Button'
import type { FieldProps } from './control'
import { hintOf, isNeeded, isShown } from './kind'
import { useFieldScope } from './scope'
import { titleOf } from './schema'
import { isFillable, kindOfTool, withParams } from './tools'

interface ToolFormProps {
  field: ComponentType<FieldProps>
  tool: JsonObject
  /** The params of a tool, as the schema of the agent has them. */
  parts: Record<string, JsonSchema>
  path: string
  pointer: string | undefined
  onChange: (tool: JsonObject) => void
}

const APPROVE: JsonSchema = {
  title: 'Ask a person',
  enum: ['never', 'write', 'always', 'if'],
  'x-titles': {
    never: 'Never',
    write: 'Before a call that changes something',
    always: 'Before each call',
    if: 'Only if a condition is true',
  },
  default: 'never',
  description: 'The call waits until a person allows or refuses it. Nothing is sent before.',
}

export function ToolForm({ field: Field, tool, parts, path, pointer, onChange }: ToolFormProps): ReactElement {
  const kind = kindOfTool(tool)
  const part = (name: string, change: Partial<JsonSchema> = {}, required = false): ReactElement | null => {
    const schema = parts[name]
    if (!schema) return null
    return (
      <Field
        key={name}
        type={null}
        name={name}
        schema={{ ...schema, ...change }}
        value={tool[name]}
        params={tool}
        path={`${path}.${name}`}
        required={required}
        refers={!PLAIN.has(name)}
        {...(pointer === undefined ? {} : { pointer: `${pointer}/${name}` })}
        onChange={(next) => onChange(withKey(tool, name, next))}
      />
    )
  }
  const { properties } = isObject(tool.arguments) ? tool.arguments : { properties: {} }
  const names = Object.keys(isObject(properties) ? properties : {})
  const byHand = kind === 'workflow' || (kind === 'block' && tool.block === 'function')
  return (
    <div className="toolitem__form">
      {part('name', { description: 'What the model calls it by: letters, digits, _ and -.' }, true)}
      {part('description')}
      {kind === 'workflow' ? part('workflow', {}, true) : null}
      {kind === 'python' ? part('function', {}, true) : null}
      {kind === 'mcp' ? part('mcp') : null}
      {kind === 'block' || kind === 'connector' ? (
        <BlockParams field={Field} tool={tool} path={`${path}.params`} pointer={pointer} onChange={onChange} />
      ) : null}
      {kind === 'mcp' || kind === 'python' ? null : (
        <details className="toolitem__more" open={byHand && !names.length ? true : undefined}>
          <summary>{names.length ? `The model fills in: ${names.join(', ')}` : NOTHING[kind]}</summary>
          {part('arguments', { description: ARGUMENTS[kind] })}
        </details>
      )}
      {part('approve', APPROVE)}
      {tool.approve === 'if'
        ? part(
            'approve_if',
            { title: 'Only if', description: 'Such as args.amount > 50. The arguments of the call are in args.' },
            true,
          )
        : null}
      {tool.approve && tool.approve !== 'never' ? part('by') : null}
      <details
        className="toolitem__more"
        open={tool.max_calls !== undefined || tool.on_lost !== undefined || tool.agents !== undefined || undefined}
      >
        <summary>Limits and crashes</summary>
        {part('max_calls')}
        {part('on_lost')}
        {tool.agents === undefined ? null : part('agents')}
        {kind === 'workflow' ? part('version') : null}
      </details>
    </div>
  )
}

/** They are the same in each call, and read nothing of the run. */
const PLAIN: ReadonlySet<string> = new Set(['name', 'description', 'function', 'approve', 'on_lost'])

const NOTHING = {
  workflow: 'The model fills in nothing',
  block: 'Write {{name}} above and the model fills it in',
  connector: 'The model fills in nothing',
  python: '',
  mcp: '',
}

const ARGUMENTS = {
  workflow: 'They are the input of the workflow, and were read from it.',
  block: 'Write {{name}} in a field above, and it appears here.',
  connector: 'They follow from the fields that the model fills in.',
  python: '',
  mcp: '',
}

/** The params of the block that is called: the fields of its own form. */
function BlockParams({
  field: Field,
  tool,
  path,
  pointer,
  onChange,
}: Pick<ToolFormProps, 'field' | 'tool' | 'path' | 'pointer' | 'onChange'>): ReactElement {
  const { specs } = useFieldScope()
  const block = String(tool.block)
  const spec = specs.get(block)
  const params = isObject(tool.params) ? tool.params : {}
  const own = spec?.params.properties ?? {}
  const defaults = Object.fromEntries(
    Object.entries(own).flatMap(([name, part]) => (part.default === undefined ? [] : [[name, part.default] as const])),
  )
  const rows = Object.entries(own)
    .map(([name, schema]) => ({ name, schema, hint: hintOf(block, name, schema) }))
    .filter(({ name, hint }) => params[name] !== undefined || isShown(hint, params, defaults))
    .sort((a, b) => (a.hint.order ?? 99) - (b.hint.order ?? 99))
  const set = (name: string, next: Json | undefined): void =>
    onChange(withParams(tool, withKey(params, name, next), specs))
  if (!spec) return <p className="ref__wrong">This server has no block type {block}.</p>
  const field = ({ name, schema }: (typeof rows)[number]): ReactElement =>
    params[name] === `{{${name}}}` && isFillable(block, name) ? (
      <ByModel key={name} title={titleOf(name, schema)} path={`${path}.${name}`} onTake={() => set(name, undefined)} />
    ) : (
      <div key={name} className="toolitem__param">
        <Field
          type={block}
          name={name}
          schema={schema}
          value={params[name]}
          params={params}
          path={`${path}.${name}`}
          required={(spec.params.required?.includes(name) ?? false) || isNeeded(schema, params, defaults)}
          {...(pointer === undefined ? {} : { pointer: `${pointer}/params/${name}` })}
          onChange={(next) => set(name, next)}
        />
        {isFillable(block, name) ? (
          <button
            type="button"
            className="linklike"
            data-testid={`model-fills-${path}.${name}`}
            onClick={() => set(name, `{{${name}}}`)}
          >
            Let the model fill it in
          </button>
        ) : null}
      </div>
    )
  const more = rows.filter((row) => row.hint.advanced)
  return (
    <>
      {rows.filter((row) => !row.hint.advanced).map(field)}
      {more.length ? (
        <details className="toolitem__more" open={more.some((row) => params[row.name] !== undefined) || undefined}>
          <summary>More options</summary>
          {more.map(field)}
        </details>
      ) : null}
    </>
  )
}

function ByModel({ title, path, onTake }: { title: string; path: string; onTake: () => void }): ReactElement {
  const { readonly } = useFieldScope()
  return (
    <div className="toolitem__bymodel" data-testid={`by-model-${path}`}>
      <span className="fld__label">{title}</span>
      <span className="chip-value">the model fills it in</span>
      {readonly ? null : (
        <Button kind="bare" icon="close" iconOnly onClick={onTake}>{`Fill in ${title} yourself`}</Button>
      )}
    </div>
  )
}
