"""The shapes that cross HTTP, made from openapi.json by `npm run types`: change the server's structs, not this file.

At run time these are plain dicts. A member is NotRequired where the server leaves it out of some answers, or where a
request may leave it out.
"""

# ruff: noqa: E501
# fmt: off

from __future__ import annotations

from typing import Any, Literal, NotRequired, TypedDict


class ActivateRequest(TypedDict):
    """PUT /api/workflows/{name}/active. `activate_triggers`: its schedules and webhooks start runs even if it has
    blocks that were not imported."""

    version: int
    activate_triggers: NotRequired[bool]


class AnswerRequest(TypedDict):
    """POST /resume/{token}. `by` is the name recorded with the answer."""

    action: NotRequired[str | None]
    fields: NotRequired[dict[str, Any]]
    by: NotRequired[str | None]


class AttemptView(TypedDict):
    """One attempt of a node key, or (end of a loop) one of its tests. Without an end it has none yet."""

    attempt: int
    status: Literal["cancelled", "failed", "needs_attention", "retrying", "running", "skipped", "succeeded", "waiting"]
    started_seq: NotRequired[int | None]
    started_at_ms: NotRequired[int | None]
    finished_seq: NotRequired[int | None]
    finished_at_ms: NotRequired[int | None]
    error: NotRequired[dict[str, Any] | None]


class AuditPage(TypedDict):
    """Newest first. `next`: pass it as `before`; null at the end."""

    rows: list[AuditRow]
    next: int | None


class AuditRow(TypedDict):
    """`hash` is of the row, and of the hash of the row before it."""

    n: int
    at_ms: int
    actor: str
    via: str
    action: str
    object: str
    detail: str
    hash: str


class BlockList(TypedDict):
    """The block types, by category and title."""

    blocks: list[BlockType]


class BlockStats(TypedDict):
    """Attempts of a block type that ended in this process, and the seconds that they took."""

    block: str
    attempts: int
    seconds: float


class BlockType(TypedDict):
    """A block type. `params` is the JSON Schema of its parameters, `output` that of its output, null if it depends
    on data. `handles`: the fixed exits. `runners`: the permitted values of `policy.runner`. `attempts` and
    `timeout_ms` are the defaults of `policy.retry.max_attempts` and `policy.timeout_s`. `sentence`: the
    description on a card, text with `{path}` for parameters."""

    type: str
    title: str
    description: str
    category: Literal["action", "annotation", "connector", "data", "flow", "people", "trigger"]
    params: dict[str, Any]
    handles: list[str]
    container: Literal["loop", "parallel"] | None
    trigger: bool
    output: dict[str, Any] | None
    effect: Literal["none", "read", "write"]
    runners: list[Literal["dask", "inline", "process"]]
    attempts: int
    timeout_ms: int
    sentence: str
    icon: str


class CacheCleared(TypedDict):
    """The number of deleted results."""

    cleared: int


class CallbackTaken(TypedDict):
    """POST /callbacks/{token}: the request was accepted as the answer."""

    accepted: bool
    received_at_ms: int


class CancelRequest(TypedDict):
    """POST /api/runs/{id}/cancel. `reason` is recorded in the journal. `now`: the run does not wait for its
    cleanups; a second request means the same."""

    reason: NotRequired[str]
    now: NotRequired[bool]


class Cancelled(TypedDict):
    """`status` is `cancelled` when the run has ended, otherwise `cancelling`: the request is stored and the run
    will process it before it ends."""

    run: str
    cancelled: bool
    status: Literal["cancelled", "cancelling"]


class CheckpointShown(TypedDict):
    """The last checkpoint that an attempt stored, its value cut to `preview` bytes."""

    attempt: int
    at_ms: int
    value: Any
    value_size: int
    value_truncated: bool
    value_preview: NotRequired[str]


class ChildView(TypedDict):
    """A run that attempt `attempt` of node key `key` started."""

    run: str
    workflow: str
    version: int | None
    status: Literal["cancelled", "failed", "queued", "running", "succeeded", "waiting"]
    key: str
    attempt: int
    created_at_ms: int
    finished_at_ms: int | None


class Collected(TypedDict):
    """The numbers of deleted rows or, with `dry_run`, of rows that would be deleted."""

    runs: int
    events: int
    plans: int
    documents: int
    blobs: int
    versions: int
    cached: int
    dry_run: bool


class ConnectionDeleted(TypedDict):
    name: str
    deleted: bool


class ConnectionList(TypedDict):
    """The connections, by name. Credentials never leave the server. `redirect_uri`: the address to register at
    OAuth providers; `providers`: well-known ones, with the settings that a connection to them begins with."""

    connections: list[ConnectionView]
    redirect_uri: str
    providers: list[KnownProvider]


class ConnectionSpec(TypedDict):
    """`hosts`: where it may be sent to. `secret`: the API key, the token, the password of `username`, or the secret
    of the OAuth client. `where`, `name` and `prefix`: where an API key goes. The rest is about an OAuth 2
    provider: `client_auth`: whether the client's secret goes in the body or in the header of a request for a
    token; `parameters`: more of them for `authorize_url`; `pkce`: false for a provider without it."""

    kind: Literal["api_key", "basic", "bearer", "oauth2_client", "oauth2_code"]
    hosts: list[str]
    secret: NotRequired[str]
    username: NotRequired[str]
    where: NotRequired[Literal["header", "query"]]
    name: NotRequired[str]
    prefix: NotRequired[str]
    authorize_url: NotRequired[str]
    token_url: NotRequired[str]
    client_id: NotRequired[str]
    scopes: NotRequired[str]
    issuer: NotRequired[str]
    client_auth: NotRequired[Literal["body", "header"]]
    parameters: NotRequired[dict[str, str]]
    pkce: NotRequired[bool]


class ConnectionUses(TypedDict):
    """The active versions and drafts that name it."""

    used_by: list[EnvUse]


class ConnectionView(TypedDict):
    """Without its values, which no one can read. `state` is sign_in if no one has signed in yet; sign_in_again if
    the provider no longer gives tokens, see `problem`; unreadable if this server does not have its key."""

    name: str
    kind: Literal["api_key", "basic", "bearer", "oauth2_client", "oauth2_code"] | None
    hosts: list[str]
    state: Literal["ready", "sign_in", "sign_in_again", "unreadable"]
    problem: str
    provider: str
    expires_at_ms: int | None
    created_by: str
    created_at_ms: int
    last_used_at_ms: int | None


class ConnectorDeleted(TypedDict):
    service: str
    deleted: bool


class ConnectorDocument(TypedDict):
    """docs/howto/connectors.md describes the document."""

    document: dict[str, Any]


class ConnectorList(TypedDict):
    """The connectors, by service."""

    connectors: list[ConnectorView]


class ConnectorView(TypedDict):
    """`type` is its block type, `operations` their number."""

    service: str
    type: str
    title: str
    operations: int
    created_by: str
    changed_at_ms: int


class CronPreview(TypedDict):
    """`upcoming_ms`: the next five times of the expression in that time zone."""

    expr: str
    tz: str
    upcoming_ms: list[int]


class DeliveryView(TypedDict):
    """`outcome`: started, or the error code. Refused deliveries: the last ones of this process, and the last one of
    each reason from earlier. `run` of a repeated delivery is the run that the first one started."""

    at_ms: int
    outcome: str
    delivery: str | None
    run: str | None


class Diagnostic(TypedDict):
    """One finding. `pointer` is an RFC 6901 JSON pointer into the submitted document."""

    code: str
    severity: Literal["error", "warning"]
    pointer: str
    message: str
    hint: NotRequired[str]
    block: NotRequired[str | None]
    field: NotRequired[str | None]


class Divergence(TypedDict):
    """The first events that differ. null: that journal has ended. `fields`: which of their fields differ."""

    a: EventHead | None
    b: EventHead | None
    fields: list[str]


class DraftChange(TypedDict):
    """PUT /api/drafts/{id}. Without `name`, the draft has the name in the document."""

    document: dict[str, Any]
    name: NotRequired[str | None]


class DraftDeleted(TypedDict):
    id: str
    deleted: bool


class DraftPage(TypedDict):
    """`next`: pass it as `before` for the following page; null at the end."""

    drafts: list[DraftSummary]
    next: str | None


class DraftRequest(TypedDict):
    """POST /api/drafts. `base_version`: the version of the workflow `name` that the document is a copy of."""

    document: dict[str, Any]
    name: NotRequired[str | None]
    base_version: NotRequired[int | None]


class DraftRunAccepted(TypedDict):
    """`rev`: the revision of the draft that runs."""

    run: str
    workflow: str
    version: int | None
    status: Literal["cancelled", "failed", "queued", "running", "succeeded", "waiting"]
    created: bool
    urls: RunUrls
    diagnostics: list[Diagnostic]
    draft: str
    rev: int


class DraftSaved(TypedDict):
    """`rev`: the revision to send in If-Match with the next change."""

    id: str
    name: str
    rev: int
    updated_at_ms: int
    diagnostics: list[Diagnostic]


class DraftSummary(TypedDict):
    """A draft without its document. Revision `base_rev` is version `base_version` of the workflow `base_name`; all
    three are null until it is stored as a version. `last_run`: the run of the draft created last."""

    id: str
    name: str
    rev: int
    base_name: str | None
    base_version: int | None
    base_rev: int | None
    created_at_ms: int
    updated_at_ms: int
    last_run: LastRun | None


class DraftVersion(TypedDict):
    """`rev`: the revision of the draft that is this version."""

    name: str
    version: int
    hash: str
    created: bool
    diagnostics: list[Diagnostic]
    activated: bool
    replaced: int | None
    draft: str
    rev: int


class DraftView(TypedDict):
    """A draft and its diagnostics. Times are Unix milliseconds. See DraftHead for its base."""

    id: str
    name: str
    document: Any
    rev: int
    base_name: str | None
    base_version: int | None
    base_rev: int | None
    created_at_ms: int
    updated_at_ms: int
    diagnostics: list[Diagnostic]


class DueRetry(TypedDict):
    """Attempt `attempt` can start at `due_ms`."""

    key: str
    attempt: int
    due_ms: int


class Echo(TypedDict):
    """The request. `call`: its number among those with the same key."""

    method: str
    query: dict[str, str]
    headers: dict[str, str]
    body: Any
    call: int


class EnvName(TypedDict):
    """`set`: it has a value on this server. `secret`: the value is redacted in everything that is recorded or
    shown."""

    name: str
    set: bool
    secret: bool
    used_by: list[EnvUse]


class EnvNames(TypedDict):
    """The environment values, by name. The values themselves never leave the server."""

    env: list[EnvName]


class EnvUse(TypedDict):
    """A document that reads a name. `id`: of the draft, or the workflow's name; `version` of the workflow (the
    active one), or `rev` of the draft; `blocks` the ids of the blocks that read it."""

    kind: Literal["draft", "workflow"]
    id: str
    name: str
    blocks: list[str]
    version: int | None
    rev: int | None


class EventHead(TypedDict):
    """`data` without fields that differ between any two runs; `output` is the beginning of its JSON."""

    seq: int
    type: str
    key: str | None
    attempt: int
    data: dict[str, Any]
    output: str | None


class EventOnWire(TypedDict):
    """One event of a run, over SSE and in JSON. `key` is the node with its iteration and branch,
    `send@review#5/fan[2]`; `path` is the part after `@`; `block` is the block of the node. `data.output` has the
    output of the node, if any."""

    run: str
    seq: int
    at_ms: int
    type: str
    node: str | None
    block: str | None
    path: str
    key: str | None
    attempt: int
    data: dict[str, Any]


class EventPage(TypedDict):
    """`count`: all events that match the filters. `next`: pass it as `after` for the next page; null at the end."""

    events: list[EventOnWire]
    count: int
    next: int | None


class Example(TypedDict):
    """A workflow that comes with weft; `name` is that of its file."""

    name: str
    title: str
    description: str
    document: dict[str, Any]


class Examples(TypedDict):
    """The examples, in the order of a tour."""

    examples: list[Example]


class FileValue(TypedDict):
    """A file as inputs, answers and outputs name it. In requests only `type` and `id` count. `proof`: proof that a
    token for some workflows has uploaded the file."""

    type: Literal["file"]
    id: str
    name: str
    media_type: str
    size: int
    proof: NotRequired[str]


class FireView(TypedDict):
    """The outcome at `at_ms` of the scheduled time `due_ms`."""

    due_ms: int
    at_ms: int
    outcome: Literal["failed", "missed", "queued", "skipped", "started"]
    run: str | None
    error: str | None


class ForkAccepted(TypedDict):
    """`seq`: the number of events copied from `source`."""

    run: str
    workflow: str
    version: int | None
    status: Literal["cancelled", "failed", "queued", "running", "succeeded", "waiting"]
    created: bool
    urls: RunUrls
    diagnostics: list[Diagnostic]
    source: str
    seq: int


class ForkRequest(TypedDict):
    """POST /api/runs/{id}/fork. `outputs`: by node key, in place of the recorded ones."""

    seq: int
    outputs: NotRequired[dict[str, Any]]


class GcAccepted(TypedDict):
    """`created` is false if a deletion was in progress already: then `job` is that one, with its own age and
    `keep`."""

    created: bool
    job: GcJob


class GcJob(TypedDict):
    """A deletion of ended runs. `counts`: so far, or in all; with `dry_run`, what would be deleted. `older_than_s`
    is None for no run, except those of workflows with a rule of their own. `state` interrupted: its process has
    ended; its deletions stay, and the same request does the rest."""

    dry_run: bool
    older_than_s: float | None
    keep: int
    began_at_ms: int
    updated_at_ms: int
    id: str
    state: Literal["done", "failed", "interrupted", "running"]
    counts: Collected
    error: str | None


class GcRequest(TypedDict):
    """POST /api/upkeep/gc. Deletes runs that ended more than `older_than_s` ago, except the `keep` newest of each
    workflow. With `keep` alone, all other ended runs are deleted; with neither, none."""

    older_than_s: NotRequired[float | None]
    keep: NotRequired[int]
    dry_run: NotRequired[bool]


class GraphEdge(TypedDict):
    """`state`: pending, live, dead (in any scope: counts)."""

    source: str
    target: str
    handle: str
    state: str
    counts: NotRequired[dict[str, int]]


class GraphNode(TypedDict):
    """`state`: pending, running, retrying, waiting, needs_attention, succeeded, failed, skipped, cancelled (worst
    of its scopes, with counts)."""

    id: str
    block: str
    type: str
    name: str
    region: str
    state: str
    counts: NotRequired[dict[str, int]]
    sentinel: NotRequired[str | None]


class Health(TypedDict):
    """The database works."""

    status: Literal["ok"]


class HookStarted(TypedDict):
    """202: the run is stored. `status_url` requires the token of the server, if it has one."""

    run: str
    status: str
    delivery: str
    status_url: str


class InputList(TypedDict):
    """Inputs of runs, newest first."""

    inputs: list[Any]


class InviteRequest(TypedDict):
    """POST /api/users."""

    id: str
    role: Literal["admin", "approver", "editor", "viewer"]
    name: NotRequired[str]


class Invited(TypedDict):
    """`url` signs in one browser as this user, once, within `expires_in_s` seconds."""

    id: str
    url: str
    expires_in_s: int


class KnownProvider(TypedDict):
    """The defaults of a connection of kind `oauth2_code`. `scopes`: a first choice, as the provider separates them;
    `hosts`: those of its API; `docs`: its page about registering a client."""

    id: str
    title: str
    authorize_url: str
    token_url: str
    hosts: list[str]
    docs: str
    scopes: str
    issuer: str
    client_auth: Literal["body", "header"]
    pkce: bool
    parameters: dict[str, str]


class LastRun(TypedDict):
    """The run of a workflow that was created last."""

    id: str
    version: int | None
    status: Literal["cancelled", "failed", "queued", "running", "succeeded", "waiting"]
    created_at_ms: int
    finished_at_ms: int | None


class McpAnswer(TypedDict):
    """An answer: either `result` or `error`."""

    jsonrpc: str
    id: str | int
    result: NotRequired[dict[str, Any]]
    error: NotRequired[McpError]


class McpError(TypedDict):
    """Codes are those of JSON-RPC: -32601 for an unknown method, -32602 for wrong parameters."""

    code: int
    message: str


class McpMessage(TypedDict):
    """A request, or a notification: it has no `id`. Answers of a client have no `method`; nothing asks for them."""

    jsonrpc: Literal["2.0"]
    method: NotRequired[str | None]
    id: NotRequired[str | int | None]
    params: NotRequired[dict[str, Any] | None]


class Me(TypedDict):
    """The present user or token. `user` is null for the server's token and for tokens made with it; `workflows`:
    the only ones that a token may reach, null for all."""

    actor: str
    via: str
    role: Literal["admin", "approver", "editor", "metrics", "viewer"]
    user: str | None
    name: str
    workflows: list[str] | None


class MemoryForgotten(TypedDict):
    """The number of deleted turns."""

    deleted: int


class MemoryHead(TypedDict):
    """A conversation: how many turns it has and how long they are, and when the last one ended."""

    workflow: str
    scope: str
    key: str
    turns: int
    bytes: int
    last_at_ms: int


class MemoryList(TypedDict):
    """The latest first, at most 200."""

    conversations: list[MemoryHead]


class MemoryTurns(TypedDict):
    """In their order."""

    turns: list[TurnView]


class MigrateAnswer(TypedDict):
    """`moved` is false if the worker of the run has not responded yet; GET /api/runs/{id} has the current version."""

    run: str
    version: int
    plan_hash: str
    moved: bool


class MigrateRequest(TypedDict):
    """POST /api/runs/{id}/migrate. `version` of the same workflow."""

    version: int


class NodeDiff(TypedDict):
    """`output` has at most VALUES_MAX differences; `more`: there are others."""

    key: str
    a: NodeHead
    b: NodeHead
    output: list[ValueDiff]
    more: bool


class NodeHead(TypedDict):
    status: str
    attempt: int
    route: str | None
    error: str | None


class NodeShown(TypedDict):
    """One attempt of a node: its resolved parameters and its output, after event `seq`. Sizes are in bytes of JSON."""

    run: str
    key: str
    node: str
    block: str
    name: str
    type: str
    path: str
    seq: int
    status: Literal["cancelled", "failed", "needs_attention", "retrying", "running", "skipped", "succeeded", "waiting"] | Literal["pending"]
    attempt: int
    attempts: list[AttemptView]
    input: Any
    input_error: dict[str, Any] | None
    output: Any
    error: dict[str, Any] | None
    route: str | None
    reason: str | None
    because: str | None
    reused: bool
    checkpoint: CheckpointShown | None
    steps: list[StepView]
    input_size: int | None
    input_truncated: bool
    output_size: int | None
    output_truncated: bool
    input_preview: NotRequired[str]
    output_preview: NotRequired[str]


class NodeView(TypedDict):
    """One node key of a run that has started, waits or was skipped. needs_attention: an attempt was lost, and a
    wait asks how to continue. `lost`: attempts that ended with their process. `cached`: the output comes from
    the cache. `child`: the run that its last attempt started. `output_truncated`: the view has no room for its
    output, which has `output_size` bytes; NodeDetail has it. `steps`: how many its handler began; `usage`,
    `cost` (US dollars): of all of them; `unpriced`: how many of them used something whose price is not known,
    and is not in `cost`."""

    key: str
    node: str
    block: str
    path: str
    status: Literal["cancelled", "failed", "needs_attention", "retrying", "running", "skipped", "succeeded", "waiting"]
    attempt: int
    started_at_ms: NotRequired[int | None]
    finished_at_ms: NotRequired[int | None]
    route: NotRequired[str | None]
    reason: NotRequired[str | None]
    error: NotRequired[dict[str, Any] | None]
    output: NotRequired[Any]
    lost: NotRequired[int]
    cached: NotRequired[bool]
    child: NotRequired[str | None]
    output_size: NotRequired[int | None]
    output_truncated: NotRequired[bool]
    steps: NotRequired[int]
    usage: NotRequired[dict[str, int] | None]
    cost: NotRequired[float | None]
    unpriced: NotRequired[int]


class NotificationView(TypedDict):
    """One message about a wait. `to`: addresses, or the server a request is sent to; `error`: why it could not be
    sent (so far, while it is pending); `due_at_ms`: when a pending message is tried next."""

    channel: str
    to: str
    status: str
    attempts: int
    due_at_ms: NotRequired[int | None]
    settled_at_ms: NotRequired[int | None]
    error: NotRequired[str | None]


class Offered(TypedDict):
    """One operation of a description. `problem`: why it cannot be used."""

    id: str
    method: str
    path: str
    title: str
    tag: str | None
    problem: str | None


class OfferedTool(TypedDict):
    """A tool as the server describes it. `reads`: by its description the tool changes nothing."""

    name: str
    description: str
    reads: bool


class OpenApiImport(TypedDict):
    """POST /api/connectors/openapi. `operations`: ids of the chosen ones; without any, they are only listed.
    `base_url`: the address of the service, if it is not in the description."""

    description: dict[str, Any]
    operations: NotRequired[list[str]]
    service: NotRequired[str | None]
    base_url: NotRequired[str | None]


class OpenApiImported(TypedDict):
    """`connector`: the document, null when no operation was chosen."""

    operations: list[Offered]
    connector: dict[str, Any] | None


class OpenContainer(TypedDict):
    """A loop or parallel that has started and not ended. Of `count` iterations or branches (for a loop: known so
    far) `opened` have started and `closed` have ended."""

    key: str
    kind: str
    count: int
    opened: int
    closed: int


class OpenScope(TypedDict):
    """An open iteration or branch; "" is the whole run. `undecided` nodes have no result yet; `dead`: it was
    stopped, and only running blocks finish."""

    path: str
    undecided: int
    dead: bool


class OpenWait(TypedDict):
    """An open wait. `due_ms`: when it ends (timer) or expires; null if it does not expire."""

    key: str
    attempt: int
    kind: str
    due_ms: int | None
    on_expire: str


class ParentView(TypedDict):
    """The run that started a run, and the node key there that waits for its end."""

    run: str
    key: str


class Problem(TypedDict):
    """A refusal, RFC 9457. More members by code."""

    type: str
    title: str
    status: int
    code: str
    detail: str
    pointer: NotRequired[str]
    hint: NotRequired[str]
    diagnostics: NotRequired[list[Diagnostic]]


class ProcessStats(TypedDict):
    """Counts of the process that answers, since its start. Other processes on the database have their own, see
    `/metrics`. `blocks`: those that took most time first, at most 50."""

    worker: str
    runs_active: int
    attempts_active: int
    runs_started: int
    runs_ended: dict[str, int]
    commits: int
    changes: int
    write_retries: int
    event_streams: int
    event_loop_lag_ms: float
    blocks: list[BlockStats]


class PublicWait(TypedDict):
    """A wait as it is shown to the holder of its link. `label` is the name of the block; `age_s` is in seconds
    since it opened."""

    run: str
    workflow: str
    id: str
    key: str
    block: str
    label: str
    kind: Literal["approval", "attention", "child", "form", "signal", "timer", "webhook"]
    status: Literal["answered", "cancelled", "expired", "pending"]
    request: Any
    schema: Any
    actions: list[str]
    opened_at_ms: int
    expires_at_ms: int | None
    age_s: float
    title: str
    run_status: Literal["cancelled", "failed", "queued", "running", "succeeded", "waiting"]
    name: str | None
    correlation: str | None
    response: Any
    answered_by: str | None
    answered_at_ms: int | None


class QueueStats(TypedDict):
    """Runs of a pool that wait for a worker; `oldest_ms`: for how long the first of them has."""

    pool: str
    runs: int
    oldest_ms: int


class RefusalView(TypedDict):
    """The number of requests refused for this reason. `delivery` and `run` are those of the last one."""

    outcome: str
    count: int
    first_at_ms: int
    last_at_ms: int
    delivery: str | None
    run: str | None


# Ids of blocks, including those inside containers: `reused` keep their outputs, `again` can run, `skipped`
# stay skipped.
RerunPreview = TypedDict(
    "RerunPreview",
    {
        "run": str,
        "from": str,
        "reused": list[str],
        "again": list[str],
        "skipped": list[str],
    },
)


# POST /api/runs/{id}/rerun. Without `from`, everything runs again. `input` defaults to the input of that run.
RerunRequest = TypedDict(
    "RerunRequest",
    {
        "from": NotRequired[str | None],
        "input": NotRequired[Any],
    },
)


class RetryAccepted(TypedDict):
    """`how` "now": the run is `source` itself, and its next attempt begins at once. Else it is a new one:
    "from_block" and "from_node": `block` and what follows it run again; "whole_container": `block` is the
    container around the node, and runs again as a whole."""

    run: str
    workflow: str
    version: int | None
    status: Literal["cancelled", "failed", "queued", "running", "succeeded", "waiting"]
    created: bool
    urls: RunUrls
    diagnostics: list[Diagnostic]
    source: str
    how: Literal["from_block", "from_node", "now", "whole_container"]
    block: str


class RetryRequest(TypedDict):
    """POST /api/runs/{id}/nodes/{key}/retry takes no fields."""


class RoleRequest(TypedDict):
    """PUT /api/users/{id}/role."""

    role: Literal["admin", "approver", "editor", "viewer"]


class RunAccepted(TypedDict):
    """`created` is false if the idempotency key was used before; the run is then the one created with it."""

    run: str
    workflow: str
    version: int | None
    status: Literal["cancelled", "failed", "queued", "running", "succeeded", "waiting"]
    created: bool
    urls: RunUrls
    diagnostics: list[Diagnostic]


class RunCounts(TypedDict):
    """The number of runs by status."""

    queued: int
    running: int
    waiting: int
    succeeded: int
    failed: int
    cancelled: int


class RunDeleted(TypedDict):
    """`runs`: the number of deleted runs, including those that the run started."""

    run: str
    runs: int


class RunDetail(TypedDict):
    """`status`: queued, running, waiting, succeeded, failed, cancelled. `output`, `response`: after it has
    finished. `failed_nodes`: keys of those in `nodes` that failed; in a run that succeeded, their errors were
    handled. `children`: newest first. `child_waits`: open waits of runs below it, each with the id of its run;
    `children_active`: runs below it that are running or due. `unread`: answers, signals, results of child runs
    and requests that a waiting run has received but not processed. `by`: who started it, such as `user:ada`,
    `token:ID` or `server-token`; null for triggers, child runs and servers without a token. `stale`: its worker
    stopped responding, and no other one has continued the run yet; `stale_since_ms`: when the lease of that
    worker lapsed. `lacks`: the function or block type that the run waits for, as the process that answers does
    not have it."""

    id: str
    workflow: str
    version: int | None
    status: Literal["cancelled", "failed", "queued", "running", "succeeded", "waiting"]
    input: Any
    output: Any
    error: dict[str, Any] | None
    seq: int
    created_at_ms: int
    started_at_ms: int | None
    finished_at_ms: int | None
    response: dict[str, Any] | None
    variables: dict[str, Any]
    nodes: list[NodeView]
    failed_nodes: list[str]
    waits: list[WaitView]
    draft_id: str | None
    draft_rev: int | None
    parent: ParentView | None
    children: list[ChildView]
    child_waits: list[WaitView]
    children_active: int
    unread: int
    usage: UsageView | None
    by: str | None
    continues: str | None
    continued_as: str | None
    stale: bool
    stale_since_ms: int | None
    lacks: str | None
    urls: RunUrls


class RunDiff(TypedDict):
    """`same`: only times and ids differ. `nodes`, `only_a`, `only_b` have at most NODES_MAX entries each;
    `differing` is the total number."""

    a: RunHead
    b: RunHead
    same: bool
    same_plan: bool
    diverged: Divergence | None
    nodes: list[NodeDiff]
    only_a: list[str]
    only_b: list[str]
    equal: int
    differing: int
    input: list[ValueDiff]
    output: list[ValueDiff]


class RunDocument(TypedDict):
    """The document of a run, in weft format (`imported`: its format before). It is `version` of the stored
    workflow, or revision `draft_rev` of a draft, or neither if it was sent with the run."""

    run: str
    workflow: str
    version: int | None
    hash: str
    draft_id: str | None
    draft_rev: int | None
    imported: str | None
    document: dict[str, Any]


class RunDocumentRequest(TypedDict):
    """POST /api/runs: run a document without storing it. `priority`: in place of that of the workflow."""

    document: dict[str, Any]
    input: NotRequired[Any]
    trigger: NotRequired[str | None]
    stop_after: NotRequired[str | None]
    priority: NotRequired[int | None]


class RunDraftRequest(TypedDict):
    """POST /api/drafts/{id}/runs. `stop_after`: id of the last block to run."""

    input: NotRequired[Any]
    trigger: NotRequired[str | None]
    stop_after: NotRequired[str | None]


class RunGraph(TypedDict):
    """The nodes and edges of a run's plan with their state."""

    run: str
    plan_hash: str
    nodes: list[GraphNode]
    edges: list[GraphEdge]


class RunHead(TypedDict):
    run: str
    workflow: str
    version: int | None
    status: str
    seq: int


class RunPage(TypedDict):
    """`next`: pass it as `before` for the following page; null at the end. `counts`: null with `counts=0`.
    `capped`: statuses of which there are at least 100,000 runs; they are not counted further."""

    runs: list[RunSummary]
    next: str | None
    counts: RunCounts | None
    capped: list[Literal["cancelled", "failed", "queued", "running", "succeeded", "waiting"]]


class RunRequest(TypedDict):
    """POST /api/workflows/{name}/runs. `priority`: in place of that of the workflow."""

    input: NotRequired[Any]
    trigger: NotRequired[str | None]
    version: NotRequired[int | None]
    stop_after: NotRequired[str | None]
    priority: NotRequired[int | None]


class RunResult(TypedDict):
    """Response to `?wait=`: the run has ended, or is open (status code 202). `waits`: the open waits of the run and
    of runs below it, each with the `link` that answers it."""

    run: str
    workflow: str
    status: Literal["cancelled", "failed", "queued", "running", "succeeded", "waiting"]
    output: Any
    error: dict[str, Any] | None
    urls: RunUrls
    waits: list[WaitView]


class RunState(TypedDict):
    """`seq`, `at_ms`: of the event; the journal continues to `last_seq`. `status` as in RunView; `phase`: running,
    stopping, failing, cancelling, ending (its cleanups run) or finished. `nodes` have no outputs; `ready` nodes
    start next, in this order; `due_ms` is the earliest timer."""

    run: str
    workflow: str
    version: int | None
    seq: int
    last_seq: int
    at_ms: int
    status: str
    phase: str
    error: dict[str, Any] | None
    nodes: list[NodeView]
    waits: list[OpenWait]
    retries: list[DueRetry]
    ready: list[str]
    scopes: list[OpenScope]
    containers: list[OpenContainer]
    variables: dict[str, Any]
    due_ms: int | None


class RunSummary(TypedDict):
    """A run in a list, without its nodes and variables. `input_summary`: the beginning of the input as JSON text;
    `duration_ms`: from its first start to its end, null before that. `stale`, `stale_since_ms`, `lacks`: as in
    RunDetail."""

    id: str
    workflow: str
    version: int | None
    status: Literal["cancelled", "failed", "queued", "running", "succeeded", "waiting"]
    error: dict[str, Any] | None
    seq: int
    created_at_ms: int
    started_at_ms: int | None
    finished_at_ms: int | None
    parent_run_id: str | None
    input_summary: str
    duration_ms: int | None
    draft_id: str | None
    draft_rev: int | None
    stale: bool
    stale_since_ms: int | None
    lacks: str | None


class RunUrls(TypedDict):
    """Paths on this server, beginning with a slash."""

    self: str
    events: str
    graph: str
    why: str
    plan: str
    cancel: str
    page: str
    document: str
    nodes: str
    rerun: str


class RunWhy(TypedDict):
    """For each node, its state and why it is in it."""

    run: str
    why: list[Why]


class SavedWorkflow(TypedDict):
    """The active version. `created`: it is new. `activated`: it was not active before; `replaced` is the version
    that was."""

    name: str
    version: int
    hash: str
    created: bool
    diagnostics: list[Diagnostic]
    activated: bool
    replaced: int | None


class ScheduleDetail(TypedDict):
    """`fires`: the last 50 scheduled times, newest first."""

    id: str
    workflow: str
    version: int | None
    trigger: str | None
    cron: str
    tz: str
    input: Any
    enabled: bool
    overlap: Literal["allow", "queue", "skip"]
    catch_up: Literal["all", "none", "one"]
    origin: str
    next_run_at_ms: int | None
    queued_at_ms: int | None
    last_run_at_ms: int | None
    last_run_id: str | None
    error: str | None
    created_at_ms: int
    updated_at_ms: int
    upcoming_ms: list[int]
    made_by: str | None
    fires: list[FireView]


class ScheduleList(TypedDict):
    """The schedules, by id."""

    schedules: list[ScheduleView]


class ScheduleSpec(TypedDict):
    """The settings of a schedule. `version` defaults to the active one, `trigger` to the trigger of the workflow."""

    workflow: str
    cron: str
    tz: NotRequired[str]
    version: NotRequired[int | None]
    trigger: NotRequired[str | None]
    input: NotRequired[dict[str, Any]]
    enabled: NotRequired[bool]
    overlap: NotRequired[Literal["allow", "queue", "skip"]]
    catch_up: NotRequired[Literal["all", "none", "one"]]


class ScheduleView(TypedDict):
    """Times are Unix milliseconds. `origin` is document if the block `trigger` of the workflow declares it.
    `queued_at_ms`: a scheduled time that waits for an open run to end. `error`: why no run started at the last
    scheduled time. `upcoming_ms`: the next five times, empty while disabled. `made_by`: who made or last changed
    it."""

    id: str
    workflow: str
    version: int | None
    trigger: str | None
    cron: str
    tz: str
    input: Any
    enabled: bool
    overlap: Literal["allow", "queue", "skip"]
    catch_up: Literal["all", "none", "one"]
    origin: str
    next_run_at_ms: int | None
    queued_at_ms: int | None
    last_run_at_ms: int | None
    last_run_id: str | None
    error: str | None
    created_at_ms: int
    updated_at_ms: int
    upcoming_ms: list[int]
    made_by: str | None


class SecretDeleted(TypedDict):
    name: str
    deleted: bool


class SecretList(TypedDict):
    """The secrets, by name. Values never leave the server."""

    secrets: list[SecretView]


class SecretSpec(TypedDict):
    """`hosts`: where the value may be sent to: names, `*.example.com`, perhaps with a port. Without hosts it can be
    sent nowhere. `places`: where in a request it may stand: `header:NAME`, `query:NAME`, `path`, `body`. Without
    places it may stand anywhere."""

    value: str
    hosts: NotRequired[list[str]]
    places: NotRequired[list[str]]


class SecretView(TypedDict):
    """Without its value, which no one can read. `readable`: this server has the key that it is encrypted with.
    `places`: where in a request it may stand, empty for anywhere. `in_environment`: the server has an
    environment value of the same name, which workflows read instead."""

    name: str
    version: int
    hosts: list[str]
    places: list[str]
    created_by: str
    created_at_ms: int
    last_used_at_ms: int | None
    readable: bool
    in_environment: bool


class SecretsResealed(TypedDict):
    """The number of secrets that were encrypted with the present key, and of open waits with a new link."""

    resealed: int
    relinked: int


class ServerStats(TypedDict):
    """Counts of the whole database end at 100,000. They may be a second old. `runs_open` and `waits_open`: by
    status and by kind."""

    at_ms: int
    runs_open: dict[str, int]
    queues: list[QueueStats]
    timer_lag_ms: int
    schedule_lag_ms: int
    waits_open: dict[str, int]
    notifications_pending: int
    database_bytes: int
    workers: list[WorkerStats]
    process: ProcessStats


class Session(TypedDict):
    """A browser that is signed in. `id` is the beginning of its hash; `current`: the browser of this request;
    `device`: its User-Agent when it signed in."""

    id: str
    user: str
    created_at_ms: int
    seen_at_ms: int
    current: bool
    device: str


class SessionList(TypedDict):
    """Seen last first."""

    sessions: list[Session]


class SessionsEnded(TypedDict):
    """The number of sessions ended."""

    ended: int


class SignIn(TypedDict):
    """`url`: where the person goes; `until_ms`: how long the answer of the provider counts."""

    url: str
    redirect_uri: str
    until_ms: int


class SignInAnswer(TypedDict):
    """The parameters with which the provider sent the browser back. `iss`: the issuer of the provider."""

    state: str
    code: NotRequired[str]
    error: NotRequired[str]
    iss: NotRequired[str]


class SignInLink(TypedDict):
    """`url` signs in one browser, once, within `expires_in_s` seconds."""

    url: str
    expires_in_s: int


class SignalAccepted(TypedDict):
    """`seq` counts the signals of this run from 1. `new` is false if the dedupe key was used before."""

    run: str
    name: str
    seq: int
    new: bool


class SignalList(TypedDict):
    """In order of arrival, including signals that were received by a wait."""

    signals: list[SignalView]


class SignalRequest(TypedDict):
    """`dedupe_key`: a repeated key returns the first signal; the Idempotency-Key header does the same."""

    payload: NotRequired[Any]
    correlation: NotRequired[str | None]
    dedupe_key: NotRequired[str | None]
    by: NotRequired[str | None]


class SignalView(TypedDict):
    """A signal sent to a run. `seq` counts the signals of the run from 1; `taken_by`: id of the wait that received
    it, null while it is stored for later."""

    seq: int
    name: str
    correlation: str | None
    payload: Any
    dedupe_key: str | None
    received_at_ms: int
    received_by: str | None
    taken_by: str | None


class SpentView(TypedDict):
    """`calls`: steps that used something. Tokens of caches are part of the input tokens, those of reasoning part of
    the output tokens. `cost`: US dollars as decimal text, null if no price is known; `unpriced`: calls that it
    is without, because their price is not known."""

    key: str
    calls: int
    unpriced: int
    input_tokens: int
    cached_tokens: int
    cache_write_tokens: int
    output_tokens: int
    reasoning_tokens: int
    cost: str | None


class StepView(TypedDict):
    """Call `n` of `ctx.step` or `ctx.wait` in the handler of a node, as it last began; `times`: how often it began.
    Event `finished_seq` has the output of one that succeeded. lost: it is unknown if it was done."""

    n: int
    kind: Literal["model", "step", "tool", "wait"]
    name: str
    input_hash: str
    effect: Literal["none", "read", "write"]
    attempt: int
    started_seq: int
    started_at_ms: int
    status: Literal["cancelled", "failed", "lost", "running", "succeeded", "waiting"]
    times: NotRequired[int]
    finished_seq: NotRequired[int | None]
    finished_at_ms: NotRequired[int | None]
    usage: NotRequired[dict[str, int]]
    cost: NotRequired[float | None]
    prices: NotRequired[str]
    error: NotRequired[dict[str, Any] | None]


class Token(TypedDict):
    """A token without its secret. `user`: whose it is, null when it was made with the server's token. Its role is
    never more than that of its user."""

    id: str
    prefix: str
    name: str
    user: str | None
    role: Literal["admin", "approver", "editor", "metrics", "viewer"]
    workflows: list[str] | None
    created_at_ms: int
    expires_at_ms: int
    used_at_ms: int | None


class TokenList(TypedDict):
    """Oldest first, expired ones included."""

    tokens: list[Token]


class TokenMade(TypedDict):
    """`token` is shown this once."""

    id: str
    token: str
    expires_at_ms: int


class TokenRequest(TypedDict):
    """POST /api/tokens. `workflows`: the only ones that it may reach; null for all. The role `metrics` reads
    /metrics and nothing else."""

    name: str
    role: Literal["admin", "approver", "editor", "metrics", "viewer"]
    days: NotRequired[int]
    workflows: NotRequired[list[str] | None]


class TokenRevoked(TypedDict):
    id: str
    revoked: Literal[True]


class ToolServerAsked(TypedDict):
    """A tool server as an agent names it (`mcp`), with `${NAME}` for secrets. `connection`: name of a stored one."""

    url: str
    headers: NotRequired[dict[str, str]]
    connection: NotRequired[str]


class ToolServerChecked(TypedDict):
    """In the order of the server."""

    tools: list[OfferedTool]


class TriggerDeleted(TypedDict):
    id: str
    deleted: bool


class TurnView(TypedDict):
    """`run` added it when it had its answer. `messages`: each has a role, `user` or `assistant`, and a text."""

    run: str
    at_ms: int
    messages: list[dict[str, Any]]


# Usage of steps from one day to another, also in runs that were deleted since. Days without usage are left
# out; of workflows and models only the 1,000 with the highest cost are listed. `prices`: the price lists by
# which costs are computed.
UsagePage = TypedDict(
    "UsagePage",
    {
        "from": str,
        "to": str,
        "by": Literal["day", "model", "workflow"],
        "workflow": str | None,
        "currency": str,
        "prices": list[str],
        "total": SpentView,
        "items": list[SpentView],
    },
)


class UsageView(TypedDict):
    """`total` has an empty key, the key of each of `items` is a day, a workflow or a model. `prices`: the price
    lists by which `cost` was computed."""

    total: SpentView
    items: list[SpentView]
    prices: list[str]
    currency: str


class User(TypedDict):
    """`seen_at_ms`: when one of their sessions was last used; `sessions`: those that are open."""

    id: str
    name: str
    role: Literal["admin", "approver", "editor", "viewer"]
    created_at_ms: int
    sessions: int
    seen_at_ms: int | None


class UserChanged(TypedDict):
    """`role` is null when the user was removed; then `schedules` are those that they made, which stay active."""

    id: str
    role: Literal["admin", "approver", "editor", "viewer"] | None
    schedules: list[str]


class UserList(TypedDict):
    """The users, by id."""

    users: list[User]


class Validation(TypedDict):
    """`valid`: no finding is an error."""

    valid: bool
    diagnostics: list[Diagnostic]


class ValueDiff(TypedDict):
    """`pointer` is a JSON pointer, "" for the whole value. `a` and `b` are the beginnings of the JSON values; null:
    missing."""

    pointer: str
    a: str | None
    b: str | None


class Verified(TypedDict):
    """`valid`: each row has the hash that follows from it and the one before, none is missing, and the last is the
    one that was written last. `broken_at`: the number of the first row that is not as it was written. `hash`: of
    the last row; keep it elsewhere to prove later that nothing before it was changed."""

    valid: bool
    rows: int
    broken_at: int | None
    hash: str


class Version(TypedDict):
    """`version`: of the installed package, or "unknown" if it is not installed. `signed_in`: the request came from
    a browser with a session, which can sign out. `read_only`: every request that changes something is refused."""

    version: str
    signed_in: bool
    read_only: bool


class VersionPage(TypedDict):
    """Newest first. `next`: pass it as `before` for the following page; null at the end."""

    name: str
    active: int
    versions: list[VersionRow]
    next: int | None


class VersionRequest(TypedDict):
    """POST /api/drafts/{id}/versions. `name` defaults to the name of the draft. `activate_triggers`: its schedules
    and webhooks start runs even if it has blocks that were not imported."""

    name: NotRequired[str | None]
    activate_triggers: NotRequired[bool]


class VersionRow(TypedDict):
    """A version without its document."""

    version: int
    hash: str
    created_at_ms: int


class Wait(TypedDict):
    """A wait with its `link`, which answers it while it is pending; for a callback it is the URL to post to."""

    run: str
    workflow: str
    id: str
    key: str
    block: str
    label: str
    kind: Literal["approval", "attention", "child", "form", "signal", "timer", "webhook"]
    status: Literal["answered", "cancelled", "expired", "pending"]
    request: Any
    schema: Any
    actions: list[str]
    opened_at_ms: int
    expires_at_ms: int | None
    age_s: float
    title: str
    run_status: Literal["cancelled", "failed", "queued", "running", "succeeded", "waiting"]
    name: str | None
    correlation: str | None
    response: Any
    answered_by: str | None
    answered_at_ms: int | None
    link: str | None
    notifications: list[NotificationView]


class WaitCounts(TypedDict):
    """The number of waits by status."""

    pending: int
    answered: int
    cancelled: int
    expired: int


class WaitPage(TypedDict):
    """`next`: pass it as `before` for the following page; null at the end. `counts`: null with `counts=0`.
    `capped`: statuses of which there are at least 100,000 waits; they are not counted further."""

    waits: list[Wait]
    next: str | None
    counts: WaitCounts | None
    capped: list[Literal["answered", "cancelled", "expired", "pending"]]


class WaitView(TypedDict):
    """A wait with its `link`, which answers it while it is pending; for a callback it is the URL to post to."""

    run: str
    workflow: str
    id: str
    key: str
    block: str
    label: str
    kind: Literal["approval", "attention", "child", "form", "signal", "timer", "webhook"]
    status: Literal["answered", "cancelled", "expired", "pending"]
    request: Any
    schema: Any
    actions: list[str]
    opened_at_ms: int
    expires_at_ms: int | None
    age_s: float
    title: str
    run_status: Literal["cancelled", "failed", "queued", "running", "succeeded", "waiting"]
    name: NotRequired[str | None]
    correlation: NotRequired[str | None]
    response: NotRequired[Any]
    answered_by: NotRequired[str | None]
    answered_at_ms: NotRequired[int | None]
    link: NotRequired[str | None]
    notifications: NotRequired[list[NotificationView]]


class WebhookDetail(TypedDict):
    """`secret`: the key of signatures, or the bearer token; null when it is read from the environment or not
    required. `deliveries`: the last 50, newest first. `refused`: by reason, including those before the last
    start of the server."""

    id: str
    kind: Literal["chat", "form", "webhook"]
    url: str
    workflow: str
    version: int | None
    trigger: str | None
    auth: Literal["github", "hmac", "none", "token"]
    secret_env: str | None
    respond: Literal["immediate", "run"]
    timeout_s: float
    headers: list[str]
    enabled: bool
    origin: str
    last_run_at_ms: int | None
    last_run_id: str | None
    problem: str | None
    created_at_ms: int
    updated_at_ms: int
    secret: str | None
    deliveries: list[DeliveryView]
    refused: list[RefusalView]


class WebhookList(TypedDict):
    """The webhooks, by id."""

    webhooks: list[WebhookView]


class WebhookRotated(TypedDict):
    """`secret`: the new one; the old one no longer works."""

    id: str
    secret: str


class WebhookSpec(TypedDict):
    """The settings of a webhook. `version` defaults to the active one, `trigger` to the trigger of the workflow. A
    trigger of type `webhook` gets the whole request, other triggers get its body."""

    workflow: str
    version: NotRequired[int | None]
    trigger: NotRequired[str | None]
    auth: NotRequired[Literal["github", "hmac", "none", "token"]]
    secret_env: NotRequired[str | None]
    respond: NotRequired[Literal["immediate", "run"]]
    timeout_s: NotRequired[float]
    headers: NotRequired[list[str]]
    enabled: NotRequired[bool]


class WebhookView(TypedDict):
    """Times are Unix milliseconds. `origin` is document if the block `trigger` of the workflow declares it.
    `problem`: why requests cannot be accepted. `kind` is form or chat for a public page, whose address is `url`."""

    id: str
    kind: Literal["chat", "form", "webhook"]
    url: str
    workflow: str
    version: int | None
    trigger: str | None
    auth: Literal["github", "hmac", "none", "token"]
    secret_env: str | None
    respond: Literal["immediate", "run"]
    timeout_s: float
    headers: list[str]
    enabled: bool
    origin: str
    last_run_at_ms: int | None
    last_run_id: str | None
    problem: str | None
    created_at_ms: int
    updated_at_ms: int


class Why(TypedDict):
    """The reasons for the state of a node key: `state` and the unmet conditions in words."""

    key: str
    state: str
    reasons: list[str]


class WithdrawRequest(TypedDict):
    """DELETE /api/runs/{id}/waits/{wait}. Both fields are recorded in the error of the block."""

    by: NotRequired[str | None]
    reason: NotRequired[str]


class WorkerStats(TypedDict):
    """A process that holds a lease, and the runs that it executes. `lease_ms`: until its lease ends; negative: it
    has ended."""

    name: str
    runs: int
    lease_ms: int


class WorkflowDeleted(TypedDict):
    """The number of schedules and webhooks deleted with it. Its runs are kept."""

    name: str
    schedules: int
    webhooks: int


class WorkflowHead(TypedDict):
    """A workflow without a document. `version`, `hash` and `created_at_ms` are those of the active version;
    `newest` is the highest version, `versions` their number."""

    name: str
    version: int
    hash: str
    created_at_ms: int
    activated_at_ms: int
    newest: int
    versions: int
    last_run: LastRun | None


class WorkflowPage(TypedDict):
    """`version` of a workflow is the active one, which runs where no version is given."""

    workflows: list[WorkflowHead]


class WorkflowVersion(TypedDict):
    """`active`: the version that runs where none is given; `newest`: the highest version. `hash` is of the stored
    document, also if `document` is converted."""

    name: str
    version: int
    hash: str
    created_at_ms: int
    active: int
    newest: int
    document: Any
