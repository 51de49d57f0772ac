// One param of a block, or one field of a form, as its schema says: picks the control, names it, and hands its value on.

import { useState, type ReactElement } from 'react'
import type { Json } from '../../api/schemas'
import { Button } from '../../ui/Button'
import { ConditionField } from '../conditions/ConditionField'
import { AssignmentsField } from './AssignmentsField'
import { CasesField } from './CasesField'
import { CodeField } from './CodeField'
import type { ControlProps, FieldProps } from './control'
import { CronField } from '../triggers/CronField'
import { ZoneField } from '../triggers/ZoneField'
import { DurationControl } from './DurationControl'
import { FieldShell } from './FieldShell'
import { ChoiceField } from './ChoiceField'
import { ConnectionField } from './ConnectionField'
import { GroupField } from './GroupField'
import { ItemsField } from './ItemsField'
import { JsonText, ValueField } from './JsonText'
import { hintOf, isCredential, isReferenceText, kindOf, type Kind } from './kind'
import { ModelField } from './ModelField'
import { PairsField } from './PairsField'
import { InputsField, SchemaField } from './PropertiesField'
import { ReferenceField } from './ReferenceField'
import { placeholderOf, titleOf } from './schema'
import { useFieldScope } from './scope'
import { BooleanControl, NumberControl, SelectControl } from './simple'
import { TextsField } from './TextsField'
import { ToolServerField } from './ToolServerField'
import { ToolsField } from './ToolsField'
import { WorkflowField } from './WorkflowField'

const COMPOSITE: ReadonlySet<Kind> = new Set([
  'pairs',
  'texts',
  'items',
  'group',
  'tool_server',
  'tools',
  'cases',
  'assignments',
  'inputs',
  'schema',
])
/** Kinds that are chosen; a reference can stand in place of the choice. */
const CHOSEN: ReadonlySet<Kind> = new Set(['boolean', 'select', 'workflow', 'choice'])
/** Kinds whose parts show what was found about them. */
const OWN_FINDINGS: ReadonlySet<Kind> = new Set([
  'items',
  'group',
  'tool_server',
  'tools',
  'cases',
  'assignments',
  'inputs',
])

export function Field(props: FieldProps): ReactElement {
  const { readonly, block } = useFieldScope()
  const { schema, value, path, onChange } = props
  const hint = hintOf(props.type, props.name, schema)
  const kind = kindOf(schema, hint)
  const label = hint.title ?? titleOf(props.name, schema)
  const [asJson, setAsJson] = useState(false)
  const [asText, setAsText] = useState(false)
  const composite = COMPOSITE.has(kind)
  const reference = (CHOSEN.has(kind) || composite) && isReferenceText(value)
  const couldRefer = block !== null && props.refers !== false && CHOSEN.has(kind) && !readonly

  const tools =
    composite && !readonly && !reference ? (
      <Button kind="bare" className="fld__tool" aria-pressed={asJson} onClick={() => setAsJson(!asJson)}>
        JSON
      </Button>
    ) : couldRefer ? (
      <Button
        kind="bare"
        className="fld__tool"
        icon="link"
        iconOnly
        aria-pressed={asText || reference}
        onClick={() => {
          if (reference) onChange(undefined)
          setAsText(!(asText || reference))
        }}
      >
        {asText || reference ? 'Choose a value' : kind === 'choice' ? 'Type it or use a reference' : 'Use a reference'}
      </Button>
    ) : null

  // Texts say how to write a value of the run into them, where there is nothing more to say.
  const refers = (kind === 'text' || kind === 'long') && block !== null && props.refers !== false && !readonly
  const about = schema.description ?? (refers ? 'Type < to insert a value of an earlier block.' : undefined)

  return (
    <FieldShell
      label={label}
      description={kind === 'cron' ? undefined : about}
      required={props.required}
      pointer={props.pointer}
      below={!OWN_FINDINGS.has(kind) || asJson}
      empty={isEmpty(value)}
      error={props.error}
      group={(composite && !reference) || kind === 'value' || kind === 'expression'}
      tools={tools}
    >
      {(ids) => {
        const control: ControlProps = { ...props, ids, hint, label }
        if (composite && asJson)
          return <JsonText label={label} value={value} onChange={onChange} path={path} rows={6} />
        if (reference || (couldRefer && asText)) return <Text {...control} kind="text" />
        return <Control {...control} kind={kind} key={path} />
      }}
    </FieldShell>
  )
}

function Control({ kind, ...props }: ControlProps & { kind: Kind }): ReactElement {
  switch (kind) {
    case 'boolean':
      return <BooleanControl {...props} />
    case 'select':
      return <SelectControl {...props} />
    case 'number':
      return <NumberControl {...props} />
    case 'expression':
      return <Expression {...props} />
    case 'duration':
      return <DurationControl {...props} />
    case 'cron':
    case 'zone':
      return <Moment {...props} kind={kind} />
    case 'code':
      return <CodeField {...props} />
    case 'pairs':
      return <PairsField {...props} />
    case 'texts':
      return <TextsField {...props} />
    case 'items':
      return <ItemsField {...props} field={Field} />
    case 'group':
      return <GroupField {...props} field={Field} />
    case 'tool_server':
      return <ToolServerField {...props} field={Field} />
    case 'tools':
      return <ToolsField {...props} field={Field} />
    case 'model':
      return <ModelField {...props} />
    case 'cases':
      return <CasesField {...props} />
    case 'assignments':
      return <AssignmentsField {...props} />
    case 'inputs':
      return <InputsField {...props} />
    case 'schema':
      return <SchemaField {...props} />
    case 'json':
      return (
        <JsonText
          label={props.label}
          value={props.value}
          onChange={props.onChange}
          path={props.path}
          rows={props.hint.rows ?? 4}
        />
      )
    case 'workflow':
      return <WorkflowField {...props} />
    case 'choice':
      return <ChoiceField {...props} />
    case 'connection':
      return <ConnectionField {...props} />
    case 'value':
      return <ValueField {...props} />
    default:
      return <Text {...props} kind={kind} />
  }
}

/** What a block does not need begins without a row. */
function Expression({ type, label, value, onChange, ids, path, hint, schema }: ControlProps): ReactElement {
  return (
    <ConditionField
      label={label}
      path={path}
      value={textOf(value)}
      describedBy={ids.describedBy ?? ''}
      invalid={ids.invalid}
      inside={hint.inside ?? false}
      optional={type === null}
      placeholder={hint.placeholder ?? placeholderOf(schema)}
      onChange={(next) => onChange(next === '' ? undefined : next)}
    />
  )
}

/** Text and long text. A value of another type is shown as JSON and becomes text when it is edited. */
function Text({
  kind,
  name,
  label,
  value,
  onChange,
  ids,
  path,
  hint,
  schema,
  refers,
}: ControlProps & { kind: Kind }): ReactElement {
  return (
    <ReferenceField
      id={ids.control}
      testId={`field-${path}`}
      describedBy={ids.describedBy ?? ''}
      invalid={ids.invalid}
      value={textOf(value)}
      onChange={(next) => onChange(next === '' ? undefined : next)}
      secret={isCredential(name, schema)}
      {...(isCredential(name, schema) ? { label } : {})}
      multiline={kind === 'long'}
      rows={kind === 'long' ? (hint.rows ?? schema['x-rows'] ?? 3) : 1}
      {...(refers === false || isCredential(name, schema) ? {} : { pick: 'insert' as const })}
      placeholder={hint.placeholder ?? placeholderOf(schema)}
    />
  )
}

function Moment({ kind, value, onChange, ids, path, schema }: ControlProps & { kind: 'cron' | 'zone' }): ReactElement {
  const { readonly } = useFieldScope()
  const control = {
    id: ids.control,
    testId: `field-${path}`,
    value: textOf(value),
    readonly,
    invalid: ids.invalid,
    describedBy: ids.describedBy,
    onChange: (text: string) => onChange(text === '' || text === schema.default ? undefined : text),
  }
  return kind === 'cron' ? <CronField {...control} about={schema.description} /> : <ZoneField {...control} />
}

const textOf = (value: Json | undefined): string =>
  typeof value === 'string' ? value : value === undefined || value === null ? '' : JSON.stringify(value)

const isEmpty = (value: Json | undefined): boolean =>
  value === undefined || value === null || (typeof value === 'string' && value.trim() === '')
