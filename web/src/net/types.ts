// What crosses the wire, hand-written after server/wire, executor/views and compiler/document.py. Field names are exact.
// Times are Unix milliseconds unless a name says otherwise. Nothing here knows of React or of the browser.

import type { Mended } from './mend'

export type Json = null | boolean | number | string | Json[] | { [key: string]: Json }
export type JsonObject = { [key: string]: Json }
export type Point = [number, number]

// --- the document, format weft/1 -------------------------------------------------------------------------------------

/** One workflow as it is written. Fields the editor does not know are kept as they are. */
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
  [other: string]: unknown
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
  on_error?: 'fail' | 'continue' | null
  group?: string | null
  skip_if?: string | null
  cache?: Json
  [other: string]: unknown
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
  'x-weft'?: 'expression' | 'code' | 'literal'
  'x-ui'?: UiHint
  /** Labels of the values of `enum`. */
  'x-titles'?: Record<string, string>
  /** Shown only while each of these params has one of these values. */
  'x-when'?: Record<string, Json[]>
  'x-rows'?: number
  [other: string]: unknown
}

/** One finding about a document. `pointer` is a JSON pointer into it (RFC 6901). */
export interface Diagnostic {
  code: string
  severity: 'error' | 'warning'
  pointer: string
  message: string
  hint?: string
  block?: string | null
  field?: string | null
}

/** A block type, as `GET /api/blocks` lists it. `handles` are the fixed ones; see `handlesOf` in state/doc.ts. */
export interface BlockSpec {
  type: string
  title: string
  description: string
  category: 'trigger' | 'flow' | 'data' | 'action' | 'people' | 'annotation'
  params: JsonSchema
  handles: string[]
  container: 'loop' | 'parallel' | null
  trigger: boolean
  output: JsonSchema | null
  effect: 'none' | 'read' | 'write'
  /** Default of policy.retry.max_attempts, and of policy.timeout_s in ms. */
  attempts: number
  timeout_ms: number
  /** What a card says: see compiler/catalog.py for the small language. */
  sentence: string
  icon: string
}

/** `x-ui` of a param: how the editor shows it. See compiler/catalog.py. */
export interface UiHint {
  order?: number
  widget?: 'text' | 'longtext' | 'code' | 'json' | 'number' | 'boolean' | 'select' | 'keyvalues' | 'schema' | 'reference' | 'list'
  rows?: number
  advanced?: boolean
  handles?: 'id' | 'items' | 'value'
}

// --- workflows and drafts --------------------------------------------------------------------------------------------

/** The run of a workflow, or of a draft, that was created last. */
export interface LastRun {
  id: string
  version: number | null
  status: RunStatus
  created_at_ms: number
  finished_at_ms: number | null
}

/** `version` is the active one: what runs where no version is named. */
export interface WorkflowSummary {
  name: string
  version: number
  newest: number
  hash: string
  created_at_ms: number
  last_run: LastRun | null
}

export interface WorkflowVersion {
  name: string
  version: number
  active: number
  newest: number
  hash: string
  created_at_ms: number
  document: Document
}

/** Newest first. */
export interface VersionPage {
  name: string
  active: number
  versions: { version: number; hash: string; created_at_ms: number }[]
  next: number | null
}

/** The version is active from now on. `activated`: it was not before; `replaced` is the version that was. */
export interface SavedWorkflow {
  name: string
  version: number
  hash: string
  created: boolean
  activated: boolean
  replaced: number | null
  diagnostics: Diagnostic[]
  /** Of a draft: the revision that is this version. */
  rev?: number
}

export interface Validation {
  valid: boolean
  diagnostics: Diagnostic[]
}

/** What is being edited. `rev` is the revision for `If-Match`; `base_version` the stored version it began from. */
export interface Draft {
  id: string
  name: string
  document: Document
  rev: number
  updated_at: number
  base_version: number | null
  /** The workflow that `base_version` is of, and the revision that was stored as it. */
  base_name?: string | null
  base_rev?: number | null
  created_at?: number
  diagnostics?: Diagnostic[]
  /** What is stored has parts that cannot be drawn: `document` is without them, and this says which. */
  mended?: Mended
}

/** `last_run` is of the draft itself, not of a workflow that it was saved as. */
export type DraftSummary = Omit<Draft, 'document' | 'mended'> & { last_run: LastRun | null }

export interface DraftSaved {
  rev: number
  updated_at: number
  diagnostics: Diagnostic[]
}

export interface Example {
  name: string
  title: string
  description: string
  document: Document
}

/** A name that `${NAME}` can read; its value never leaves the server. */
export interface EnvName {
  name: string
  secret: boolean
  /** It has a value on this server. */
  set: boolean
  used_by: EnvUse[]
}

/** A document that reads a name: a draft (`id`, `rev`) or the active version of a workflow. */
export interface EnvUse {
  kind: 'workflow' | 'draft'
  id: string
  name: string
  blocks: string[]
  version: number | null
  rev: number | null
}

// --- runs ------------------------------------------------------------------------------------------------------------

export type RunStatus = 'queued' | 'running' | 'waiting' | 'succeeded' | 'failed' | 'cancelled'

export interface ErrorInfo {
  code: string
  message: string
  retryable?: boolean
  block?: string | null
  hint?: string
  [other: string]: unknown
}

export interface RunSummary {
  id: string
  workflow: string
  version: number | null
  status: RunStatus
  error: ErrorInfo | null
  seq: number
  created_at_ms: number
  started_at_ms: number | null
  finished_at_ms: number | null
  parent_run_id: string | null
  /** The beginning of the input, as JSON text. */
  input_summary?: string
  duration_ms?: number | null
  draft_id?: string | null
  draft_rev?: number | null
}

export interface RunPage {
  runs: RunSummary[]
  next: string | null
  /** Of the same workflow and draft, whatever their status. */
  counts?: Record<RunStatus, number>
}

/** What running again from a block would do, as block ids. */
export interface RerunPreview {
  run: string
  from: string
  reused: string[]
  again: string[]
  skipped: string[]
}

export interface RunView {
  id: string
  workflow: string
  version: number | null
  status: RunStatus
  input: Json
  output: Json
  error: ErrorInfo | null
  seq: number
  created_at_ms: number
  started_at_ms: number | null
  finished_at_ms: number | null
  response?: JsonObject | null
  variables: JsonObject
  nodes: NodeView[]
  waits: WaitView[]
  urls: RunUrls
  draft_id?: string | null
  draft_rev?: number | null
  /** The run that started this one, and the node key there that waits for it. */
  parent?: { run: string; key: string } | null
  /** Runs that blocks of this one started, newest first. */
  children?: ChildView[]
  /** What open runs below wait for, each with its own run's id. */
  child_waits?: WaitView[]
  children_active?: number
}

export interface ChildView {
  run: string
  workflow: string
  version: number | null
  status: RunStatus
  /** The node key, and its attempt, that started it. */
  key: string
  attempt: number
  created_at_ms: number
  finished_at_ms: number | null
}

export interface NodeView {
  key: string
  node: string
  block: string
  path: string
  status: 'running' | 'retrying' | 'waiting' | 'needs_attention' | 'succeeded' | 'failed' | 'skipped' | 'cancelled'
  attempt: number
  started_at_ms?: number | null
  finished_at_ms?: number | null
  route?: string | null
  reason?: string | null
  error?: ErrorInfo | null
  output?: Json
}

/** One node of a run as it stood after an event: what an attempt was given and what it put out. A value over the asked
 * size is null, `..._truncated` says so, and `..._preview` is the beginning of its JSON. */
export interface NodeDetail {
  key: string
  status: string
  /** The one shown; 0: it did not run. */
  attempt: number
  attempts: AttemptView[]
  /** Params with references filled in, secrets redacted; programs and expressions are {$code, values}. */
  input: Json
  input_error: ErrorInfo | null
  input_size: number | null
  input_truncated: boolean
  input_preview?: string
  output: Json
  output_size: number | null
  output_truncated: boolean
  output_preview?: string
  error: ErrorInfo | null
  reason: string | null
  because: string | null
}

export interface AttemptView {
  attempt: number
  status: string
  started_at_ms?: number
  finished_at_ms?: number
  error?: ErrorInfo | null
}

export interface RunUrls {
  self: string
  events: string
  graph: string
  why: string
  plan: string
  cancel: string
  page: string
}

export interface RunAccepted {
  run: string
  workflow: string
  version: number | null
  status: RunStatus
  created: boolean
  urls: RunUrls
  diagnostics: Diagnostic[]
}

export type WaitKind = 'approval' | 'form' | 'timer' | 'signal' | 'webhook' | 'child' | 'attention'

export interface WaitView {
  run: string
  workflow: string
  id: string
  key: string
  block: string
  label: string
  kind: WaitKind
  status: 'pending' | 'answered' | 'cancelled' | 'expired'
  request: JsonObject
  schema: JsonSchema | null
  actions: string[]
  opened_at_ms: number
  expires_at_ms: number | null
  age_s: number
  name?: string | null
  correlation?: string | null
  link?: string | null
  response?: Json
  answered_by?: string | null
  answered_at_ms?: number | null
  title?: string
  run_status?: RunStatus
  /** Who was told of it, and whether that got out. */
  notifications?: NotificationView[]
}

export interface NotificationView {
  channel: string
  to: string
  status: string
  attempts: number
  error?: string | null
}

// --- what starts runs by itself --------------------------------------------------------------------------------------

/** A schedule. `origin` document: the block `trigger` of the workflow declares it. `error`: why its last moment started nothing. */
export interface ScheduleView {
  id: string
  workflow: string
  version: number | null
  trigger: string | null
  cron: string
  tz: string
  enabled: boolean
  input: Json
  overlap: string
  catch_up: string
  origin: string
  next_run_at: number | null
  queued_at: number | null
  last_run_at: number | null
  last_run_id: string | null
  error: string | null
  /** The next five moments; none while it is switched off. */
  upcoming: number[]
}

/** What a schedule of one's own is made with. Left out: UTC, the active version, its first trigger, no input. */
export interface ScheduleSpec {
  workflow: string
  cron: string
  tz?: string
  version?: number | null
  trigger?: string | null
  input?: JsonObject
  enabled?: boolean
  overlap?: string
  catch_up?: string
}

export interface ScheduleDetail extends ScheduleView {
  /** The last moments, newest first. */
  fires: FireView[]
}

/** What became of the moment `due`. */
export interface FireView {
  due: number
  at: number
  outcome: 'started' | 'skipped' | 'queued' | 'missed' | 'failed'
  run: string | null
  error: string | null
}

/** A webhook. `problem`: why no request can get through. */
export interface WebhookView {
  id: string
  url: string
  workflow: string
  version: number | null
  trigger: string | null
  auth: string
  secret_env: string | null
  respond: string
  timeout_s: number
  headers: string[]
  enabled: boolean
  origin: string
  last_run_at: number | null
  last_run_id: string | null
  problem: string | null
}

/** What a webhook of one's own is made with. */
export interface WebhookSpec {
  workflow: string
  version?: number | null
  trigger?: string | null
  auth?: string
  secret_env?: string | null
  respond?: string
  timeout_s?: number
  headers?: string[]
  enabled?: boolean
}

export interface WebhookDetail extends WebhookView {
  /** What senders sign with, or send as token; null: the environment has it, or nobody needs one. */
  secret: string | null
  /** The last requests, newest first. */
  deliveries: DeliveryView[]
}

/** A request that came in. `outcome`: started, or the code of what was wrong with it. */
export interface DeliveryView {
  at: number
  outcome: string
  delivery: string | null
  run: string | null
}

// --- going on from a run ---------------------------------------------------------------------------------------------

/** A block was run again: in the open run itself (`now`), or in a new run. */
export interface Retried extends RunAccepted {
  how: 'now' | 'from_node' | 'from_block' | 'whole_container'
  block: string
}

/** `moved` false: the run's owner has not answered yet. */
export interface Migrated {
  run: string
  version: number
  moved: boolean
}

export interface Why {
  key: string
  state: string
  reasons: string[]
}

/** An event of a run. `key` is node and scope, `play@teams[1]/rounds#2`; `path` the part behind `@`; `node` may be a
 * container's end, `review:start`, and `block` is without it. */
export interface WireEvent {
  run: string
  seq: number
  at: number
  type: EventType
  node: string | null
  block: string | null
  path: string
  key: string | null
  attempt: number
  data: EventData
}

export const EVENT_TYPES = [
  'run.started', 'node.started', 'node.succeeded', 'node.failed', 'node.skipped', 'retry.scheduled', 'region.sized',
  'scope.opened', 'region.exited', 'wait.opened', 'wait.closed', 'variables.patched', 'node.log', 'run.parked',
  'run.cancelling', 'run.finished', 'retry.hastened', 'run.forked', 'run.migrated',
] as const
/** Types may be added by the server; what is not known is kept in the log and changes nothing else. */
export type EventType = (typeof EVENT_TYPES)[number] | (string & {})

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
  source?: string
  seq?: number
  version?: number
  end_run?: boolean
  error?: ErrorInfo
  caught?: [string, unknown] | null
  reason?: string
  because?: string | null
  due_ms?: number | null
  /** Of a retry: why the attempt does not count. */
  deferred?: 'asked' | 'not_begun'
  count?: number
  first?: number
  kind?: WaitKind
  on_expire?: string
  wait?: string
  /** The run that a wait of kind `child` waits for. */
  child?: string
  title?: string
  name?: string
  outcome?: 'answered' | 'fired' | 'expired' | 'cancelled'
  by?: string | null
  ops?: [string, string, Json][]
  message?: string
  /** Of a log: the live text of the whole attempt, or lines of its log. */
  stream?: 'log' | 'text'
  status?: 'succeeded' | 'failed' | 'cancelled'
  response?: JsonObject
  [other: string]: unknown
}

/** Live text of a block that is running. Never stored; the output replaces it. */
export interface Delta {
  run: string
  type: 'node.delta'
  key: string
  text: string
}

export interface EventPage {
  events: WireEvent[]
  count: number
  next: number | null
}

/** RFC 9457. */
export interface Problem {
  type: string
  title: string
  status: number
  code: string
  detail: string
  pointer?: string
  hint?: string
  diagnostics?: Diagnostic[]
  [other: string]: unknown
}
