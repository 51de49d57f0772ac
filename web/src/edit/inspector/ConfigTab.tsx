// The settings of a block: its params, as the schema of its type says, then the policy every block has.

import { useEffect, type ClipboardEvent, type ReactElement } from 'react'
import type { Json, JsonObject } from '../../api/schemas'
import type { JsonSchema } from '../../api/types'
import { escapePointer } from '../../refs/parse'
import { showFindings } from '../../state/calm'
import { dispatch } from '../../state/doc'
import { DrawnContext, useDrawn } from '../../forms/fields/calm'
import { isCurl, paramsOfCurl } from '../../forms/fields/curl'
import { Field } from '../../forms/fields/Field'
import { Findings } from '../../forms/fields/FieldShell'
import { hintOf, isNeeded, isShown } from '../../forms/fields/kind'
import { useFieldScope } from '../../forms/fields/scope'
import { toast } from '../../ui/Toast'
import { PolicySection } from './PolicySection'
import { TriggerPanel } from './TriggerPanel'

export function ConfigTab({ id }: { id: string }): ReactElement {
  const { doc, specs, diagnostics, readonly, calm } = useFieldScope()
  useEffect(() => () => showFindings(id), [id])
  const block = doc.blocks[id]!
  const spec = specs.get(block.type)
  const drawn = useDrawn(spec !== undefined)
  const params = block.params ?? {}
  const rows = fieldsOf(block.type, spec?.params, params)
  const shown = new Set(rows.map((row) => `/blocks/${escapePointer(id)}/params/${escapePointer(row.name)}`))
  const others = diagnostics.filter((each) => {
    const here =
      each.pointer === `/blocks/${escapePointer(id)}` || each.pointer.startsWith(`/blocks/${escapePointer(id)}/`)
    if (!here && !(each.block === id && each.pointer.startsWith('/edges'))) return false
    return (
      !each.pointer.includes('/policy/') &&
      ![...shown].some((pointer) => each.pointer === pointer || each.pointer.startsWith(`${pointer}/`))
    )
  })
  /** What the choice hides goes with it: a loop over items has no count. */
  const setParam = (name: string, value: Json | undefined): void => {
    const next = { ...params, [name]: value } as JsonObject
    const shownNext = new Set(fieldsOf(block.type, spec?.params, next).map((row) => row.name))
    const gone = rows.filter((row) => row.name !== name && params[row.name] !== undefined && !shownNext.has(row.name))
    const set = { type: 'setParam' as const, id, path: [name], value }
    dispatch(
      gone.length
        ? {
            type: 'batch',
            label: `set ${name}`,
            commands: [
              set,
              ...gone.map((row) => ({ type: 'setParam' as const, id, path: [row.name], value: undefined })),
            ],
          }
        : set,
      `param ${id} ${name}`,
    )
  }
  /** A curl command that is pasted into the address fills in the request. */
  const onPaste = (event: ClipboardEvent): void => {
    const text = event.clipboardData.getData('text/plain')
    if (readonly || block.type !== 'http' || !isCurl(text)) return
    if ((event.target as HTMLElement).dataset?.testid !== 'field-url') return
    const found = paramsOfCurl(text)
    if (!found) return
    event.preventDefault()
    const gone = { method: undefined, headers: undefined, body: undefined, query: undefined }
    dispatch({ type: 'setParams', id, params: { ...gone, ...found } })
    toast('Filled in from the curl command', 'ok')
  }
  const field = ({ name, schema }: Row): ReactElement => (
    <Field
      key={name}
      type={block.type}
      name={name}
      schema={schema}
      value={params[name]}
      params={params}
      path={name}
      pointer={`/blocks/${escapePointer(id)}/params/${escapePointer(name)}`}
      required={(spec?.params.required?.includes(name) ?? false) || isNeeded(schema, params, defaultsOf(spec?.params))}
      onChange={(value: Json | undefined) => setParam(name, value)}
      onRenameHandle={(from, to) => dispatch({ type: 'renameHandle', id, from, to })}
    />
  )
  const [plain, more] = [rows.filter((row) => !row.advanced), rows.filter((row) => row.advanced)]
  return (
    <DrawnContext value={drawn}>
      {spec ? (
        <p className="inspector__about">{spec.description}</p>
      ) : (
        <p className="inspector__about">
          This server has no block type <code>{block.type}</code>.
        </p>
      )}
      {spec?.trigger && !readonly ? <TriggerPanel id={id} type={block.type} params={params} /> : null}
      {plain.length ? (
        <div className="inspector__fields" onPaste={onPaste}>
          {plain.map(field)}
        </div>
      ) : null}
      {others.length && !calm ? (
        <div className="inspector__findings">
          <Findings findings={others} />
        </div>
      ) : null}
      {more.length ? (
        <details className="fold" open={more.some((row) => params[row.name] !== undefined) || undefined}>
          <summary>More options</summary>
          <div className="inspector__fields">{more.map(field)}</div>
        </details>
      ) : null}
      {spec?.trigger || spec?.category === 'annotation' ? null : <PolicySection id={id} />}
      {!readonly || block.description ? (
        <Field
          type={null}
          name="description"
          schema={{ type: 'string', title: 'Notes', 'x-rows': 2 }}
          refers={false}
          value={block.description}
          path="description"
          onChange={(value) =>
            dispatch(
              { type: 'setBlock', id, fields: { description: typeof value === 'string' ? value : undefined } },
              `remark ${id}`,
            )
          }
        />
      ) : null}
    </DrawnContext>
  )
}

interface Row {
  name: string
  schema: JsonSchema
  advanced: boolean
}

function defaultsOf(schema: JsonSchema | undefined): JsonObject {
  return Object.fromEntries(
    Object.entries(schema?.properties ?? {}).flatMap(([name, part]) =>
      part.default === undefined ? [] : [[name, part.default] as const],
    ),
  )
}

/** Params of the schema in its order, then those it does not list. */
function fieldsOf(type: string, schema: JsonSchema | undefined, params: JsonObject): Row[] {
  const properties = schema?.properties ?? {}
  const defaults = defaultsOf(schema)
  const listed = Object.entries(properties)
    .map(([name, part]) => ({ name, schema: part, hint: hintOf(type, name, part) }))
    .filter(({ hint }) => isShown(hint, params, defaults))
    .sort((a, b) => (a.hint.order ?? 99) - (b.hint.order ?? 99))
    .map(({ name, schema: part, hint }) => ({ name, schema: part, advanced: hint.advanced ?? false }))
  const unlisted = Object.keys(params).filter((name) => !(name in properties))
  return [...listed, ...unlisted.map((name) => ({ name, schema: {}, advanced: false }))]
}
