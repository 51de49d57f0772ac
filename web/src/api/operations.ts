// The routes of the server, made from openapi.json by `npm run types`: change the route table, not this file.

import type {
  ActivateRequest,
  AnswerRequest,
  AuditPage,
  Backtest,
  BacktestRequest,
  BlockList,
  CacheCleared,
  CallbackTaken,
  CancelRequest,
  Cancelled,
  CardPage,
  ChoiceList,
  ChoicesAsked,
  CollectionList,
  CollectionView,
  ConnectionAsked,
  ConnectionDeleted,
  ConnectionList,
  ConnectionSpec,
  ConnectionTest,
  ConnectionUses,
  ConnectionView,
  ConnectorDeleted,
  ConnectorDocument,
  ConnectorList,
  ConnectorView,
  Continuation,
  CronPreview,
  DocumentList,
  DocumentView,
  DraftAddress,
  DraftChange,
  DraftDeleted,
  DraftEvent,
  DraftFolder,
  DraftPage,
  DraftRequest,
  DraftRunAccepted,
  DraftSaved,
  DraftVersion,
  DraftView,
  EnvNames,
  EventPage,
  Examples,
  FolderRequest,
  ForkAccepted,
  ForkPreview,
  ForkRequest,
  GcAccepted,
  GcJob,
  GcRequest,
  Health,
  InputList,
  InviteRequest,
  Invited,
  KeepDropped,
  KeepRequest,
  KeptRuns,
  KeptView,
  KnowledgeDeleted,
  Lane,
  ListenRequest,
  Loom,
  Me,
  MemoryForgotten,
  MemoryList,
  MemoryTurns,
  MigrateAnswer,
  MigrateRequest,
  Models,
  NewCollection,
  NewDocument,
  NodeShown,
  OpenApiImport,
  OpenApiImported,
  PollRequest,
  PublicWait,
  QueryAnswer,
  QueryRequest,
  RerunManyRequest,
  RerunPreview,
  RerunRequest,
  RerunsAnswer,
  RetryAccepted,
  RetryRequest,
  RoleRequest,
  RunAccepted,
  RunDeleted,
  RunDetail,
  RunDiff,
  RunDocument,
  RunDocumentRequest,
  RunDraftRequest,
  RunGraph,
  RunPage,
  RunRequest,
  RunResult,
  RunState,
  RunTimes,
  RunWhy,
  SavedWorkflow,
  ScheduleDetail,
  ScheduleList,
  ScheduleSpec,
  Search,
  SearchResults,
  SecretDeleted,
  SecretList,
  SecretSpec,
  SecretView,
  SecretsResealed,
  ServerStats,
  SessionList,
  SessionsEnded,
  SignIn,
  SignInAnswer,
  SignInLink,
  SignalAccepted,
  SignalList,
  SignalRequest,
  TitleRequest,
  TokenList,
  TokenMade,
  TokenRequest,
  TokenRevoked,
  ToolServerAsked,
  ToolServerChecked,
  TriggerDeleted,
  UpdateAnswer,
  UpdateRequest,
  UsagePage,
  UserChanged,
  UserList,
  Validation,
  Verified,
  Version,
  VersionPage,
  VersionRequest,
  Wait,
  WaitPage,
  WebhookDetail,
  WebhookList,
  WebhookRotated,
  WebhookSpec,
  WithdrawRequest,
  WorkflowDeleted,
  WorkflowFolder,
  WorkflowPage,
  WorkflowTitle,
  WorkflowVersion,
  Json,
  JsonObject,
} from './schemas.js'

export interface Operations {
  /** Check a document without running it. */
  'POST /api/validate': {
    path: Record<never, never>
    query: { trigger?: string }
    body: JsonObject
    answer: Validation
  }
  /** Store a document as a version, and activate it. */
  'POST /api/workflows': {
    path: Record<never, never>
    query: { name?: string; activate_triggers?: '1' | 'true' | 'yes' | 'on' | '0' | 'false' | 'no' | 'off'; replaces?: number }
    body: JsonObject
    answer: SavedWorkflow
  }
  /** Workflows and their last runs. */
  'GET /api/workflows': {
    path: Record<never, never>
    query: Record<never, never>
    body: undefined
    answer: WorkflowPage
  }
  /** Its last runs in one picture. */
  'GET /api/workflows/{name}/loom': {
    path: { name: string }
    query: { since?: number; until?: number; limit?: number }
    body: undefined
    answer: Loom
  }
  /** Workflows as cards. */
  'GET /api/cards': {
    path: Record<never, never>
    query: { folder?: string; text?: string; order?: 'run' | 'changed' | 'name'; since?: number; after?: number; limit?: number }
    body: undefined
    answer: CardPage
  }
  /** A stored document. */
  'GET /api/workflows/{name}': {
    path: { name: string }
    query: { version?: number; converted?: '1' | 'true' | 'yes' | 'on' | '0' | 'false' | 'no' | 'off' }
    body: undefined
    answer: WorkflowVersion
  }
  /** Delete a workflow. */
  'DELETE /api/workflows/{name}': {
    path: { name: string }
    query: Record<never, never>
    body: undefined
    answer: WorkflowDeleted
  }
  /** The versions of a workflow, newest first. */
  'GET /api/workflows/{name}/versions': {
    path: { name: string }
    query: { before?: number; limit?: number }
    body: undefined
    answer: VersionPage
  }
  /** Make a version the active one. */
  'PUT /api/workflows/{name}/active': {
    path: { name: string }
    query: Record<never, never>
    body: ActivateRequest
    answer: SavedWorkflow
  }
  /** Rename a workflow. */
  'PUT /api/workflows/{name}/title': {
    path: { name: string }
    query: Record<never, never>
    body: TitleRequest
    answer: WorkflowTitle
  }
  /** Move a workflow to a folder. */
  'PUT /api/workflows/{name}/folder': {
    path: { name: string }
    query: Record<never, never>
    body: FolderRequest
    answer: WorkflowFolder
  }
  /** Inputs of the last runs. */
  'GET /api/workflows/{name}/inputs': {
    path: { name: string }
    query: Record<never, never>
    body: undefined
    answer: InputList
  }
  /** The block types, with the JSON Schema of their parameters. */
  'GET /api/blocks': {
    path: Record<never, never>
    query: Record<never, never>
    body: undefined
    answer: BlockList
  }
  /** List connectors that were added. */
  'GET /api/connectors': {
    path: Record<never, never>
    query: Record<never, never>
    body: undefined
    answer: ConnectorList
  }
  /** Read a connector document. */
  'GET /api/connectors/{service}': {
    path: { service: string }
    query: Record<never, never>
    body: undefined
    answer: ConnectorDocument
  }
  /** Add or replace a connector. */
  'PUT /api/connectors/{service}': {
    path: { service: string }
    query: Record<never, never>
    body: ConnectorDocument
    answer: ConnectorView
  }
  /** Delete a connector. */
  'DELETE /api/connectors/{service}': {
    path: { service: string }
    query: Record<never, never>
    body: undefined
    answer: ConnectorDeleted
  }
  /** Make a connector document of an OpenAPI description. */
  'POST /api/connectors/openapi': {
    path: Record<never, never>
    query: Record<never, never>
    body: OpenApiImport
    answer: OpenApiImported
  }
  /** List the choices of a field. */
  'POST /api/blocks/{type}/choices': {
    path: { type: string }
    query: Record<never, never>
    body: ChoicesAsked
    answer: ChoiceList
  }
  /** Create a draft. */
  'POST /api/drafts': {
    path: Record<never, never>
    query: Record<never, never>
    body: DraftRequest
    answer: DraftView
  }
  /** Drafts, without documents. */
  'GET /api/drafts': {
    path: Record<never, never>
    query: { before?: string; limit?: number }
    body: undefined
    answer: DraftPage
  }
  /** A draft. */
  'GET /api/drafts/{id}': {
    path: { id: string }
    query: Record<never, never>
    body: undefined
    answer: DraftView
  }
  /** Save the next revision of a draft. */
  'PUT /api/drafts/{id}': {
    path: { id: string }
    query: Record<never, never>
    body: DraftChange
    answer: DraftSaved
  }
  /** Delete a draft. */
  'DELETE /api/drafts/{id}': {
    path: { id: string }
    query: Record<never, never>
    body: undefined
    answer: DraftDeleted
  }
  /** Move a draft to a folder. */
  'PUT /api/drafts/{id}/folder': {
    path: { id: string }
    query: Record<never, never>
    body: FolderRequest
    answer: DraftFolder
  }
  /** Start a run of a draft. */
  'POST /api/drafts/{id}/run': {
    path: { id: string }
    query: { wait?: number; preview?: number }
    body: RunDraftRequest | undefined
    answer: DraftRunAccepted | RunResult
  }
  /** Store a draft as the next version of a workflow. */
  'POST /api/drafts/{id}/versions': {
    path: { id: string }
    query: Record<never, never>
    body: VersionRequest | undefined
    answer: DraftVersion
  }
  /** Inputs of the last runs. */
  'GET /api/drafts/{id}/inputs': {
    path: { id: string }
    query: Record<never, never>
    body: undefined
    answer: InputList
  }
  /** Start a run of a stored workflow. */
  'POST /api/workflows/{name}/runs': {
    path: { name: string }
    query: { wait?: number; preview?: number }
    body: RunRequest | undefined
    answer: RunAccepted | RunResult
  }
  /** Start a run of a document. */
  'POST /api/runs': {
    path: Record<never, never>
    query: { wait?: number; preview?: number }
    body: RunDocumentRequest
    answer: RunAccepted | RunResult
  }
  /** Runs, newest first. */
  'GET /api/runs': {
    path: Record<never, never>
    query: { workflow?: string; draft?: string; parent?: string; status?: 'queued' | 'running' | 'waiting' | 'succeeded' | 'failed' | 'cancelled'; since?: number; until?: number; text?: string; by?: string; key?: string; not_status?: 'queued' | 'running' | 'waiting' | 'succeeded' | 'failed' | 'cancelled'; not_workflow?: string; not_by?: string; not_text?: string; before?: string; limit?: number; counts?: '1' | 'true' | 'yes' | 'on' | '0' | 'false' | 'no' | 'off' }
    body: undefined
    answer: RunPage
  }
  /** A run with its nodes, waits and variables. */
  'GET /api/runs/{id}': {
    path: { id: string }
    query: { wait?: number }
    body: undefined
    answer: RunDetail
  }
  /** Delete a run that has ended. */
  'DELETE /api/runs/{id}': {
    path: { id: string }
    query: Record<never, never>
    body: undefined
    answer: RunDeleted
  }
  /** The document of a run. */
  'GET /api/runs/{id}/document': {
    path: { id: string }
    query: Record<never, never>
    body: undefined
    answer: RunDocument
  }
  /** Cancel a run. */
  'POST /api/runs/{id}/cancel': {
    path: { id: string }
    query: Record<never, never>
    body: CancelRequest | undefined
    answer: Cancelled
  }
  /** Fork a run at an event. */
  'POST /api/runs/{id}/fork': {
    path: { id: string }
    query: Record<never, never>
    body: ForkRequest | undefined
    answer: ForkAccepted
  }
  /** Preview a fork. */
  'GET /api/runs/{id}/fork': {
    path: { id: string }
    query: { seq?: number; node?: string; step?: number }
    body: undefined
    answer: ForkPreview
  }
  /** Run one node again. */
  'POST /api/runs/{id}/nodes/{key}/retry': {
    path: { id: string; key: string }
    query: Record<never, never>
    body: RetryRequest | undefined
    answer: RetryAccepted
  }
  /** Move an open run to another version. */
  'POST /api/runs/{id}/migrate': {
    path: { id: string }
    query: Record<never, never>
    body: MigrateRequest
    answer: MigrateAnswer
  }
  /** Preview a run from a block. */
  'GET /api/runs/{id}/rerun': {
    path: { id: string }
    query: { from?: string }
    body: undefined
    answer: RerunPreview
  }
  /** Run from a block, or continue with another version. */
  'POST /api/runs/{id}/rerun': {
    path: { id: string }
    query: { wait?: number; preview?: number }
    body: RerunRequest | undefined
    answer: RunAccepted | RunResult
  }
  /** Preview continuing with another version. */
  'GET /api/runs/{id}/continuation': {
    path: { id: string }
    query: { version?: string; draft?: string; from?: string }
    body: undefined
    answer: Continuation
  }
  /** Run many again, or preview that. */
  'POST /api/runs/rerun': {
    path: Record<never, never>
    query: Record<never, never>
    body: RerunManyRequest
    answer: RerunsAnswer
  }
  /** Events of a run: live stream, or history as JSON. */
  'GET /api/runs/{id}/events': {
    path: { id: string }
    query: { after?: number; limit?: number; node?: string; type?: string; since?: number; preview?: number }
    body: undefined
    answer: EventPage
  }
  /** The plan of a run with the state of its nodes and edges. */
  'GET /api/runs/{id}/graph': {
    path: { id: string }
    query: Record<never, never>
    body: undefined
    answer: RunGraph
  }
  /** Why nodes have their state. */
  'GET /api/runs/{id}/why': {
    path: { id: string }
    query: { node?: string; seq?: number }
    body: undefined
    answer: RunWhy
  }
  /** State of a run after an event. */
  'GET /api/runs/{id}/state': {
    path: { id: string }
    query: { seq?: number }
    body: undefined
    answer: RunState
  }
  /** The calls of a durable function. */
  'GET /api/runs/{id}/lane': {
    path: { id: string }
    query: { after?: number; before?: number }
    body: undefined
    answer: Lane
  }
  /** Compare two runs. */
  'GET /api/runs/{id}/diff/{other}': {
    path: { id: string; other: string }
    query: Record<never, never>
    body: undefined
    answer: RunDiff
  }
  /** Input and output of one node. */
  'GET /api/runs/{id}/nodes/{key}': {
    path: { id: string; key: string }
    query: { attempt?: number; seq?: number; only?: 'input' | 'output'; preview?: number }
    body: undefined
    answer: NodeShown | Json
  }
  /** The plan of a run. */
  'GET /api/runs/{id}/plan': {
    path: { id: string }
    query: { format?: 'text' | 'json' | 'dot' | 'mermaid'; expanded?: '1' | 'true' | 'yes' | 'on' | '0' | 'false' | 'no' | 'off' }
    body: undefined
    answer: JsonObject | string
  }
  /** The plan of a stored workflow. */
  'GET /api/workflows/{name}/plan': {
    path: { name: string }
    query: { format?: 'text' | 'json' | 'dot' | 'mermaid'; expanded?: '1' | 'true' | 'yes' | 'on' | '0' | 'false' | 'no' | 'off'; version?: number; trigger?: string }
    body: undefined
    answer: JsonObject | string
  }
  /** Keep a run as a test. */
  'POST /api/runs/{id}/keep': {
    path: { id: string }
    query: Record<never, never>
    body: KeepRequest | undefined
    answer: KeptView
  }
  /** Keep a run no longer. */
  'DELETE /api/runs/{id}/keep': {
    path: { id: string }
    query: Record<never, never>
    body: undefined
    answer: KeepDropped
  }
  /** Runs that are kept as tests. */
  'GET /api/workflows/{name}/kept': {
    path: { name: string }
    query: Record<never, never>
    body: undefined
    answer: KeptRuns
  }
  /** Replay recorded runs with a document. */
  'POST /api/workflows/{name}/backtest': {
    path: { name: string }
    query: Record<never, never>
    body: BacktestRequest | undefined
    answer: Backtest
  }
  /** Open waits, with links. */
  'GET /api/waits': {
    path: Record<never, never>
    query: { status?: 'pending' | 'answered' | 'cancelled' | 'expired' | 'all'; kind?: 'approval' | 'form' | 'timer' | 'signal' | 'webhook' | 'child' | 'attention'; workflow?: string; run?: string; before?: string; limit?: number; counts?: '1' | 'true' | 'yes' | 'on' | '0' | 'false' | 'no' | 'off' }
    body: undefined
    answer: WaitPage
  }
  /** A wait, by its id or the key of its node. */
  'GET /api/runs/{id}/waits/{key}': {
    path: { id: string; key: string }
    query: Record<never, never>
    body: undefined
    answer: Wait
  }
  /** Answer a wait. */
  'POST /api/runs/{id}/waits/{key}': {
    path: { id: string; key: string }
    query: Record<never, never>
    body: AnswerRequest | undefined
    answer: Wait
  }
  /** Withdraw a wait. */
  'DELETE /api/runs/{id}/waits/{key}': {
    path: { id: string; key: string }
    query: Record<never, never>
    body: WithdrawRequest | undefined
    answer: Wait
  }
  /** Signals sent to a run. */
  'GET /api/runs/{id}/signals': {
    path: { id: string }
    query: { name?: string; correlation?: string; received_after?: number; limit?: number }
    body: undefined
    answer: SignalList
  }
  /** Send a signal to a run. */
  'POST /api/runs/{id}/signals/{name}': {
    path: { id: string; name: string }
    query: Record<never, never>
    body: SignalRequest | undefined
    answer: SignalAccepted
  }
  /** Query the published state of a run. */
  'POST /api/runs/{id}/queries/{name}': {
    path: { id: string; name: string }
    query: Record<never, never>
    body: QueryRequest | undefined
    answer: QueryAnswer
  }
  /** Send an update to a run. */
  'POST /api/runs/{id}/updates/{name}': {
    path: { id: string; name: string }
    query: { wait?: number }
    body: UpdateRequest | undefined
    answer: UpdateAnswer
  }
  /** The request behind a resume link. */
  'GET /api/resume/{token}': {
    path: { token: string }
    query: Record<never, never>
    body: undefined
    answer: PublicWait
  }
  /** Answer a wait, once. */
  'POST /api/resume/{token}': {
    path: { token: string }
    query: Record<never, never>
    body: AnswerRequest | undefined
    answer: PublicWait
  }
  /** Answer a callback block, once. */
  'POST /callbacks/{token}': {
    path: { token: string }
    query: Record<never, never>
    body: Json | undefined
    answer: CallbackTaken
  }
  /** All schedules. */
  'GET /api/schedules': {
    path: Record<never, never>
    query: { workflow?: string }
    body: undefined
    answer: ScheduleList
  }
  /** A schedule and its last times. */
  'GET /api/schedules/{id}': {
    path: { id: string }
    query: Record<never, never>
    body: undefined
    answer: ScheduleDetail
  }
  /** Create or change a schedule. */
  'PUT /api/schedules/{id}': {
    path: { id: string }
    query: Record<never, never>
    body: ScheduleSpec
    answer: ScheduleDetail
  }
  /** Delete a schedule. */
  'DELETE /api/schedules/{id}': {
    path: { id: string }
    query: Record<never, never>
    body: undefined
    answer: TriggerDeleted
  }
  /** Enable a schedule. */
  'POST /api/schedules/{id}/enable': {
    path: { id: string }
    query: Record<never, never>
    body: undefined
    answer: ScheduleDetail
  }
  /** Disable a schedule. */
  'POST /api/schedules/{id}/disable': {
    path: { id: string }
    query: Record<never, never>
    body: undefined
    answer: ScheduleDetail
  }
  /** Start a run of a schedule now. */
  'POST /api/schedules/{id}/run': {
    path: { id: string }
    query: Record<never, never>
    body: undefined
    answer: RunAccepted
  }
  /** The next times of a cron expression. */
  'GET /api/cron': {
    path: Record<never, never>
    query: { expr: string; tz?: string }
    body: undefined
    answer: CronPreview
  }
  /** All webhooks. */
  'GET /api/webhooks': {
    path: Record<never, never>
    query: { workflow?: string }
    body: undefined
    answer: WebhookList
  }
  /** A webhook with its secret and its last deliveries. */
  'GET /api/webhooks/{id}': {
    path: { id: string }
    query: Record<never, never>
    body: undefined
    answer: WebhookDetail
  }
  /** Create or change a webhook. */
  'PUT /api/webhooks/{id}': {
    path: { id: string }
    query: Record<never, never>
    body: WebhookSpec
    answer: WebhookDetail
  }
  /** Delete a webhook. */
  'DELETE /api/webhooks/{id}': {
    path: { id: string }
    query: Record<never, never>
    body: undefined
    answer: TriggerDeleted
  }
  /** Enable a webhook. */
  'POST /api/webhooks/{id}/enable': {
    path: { id: string }
    query: Record<never, never>
    body: undefined
    answer: WebhookDetail
  }
  /** Disable a webhook. */
  'POST /api/webhooks/{id}/disable': {
    path: { id: string }
    query: Record<never, never>
    body: undefined
    answer: WebhookDetail
  }
  /** Replace the secret of a webhook. */
  'POST /api/webhooks/{id}/rotate': {
    path: { id: string }
    query: Record<never, never>
    body: undefined
    answer: WebhookRotated
  }
  /** Get a test address of a webhook. */
  'POST /api/drafts/{id}/listen': {
    path: { id: string }
    query: Record<never, never>
    body: ListenRequest
    answer: DraftAddress
  }
  /** Run a draft with an event of a source. */
  'POST /api/drafts/{id}/poll': {
    path: { id: string }
    query: Record<never, never>
    body: PollRequest
    answer: DraftEvent
  }
  /** List secrets. */
  'GET /api/secrets': {
    path: Record<never, never>
    query: Record<never, never>
    body: undefined
    answer: SecretList
  }
  /** Set a secret. */
  'PUT /api/secrets/{name}': {
    path: { name: string }
    query: Record<never, never>
    body: SecretSpec
    answer: SecretView
  }
  /** Delete a secret. */
  'DELETE /api/secrets/{name}': {
    path: { name: string }
    query: Record<never, never>
    body: undefined
    answer: SecretDeleted
  }
  /** Change to the present key. */
  'POST /api/secrets/rekey': {
    path: Record<never, never>
    query: { grace_s?: number }
    body: undefined
    answer: SecretsResealed
  }
  /** List what agents remember. */
  'GET /api/memory': {
    path: Record<never, never>
    query: { workflow?: string }
    body: undefined
    answer: MemoryList
  }
  /** Delete a conversation. */
  'DELETE /api/memory': {
    path: Record<never, never>
    query: { key?: string; workflow?: string; scope?: string }
    body: undefined
    answer: MemoryForgotten
  }
  /** Show a conversation. */
  'GET /api/memory/turns': {
    path: Record<never, never>
    query: { key?: string; workflow?: string; scope?: string }
    body: undefined
    answer: MemoryTurns
  }
  /** List collections. */
  'GET /api/knowledge': {
    path: Record<never, never>
    query: Record<never, never>
    body: undefined
    answer: CollectionList
  }
  /** Make a collection. */
  'POST /api/knowledge': {
    path: Record<never, never>
    query: Record<never, never>
    body: NewCollection
    answer: CollectionView
  }
  /** Read a collection. */
  'GET /api/knowledge/{collection}': {
    path: { collection: string }
    query: Record<never, never>
    body: undefined
    answer: CollectionView
  }
  /** Delete a collection. */
  'DELETE /api/knowledge/{collection}': {
    path: { collection: string }
    query: Record<never, never>
    body: undefined
    answer: KnowledgeDeleted
  }
  /** List the documents of a collection. */
  'GET /api/knowledge/{collection}/documents': {
    path: { collection: string }
    query: { name?: string; after?: string }
    body: undefined
    answer: DocumentList
  }
  /** Add a document, or a version of it. */
  'PUT /api/knowledge/{collection}/documents': {
    path: { collection: string }
    query: Record<never, never>
    body: NewDocument
    answer: DocumentView
  }
  /** Delete a document. */
  'DELETE /api/knowledge/{collection}/documents': {
    path: { collection: string }
    query: { name: string }
    body: undefined
    answer: KnowledgeDeleted
  }
  /** Search a collection. */
  'POST /api/knowledge/{collection}/search': {
    path: { collection: string }
    query: Record<never, never>
    body: Search
    answer: SearchResults
  }
  /** Tokens and costs. */
  'GET /api/usage': {
    path: Record<never, never>
    query: { from?: string; to?: string; workflow?: string; by?: 'day' | 'workflow' | 'model' }
    body: undefined
    answer: UsagePage
  }
  /** List language models. */
  'GET /api/models': {
    path: Record<never, never>
    query: Record<never, never>
    body: undefined
    answer: Models
  }
  /** Runs by time and status. */
  'GET /api/run-times': {
    path: Record<never, never>
    query: { since: number; until: number; parts?: number; workflow?: string }
    body: undefined
    answer: RunTimes
  }
  /** List connections. */
  'GET /api/connections': {
    path: Record<never, never>
    query: Record<never, never>
    body: undefined
    answer: ConnectionList
  }
  /** Add or replace a connection. */
  'PUT /api/connections/{name}': {
    path: { name: string }
    query: Record<never, never>
    body: ConnectionSpec
    answer: ConnectionView
  }
  /** Delete a connection. */
  'DELETE /api/connections/{name}': {
    path: { name: string }
    query: Record<never, never>
    body: undefined
    answer: ConnectionDeleted
  }
  /** List what uses a connection. */
  'GET /api/connections/{name}/uses': {
    path: { name: string }
    query: Record<never, never>
    body: undefined
    answer: ConnectionUses
  }
  /** Test a connection. */
  'POST /api/connections/{name}/test': {
    path: { name: string }
    query: Record<never, never>
    body: ConnectionAsked | undefined
    answer: ConnectionTest
  }
  /** Begin to sign in to a connection. */
  'POST /api/connections/{name}/connect': {
    path: { name: string }
    query: Record<never, never>
    body: undefined
    answer: SignIn
  }
  /** End a sign-in to a connection. */
  'POST /api/oauth/code': {
    path: Record<never, never>
    query: Record<never, never>
    body: SignInAnswer
    answer: ConnectionView
  }
  /** Health. */
  'GET /healthz': {
    path: Record<never, never>
    query: Record<never, never>
    body: undefined
    answer: Health
  }
  /** Readiness. */
  'GET /readyz': {
    path: Record<never, never>
    query: Record<never, never>
    body: undefined
    answer: Health
  }
  /** The OpenAPI description. */
  'GET /api/openapi.json': {
    path: Record<never, never>
    query: Record<never, never>
    body: undefined
    answer: JsonObject
  }
  /** Version of the server. */
  'GET /api/version': {
    path: Record<never, never>
    query: Record<never, never>
    body: undefined
    answer: Version
  }
  /** Example workflows. */
  'GET /api/examples': {
    path: Record<never, never>
    query: Record<never, never>
    body: undefined
    answer: Examples
  }
  /** Environment names and where they are used. */
  'GET /api/env': {
    path: Record<never, never>
    query: Record<never, never>
    body: undefined
    answer: EnvNames
  }
  /** Delete old runs. */
  'POST /api/upkeep/gc': {
    path: Record<never, never>
    query: Record<never, never>
    body: GcRequest | undefined
    answer: GcAccepted
  }
  /** A deletion of runs. */
  'GET /api/upkeep/gc/{id}': {
    path: { id: string }
    query: Record<never, never>
    body: undefined
    answer: GcJob
  }
  /** Delete cached results. */
  'DELETE /api/cache': {
    path: Record<never, never>
    query: { workflow?: string }
    body: undefined
    answer: CacheCleared
  }
  /** Metrics for Prometheus. */
  'GET /metrics': {
    path: Record<never, never>
    query: Record<never, never>
    body: undefined
    answer: string
  }
  /** What there is to do. */
  'GET /api/stats': {
    path: Record<never, never>
    query: Record<never, never>
    body: undefined
    answer: ServerStats
  }
  /** Who you are. */
  'GET /api/me': {
    path: Record<never, never>
    query: Record<never, never>
    body: undefined
    answer: Me
  }
  /** Users. */
  'GET /api/users': {
    path: Record<never, never>
    query: Record<never, never>
    body: undefined
    answer: UserList
  }
  /** Add a user. */
  'POST /api/users': {
    path: Record<never, never>
    query: Record<never, never>
    body: InviteRequest
    answer: Invited
  }
  /** Create a sign-in link for a user. */
  'POST /api/users/{id}/link': {
    path: { id: string }
    query: Record<never, never>
    body: undefined
    answer: Invited
  }
  /** Change the role of a user. */
  'PUT /api/users/{id}/role': {
    path: { id: string }
    query: Record<never, never>
    body: RoleRequest
    answer: UserChanged
  }
  /** Remove a user. */
  'DELETE /api/users/{id}': {
    path: { id: string }
    query: Record<never, never>
    body: undefined
    answer: UserChanged
  }
  /** Sign a user out. */
  'DELETE /api/users/{id}/sessions': {
    path: { id: string }
    query: Record<never, never>
    body: undefined
    answer: SessionsEnded
  }
  /** Open sessions. */
  'GET /api/sessions': {
    path: Record<never, never>
    query: Record<never, never>
    body: undefined
    answer: SessionList
  }
  /** Sign out all browsers. */
  'DELETE /api/sessions': {
    path: Record<never, never>
    query: Record<never, never>
    body: undefined
    answer: SessionsEnded
  }
  /** Your open sessions. */
  'GET /api/me/sessions': {
    path: Record<never, never>
    query: Record<never, never>
    body: undefined
    answer: SessionList
  }
  /** Sign out of all browsers. */
  'DELETE /api/me/sessions': {
    path: Record<never, never>
    query: Record<never, never>
    body: undefined
    answer: SessionsEnded
  }
  /** Sign one browser out. */
  'DELETE /api/sessions/{id}': {
    path: { id: string }
    query: Record<never, never>
    body: undefined
    answer: SessionsEnded
  }
  /** Sign out of one browser. */
  'DELETE /api/me/sessions/{id}': {
    path: { id: string }
    query: Record<never, never>
    body: undefined
    answer: SessionsEnded
  }
  /** Tokens. */
  'GET /api/tokens': {
    path: Record<never, never>
    query: Record<never, never>
    body: undefined
    answer: TokenList
  }
  /** Create a token. */
  'POST /api/tokens': {
    path: Record<never, never>
    query: Record<never, never>
    body: TokenRequest
    answer: TokenMade
  }
  /** Revoke a token. */
  'DELETE /api/tokens/{id}': {
    path: { id: string }
    query: Record<never, never>
    body: undefined
    answer: TokenRevoked
  }
  /** What was changed. */
  'GET /api/audit': {
    path: Record<never, never>
    query: { before?: number; limit?: number; actor?: string; text?: string; since?: number; until?: number }
    body: undefined
    answer: AuditPage
  }
  /** Check the audit. */
  'GET /api/audit/verification': {
    path: Record<never, never>
    query: Record<never, never>
    body: undefined
    answer: Verified
  }
  /** List the tools of an MCP server. */
  'POST /api/mcp/check': {
    path: Record<never, never>
    query: Record<never, never>
    body: ToolServerAsked
    answer: ToolServerChecked
  }
  /** Create a sign-in link. */
  'POST /api/sign-in-links': {
    path: Record<never, never>
    query: Record<never, never>
    body: undefined
    answer: SignInLink
  }
}

/** They make something, but one thing only however often they are sent with the same Idempotency-Key. */
export const KEYED: ReadonlySet<string> = new Set([
  'POST /api/drafts/{id}/run',
  'POST /api/workflows/{name}/runs',
  'POST /api/runs',
  'POST /api/runs/{id}/fork',
  'POST /api/runs/{id}/nodes/{key}/retry',
  'POST /api/runs/{id}/rerun',
  'POST /api/runs/rerun',
  'POST /api/runs/{id}/signals/{name}',
  'POST /api/runs/{id}/updates/{name}',
])
