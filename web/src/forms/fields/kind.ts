// Which control a param gets: from the hints of its schema (`x-ui`, see compiler/catalog.py), `x-weft`, and its type.

import type { Json, JsonObject } from '../../api/schemas'
import type { JsonSchema } from '../../api/types'
import { baseOf, typesOf } from './schema'

export type Kind =
  | 'text'
  | 'long'
  | 'number'
  | 'boolean'
  | 'select'
  | 'expression'
  | 'code'
  | 'value'
  | 'json'
  | 'pairs'
  | 'texts'
  | 'items'
  | 'group'
  | 'tool_server'
  | 'cases'
  | 'assignments'
  | 'inputs'
  | 'schema'
  | 'workflow'
  | 'model'
  | 'tools'
  | 'connection'
  | 'choice'
  | 'duration'
  | 'cron'
  | 'zone'

export interface ServiceAuth {
  kind: 'bearer' | 'basic' | 'header' | 'query' | 'ssh'
  title: string
  name: string
  prefix: string
  host: string
  /** The connector, if it has a sign-in check. */
  service?: string
  /** The well-known OAuth provider whose tokens it takes, with what the block needs of it. */
  provider?: string
  scopes?: string
}

/** `x-ui` as the server gives it. `options`: of a select, from the other params. `inside`: the text is read inside the loop. */
export interface Hint {
  order?: number
  widget?: string
  rows?: number
  language?: 'sql'
  when?: Record<string, readonly Json[]>
  advanced?: boolean
  /** The way to sign in to the service of a connection, and its address. */
  auth?: ServiceAuth
  handles?: 'id' | 'items' | 'value'
  /** The service lists what it can be; these params have to be filled in before, `connection` or the credential. */
  choices?: readonly string[]
  kind?: Kind
  title?: string
  options?: (params: JsonObject) => readonly string[]
  placeholder?: string
  inside?: boolean
}

const WIDGETS: Record<string, Kind> = {
  text: 'text',
  longtext: 'long',
  number: 'number',
  boolean: 'boolean',
  select: 'select',
  keyvalues: 'pairs',
  schema: 'schema',
  reference: 'value',
  connection: 'connection',
  fields: 'group',
  tool_server: 'tool_server',
  workflow: 'workflow',
}

/** Names of params and headers whose value signs in: it is covered when it is typed into the document. */
const CREDENTIAL = /^(proxy-)?authorization$|^(set-)?cookie$|credential|password|(^|[-_])(token|secret)$|api[-_]?key/i

export const isCredential = (name: string, schema: JsonSchema): boolean =>
  schema['x-weft'] === 'secret' && CREDENTIAL.test(name)

/** The text would be a credential itself, in the document for all who read it: more than references and the name of a scheme. */
export function isOpenSecret(text: string): boolean {
  const own = text
    .replace(/\$\{[^}]*\}|<[^<>]*>/g, '')
    .replace(/(\$\{?[A-Za-z0-9_]*|<[^<>]*)$/, '')
    .replace(/^\s*(Bearer|Basic|Bot|Token|Key|ApiKey)\b/i, '')
  return own.trim() !== ''
}

const idsOf = (list: Json | undefined): string[] =>
  (Array.isArray(list) ? list : []).flatMap((item) =>
    item && typeof item === 'object' && !Array.isArray(item) && typeof item.id === 'string' ? [item.id] : [],
  )
const actionsOf = (params: JsonObject): string[] =>
  (Array.isArray(params.actions) ? params.actions : ['approve', 'reject']).filter(
    (action): action is string => typeof action === 'string',
  )

/** Routes, and a way of its own. */
function defaultsOf(params: JsonObject): string[] {
  const ids = idsOf(params.routes)
  const own =
    typeof params.default === 'string' && params.default && !ids.includes(params.default) ? params.default : 'default'
  return ids.includes(own) ? ids : [...ids, own]
}

/** Params whose editor knows more than a schema can say. */
const KNOWN: Record<string, Record<string, Hint>> = {
  start: { fields: { kind: 'inputs' } },
  variables: { assign: { kind: 'assignments' } },
  router: { default: { kind: 'select', options: defaultsOf } },
  approval: { on_expire: { kind: 'select', options: (params) => [...actionsOf(params), 'fail', 'continue', 'skip'] } },
  loop: { condition: { inside: true, placeholder: '<loop.index> < 3' }, items: { placeholder: '<start.items>' } },
  parallel: { items: { placeholder: '<start.items>' } },
  http: { url: { placeholder: 'https://, or paste a curl command' } },
  wait: { seconds: { kind: 'duration', title: 'Wait for' } },
  schedule: { cron: { kind: 'cron', title: 'Repeat' }, tz: { kind: 'zone' } },
  run_workflow: { workflow: { kind: 'workflow' } },
  agent: { model: { kind: 'model' }, tools: { kind: 'tools' } },
  model_router: { model: { kind: 'model' } },
  evaluator: { model: { kind: 'model' } },
  guardrail: { model: { kind: 'model' } },
}

export function hintOf(type: string | null, param: string, schema: JsonSchema): Hint {
  const hints = schema['x-ui']
  const when = schema['x-when']
  return {
    ...(hints && typeof hints === 'object' ? (hints as Hint) : {}),
    ...(when ? { when } : {}),
    ...(type ? KNOWN[type]?.[param] : {}),
  }
}

export function kindOf(schema: JsonSchema, hint: Hint = {}): Kind {
  if (hint.kind) return hint.kind
  if (hint.choices) return 'choice'
  if (schema['x-weft'] === 'code') return 'code'
  if (schema['x-weft'] === 'expression') return 'expression'
  if (hint.widget === 'list') return hint.handles === 'id' ? 'cases' : schema.items?.properties ? 'items' : 'texts'
  const types = typesOf(schema)
  if (baseOf(schema) !== null && types.every((type) => type === 'number' || type === 'integer')) return 'duration'
  if (hint.widget === 'json') return types.length && !types.includes('string') ? 'json' : 'value'
  if (hint.widget === 'code') return 'code'
  const asked = hint.widget === undefined ? undefined : WIDGETS[hint.widget]
  if (asked) return asked
  if (schema.enum) return 'select'
  if (types.length === 1) {
    switch (types[0]) {
      case 'boolean':
        return 'boolean'
      case 'number':
      case 'integer':
        return 'number'
      case 'string':
        return (schema['x-rows'] ?? 1) > 1 || schema.format === 'multiline' ? 'long' : 'text'
      case 'array':
        return schema.items?.type === 'string' ? 'texts' : schema.items?.properties ? 'items' : 'json'
      case 'object':
        return schema.properties ? 'json' : 'pairs'
    }
  }
  if (types.length && types.every((type) => type !== 'object' && type !== 'array')) return 'text'
  return 'value'
}

/** Is a field to be seen, with these params? */
export function isShown(hint: Hint, params: JsonObject, defaults: JsonObject = {}): boolean {
  if (!hint.when) return true
  return Object.entries(hint.when).every(([name, values]) => {
    const other = params[name] ?? defaults[name]
    return other === undefined || other === null || values.includes(other) || isReferenceText(other)
  })
}

/** Is a field required because of what another one says? */
export function isNeeded(schema: JsonSchema, params: JsonObject, defaults: JsonObject = {}): boolean {
  const needed = schema['x-required']
  return needed !== undefined && isShown({ when: needed }, params, defaults)
}

/** Texts that stand for another value at run time. */
export function isReferenceText(value: Json | undefined): value is string {
  return typeof value === 'string' && (/<[^<>\n]+>/.test(value) || /\$\{[A-Za-z_]\w*\}/.test(value))
}
