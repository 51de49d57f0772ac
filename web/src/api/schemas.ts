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
  'cleanup.opened',
  'cleanup.stopped',
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
  'run.recovered',
  'run.continuing',
  'node.log',
  'step.started',
  'step.finished',
  'step.lost',
  'step.retrying',
  'node.left',
  'node.state',
  'update.answered',
] as const

/** PUT /api/workflows/{name}/active. `activate_triggers`: its schedules and webhooks start runs even if it has
 * blocks that were not imported. */
export interface ActivateRequest {
  version: number
  activate_triggers?: boolean
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
  error?: { code: string; message: string; retryable?: boolean; block?: string | null; hint?: string; traceback?: string; [other: string]: unknown } | null
}

/** Newest first. `next`: pass it as `before`; null at the end. */
export interface AuditPage {
  rows: AuditRow[]
  next: number | null
}

/** `hash` is of the row, and of the hash of the row before it. */
export interface AuditRow {
  n: number
  at_ms: number
  actor: string
  via: string
  action: string
  object: string
  detail: string
  hash: string
}

/** A part of a backtest. `total`: how many runs the whole of it has, in the first part. `next`: pass it as `before`
 * for the following part, with `last` less the runs of this one; null at the end. Of rows, the following part has
 * those that are not in this one. `spent_usd`: what calls of models cost, those of a judge too. */
export interface Backtest {
  runs: RunReplay[]
  total: number
  next: string | null
  spent_usd: number
}

/** POST /api/workflows/{name}/backtest. What is played: `document`, the draft with the id `draft`, `version`, or the
 * active version if there is none of them. Against which runs: with `kept` those that are kept, else all that have
 * ended; the newest first, at most `last`, after run `before`. Or on `rows`. `model` replaces that of all blocks that
 * ask one, `call_models` lets those be called that are asked for something else, and `score` scores the results. */
export interface BacktestRequest {
  model?: string | null
  call_models?: CallModels | null
  rows?: DataRow[] | null
  score?: Scorer | null
  document?: JsonObject | null
  draft?: string | null
  version?: number | null
  kept?: boolean
  last?: number
  before?: string | null
}

/** A block in a continued run. `kept` outputs are taken over, and `calls` of nodes that had begun; `effect` is what
 * the rest may do outside. `why`: changed, failed, asked, input, branch, new, chosen or always. */
export interface BlockFate {
  block: string
  name: string
  fate: 'again' | 'kept' | 'maybe' | 'new' | 'skipped'
  effect: string
  kept: number
  calls: number
  why: string
}

/** The block types, by category and title. */
export interface BlockList {
  blocks: BlockType[]
}

/** Attempts of a block type that ended in this process, and the seconds that they took. */
export interface BlockStats {
  block: string
  attempts: number
  seconds: number
}

/** A block type. `params` is the JSON Schema of its parameters, `output` that of its output, null if it depends on
 * data. `handles`: the fixed exits. `runners`: the permitted values of `policy.runner`. `attempts` and `timeout_ms`
 * are the defaults of `policy.retry.max_attempts` and `policy.timeout_s`. `sentence`: the description on a card, text
 * with `{path}` for parameters. */
export interface BlockType {
  type: string
  title: string
  description: string
  category: 'action' | 'annotation' | 'connector' | 'data' | 'flow' | 'people' | 'trigger'
  params: JsonObject
  handles: string[]
  container: 'loop' | 'parallel' | null
  trigger: boolean
  output: JsonObject | null
  effect: 'none' | 'read' | 'write'
  runners: ('dask' | 'inline' | 'process')[]
  attempts: number
  timeout_ms: number
  sentence: string
  icon: string
}

/** The number of deleted results. */
export interface CacheCleared {
  cleared: number
}

/** A step that the source made, or a block that it ran (`n` is 0), after the point of a fork. */
export interface Call {
  key: string
  n: number
  kind: string
  name: string
  effect: string
}

/** No call is made once `budget_usd` is spent. */
export interface CallModels {
  budget_usd: number
}

/** POST /callbacks/{token}: the request was accepted as the answer. */
export interface CallbackTaken {
  accepted: boolean
  received_at_ms: number
}

/** POST /api/runs/{id}/cancel. `reason` is recorded in the journal. `now`: the run does not wait for its cleanups; a
 * second request means the same. */
export interface CancelRequest {
  reason?: string
  now?: boolean
}

/** `status` is `cancelled` when the run has ended, otherwise `cancelling`: the request is stored and the run will
 * process it before it ends. */
export interface Cancelled {
  run: string
  cancelled: boolean
  status: 'cancelled' | 'cancelling'
}

/** A workflow, with its active document. `states`: of each block in the last run. `runs`: the last ones, oldest
 * first. `open`: the open runs by status. `today`: the runs of a day, at most 1,000. `next_ms`: when a schedule starts
 * the next one. */
export interface Card {
  name: string
  version: number
  hash: string
  created_at_ms: number
  activated_at_ms: number
  newest: number
  versions: number
  last_run: LastRun | null
  folder: string
  changed_by: string | null
  title: string
  document: Json
  runs: ShortRun[]
  states: Record<string, string>
  open: Record<string, number>
  today: number
  next_ms: number | null
}

/** `folders`: the number of workflows in each folder; '' are those in none. `next`: pass it as `after` for the
 * following page; null at the end. */
export interface CardPage {
  cards: Card[]
  folders: Record<string, number>
  next: number | null
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

/** `value` is what the field gets; `title` is shown, and `about` beside it. */
export interface Choice {
  value: string | number
  title: string
  about: string
}

/** `next`: pass it as `cursor` for further ones; null at the end. */
export interface ChoiceList {
  choices: Choice[]
  next: string | null
}

/** `field`: a param of the block type, and `params` those of the block, which has the account and the fields on
 * which the choices depend. `search`: the text typed; `cursor`: the `next` of the answer before. */
export interface ChoicesAsked {
  field: string
  params?: JsonObject
  search?: string
  cursor?: string | null
}

/** The numbers of deleted rows or, with `dry_run`, of rows that would be deleted. */
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

/** The collections, by name. */
export interface CollectionList {
  collections: CollectionView[]
}

/** `documents`, `chunks` and `chars` that searches find; `pending` and `failed` count versions that are not visible.
 * `dimension` of the vectors is 0 until there is one. */
export interface CollectionView {
  name: string
  description: string
  model: string
  dimension: number
  chunk_chars: number
  overlap_chars: number
  created_at_ms: number
  created_by: string | null
  documents: number
  chunks: number
  chars: number
  pending: number
  failed: number
}

/** `service`: the connector of the block that names the connection, and `base_url` the address of its service there.
 * `connection`: settings that are not stored yet, which are tested in place of those that are. */
export interface ConnectionAsked {
  service?: string
  base_url?: string
  connection?: ConnectionSpec | null
}

export interface ConnectionDeleted {
  name: string
  deleted: boolean
}

/** The connections, by name. Credentials never leave the server. `redirect_uri`: the address to register at OAuth
 * providers; `providers`: well-known ones, with the settings that a connection to them begins with. */
export interface ConnectionList {
  connections: ConnectionView[]
  redirect_uri: string
  providers: KnownProvider[]
}

/** `hosts`: where it may be sent to. `secret`: the API key, the token, the password of `username`, or the secret of
 * the OAuth client. `where`, `name` and `prefix`: where an API key goes. The rest is about an OAuth 2 provider:
 * `client_auth`: whether the client's secret goes in the body or in the header of a request for a token; `parameters`:
 * more of them for `authorize_url`; `pkce`: false for a provider without it. `check_url`: what a test of it requests,
 * where no service on its hosts has a sign-in check: it answers only with the credential. Of `ssh`, `secret` is a
 * password or a private key, `passphrase` that of the key, and `host_key` has the public keys of the server or their
 * fingerprints, one a line. */
export interface ConnectionSpec {
  kind: 'api_key' | 'basic' | 'bearer' | 'oauth2_client' | 'oauth2_code' | 'ssh'
  hosts: string[]
  secret?: string
  username?: string
  where?: 'header' | 'query'
  name?: string
  prefix?: string
  authorize_url?: string
  token_url?: string
  client_id?: string
  scopes?: string
  issuer?: string
  client_auth?: 'body' | 'header'
  parameters?: Record<string, string>
  pkce?: boolean
  check_url?: string
  passphrase?: string
  host_key?: string
}

/** `who`: the name in the answer; `called`: the request. `outcome`: refused if the service did not accept the
 * credential; hosts if it may not go there; not_ready without a sign-in; nothing if there is nothing to call. */
export interface ConnectionTest {
  outcome: 'failed' | 'hosts' | 'not_ready' | 'nothing' | 'ok' | 'refused' | 'timeout' | 'unreachable'
  ok: boolean
  status: number | null
  who: string
  message: string
  hint: string
  called: string
  took_ms: number
}

/** The last test of a connection as it is stored. */
export interface ConnectionTested {
  at_ms: number
  result: ConnectionTest
}

/** The active versions and drafts that name it. */
export interface ConnectionUses {
  used_by: EnvUse[]
}

/** Without its values, which no one can read. `state` is sign_in if no one has signed in yet; sign_in_again if the
 * provider no longer gives tokens, see `problem`; unreadable if this server does not have its key. `check`: what a
 * test of it requests, or nothing. `tested`: the last test, until it is replaced or signed in to again. */
export interface ConnectionView {
  name: string
  kind: 'api_key' | 'basic' | 'bearer' | 'oauth2_client' | 'oauth2_code' | 'ssh' | null
  hosts: string[]
  state: 'ready' | 'sign_in' | 'sign_in_again' | 'unreadable'
  problem: string
  provider: string
  check: string
  expires_at_ms: number | null
  created_by: string
  created_at_ms: number
  last_used_at_ms: number | null
  tested: ConnectionTested | null
}

export interface ConnectorDeleted {
  service: string
  deleted: boolean
}

/** docs/howto/connectors.md describes the document. */
export interface ConnectorDocument {
  document: JsonObject
}

/** The connectors, by service. */
export interface ConnectorList {
  connectors: ConnectorView[]
}

/** `type` is its block type, `operations` their number. */
export interface ConnectorView {
  service: string
  type: string
  title: string
  operations: number
  created_by: string
  changed_at_ms: number
}

/** The blocks of a continued run with their fates: `kept` is not run; `maybe` is run where its input comes out
 * otherwise, or (`why`: branch) where a block before it takes its branch; `again` has run, or began, and runs again;
 * `new` did not run before, and runs; `skipped` is on a branch that is not taken, as before. */
export interface Continuation {
  run: string
  workflow: string
  version: number | null
  draft: string | null
  blocks: BlockFate[]
}

/** `upcoming_ms`: the next five times of the expression in that time zone. */
export interface CronPreview {
  expr: string
  tz: string
  upcoming_ms: number[]
}

/** The input of a run that there was not. `expected`: what its output is compared with; `pins`: outputs that stand
 * for those of blocks, by their ids. */
export interface DataRow {
  input?: Json
  expected?: Json
  pins?: JsonObject
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

/** Versions by the names of their documents, at most 100. `next`: the value of `after` for the page that follows. */
export interface DocumentList {
  documents: DocumentView[]
  next: string | null
}

/** A version of a document: `visible` to searches, `pending` while `run` embeds its chunks, or `failed` with that
 * run; until a later version is visible, searches find the one before. `embedded`: chunks that have their vectors. */
export interface DocumentView {
  name: string
  version: number
  title: string
  source: string
  media_type: string
  sha256: string
  chars: number
  chunks: number
  embedded: number
  state: 'failed' | 'pending' | 'visible'
  run: string
  added_at_ms: number
  added_by: string | null
}

/** `url` starts runs of the draft until `until_ms`. `secret`: the sender signs with it, or sends it; None if none is
 * needed, or if it is read from `secret_env`. */
export interface DraftAddress {
  url: string
  until_ms: number
  auth: 'github' | 'hmac' | 'none' | 'token'
  secret: string | null
  secret_env: string | null
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

/** `run` of the draft was started with this `input`. If it is None, there is no event yet: until `until_ms`, `after`
 * asks for the next one. `newest`: there were events before. */
export interface DraftEvent {
  run: string | null
  input: Json
  after: string | null
  until_ms: number | null
  newest: boolean
}

export interface DraftFolder {
  id: string
  folder: string
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
  diagnostics: Diagnostic[]
  urls: RunUrls
  draft: string
  rev: number
}

/** `rev`: the revision to send in If-Match with the next change; `tasks` are left before it runs. */
export interface DraftSaved {
  id: string
  name: string
  rev: number
  updated_at_ms: number
  diagnostics: Diagnostic[]
  tasks: Task[]
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
  folder: string
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

/** A draft, its diagnostics, and the tasks that are left before it runs. Times are Unix milliseconds. See DraftHead
 * for its base. */
export interface DraftView {
  id: string
  name: string
  rev: number
  base_name: string | null
  base_version: number | null
  base_rev: number | null
  created_at_ms: number
  updated_at_ms: number
  folder: string
  document: Json
  diagnostics: Diagnostic[]
  tasks: Task[]
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

/** The environment values, by name. The values themselves never leave the server. */
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

/** A workflow that comes with weft; `name` is that of its file. A `template` runs when what is open in it is
 * connected and chosen; any other runs as it is. */
export interface Example {
  name: string
  title: string
  description: string
  document: JsonObject
  template: boolean
}

/** The examples, in the order of a tour, and the templates. */
export interface Examples {
  examples: Example[]
}

/** A file as inputs, answers and outputs name it. In requests only `type` and `id` count. `proof`: proof that a
 * token for some workflows has uploaded the file. */
export interface FileValue {
  type: 'file'
  id: string
  name: string
  media_type: string
  size: number
  proof?: string
}

/** The outcome at `at_ms` of the scheduled time `due_ms`. */
export interface FireView {
  due_ms: number
  at_ms: number
  outcome: 'failed' | 'missed' | 'queued' | 'skipped' | 'started'
  run: string | null
  error: string | null
}

/** PUT /api/workflows/{name}/folder. An empty text takes it out of its folder. */
export interface FolderRequest {
  folder: string
}

/** `seq`: the number of events copied from `source`. */
export interface ForkAccepted {
  run: string
  workflow: string
  version: number | null
  status: 'cancelled' | 'failed' | 'queued' | 'running' | 'succeeded' | 'waiting'
  created: boolean
  diagnostics: Diagnostic[]
  urls: RunUrls
  source: string
  seq: number
}

/** A fork takes over the first `seq` events, with `calls` finished steps, which used `usage` and cost `cost`. What
 * the source did after them, and the fork may do again, is in `again`; `more`: there is more of it. */
export interface ForkPreview {
  run: string
  seq: number
  calls: number
  usage: Record<string, number>
  cost: number | null
  again: Call[]
  more: boolean
}

/** POST /api/runs/{id}/fork. `outputs`: by node key, in place of the recorded ones. `steps`: results of steps, such
 * as calls of an agent, by node key and number of the step; then `seq` may be left out, and is the last event before
 * the next step of that node. `params`: by block, in place of those with these names; they count from there on. */
export interface ForkRequest {
  seq?: number | null
  outputs?: JsonObject
  steps?: Record<string, JsonObject>
  params?: Record<string, JsonObject>
}

/** `created` is false if a deletion was in progress already: then `job` is that one, with its own age and `keep`. */
export interface GcAccepted {
  created: boolean
  job: GcJob
}

/** A deletion of ended runs. `counts`: so far, or in all; with `dry_run`, what would be deleted. `older_than_s` is
 * None for no run, except those of workflows with a rule of their own. `state` interrupted: its process has ended; its
 * deletions stay, and the same request does the rest. */
export interface GcJob {
  dry_run: boolean
  older_than_s: number | null
  keep: number
  began_at_ms: number
  updated_at_ms: number
  id: string
  state: 'done' | 'failed' | 'interrupted' | 'running'
  counts: Collected
  error: string | null
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

/** POST /api/users. */
export interface InviteRequest {
  /** What documents call the user by: lower case. */
  id: string
  role: 'admin' | 'approver' | 'editor' | 'viewer'
  name?: string
}

/** `url` signs in one browser as this user, once, within `expires_in_s` seconds. */
export interface Invited {
  id: string
  url: string
  expires_in_s: number
}

/** A workflow that returns a score, or a model and the criteria by which an `evaluator` block scores with it. */
export interface Judge {
  workflow?: string | null
  model?: string | null
  criteria?: string
}

/** `dropped` is false if the run was not kept. */
export interface KeepDropped {
  run: string
  dropped: boolean
}

/** POST /api/runs/{id}/keep. `note`: what the run is a test of. */
export interface KeepRequest {
  note?: string
}

export interface KeptRuns {
  kept: KeptView[]
}

/** A run that is kept as a test: no upkeep deletes it. */
export interface KeptView {
  run: string
  workflow: string
  note: string
  kept_at_ms: number
}

export interface KnowledgeDeleted {
  name: string
  deleted: boolean
}

/** The defaults of a connection of kind `oauth2_code`. `scopes`: a first choice, as the provider separates them;
 * `hosts`: those of its API; `docs`: its page about registering a client; `check_url` reports who is signed in, at the
 * JSON pointer `who`. */
export interface KnownProvider {
  id: string
  title: string
  authorize_url: string
  token_url: string
  hosts: string[]
  docs: string
  scopes: string
  issuer: string
  client_auth: 'body' | 'header'
  pkce: boolean
  parameters: Record<string, string>
  check_url: string
  who: string
}

/** The calls that a durable function has made up to event `seq`. `code`: the hash of its code. `left_off`: how many
 * calls began before these; the event at which the first of these began is the `before` of the page with them. */
export interface Lane {
  run: string
  seq: number
  function: string
  code: string | null
  tasks: LaneTask[]
  items: LaneItem[]
  left_off: number
}

/** A call of a durable function. `phase`: the block that made it: `body`, or `undo` after a cancel. */
export interface LaneItem {
  n: number
  kind: 'mark' | 'model' | 'step' | 'tool' | 'wait'
  name: string
  input_hash: string
  effect: 'none' | 'read' | 'write'
  attempt: number
  started_seq: number
  started_at_ms: number
  status: 'cancelled' | 'failed' | 'lost' | 'retrying' | 'running' | 'succeeded' | 'waiting'
  times?: number
  finished_seq?: number | null
  finished_at_ms?: number | null
  usage?: Record<string, number>
  cost?: number | null
  prices?: string
  error?: { code: string; message: string; retryable?: boolean; block?: string | null; hint?: string; traceback?: string; [other: string]: unknown } | null
  from_run?: string | null
  line?: number
  task?: number
  above?: number
  group?: string
  shown?: Json
  wait?: StepWait | null
  due_ms?: number | null
  phase?: string
}

/** A task of the function, which the task `above` began: its calls are between these events. `until_seq` is null as
 * long as one of them is open. */
export interface LaneTask {
  task: number
  above: number
  from_seq: number
  until_seq: number | null
}

/** The run of a workflow that was created last. */
export interface LastRun {
  id: string
  version: number | null
  status: 'cancelled' | 'failed' | 'queued' | 'running' | 'succeeded' | 'waiting'
  created_at_ms: number
  finished_at_ms: number | null
}

/** POST /api/drafts/{id}/listen. `trigger`: the id of a webhook block. */
export interface ListenRequest {
  trigger: string
}

/** The runs, oldest first. `complete`: False if the time for one request did not suffice: ask again for all. */
export interface Loom {
  blocks: string[]
  handles: string[]
  runs: LoomRun[]
  complete: boolean
}

/** One run. Blocks are numbers in `Loom.blocks`. `uses`: [block, executions, failed, open, milliseconds in all] of
 * each block that began. `exits`: [block, handle, times], the handle as a number in `Loom.handles`. `cells`: for
 * iterations and branches [container, state, milliseconds], the state 0 (succeeded), 1 (failed) or 2 (open), in the
 * order in which they began. `cut`: there are more events than were read. */
export interface LoomRun {
  id: string
  status: string
  created_at_ms: number
  version?: number | null
  finished_at_ms?: number | null
  key?: string | null
  error?: string | null
  uses?: number[][]
  exits?: number[][]
  cells?: number[][]
  cut?: boolean
}

/** An answer: either `result` or `error`. */
export interface McpAnswer {
  jsonrpc: string
  id: string | number
  result?: JsonObject
  error?: McpError
}

/** Codes are those of JSON-RPC: -32601 for an unknown method, -32602 for wrong parameters. */
export interface McpError {
  code: number
  message: string
}

/** A request, or a notification: it has no `id`. Answers of a client have no `method`; nothing asks for them. */
export interface McpMessage {
  jsonrpc: '2.0'
  method?: string | null
  id?: string | number | null
  params?: JsonObject | null
}

/** The present user or token. `user` is null for the server's token and for tokens made with it; `workflows`: the
 * only ones that a token may reach, null for all. */
export interface Me {
  actor: string
  via: string
  role: 'admin' | 'approver' | 'editor' | 'metrics' | 'viewer'
  user: string | null
  name: string
  workflows: string[] | null
}

/** The number of deleted turns. */
export interface MemoryForgotten {
  deleted: number
}

/** A conversation: how many turns it has and how long they are, and when the last one ended. */
export interface MemoryHead {
  workflow: string
  scope: string
  key: string
  turns: number
  bytes: number
  last_at_ms: number
}

/** The latest first, at most 200. */
export interface MemoryList {
  conversations: MemoryHead[]
}

/** In their order. */
export interface MemoryTurns {
  turns: TurnView[]
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

/** The endpoints of language models that blocks can ask, those that can be asked at once first. Models whose prices
 * are not known are not listed; they can be named all the same. */
export interface Models {
  endpoints: Offer[]
}

/** `model`: of embeddings, <endpoint>:<model>, such as openai:text-embedding-3-small. It stays, as the sizes do:
 * characters of a chunk, and those that it has in common with the one before. */
export interface NewCollection {
  name: string
  model: string
  description?: string
  chunk_chars?: number
  overlap_chars?: number
}

/** `name` identifies the document in its collection: one that is there gets a new version. Either `text`, or `data`:
 * the bytes of a file in base64. `media_type`: by default that of the suffix of the name. `title` and `source` are
 * shown with results. */
export interface NewDocument {
  name: string
  text?: string | null
  data?: string | null
  media_type?: string
  title?: string
  source?: string
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

/** A node key with another result, or that would be called. `value`: the first difference of its output, or of the
 * input of a call; `would`: what a call does, such as `send a mail`; `sends`: with it something leaves weft;
 * `answered`: the recorded answer of a person is taken for it. */
export interface NodeReplay {
  key: string
  block: string
  result: 'changed' | 'not_reached' | 'same' | 'unknown' | 'would_call'
  value: ValueDiff | null
  would: string
  sends: boolean
  answered: boolean
  error: string
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
  input_error: { code: string; message: string; retryable?: boolean; block?: string | null; hint?: string; traceback?: string; [other: string]: unknown } | null
  /** Null also when cut. */
  output: Json
  error: { code: string; message: string; retryable?: boolean; block?: string | null; hint?: string; traceback?: string; [other: string]: unknown } | null
  route: string | null
  reason: string | null
  because: string | null
  reused: boolean
  /** The last checkpoint of its attempts; null also with `seq`. */
  checkpoint: CheckpointShown | null
  /** The durable steps of its handler; event `finished_seq` has the output. */
  steps: StepView[]
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
 * `child`: the run that its last attempt started. `output_truncated`: the view has no room for its output, which has
 * `output_size` bytes; NodeDetail has it. `steps`: how many its handler began; `usage`, `cost` (US dollars): of all of
 * them that this run has paid for, and `reused_usage`, `reused_cost` of those that another has; `unpriced`: how
 * many of them used something whose price is not known, and is not in `cost`. */
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
  error?: { code: string; message: string; retryable?: boolean; block?: string | null; hint?: string; traceback?: string; [other: string]: unknown } | null
  output?: Json
  lost?: number
  cached?: boolean
  child?: string | null
  output_size?: number | null
  output_truncated?: boolean
  steps?: number
  usage?: Record<string, number> | null
  cost?: number | null
  unpriced?: number
  reused_usage?: Record<string, number> | null
  reused_cost?: number | null
}

/** One message about a wait. `to`: addresses, or the server a request is sent to; `error`: why it could not be sent
 * (so far, while it is pending); `due_at_ms`: when a pending message is tried next. `reminder`: it is sent some time
 * before the wait expires. */
export interface NotificationView {
  channel: string
  to: string
  status: string
  attempts: number
  reminder?: boolean
  due_at_ms?: number | null
  settled_at_ms?: number | null
  error?: string | null
}

/** An endpoint of models. `ready`: it needs no key, or the server has it. */
export interface Offer {
  name: string
  host: string
  ready: boolean
  models: Priced[]
}

/** One operation of a description. `problem`: why it cannot be used. */
export interface Offered {
  id: string
  method: string
  path: string
  title: string
  tag: string | null
  problem: string | null
}

/** A tool as the server describes it. `reads`: by its description the tool changes nothing. */
export interface OfferedTool {
  name: string
  description: string
  reads: boolean
}

/** POST /api/connectors/openapi. `operations`: ids of the chosen ones; without any, they are only listed.
 * `base_url`: the address of the service, if it is not in the description. */
export interface OpenApiImport {
  description: JsonObject
  operations?: string[]
  service?: string | null
  base_url?: string | null
}

/** `connector`: the document, null when no operation was chosen. */
export interface OpenApiImported {
  operations: Offered[]
  connector: JsonObject | null
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

/** An open wait. `due_ms`: when it ends (timer) or expires; null if it does not expire. */
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

/** A chunk that was found. `score`: from 0 to 1, by its places in both rankings; `similarity`: the cosine of its
 * vector and that of the query, None for a search of words alone. `source`: where the document is from. `position`: of
 * the chunk in the document, from 0. */
export interface Passage {
  text: string
  score: number
  similarity: number | null
  document: string
  version: number
  title: string
  source: string
  position: number
}

/** POST /api/drafts/{id}/poll. `trigger`: the id of a block that polls. `after`: for the next event. */
export interface PollRequest {
  trigger: string
  after?: string | null
}

/** A model, and its price in US dollars for a million tokens of input and of output. */
export interface Priced {
  name: string
  input: number
  output: number
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

/** Counts of the process that answers, since its start. Other processes on the database have their own, see
 * `/metrics`. `blocks`: those that took most time first, at most 50. */
export interface ProcessStats {
  worker: string
  runs_active: number
  attempts_active: number
  runs_started: number
  runs_ended: Record<string, number>
  commits: number
  changes: number
  write_retries: number
  event_streams: number
  event_loop_lag_ms: number
  blocks: BlockStats[]
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

/** `registered`: the service reports events, until `expires_at_ms` if that is given: it is renewed before. `error`:
 * why this is not so, or not for long. While it is not, the source is polled at its times. */
export interface PushView {
  registered: boolean
  expires_at_ms: number | null
  delivered_at_ms: number | null
  error: string | null
}

/** `answer`: what the function of the query has returned. */
export interface QueryAnswer {
  run: string
  name: string
  answer: Json
}

/** POST /api/runs/{id}/queries/{name}. `arguments`: those of the query, by name. */
export interface QueryRequest {
  arguments?: JsonObject
}

/** Runs of a pool that wait for a worker; `oldest_ms`: for how long the first of them has. */
export interface QueueStats {
  pool: string
  runs: number
  oldest_ms: number
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

/** POST /api/runs/rerun. `runs` that have ended, each once; the rest is as for one of them. `preview`: change
 * nothing, and return what would run. */
export interface RerunManyRequest {
  from?: string | null
  input?: Json
  version?: number | 'active' | 'draft' | null
  draft?: string | null
  document?: JsonObject | null
  again?: string[]
  runs: string[]
  preview?: boolean
}

/** `source` and the new `run`, which is not `created` if the same request had made it before; or `error` and its
 * `code`. `blocks`: of a preview, see Continuation. */
export interface RerunOfMany {
  source: string
  run: string | null
  created: boolean
  blocks: BlockFate[]
  code: string
  error: string
}

/** Ids of blocks in plan order, including those inside containers: `reused` keep their outputs, `again` can run,
 * `skipped` stay skipped. */
export interface RerunPreview {
  run: string
  from: string
  reused: string[]
  again: string[]
  skipped: string[]
}

/** POST /api/runs/{id}/rerun. Without `from`, everything runs again. `input` defaults to the input of that run. With
 * one of `version`, `draft` (an id) and `document` the run continues with that: what is unchanged is not run again,
 * except the blocks `again`, and `from` with all that follows from it. */
export interface RerunRequest {
  from?: string | null
  input?: Json
  version?: number | 'active' | 'draft' | null
  draft?: string | null
  document?: JsonObject | null
  again?: string[]
}

export interface RerunsAnswer {
  runs: RerunOfMany[]
}

/** `how` "now": the run is `source` itself, and its next attempt begins at once. Else it is a new one: "from_block"
 * and "from_node": `block` and what follows it run again; "whole_container": `block` is the container around the node,
 * and runs again as a whole. */
export interface RetryAccepted {
  run: string
  workflow: string
  version: number | null
  status: 'cancelled' | 'failed' | 'queued' | 'running' | 'succeeded' | 'waiting'
  created: boolean
  diagnostics: Diagnostic[]
  urls: RunUrls
  source: string
  how: 'from_block' | 'from_node' | 'now' | 'whole_container'
  block: string
}

/** POST /api/runs/{id}/nodes/{key}/retry takes no fields. */
export interface RetryRequest {
}

/** PUT /api/users/{id}/role. */
export interface RoleRequest {
  role: 'admin' | 'approver' | 'editor' | 'viewer'
}

/** `created` is false if the idempotency key was used before; the run is then the one created with it. */
export interface RunAccepted {
  run: string
  workflow: string
  version: number | null
  status: 'cancelled' | 'failed' | 'queued' | 'running' | 'succeeded' | 'waiting'
  created: boolean
  diagnostics: Diagnostic[]
  urls: RunUrls
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
 * requests that a waiting run has received but not processed. `usage`: usage and cost of its steps and those of all
 * runs below it, by model; steps reused from another run count for that one alone. `by`: who started it,
 * `user:ada`, `token:ID` or `server-token`, or null for a trigger, another run, or a server without a token.
 * `continues`: the run that ended with this one as its next; `continued_as`: the run that continues this one. `stale`:
 * its worker stopped responding, and no other one has continued the run yet; `stale_since_ms`: when the lease of that
 * worker lapsed. `lacks`: the function or block type that the run waits for, as the process that answers does not
 * have it. `state`: what its durable function published last. */
export interface RunDetail {
  id: string
  workflow: string
  version: number | null
  status: 'cancelled' | 'failed' | 'queued' | 'running' | 'succeeded' | 'waiting'
  input: Json
  output: Json
  error: { code: string; message: string; retryable?: boolean; block?: string | null; hint?: string; traceback?: string; [other: string]: unknown } | null
  seq: number
  created_at_ms: number
  started_at_ms: number | null
  finished_at_ms: number | null
  response: JsonObject | null
  variables: JsonObject
  waits: WaitView[]
  draft_id: string | null
  draft_rev: number | null
  parent: ParentView | null
  children: ChildView[]
  child_waits: WaitView[]
  children_active: number
  unread: number
  usage: UsageView | null
  by: string | null
  continues: string | null
  continued_as: string | null
  stale: boolean
  stale_since_ms: number | null
  lacks: string | null
  state: Json
  nodes: NodeView[]
  failed_nodes: string[]
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

/** POST /api/runs: run a document without storing it. `priority`: in place of that of the workflow. */
export interface RunDocumentRequest {
  document: JsonObject
  input?: Json
  trigger?: string | null
  stop_after?: string | null
  priority?: number | null
}

/** POST /api/drafts/{id}/run. `stop_after`: id of the last block to run. `step`: run that block alone instead. */
export interface RunDraftRequest {
  input?: Json
  trigger?: string | null
  stop_after?: string | null
  step?: Step | null
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

/** The result of a document with a recorded run.
 *
 * result: same; changed (other values); other_way (another branch); would_call (a block would reach outside or ask
 * with another input, and what follows it is unknown); failed (it fails now); not_replayed; played (a row that ended);
 * not_called (a model, for the budget). `reason`: of the last five. `before`, `now`: how the run ended, and would end,
 * null if that is unknown. `blocks`: the result of each, of its iterations the one that differs most. `differences`
 * has at most 50. `used`: by models now, `recorded` in the run. A row of data has its number as `run`. */
export interface RunReplay {
  run: string
  workflow: string
  version: number | null
  created_at_ms: number
  before: string
  result: 'changed' | 'failed' | 'not_called' | 'not_replayed' | 'other_way' | 'played' | 'same' | 'would_call'
  reason: string
  now: string | null
  way: Way | null
  blocks: Record<string, 'changed' | 'not_reached' | 'same' | 'unknown' | 'would_call'>
  differences: NodeReplay[]
  used: Used
  recorded: Used | null
  score: Scored | null
}

/** POST /api/workflows/{name}/runs. `priority`: in place of that of the workflow. */
export interface RunRequest {
  input?: Json
  trigger?: string | null
  version?: number | null
  stop_after?: string | null
  priority?: number | null
}

/** Response to `?wait=`: the run has ended, or is open (status code 202). `waits`: the open waits of the run and of
 * runs below it, each with the `link` that answers it. */
export interface RunResult {
  run: string
  workflow: string
  status: 'cancelled' | 'failed' | 'queued' | 'running' | 'succeeded' | 'waiting'
  output: Json
  error: { code: string; message: string; retryable?: boolean; block?: string | null; hint?: string; traceback?: string; [other: string]: unknown } | null
  urls: RunUrls
  waits: WaitView[]
}

/** `seq`, `at_ms`: of the event; the journal continues to `last_seq`. `status` as in RunView; `phase`: running,
 * stopping, failing, cancelling, ending (its cleanups run) or finished. `nodes` have no outputs; `ready` nodes start
 * next, in this order; `due_ms` is the earliest timer. `state`: what its durable function published last. */
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
  state: Json
}

/** A run in a list, without its nodes and variables. `input_summary`: the beginning of the input as JSON text;
 * `duration_ms`: from its first start to its end, null before that. `key`: its idempotency key. `step`: the block
 * of a draft that ran alone. `by`, `stale`, `stale_since_ms`, `lacks`: as in RunDetail. */
export interface RunSummary {
  id: string
  workflow: string
  version: number | null
  status: 'cancelled' | 'failed' | 'queued' | 'running' | 'succeeded' | 'waiting'
  error: { code: string; message: string; retryable?: boolean; block?: string | null; hint?: string; traceback?: string; [other: string]: unknown } | null
  seq: number
  created_at_ms: number
  started_at_ms: number | null
  finished_at_ms: number | null
  parent_run_id: string | null
  input_summary: string
  duration_ms: number | null
  draft_id: string | null
  draft_rev: number | null
  key: string | null
  by: string | null
  step: string | null
  stale: boolean
  stale_since_ms: number | null
  lacks: string | null
}

/** Counts by status for each part of a time. Part n begins at `since_ms` + n * `width_ms`. `capped`: see RunPage. */
export interface RunTimes {
  since_ms: number
  width_ms: number
  counts: Record<string, number[]>
  capped: ('cancelled' | 'failed' | 'queued' | 'running' | 'succeeded' | 'waiting')[]
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
  made_by: string | null
  polls: boolean
  push: PushView | null
  fires: FireView[]
}

/** The schedules, by id. */
export interface ScheduleList {
  schedules: ScheduleView[]
}

/** The settings of a schedule. `version` defaults to the active one, `trigger` to the trigger of the workflow. */
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

/** Times are Unix milliseconds. `origin` is document if the block `trigger` of the workflow declares it.
 * `queued_at_ms`: a scheduled time that waits for an open run to end. `error`: why no run started at the last
 * scheduled time. `upcoming_ms`: the next five times, empty while disabled. `made_by`: who made or last changed it.
 * `polls`: at its times it looks for events, of which each starts a run; `error` is then why it cannot. `push`:
 * whether the service reports events by itself. */
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
  made_by: string | null
  polls: boolean
  push: PushView | null
}

/** `value`: from 0 to 1, null if there is no score, then `reason` is why. `output`: the beginning of the value as
 * JSON. `difference`: the first one between the expected value (`a`) and this. */
export interface Scored {
  value: number | null
  reason: string
  output: string
  difference: ValueDiff | null
}

/** `at`: the JSON pointer of the value in the output of the run. `expected`: of all rows; else that of the row, or
 * the recorded output. `contains`: the value as text has the expected text; `regex`: the expected pattern
 * (JavaScript) matches it. */
export interface Scorer {
  by?: 'contains' | 'judge' | 'regex' | 'same'
  at?: string
  expected?: Json
  judge?: Judge | null
}

/** `mode`: by meaning and words, or by one of the two; a search by words asks no model. */
export interface Search {
  query: string
  limit?: number
  mode?: 'hybrid' | 'text' | 'vector'
}

/** The best first. */
export interface SearchResults {
  results: Passage[]
}

export interface SecretDeleted {
  name: string
  deleted: boolean
}

/** The secrets, by name. Values never leave the server. */
export interface SecretList {
  secrets: SecretView[]
}

/** `hosts`: where the value may be sent to: names, `*.example.com`, perhaps with a port. Without hosts it can be
 * sent nowhere. `places`: where in a request it may stand: `header:NAME`, `query:NAME`, `path`, `body`. Without places
 * it may stand anywhere. */
export interface SecretSpec {
  value: string
  hosts?: string[]
  places?: string[]
}

/** Without its value, which no one can read. `readable`: this server has the key that it is encrypted with.
 * `places`: where in a request it may stand, empty for anywhere. `in_environment`: the server has an environment value
 * of the same name, which workflows read instead. */
export interface SecretView {
  name: string
  version: number
  hosts: string[]
  places: string[]
  created_by: string
  created_at_ms: number
  last_used_at_ms: number | null
  readable: boolean
  in_environment: boolean
}

/** The number of secrets that were encrypted with the present key, and of open waits with a new link. */
export interface SecretsResealed {
  resealed: number
  relinked: number
}

/** Counts of the whole database end at 100,000. They may be a second old. `runs_open` and `waits_open`: by status
 * and by kind. */
export interface ServerStats {
  at_ms: number
  runs_open: Record<string, number>
  queues: QueueStats[]
  timer_lag_ms: number
  schedule_lag_ms: number
  waits_open: Record<string, number>
  notifications_pending: number
  database_bytes: number
  workers: WorkerStats[]
  process: ProcessStats
}

/** A browser that is signed in. `id` is the beginning of its hash; `current`: the browser of this request; `device`:
 * its User-Agent when it signed in. */
export interface Session {
  id: string
  user: string
  created_at_ms: number
  seen_at_ms: number
  current: boolean
  device: string
}

/** Seen last first. */
export interface SessionList {
  sessions: Session[]
}

/** The number of sessions ended. */
export interface SessionsEnded {
  ended: number
}

/** `duration_ms`: from its first start to its end, or null. */
export interface ShortRun {
  id: string
  status: string
  created_at_ms: number
  duration_ms: number | null
}

/** `url`: where the person goes; `until_ms`: how long the answer of the provider counts. */
export interface SignIn {
  url: string
  redirect_uri: string
  until_ms: number
}

/** The parameters with which the provider sent the browser back. `iss`: the issuer of the provider. */
export interface SignInAnswer {
  state: string
  code?: string
  error?: string
  iss?: string
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

/** The signals in order of arrival, including those that a wait has received. */
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

/** `calls`: steps that used something. Tokens of caches are part of the input tokens, those of reasoning part of the
 * output tokens. `cost`: US dollars as decimal text, null if no price is known; `unpriced`: calls that it is without,
 * because their price is not known. */
export interface SpentView {
  key: string
  calls: number
  unpriced: number
  input_tokens: number
  cached_tokens: number
  cache_write_tokens: number
  output_tokens: number
  reasoning_tokens: number
  cost: string | null
}

/** A block that runs alone. `given`: outputs by block id, of the blocks that it reads; of a container around it, the
 * fields that its references read, such as {"index": 1, "item": "b"}. `variables`: in place of those of the draft. */
export interface Step {
  block: string
  given?: JsonObject
  variables?: JsonObject
}

/** Call `n` of `ctx.step` or `ctx.wait` in the handler of a node, as it last began; `times`: how often it began.
 * Event `finished_seq` has the output of one that succeeded. lost: it is unknown if it was done. `from_run`: it was
 * taken over, and that run has paid for it. */
export interface StepView {
  n: number
  kind: 'mark' | 'model' | 'step' | 'tool' | 'wait'
  name: string
  input_hash: string
  effect: 'none' | 'read' | 'write'
  attempt: number
  started_seq: number
  started_at_ms: number
  status: 'cancelled' | 'failed' | 'lost' | 'retrying' | 'running' | 'succeeded' | 'waiting'
  times?: number
  finished_seq?: number | null
  finished_at_ms?: number | null
  usage?: Record<string, number>
  cost?: number | null
  prices?: string
  error?: { code: string; message: string; retryable?: boolean; block?: string | null; hint?: string; traceback?: string; [other: string]: unknown } | null
  from_run?: string | null
  line?: number
  task?: number
  above?: number
  group?: string
  shown?: Json
  wait?: StepWait | null
  due_ms?: number | null
}

/** The wait that a step is, or by which a person is asked whether a lost one was done. `id`: only while it is
 * open. */
export interface StepWait {
  kind: 'approval' | 'attention' | 'child' | 'form' | 'signal' | 'timer' | 'webhook'
  id?: string | null
  title?: string
  due_ms?: number | null
  child?: string | null
}

/** One thing to do. `id` stays the same until it is done; `pointers` are the params that it fills in.
 *
 * connect   an account of a service, for all blocks of its type. `name`: the connection that the blocks name already,
 *           which is not there or not signed in
 * secret    store the secret `name`
 * model     give the blocks a model that the server can ask; `name` is its endpoint
 * python    build Python on the machine of the server
 * replace   a block or a tool that was not imported
 * choose    a value that the service lists: see `x-ui.choices` of the param
 * fill      another param that is required
 * triggers  publish the workflow: these blocks start runs from then on */
export interface Task {
  id: string
  kind: 'choose' | 'connect' | 'fill' | 'model' | 'python' | 'replace' | 'secret' | 'triggers'
  title: string
  blocks: string[]
  pointers?: string[]
  type?: string
  name?: string
  hint?: string
}

/** PUT /api/workflows/{name}/title. An empty text shows its name again. */
export interface TitleRequest {
  title: string
}

/** A token without its secret. `user`: whose it is, null when it was made with the server's token. Its role is never
 * more than that of its user. */
export interface Token {
  id: string
  prefix: string
  name: string
  user: string | null
  role: 'admin' | 'approver' | 'editor' | 'metrics' | 'viewer'
  workflows: string[] | null
  created_at_ms: number
  expires_at_ms: number
  used_at_ms: number | null
}

/** Oldest first, expired ones included. */
export interface TokenList {
  tokens: Token[]
}

/** `token` is shown this once. */
export interface TokenMade {
  id: string
  token: string
  expires_at_ms: number
}

/** POST /api/tokens. `workflows`: the only ones that it may reach; null for all. The role `metrics` reads /metrics
 * and nothing else. */
export interface TokenRequest {
  name: string
  role: 'admin' | 'approver' | 'editor' | 'metrics' | 'viewer'
  days?: number
  workflows?: string[] | null
}

export interface TokenRevoked {
  id: string
  revoked: true
}

/** A tool server as an agent names it (`mcp`), with `${NAME}` for secrets. `connection`: name of a stored one. */
export interface ToolServerAsked {
  url: string
  headers?: Record<string, string>
  connection?: string
}

/** In the order of the server. */
export interface ToolServerChecked {
  tools: OfferedTool[]
}

export interface TriggerDeleted {
  id: string
  deleted: boolean
}

/** `run` added it when it had its answer. `messages`: each has a role, `user` or `assistant`, and a text. */
export interface TurnView {
  run: string
  at_ms: number
  messages: JsonObject[]
}

/** The answer to request `id`, or null while there is none (`answered` is false). `run`: the one that answered it,
 * which may be one that continues the run that was asked. */
export interface UpdateAnswer {
  run: string
  name: string
  id: string
  answered: boolean
  answer: Json
}

/** POST /api/runs/{id}/updates/{name}. `id`: the same again is the same request; the Idempotency-Key header does the
 * same. */
export interface UpdateRequest {
  value?: Json
  id?: string | null
  by?: string | null
}

/** Usage of steps from one day to another, also in runs that were deleted since, and of evaluations. Days without
 * usage are left out; of workflows and models only the 1,000 with the highest cost are listed. `prices`: the price
 * lists by which costs are computed. */
export interface UsagePage {
  /** A day in UTC. */
  from: string
  /** A day in UTC. */
  to: string
  by: 'day' | 'model' | 'workflow'
  workflow: string | null
  currency: string
  prices: string[]
  total: SpentView
  items: SpentView[]
}

/** `total` has an empty key, the key of each of `items` is a day, a workflow or a model. `prices`: the price lists
 * by which `cost` was computed. */
export interface UsageView {
  total: SpentView
  items: SpentView[]
  prices: string[]
  currency: string
}

/** Cost, tokens and time of calls of models: those of the recording that stand, and those that were made, which
 * `calls` counts. `cost_usd` is null if a price is not known. */
export interface Used {
  cost_usd: number | null
  tokens: number
  ms: number
  calls: number
}

/** `seen_at_ms`: when one of their sessions was last used; `sessions`: those that are open. */
export interface User {
  id: string
  name: string
  role: 'admin' | 'approver' | 'editor' | 'viewer'
  created_at_ms: number
  sessions: number
  seen_at_ms: number | null
}

/** `role` is null when the user was removed; then `schedules` are those that they made, which stay active. */
export interface UserChanged {
  id: string
  role: 'admin' | 'approver' | 'editor' | 'viewer' | null
  schedules: string[]
}

/** The users, by id. */
export interface UserList {
  users: User[]
}

/** `valid`: no finding is an error. `tasks` are left before the workflow runs: accounts, choices, keys. */
export interface Validation {
  valid: boolean
  diagnostics: Diagnostic[]
  tasks: Task[]
}

/** `pointer` is a JSON pointer, "" for the whole value. `a` and `b` are the beginnings of the JSON values; null:
 * missing. */
export interface ValueDiff {
  pointer: string
  a: string | null
  b: string | null
}

/** `valid`: each row has the hash that follows from it and the one before, none is missing, and the last is the one
 * that was written last. `broken_at`: the number of the first row that is not as it was written. `hash`: of the last
 * row; keep it elsewhere to prove later that nothing before it was changed. */
export interface Verified {
  valid: boolean
  rows: number
  broken_at: number | null
  hash: string
}

/** `version`: of the installed package, or "unknown" if it is not installed. `signed_in`: the request came from a
 * browser with a session, which can sign out. `read_only`: every request that changes something is refused. */
export interface Version {
  version: string
  signed_in: boolean
  read_only: boolean
}

/** Newest first. `next`: pass it as `before` for the following page; null at the end. */
export interface VersionPage {
  name: string
  active: number
  versions: VersionRow[]
  next: number | null
}

/** POST /api/drafts/{id}/versions. `name` defaults to the name of the draft. `activate_triggers`: its schedules and
 * webhooks start runs even if it has blocks that were not imported. `replaces`: the active version of the workflow,
 * if the draft is not based on it; 0: none is active. */
export interface VersionRequest {
  name?: string | null
  activate_triggers?: boolean
  replaces?: number | null
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

/** The first node that leaves by another handle, and the names of the blocks that follow there. */
export interface Way {
  key: string
  block: string
  before: string[]
  now: string[]
}

/** `secret`: the key of signatures, or the bearer token; null when it is read from the environment or not required.
 * `deliveries`: the last 50, newest first. `refused`: by reason, including those before the last start of the
 * server. */
export interface WebhookDetail {
  id: string
  kind: 'chat' | 'form' | 'webhook'
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

/** The webhooks, by id. */
export interface WebhookList {
  webhooks: WebhookView[]
}

/** `secret`: the new one; the old one no longer works. */
export interface WebhookRotated {
  id: string
  secret: string
}

/** The settings of a webhook. `version` defaults to the active one, `trigger` to the trigger of the workflow. A
 * trigger of type `webhook` gets the whole request, other triggers get its body. */
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

/** Times are Unix milliseconds. `origin` is document if the block `trigger` of the workflow declares it. `problem`:
 * why requests cannot be accepted. `kind` is form or chat for a public page, whose address is `url`. */
export interface WebhookView {
  id: string
  kind: 'chat' | 'form' | 'webhook'
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

/** The reasons for the state of a node key: `state` and the unmet conditions in words. */
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

/** A process that holds a lease, and the runs that it executes. `lease_ms`: until its lease ends; negative: it has
 * ended. */
export interface WorkerStats {
  name: string
  runs: number
  lease_ms: number
}

/** The number of schedules and webhooks deleted with it. Its runs are kept. */
export interface WorkflowDeleted {
  name: string
  schedules: number
  webhooks: number
}

export interface WorkflowFolder {
  name: string
  folder: string
}

/** A workflow without a document. `version`, `hash` and `created_at_ms` are those of the active version; `newest` is
 * the highest version, `versions` their number. `changed_by` made it the active one, if that is known. `title`: shown
 * in place of its name, '' for the name. */
export interface WorkflowHead {
  name: string
  version: number
  hash: string
  created_at_ms: number
  activated_at_ms: number
  newest: number
  versions: number
  last_run: LastRun | null
  folder: string
  changed_by: string | null
  title: string
}

/** `version` of a workflow is the active one, which runs where no version is given. */
export interface WorkflowPage {
  workflows: WorkflowHead[]
}

export interface WorkflowTitle {
  name: string
  title: string
}

/** `active`: the version that runs where none is given; `newest`: the highest version. `hash` is of the
 * stored document, also if `document` is converted. */
export interface WorkflowVersion {
  name: string
  version: number
  hash: string
  created_at_ms: number
  active: number
  newest: number
  document: Json
}
