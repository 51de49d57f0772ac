// What crosses the wire. The answers of the server are generated (api/schemas.ts); written here is what its OpenAPI leaves
// open: documents, JSON Schemas and the data of events. Times are Unix milliseconds.

import type * as api from './schemas'
import type { Json, JsonObject } from './schemas'

/** T, with these fields in place of its own. */
type With<T, Fields> = Omit<T, keyof Fields> & Fields

export type Point = [number, number]

// --- the document, format weft/1 -------------------------------------------------------------------------------------

/** One workflow as it is written. Fields that the editor does not know stay unchanged. */
export interface Document {
  format: string
  name?: string
  description?: string
  input?: JsonSchema | null
  variables?: JsonObject
  settings?: Settings
  blocks: Record<string, Block>
  edges: Edge[]
  notes?: Note[]
  [other: string]: unknown
}

/** `at` is relative to the container. `name` is the id when absent. */
export interface Block {
  type: string
  name?: string
  parent?: string | null
  at?: Point
  size?: Point
  params?: JsonObject
  policy?: Policy
  enabled?: boolean
  assign?: string | null
  description?: string
  /** The value that replaces its output in runs of the draft. */
  pin?: { output: Json; route?: string | null }
  /** Of a durable function: its code, and the calls in it as `[line, kind, name]`. */
  source?: Listing
  [other: string]: unknown
}

/** `first_line`: of the text; `line`, `end_line`: of the function. */
export interface Listing {
  file: string
  text: string
  first_line: number
  line: number
  end_line: number
  calls: [number, 'step' | 'wait' | 'call', string][]
}

/** Without a handle it is `out`. */
export interface Edge {
  source: string
  target: string
  handle?: string
  [other: string]: unknown
}

/** A remark on the canvas; never compiled. `at` is absolute. Size defaults to 208 x 96. */
export interface Note {
  id?: string
  text?: string
  at?: Point
  size?: Point
  color?: string
  [other: string]: unknown
}

export interface Policy {
  retry?: Retry | null
  timeout_s?: number | null
  heartbeat_timeout_ms?: number | null
  on_error?: 'fail' | 'continue' | null
  group?: string | null
  skip_if?: string | null
  cache?: Json
  runner?: 'inline' | 'process' | 'dask' | null
  limit?: Limit | null
  [other: string]: unknown
}

export interface Limit {
  key?: string
  at_most?: number
}

export interface Retry {
  max_attempts?: number | null
  backoff?: 'fixed' | 'linear' | 'exponential'
  initial_ms?: number
  factor?: number
  max_ms?: number
  jitter?: number
}

export interface Settings {
  max_concurrency?: number
  timeout_s?: number
  groups?: Record<string, number>
  on_failure?: 'drain' | 'cancel'
  durability?: 'strict' | 'ahead'
  max_executions?: number
  pool?: string
  priority?: number
  fair?: string
  limits?: { key: string; at_most: number }[]
  rates?: { key: string; per_s: number }[]
  alerts?: { email?: string[]; webhook?: string | null; waiting_s?: number | null } | null
  error_workflow?: string | null
  retention?: { days?: number | null; keep?: number } | null
  [other: string]: unknown
}

/** The part of JSON Schema that block params and forms use. `x-weft`: expression | code | literal. */
export interface JsonSchema {
  type?: string | string[]
  title?: string
  description?: string
  properties?: Record<string, JsonSchema>
  required?: string[]
  additionalProperties?: boolean | JsonSchema
  items?: JsonSchema
  enum?: Json[]
  const?: Json
  default?: Json
  examples?: Json[]
  minimum?: number
  maximum?: number
  exclusiveMinimum?: number
  minLength?: number
  maxLength?: number
  minItems?: number
  maxItems?: number
  pattern?: string
  format?: string
  oneOf?: JsonSchema[]
  anyOf?: JsonSchema[]
  'x-weft'?: 'expression' | 'code' | 'secret' | 'literal'
  'x-ui'?: UiHint
  /** Labels of the values of `enum`. */
  'x-titles'?: Record<string, string>
  /** Shown only while each of these params has one of these values. */
  'x-when'?: Record<string, Json[]>
  /** Required while each of these params has one of these values. */
  'x-required'?: Record<string, Json[]>
  'x-rows'?: number
  [other: string]: unknown
}

/** `x-ui` of a param: how the editor shows it. See compiler/catalog.py. */
export interface UiHint {
  order?: number
  widget?:
    | 'text'
    | 'longtext'
    | 'code'
    | 'json'
    | 'number'
    | 'boolean'
    | 'select'
    | 'keyvalues'
    | 'schema'
    | 'reference'
    | 'list'
    | 'fields'
    | 'workflow'
    | 'connection'
    | 'tool_server'
  rows?: number
  advanced?: boolean
  handles?: 'id' | 'items' | 'value'
}

// --- answers ---------------------------------------------------------------------------------------------------------

/** A block type. `handles` are the fixed ones; see `handlesOf` in document/document.ts. */
export type BlockSpec = With<api.BlockType, { params: JsonSchema; output: JsonSchema | null }>

export type Card = With<api.Card, { document: Document }>
export type CardPage = With<api.CardPage, { cards: Card[] }>

export type WorkflowVersion = With<api.WorkflowVersion, { document: Document }>

/** What is being edited. `rev` is the revision for `If-Match`. */
export type Draft = With<
  api.DraftView,
  {
    document: Document
    /** What is stored has parts that cannot be drawn: `document` is without them, and this says which. */
    repaired?: Repaired
  }
>

/** `last_run` is of the draft itself, not of a workflow that it was saved as. */
export type DraftSummary = api.DraftSummary

export type Example = With<api.Example, { document: Document }>

export type RunStatus = api.RunSummary['status']
export type ErrorInfo = NonNullable<api.RunSummary['error']>
export type WaitKind = api.Wait['kind']

export type WaitView = With<api.WaitView, { request: JsonObject; schema: JsonSchema | null }>

export type RunView = With<
  api.RunDetail,
  { variables: JsonObject; nodes: api.NodeView[]; waits: WaitView[]; child_waits: WaitView[] }
>

/** One node of a run as it stood after an event. A value over the asked size is null, `..._truncated` is then true, and
 * `..._preview` is the beginning of its JSON. Programs and expressions in `input` are {$code, values}. */
export type NodeDetail = api.NodeShown

// --- events ----------------------------------------------------------------------------------------------------------

/** An event of a run. `key` is node and scope, `play@teams[1]/rounds#2`; `path` the part behind `@`; `node` may be a
 * container's end, `review:start`, and `block` is without it. */
export type WireEvent = With<api.EventOnWire, { type: EventType; data: EventData }>

/** Types may be added by the server; unknown ones stay in the log and change nothing else. */
export type EventType = (typeof api.EVENT_TYPES)[number] | (string & {})

/** All fields any event type may carry; docs/reference/events.md says which has which. */
export interface EventData {
  route?: string | null
  output?: Json
  /** The output is not here (it is null or absent): `size` in bytes, `preview` the beginning of its JSON. */
  truncated?: boolean
  preview?: string
  blob?: string
  size?: number
  reused?: boolean
  cached?: boolean
  pinned?: boolean
  source?: string
  seq?: number
  version?: number
  end_run?: boolean
  error?: ErrorInfo
  caught?: [string, unknown] | null
  reason?: string
  because?: string | null
  due_ms?: number | null
  /** Of a wait: when those who were notified are notified again. */
  remind_ms?: number
  /** Of a retry: why the attempt does not count. */
  deferred?: 'asked' | 'not_begun'
  count?: number
  first?: number
  /** Of a wait, or of a step. */
  kind?: WaitKind | 'model' | 'tool' | 'step' | 'wait' | 'mark'
  on_expire?: string
  wait?: string
  /** The run that a wait of kind `child` waits for. */
  child?: string
  title?: string
  name?: string
  outcome?: 'answered' | 'fired' | 'expired' | 'cancelled'
  by?: string | null
  /** Of an update that a durable function refused: why. */
  refused?: string
  ops?: [string, string, Json][]
  message?: string
  /** Of a log: the live text of the whole attempt, or lines of its log. */
  stream?: 'log' | 'text'
  /** Of a step: the number of the call, and what it is. Of a wait: the step that its end finishes. */
  n?: number
  step?: number
  effect?: 'none' | 'read' | 'write'
  input_hash?: string
  /** Of a step of a durable function: where its code makes the call, and the input. */
  line?: number
  task?: number
  above?: number
  group?: string
  shown?: Json
  usage?: Record<string, number>
  cost?: number | null
  prices?: string
  /** Of a step that failed and is done again: how often it has failed. */
  times?: number
  /** Of a step that was lost: it is done again. */
  again?: boolean
  status?: 'succeeded' | 'failed' | 'cancelled'
  response?: JsonObject
  /** Of the first event of a run: the run before it. Of the last: the run that continues it. */
  continues?: string
  continued_as?: string
  [other: string]: unknown
}

/** Live text of a block that is running. Never stored; the output replaces it. */
export interface Delta {
  run: string
  type: 'node.delta'
  key: string
  text: string
}

export type EventPage = With<api.EventPage, { events: WireEvent[] }>

/** RFC 9457, with more fields by code. */
export type Problem = api.Problem & { [other: string]: unknown }

/** What is not as it must be: a JSON pointer (RFC 6901), and what should be there, as a sentence. */
export interface Fault {
  pointer: string
  message: string
}

export interface Repaired {
  document: Document
  /** Empty: `document` is the same object as `original`. */
  faults: readonly Fault[]
  /** The value before the repair. */
  original: unknown
}
