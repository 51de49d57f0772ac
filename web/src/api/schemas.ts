// What crosses HTTP, made from openapi.json by `npm run types`: change the structs of the server, not this file.
// A field is optional where the server leaves it out of some answers, or where a request may leave it out.

export type Json = null | boolean | number | string | Json[] | { [key: string]: Json }
export type JsonObject = { [key: string]: Json }

export const EVENT_TYPES = [
  'run.started',
  'node.started',
  'node.succeeded',
  'region.sized',
  'scope.opened',
  'region.exited',
  'node.failed',
  'node.skipped',
  'retry.scheduled',
  'retry.hastened',
  'wait.opened',
  'wait.closed',
  'variables.patched',
  'run.parked',
  'run.cancelling',
  'run.finished',
  'run.forked',
  'run.migrated',
  'node.log',
] as const

/** PUT /api/workflows/{name}/active. */
export interface ActivateRequest {
  version: number
}

/** POST /resume/{token}. `by` is the name recorded with the answer. */
export interface AnswerRequest {
  action?: string | null
  fields?: JsonObject
  by?: string | null
}

/** One attempt of a node key, or (end of a loop) one of its tests. Without an end it has none yet. */
export interface AttemptView {
  attempt: number
  status: 'cancelled' | 'failed' | 'needs_attention' | 'retrying' | 'running' | 'skipped' | 'succeeded' | 'waiting'
  started_seq?: number | null
  started_at_ms?: number | null
  finished_seq?: number | null
  finished_at_ms?: number | null
  error?: { code: string; message: string; retryable?: boolean; block?: string | null; hint?: string; [other: string]: unknown } | null
}

/** The block types, by category and title. */
export interface BlockList {
  blocks: BlockType[]
}

/** A block type. `params` is the JSON Schema of its parameters, `output` that of its output, null if it depends on
 * data. `handles`: the fixed exits. `attempts` and `timeout_ms` are the defaults of `policy.retry.max_attempts` and
 * `policy.timeout_s`. `sentence`: what a card says the block does, text with `{path}` for parameters. */
export interface BlockType {
  type: string
  title: string
  description: string
  category: 'action' | 'annotation' | 'data' | 'flow' | 'people' | 'trigger'
  params: JsonObject
  handles: string[]
  container: 'loop' | 'parallel' | null
  trigger: boolean
  output: JsonObject | null
  effect: 'none' | 'read' | 'write'
  attempts: number
  timeout_ms: number
  sentence: string
  icon: string
}

/** The number of deleted results. */
export interface CacheCleared {
  cleared: number
}

/** POST /callbacks/{token}: the request was accepted as the answer. */
export interface CallbackTaken {
  accepted: boolean
  received_at_ms: number
}

/** POST /api/runs/{id}/cancel. `reason` is recorded in the journal. */
export interface CancelRequest {
  reason?: string
}

/** `status` is `cancelled` when the run has ended, otherwise `cancelling`: the request is stored and the run will
 * process it before it ends. */
export interface Cancelled {
  run: string
  cancelled: boolean
  status: 'cancelled' | 'cancelling'
}

/** The last checkpoint that an attempt stored, its value cut to `preview` bytes. */
export interface CheckpointShown {
  /** The attempt that stored it. */
  attempt: number
  at_ms: number
  /** Null also when cut. */
  value: Json
  /** Bytes of JSON. */
  value_size: number
  value_truncated: boolean
  /** Only when cut: the beginning of the JSON. */
  value_preview?: string
}

/** A run that attempt `attempt` of node key `key` started. */
export interface ChildView {
  run: string
  workflow: string
  version: number | null
  status: 'cancelled' | 'failed' | 'queued' | 'running' | 'succeeded' | 'waiting'
  key: string
  attempt: number
  created_at_ms: number
  finished_at_ms: number | null
}

/** What was deleted or, with `dry_run`, would be. */
export interface Collected {
  runs: number
  events: number
  plans: number
  documents: number
  blobs: number
  versions: number
  cached: number
  dry_run: boolean
}

/** `upcoming_ms`: the next five times of the expression in that time zone. */
export interface CronPreview {
  expr: string
  tz: string
  upcoming_ms: number[]
}

/** `outcome`: started, or the error code. Refused deliveries: the last ones of this process, and the last one of
 * each reason from earlier. `run` of a repeated delivery is the run that the first one started. */
export interface DeliveryView {
  at_ms: number
  outcome: string
  delivery: string | null
  run: string | null
}

/** One finding. `pointer` is an RFC 6901 JSON pointer into the submitted document. */
export interface Diagnostic {
  code: string
  severity: 'error' | 'warning'
  pointer: string
  message: string
  hint?: string
  block?: string | null
  field?: string | null
}

/** The first events that differ. null: that journal has ended. `fields`: which of their fields differ. */
export interface Divergence {
  a: EventHead | null
  b: EventHead | null
  fields: string[]
}

/** PUT /api/drafts/{id}. Without `name`, the draft has the name in the document. */
export interface DraftChange {
  document: JsonObject
  name?: string | null
}

export interface DraftDeleted {
  id: string
  deleted: boolean
}

/** `next`: pass it as `before` for the following page; null at the end. */
export interface DraftPage {
  drafts: DraftSummary[]
  next: string | null
}

/** POST /api/drafts. `base_version`: the version of the workflow `name` that the document is a copy of. */
export interface DraftRequest {
  document: JsonObject
  name?: string | null
  base_version?: number | null
}

/** `rev`: the revision of the draft that runs. */
export interface DraftRunAccepted {
  run: string
  workflow: string
  version: number | null
  status: 'cancelled' | 'failed' | 'queued' | 'running' | 'succeeded' | 'waiting'
  created: boolean
  urls: RunUrls
  diagnostics: Diagnostic[]
  draft: string
  rev: number
}

/** `rev`: the revision to send in If-Match with the next change. */
export interface DraftSaved {
  id: string
  name: string
  rev: number
  updated_at_ms: number
  diagnostics: Diagnostic[]
}

/** A draft without its document. Revision `base_rev` is version `base_version` of the workflow `base_name`; all
 * three are null until it is stored as a version. `last_run`: the run of the draft created last. */
export interface DraftSummary {
  id: string
  name: string
  rev: number
  base_name: string | null
  base_version: number | null
  base_rev: number | null
  created_at_ms: number
  updated_at_ms: number
  last_run: LastRun | null
}

/** `rev`: the revision of the draft that is this version. */
export interface DraftVersion {
  name: string
  version: number
  hash: string
  created: boolean
  diagnostics: Diagnostic[]
  activated: boolean
  replaced: number | null
  draft: string
  rev: number
}

/** A draft and what is wrong with it. Times are Unix milliseconds. See DraftHead for what it is based on. */
export interface DraftView {
  id: string
  name: string
  document: Json
  rev: number
  base_name: string | null
  base_version: number | null
  base_rev: number | null
  created_at_ms: number
  updated_at_ms: number
  diagnostics: Diagnostic[]
}

/** Attempt `attempt` can start at `due_ms`. */
export interface DueRetry {
  key: string
  attempt: number
  due_ms: number
}

/** The request. `call`: its number among those with the same key. */
export interface Echo {
  method: string
  query: Record<string, string>
  headers: Record<string, string>
  body: Json
  call: number
}

/** `set`: it has a value on this server. `secret`: the value is redacted in everything that is recorded or shown. */
export interface EnvName {
  name: string
  set: boolean
  secret: boolean
  used_by: EnvUse[]
}

/** By name. Values never leave the server. */
export interface EnvNames {
  env: EnvName[]
}

/** A document that reads a name. `id`: of the draft, or the workflow's name; `version` of the workflow (the
 * active one), or `rev` of the draft; `blocks` the ids of the blocks that read it. */
export interface EnvUse {
  kind: 'draft' | 'workflow'
  id: string
  name: string
  blocks: string[]
  version: number | null
  rev: number | null
}

/** `data` without fields that differ between any two runs; `output` is the beginning of its JSON. */
export interface EventHead {
  seq: number
  type: string
  key: string | null
  attempt: number
  data: JsonObject
  output: string | null
}

/** One event of a run, over SSE and in JSON. `key` is the node with its iteration and branch,
 * `send@review#5/fan[2]`; `path` is the part after `@`; `block` is the block of the node. `data.output` has the output
 * of the node, if any. */
export interface EventOnWire {
  run: string
  seq: number
  at_ms: number
  type: string
  node: string | null
  block: string | null
  path: string
  key: string | null
  attempt: number
  data: JsonObject
}

/** `count`: all events that match the filters. `next`: pass it as `after` for the next page; null at the end. */
export interface EventPage {
  events: EventOnWire[]
  count: number
  next: number | null
}

/** A workflow that comes with weft; `name` is that of its file. */
export interface Example {
  name: string
  title: string
  description: string
  document: JsonObject
}

/** In the order in which one opens them. */
export interface Examples {
  examples: Example[]
}

/** What happened at `at_ms` for the scheduled time `due_ms`. */
export interface FireView {
  due_ms: number
  at_ms: number
  outcome: 'failed' | 'missed' | 'queued' | 'skipped' | 'started'
  run: string | null
  error: string | null
}

/** `seq`: the number of events copied from `source`. */
export interface ForkAccepted {
  run: string
  workflow: string
  version: number | null
  status: 'cancelled' | 'failed' | 'queued' | 'running' | 'succeeded' | 'waiting'
  created: boolean
  urls: RunUrls
  diagnostics: Diagnostic[]
  source: string
  seq: number
}

/** POST /api/runs/{id}/fork. `outputs`: by node key, in place of the recorded ones. */
export interface ForkRequest {
  seq: number
  outputs?: JsonObject
}

/** POST /api/upkeep/gc. Deletes runs that ended more than `older_than_s` ago, except the `keep` newest of each
 * workflow. With `keep` alone, all other ended runs are deleted; with neither, none. */
export interface GcRequest {
  older_than_s?: number | null
  keep?: number
  dry_run?: boolean
}

/** `state`: pending, live, dead (in any scope: counts). */
export interface GraphEdge {
  source: string
  target: string
  handle: string
  state: string
  counts?: Record<string, number>
}

/** `state`: pending, running, retrying, waiting, needs_attention, succeeded, failed, skipped, cancelled (worst of
 * its scopes, with counts). */
export interface GraphNode {
  id: string
  block: string
  type: string
  name: string
  region: string
  state: string
  counts?: Record<string, number>
  sentinel?: string | null
}

/** The database works. */
export interface Health {
  status: 'ok'
}

/** 202: the run is stored. `status_url` requires the token of the server, if it has one. */
export interface HookStarted {
  run: string
  status: string
  delivery: string
  status_url: string
}

/** Inputs of runs, newest first. */
export interface InputList {
  inputs: Json[]
}

/** The run of a workflow that was created last. */
export interface LastRun {
  id: string
  version: number | null
  status: 'cancelled' | 'failed' | 'queued' | 'running' | 'succeeded' | 'waiting'
  created_at_ms: number
  finished_at_ms: number | null
}

/** `moved` is false if the worker of the run has not responded yet; GET /api/runs/{id} has the current version. */
export interface MigrateAnswer {
  run: string
  version: number
  plan_hash: string
  moved: boolean
}

/** POST /api/runs/{id}/migrate. `version` of the same workflow. */
export interface MigrateRequest {
  version: number
}

/** `output` has at most VALUES_MAX differences; `more`: there are others. */
export interface NodeDiff {
  key: string
  a: NodeHead
  b: NodeHead
  output: ValueDiff[]
  more: boolean
}

export interface NodeHead {
  status: string
  attempt: number
  route: string | null
  error: string | null
}

/** One attempt of a node: its resolved parameters and its output, after event `seq`. Sizes are in bytes of JSON. */
export interface NodeShown {
  run: string
  key: string
  node: string
  block: string
  name: string
  type: string
  path: string
  /** State after this event. */
  seq: number
  status: 'cancelled' | 'failed' | 'needs_attention' | 'retrying' | 'running' | 'skipped' | 'succeeded' | 'waiting' | 'pending'
  /** The attempt shown; 0: it did not run. */
  attempt: number
  attempts: AttemptView[]
  /** The resolved parameters; null when it did not start, or when cut. */
  input: Json
  /** Why the parameters could not be resolved. */
  input_error: { code: string; message: string; retryable?: boolean; block?: string | null; hint?: string; [other: string]: unknown } | null
  /** Null also when cut. */
  output: Json
  error: { code: string; message: string; retryable?: boolean; block?: string | null; hint?: string; [other: string]: unknown } | null
  route: string | null
  reason: string | null
  because: string | null
  reused: boolean
  /** The last checkpoint of its attempts; null also with `seq`. */
  checkpoint: CheckpointShown | null
  input_size: number | null
  input_truncated: boolean
  output_size: number | null
  output_truncated: boolean
  /** Only when cut: the beginning of the JSON. */
  input_preview?: string
  /** Only when cut: the beginning of the JSON. */
  output_preview?: string
}

/** One node key of a run that has started, waits or was skipped. needs_attention: an attempt was lost, and a wait
 * asks how to continue. `lost`: attempts that ended with their process. `cached`: the output comes from the cache.
 * `child`: the run that its last attempt started.
 * `output_truncated`: the view has no room for its output, which has `output_size` bytes; NodeDetail has it. */
export interface NodeView {
  key: string
  node: string
  block: string
  path: string
  status: 'cancelled' | 'failed' | 'needs_attention' | 'retrying' | 'running' | 'skipped' | 'succeeded' | 'waiting'
  attempt: number
  started_at_ms?: number | null
  finished_at_ms?: number | null
  route?: string | null
  reason?: string | null
  error?: { code: string; message: string; retryable?: boolean; block?: string | null; hint?: string; [other: string]: unknown } | null
  output?: Json
  lost?: number
  cached?: boolean
  child?: string | null
  output_size?: number | null
  output_truncated?: boolean
}

/** One message about a wait. `to`: addresses, or the server a request is sent to; `error`: why it could not be sent
 * (so far, while it is pending); `due_at_ms`: when a pending message is tried next. */
export interface NotificationView {
  channel: string
  to: string
  status: string
  attempts: number
  due_at_ms?: number | null
  settled_at_ms?: number | null
  error?: string | null
}

/** A loop or parallel that has started and not ended. Of `count` iterations or branches (for a loop: known so far)
 * `opened` have started and `closed` have ended. */
export interface OpenContainer {
  key: string
  kind: string
  count: number
  opened: number
  closed: number
}

/** An open iteration or branch; "" is the whole run. `undecided` nodes have no result yet; `dead`: it was stopped,
 * and only running blocks finish. */
export interface OpenScope {
  path: string
  undecided: number
  dead: boolean
}

/** `due_ms`: when it ends (timer) or expires; null: it does not expire. */
export interface OpenWait {
  key: string
  attempt: number
  kind: string
  due_ms: number | null
  on_expire: string
}

/** The run that started a run, and the node key there that waits for its end. */
export interface ParentView {
  run: string
  key: string
}

/** A refusal, RFC 9457. More members by code. */
export interface Problem {
  type: string
  title: string
  status: number
  /** Stable code for programs. */
  code: string
  /** Description for people. */
  detail: string
  /** RFC 6901 pointer into the request body. */
  pointer?: string
  hint?: string
  diagnostics?: Diagnostic[]
}

/** A wait as it is shown to the holder of its link. `label` is the name of the block; `age_s` is in seconds since it
 * opened. */
export interface PublicWait {
  run: string
  workflow: string
  id: string
  key: string
  block: string
  label: string
  kind: 'approval' | 'attention' | 'child' | 'form' | 'signal' | 'timer' | 'webhook'
  status: 'answered' | 'cancelled' | 'expired' | 'pending'
  request: Json
  schema: Json
  actions: string[]
  opened_at_ms: number
  expires_at_ms: number | null
  age_s: number
  title: string
  run_status: 'cancelled' | 'failed' | 'queued' | 'running' | 'succeeded' | 'waiting'
  name: string | null
  correlation: string | null
  response: Json
  answered_by: string | null
  answered_at_ms: number | null
}

/** The number of requests refused for this reason. `delivery` and `run` are those of the last one. */
export interface RefusalView {
  outcome: string
  count: number
  first_at_ms: number
  last_at_ms: number
  delivery: string | null
  run: string | null
}

/** Ids of blocks, including those inside containers: `reused` keep their outputs, `again` can run, `skipped` stay
 * skipped. */
export interface RerunPreview {
  run: string
  from: string
  reused: string[]
  again: string[]
  skipped: string[]
}

/** POST /api/runs/{id}/rerun. Without `from`, everything runs again. `input` defaults to the input of that run. */
export interface RerunRequest {
  from?: string | null
  input?: Json
}

/** `how` "now": the run is `source` itself, its next attempt need not wait. Else it is a new one: "from_block" and
 * "from_node": `block` and what follows it run again; "whole_container": `block` is the container around the node, and
 * runs again as a whole. */
export interface RetryAccepted {
  run: string
  workflow: string
  version: number | null
  status: 'cancelled' | 'failed' | 'queued' | 'running' | 'succeeded' | 'waiting'
  created: boolean
  urls: RunUrls
  diagnostics: Diagnostic[]
  source: string
  how: 'from_block' | 'from_node' | 'now' | 'whole_container'
  block: string
}

/** POST /api/runs/{id}/nodes/{key}/retry takes no fields. */
export interface RetryRequest {
}

/** `created` is false if the idempotency key was used before; the run is then the one created with it. */
export interface RunAccepted {
  run: string
  workflow: string
  version: number | null
  status: 'cancelled' | 'failed' | 'queued' | 'running' | 'succeeded' | 'waiting'
  created: boolean
  urls: RunUrls
  diagnostics: Diagnostic[]
}

/** The number of runs by status. */
export interface RunCounts {
  queued: number
  running: number
  waiting: number
  succeeded: number
  failed: number
  cancelled: number
}

/** `runs`: the number of deleted runs, including those that the run started. */
export interface RunDeleted {
  run: string
  runs: number
}

/** `status`: queued, running, waiting, succeeded, failed, cancelled. `output`, `response`: after it has finished.
 * `failed_nodes`: keys of those in `nodes` that failed; in a run that succeeded, their errors were handled.
 * `children`: newest first. `child_waits`: open waits of runs below it, each with the id of its run;
 * `children_active`: runs below it that are running or due. `unread`: answers, signals, results of child runs and
 * requests that a waiting run has received but not processed. */
export interface RunDetail {
  id: string
  workflow: string
  version: number | null
  status: 'cancelled' | 'failed' | 'queued' | 'running' | 'succeeded' | 'waiting'
  input: Json
  output: Json
  error: { code: string; message: string; retryable?: boolean; block?: string | null; hint?: string; [other: string]: unknown } | null
  seq: number
  created_at_ms: number
  started_at_ms: number | null
  finished_at_ms: number | null
  response: JsonObject | null
  variables: JsonObject
  nodes: NodeView[]
  failed_nodes: string[]
  waits: WaitView[]
  draft_id: string | null
  draft_rev: number | null
  parent: ParentView | null
  children: ChildView[]
  child_waits: WaitView[]
  children_active: number
  unread: number
  urls: RunUrls
}

/** `same`: only times and ids differ. `nodes`, `only_a`, `only_b` have at most NODES_MAX entries each; `differing`
 * is the total number. */
export interface RunDiff {
  a: RunHead
  b: RunHead
  same: boolean
  same_plan: boolean
  diverged: Divergence | null
  nodes: NodeDiff[]
  only_a: string[]
  only_b: string[]
  equal: number
  differing: number
  input: ValueDiff[]
  output: ValueDiff[]
}

/** The document of a run, in weft format (`imported`: its format before). It is `version` of the stored workflow, or
 * revision `draft_rev` of a draft, or neither if it was sent with the run. */
export interface RunDocument {
  run: string
  workflow: string
  version: number | null
  hash: string
  draft_id: string | null
  draft_rev: number | null
  imported: string | null
  document: JsonObject
}

/** POST /api/runs: run a document without storing it. */
export interface RunDocumentRequest {
  document: JsonObject
  input?: Json
  trigger?: string | null
  stop_after?: string | null
}

/** POST /api/drafts/{id}/runs. `stop_after`: id of the last block to run. */
export interface RunDraftRequest {
  input?: Json
  trigger?: string | null
  stop_after?: string | null
}

/** The nodes and edges of a run's plan with their state. */
export interface RunGraph {
  run: string
  plan_hash: string
  nodes: GraphNode[]
  edges: GraphEdge[]
}

export interface RunHead {
  run: string
  workflow: string
  version: number | null
  status: string
  seq: number
}

/** `next`: pass it as `before` for the following page; null at the end. `counts`: null with `counts=0`. `capped`:
 * statuses of which there are at least 100,000 runs; they are not counted further. */
export interface RunPage {
  runs: RunSummary[]
  next: string | null
  counts: RunCounts | null
  capped: ('cancelled' | 'failed' | 'queued' | 'running' | 'succeeded' | 'waiting')[]
}

/** POST /api/workflows/{name}/runs. */
export interface RunRequest {
  input?: Json
  trigger?: string | null
  version?: number | null
  stop_after?: string | null
}

/** Response to `?wait=`: the run has ended, or is open (status code 202). `waits`: the open waits of the run and of
 * runs below it, each with the `link` that answers it. */
export interface RunResult {
  run: string
  workflow: string
  status: 'cancelled' | 'failed' | 'queued' | 'running' | 'succeeded' | 'waiting'
  output: Json
  error: { code: string; message: string; retryable?: boolean; block?: string | null; hint?: string; [other: string]: unknown } | null
  urls: RunUrls
  waits: WaitView[]
}

/** `seq`, `at_ms`: of the event; the journal continues to `last_seq`. `status` as in RunView; `phase`: running,
 * stopping, failing, cancelling or finished. `nodes` have no outputs; `ready` nodes start next, in this order;
 * `due_ms` is the earliest timer. */
export interface RunState {
  run: string
  workflow: string
  version: number | null
  seq: number
  last_seq: number
  at_ms: number
  status: string
  phase: string
  error: JsonObject | null
  nodes: NodeView[]
  waits: OpenWait[]
  retries: DueRetry[]
  ready: string[]
  scopes: OpenScope[]
  containers: OpenContainer[]
  variables: JsonObject
  due_ms: number | null
}

/** A run in a list, without its nodes and variables. `input_summary`: the beginning of the input as JSON text;
 * `duration_ms`: from its first start to its end, null before that. */
export interface RunSummary {
  id: string
  workflow: string
  version: number | null
  status: 'cancelled' | 'failed' | 'queued' | 'running' | 'succeeded' | 'waiting'
  error: { code: string; message: string; retryable?: boolean; block?: string | null; hint?: string; [other: string]: unknown } | null
  seq: number
  created_at_ms: number
  started_at_ms: number | null
  finished_at_ms: number | null
  parent_run_id: string | null
  input_summary: string
  duration_ms: number | null
  draft_id: string | null
  draft_rev: number | null
}

/** Paths on this server, beginning with a slash. */
export interface RunUrls {
  self: string
  events: string
  graph: string
  why: string
  plan: string
  cancel: string
  page: string
  document: string
  nodes: string
  rerun: string
}

/** For each node, its state and why it is in it. */
export interface RunWhy {
  run: string
  why: Why[]
}

/** The active version. `created`: it is new. `activated`: it was not active before; `replaced` is the version that
 * was. */
export interface SavedWorkflow {
  name: string
  version: number
  hash: string
  created: boolean
  diagnostics: Diagnostic[]
  activated: boolean
  replaced: number | null
}

/** `fires`: the last 50 scheduled times, newest first. */
export interface ScheduleDetail {
  id: string
  workflow: string
  version: number | null
  trigger: string | null
  cron: string
  tz: string
  input: Json
  enabled: boolean
  overlap: 'allow' | 'queue' | 'skip'
  catch_up: 'all' | 'none' | 'one'
  origin: string
  next_run_at_ms: number | null
  queued_at_ms: number | null
  last_run_at_ms: number | null
  last_run_id: string | null
  error: string | null
  created_at_ms: number
  updated_at_ms: number
  upcoming_ms: number[]
  fires: FireView[]
}

/** By id. */
export interface ScheduleList {
  schedules: ScheduleView[]
}

/** What clients set. `version` defaults to the active one, `trigger` to the trigger of the workflow. */
export interface ScheduleSpec {
  workflow: string
  cron: string
  tz?: string
  version?: number | null
  trigger?: string | null
  input?: JsonObject
  enabled?: boolean
  overlap?: 'allow' | 'queue' | 'skip'
  catch_up?: 'all' | 'none' | 'one'
}

/** Times are Unix milliseconds. `origin` document: declared by the block `trigger` of the workflow. `queued_at_ms`:
 * a scheduled time that waits for an open run to end. `error`: why no run started at the last scheduled time.
 * `upcoming_ms`: the next five times, empty while disabled. */
export interface ScheduleView {
  id: string
  workflow: string
  version: number | null
  trigger: string | null
  cron: string
  tz: string
  input: Json
  enabled: boolean
  overlap: 'allow' | 'queue' | 'skip'
  catch_up: 'all' | 'none' | 'one'
  origin: string
  next_run_at_ms: number | null
  queued_at_ms: number | null
  last_run_at_ms: number | null
  last_run_id: string | null
  error: string | null
  created_at_ms: number
  updated_at_ms: number
  upcoming_ms: number[]
}

/** The number of sessions ended. */
export interface SessionsEnded {
  ended: number
}

/** `url` signs in one browser, once, within `expires_in_s` seconds. */
export interface SignInLink {
  url: string
  expires_in_s: number
}

/** `seq` counts the signals of this run from 1. `new` is false if the dedupe key was used before. */
export interface SignalAccepted {
  run: string
  name: string
  seq: number
  new: boolean
}

/** In order of arrival, including signals that were received by a wait. */
export interface SignalList {
  signals: SignalView[]
}

/** `dedupe_key`: a repeated key returns the first signal; the Idempotency-Key header does the same. */
export interface SignalRequest {
  payload?: Json
  correlation?: string | null
  dedupe_key?: string | null
  by?: string | null
}

/** A signal sent to a run. `seq` counts the signals of the run from 1; `taken_by`: id of the wait that received it,
 * null while it is stored for later. */
export interface SignalView {
  seq: number
  name: string
  correlation: string | null
  payload: Json
  dedupe_key: string | null
  received_at_ms: number
  received_by: string | null
  taken_by: string | null
}

export interface TriggerDeleted {
  id: string
  deleted: boolean
}

/** `valid`: no finding is an error. */
export interface Validation {
  valid: boolean
  diagnostics: Diagnostic[]
}

/** `pointer` is a JSON pointer, "" for the whole value. `a` and `b` are the beginnings of the JSON values; null:
 * missing. */
export interface ValueDiff {
  pointer: string
  a: string | null
  b: string | null
}

/** `version`: of the installed package, or "unknown" if it is not installed. `signed_in`: the request came from a
 * browser with a session, which can sign out. */
export interface Version {
  version: string
  signed_in: boolean
}

/** Newest first. `next`: pass it as `before` for the following page; null at the end. */
export interface VersionPage {
  name: string
  active: number
  versions: VersionRow[]
  next: number | null
}

/** POST /api/drafts/{id}/versions. `name` defaults to the name of the draft. */
export interface VersionRequest {
  name?: string | null
}

/** A version without its document. */
export interface VersionRow {
  version: number
  hash: string
  created_at_ms: number
}

/** A wait with its `link`, which answers it while it is pending; for a callback it is the URL to post to. */
export interface Wait {
  run: string
  workflow: string
  id: string
  key: string
  block: string
  label: string
  kind: 'approval' | 'attention' | 'child' | 'form' | 'signal' | 'timer' | 'webhook'
  status: 'answered' | 'cancelled' | 'expired' | 'pending'
  request: Json
  schema: Json
  actions: string[]
  opened_at_ms: number
  expires_at_ms: number | null
  age_s: number
  title: string
  run_status: 'cancelled' | 'failed' | 'queued' | 'running' | 'succeeded' | 'waiting'
  name: string | null
  correlation: string | null
  response: Json
  answered_by: string | null
  answered_at_ms: number | null
  link: string | null
  notifications: NotificationView[]
}

/** The number of waits by status. */
export interface WaitCounts {
  pending: number
  answered: number
  cancelled: number
  expired: number
}

/** `next`: pass it as `before` for the following page; null at the end. `counts`: null with `counts=0`. `capped`:
 * statuses of which there are at least 100,000 waits; they are not counted further. */
export interface WaitPage {
  waits: Wait[]
  next: string | null
  counts: WaitCounts | null
  capped: ('answered' | 'cancelled' | 'expired' | 'pending')[]
}

/** A wait with its `link`, which answers it while it is pending; for a callback it is the URL to post to. */
export interface WaitView {
  run: string
  workflow: string
  id: string
  key: string
  block: string
  label: string
  kind: 'approval' | 'attention' | 'child' | 'form' | 'signal' | 'timer' | 'webhook'
  status: 'answered' | 'cancelled' | 'expired' | 'pending'
  request: Json
  schema: Json
  actions: string[]
  opened_at_ms: number
  expires_at_ms: number | null
  age_s: number
  title: string
  run_status: 'cancelled' | 'failed' | 'queued' | 'running' | 'succeeded' | 'waiting'
  name?: string | null
  correlation?: string | null
  response?: Json
  answered_by?: string | null
  answered_at_ms?: number | null
  link?: string | null
  notifications?: NotificationView[]
}

/** `secret`: the key of signatures, or the bearer token; null when it is read from the environment or not required.
 * `deliveries`: the last 50, newest first. `refused`: by reason, including those before the last start of the
 * server. */
export interface WebhookDetail {
  id: string
  url: string
  workflow: string
  version: number | null
  trigger: string | null
  auth: 'github' | 'hmac' | 'none' | 'token'
  secret_env: string | null
  respond: 'immediate' | 'run'
  timeout_s: number
  headers: string[]
  enabled: boolean
  origin: string
  last_run_at_ms: number | null
  last_run_id: string | null
  problem: string | null
  created_at_ms: number
  updated_at_ms: number
  secret: string | null
  deliveries: DeliveryView[]
  refused: RefusalView[]
}

/** By id. */
export interface WebhookList {
  webhooks: WebhookView[]
}

/** `secret`: the new one; the old one no longer works. */
export interface WebhookRotated {
  id: string
  secret: string
}

/** What clients set. `version` defaults to the active one, `trigger` to the trigger of the workflow. A trigger of
 * type `webhook` gets the whole request, other triggers get its body. */
export interface WebhookSpec {
  workflow: string
  version?: number | null
  trigger?: string | null
  auth?: 'github' | 'hmac' | 'none' | 'token'
  secret_env?: string | null
  respond?: 'immediate' | 'run'
  timeout_s?: number
  headers?: string[]
  enabled?: boolean
}

/** Times are Unix milliseconds. `origin` document: declared by the block `trigger` of the workflow. `problem`: why
 * requests cannot be accepted. */
export interface WebhookView {
  id: string
  url: string
  workflow: string
  version: number | null
  trigger: string | null
  auth: 'github' | 'hmac' | 'none' | 'token'
  secret_env: string | null
  respond: 'immediate' | 'run'
  timeout_s: number
  headers: string[]
  enabled: boolean
  origin: string
  last_run_at_ms: number | null
  last_run_id: string | null
  problem: string | null
  created_at_ms: number
  updated_at_ms: number
}

/** Why a node key is where it is: `state` and the unmet conditions in words. */
export interface Why {
  key: string
  state: string
  reasons: string[]
}

/** DELETE /api/runs/{id}/waits/{wait}. Both fields are recorded in the error of the block. */
export interface WithdrawRequest {
  by?: string | null
  reason?: string
}

/** The number of schedules and webhooks deleted with it. Its runs are kept. */
export interface WorkflowDeleted {
  name: string
  schedules: number
  webhooks: number
}

/** A workflow without a document. `version`, `hash` and `created_at_ms` are those of the active version; `newest` is
 * the highest version, `versions` their number. */
export interface WorkflowHead {
  name: string
  version: number
  hash: string
  created_at_ms: number
  activated_at_ms: number
  newest: number
  versions: number
  last_run: LastRun | null
}

/** `version` of a workflow is the active one, which runs where no version is given. */
export interface WorkflowPage {
  workflows: WorkflowHead[]
}

/** `active`: the version that runs where none is given; `newest`: the highest version. */
export interface WorkflowVersion {
  name: string
  version: number
  hash: string
  created_at_ms: number
  active: number
  newest: number
  document: Json
}
