"""The shapes that clients send and receive, made from openapi.json by `npm run types`: change the server's structs, not
this file. /api/openapi.json describes them.

At run time these are plain dicts. A member is NotRequired where the server leaves it out of some answers, or where a
request may leave it out.
"""

# ruff: noqa: E501, E701, E702
# fmt: off

from __future__ import annotations

from typing import Any, Literal, NotRequired, TypedDict


class AttemptView(TypedDict):
    attempt: int
    status: Literal["cancelled", "failed", "needs_attention", "retrying", "running", "skipped", "succeeded", "waiting"]
    started_seq: NotRequired[int | None]; started_at_ms: NotRequired[int | None]; finished_seq: NotRequired[int | None]
    finished_at_ms: NotRequired[int | None]; error: NotRequired[dict[str, Any] | None]
class AuditPage(TypedDict): rows: list[AuditRow]; next: int | None
class AuditRow(TypedDict): n: int; at_ms: int; actor: str; via: str; action: str; object: str; detail: str; hash: str
class Backtest(TypedDict): runs: list[RunReplay]; total: int; next: str | None; spent_usd: float
class BlockFate(TypedDict):
    block: str; name: str; fate: Literal["again", "kept", "maybe", "new", "skipped"]; effect: str; kept: int; calls: int
    why: str
class BlockList(TypedDict): blocks: list[BlockType]
class BlockStats(TypedDict): block: str; attempts: int; seconds: float
class BlockType(TypedDict):
    type: str; title: str; description: str
    category: Literal["action", "annotation", "connector", "data", "flow", "people", "trigger"]; params: dict[str, Any]
    handles: list[str]; container: Literal["loop", "parallel"] | None; trigger: bool; output: dict[str, Any] | None
    effect: Literal["none", "read", "write"]; runners: list[Literal["dask", "inline", "process"]]; attempts: int
    timeout_ms: int; sentence: str; icon: str
class CacheCleared(TypedDict): cleared: int
class Call(TypedDict): key: str; n: int; kind: str; name: str; effect: str
class CallbackTaken(TypedDict): accepted: bool; received_at_ms: int
class Cancelled(TypedDict): run: str; cancelled: bool; status: Literal["cancelled", "cancelling"]
class Card(TypedDict):
    name: str; version: int; hash: str; created_at_ms: int; activated_at_ms: int; newest: int; versions: int
    last_run: LastRun | None; folder: str; changed_by: str | None; title: str; document: Any; runs: list[ShortRun]
    states: dict[str, str]; open: dict[str, int]; today: int; next_ms: int | None
class CardPage(TypedDict): cards: list[Card]; folders: dict[str, int]; next: int | None
class CheckpointShown(TypedDict):
    attempt: int; at_ms: int; value: Any; value_size: int; value_truncated: bool; value_preview: NotRequired[str]
class ChildView(TypedDict):
    run: str; workflow: str; version: int | None
    status: Literal["cancelled", "failed", "queued", "running", "succeeded", "waiting"]; key: str; attempt: int
    created_at_ms: int; finished_at_ms: int | None
class Choice(TypedDict): value: str | int; title: str; about: str
class ChoiceList(TypedDict): choices: list[Choice]; next: str | None
class Collected(TypedDict):
    runs: int; events: int; plans: int; documents: int; blobs: int; versions: int; cached: int; dry_run: bool
class CollectionList(TypedDict): collections: list[CollectionView]
class CollectionView(TypedDict):
    name: str; description: str; model: str; dimension: int; chunk_chars: int; overlap_chars: int; created_at_ms: int
    created_by: str | None; documents: int; chunks: int; chars: int; pending: int; failed: int
class ConnectionDeleted(TypedDict): name: str; deleted: bool
class ConnectionList(TypedDict): connections: list[ConnectionView]; redirect_uri: str; providers: list[KnownProvider]
class ConnectionSpec(TypedDict):
    kind: Literal["api_key", "basic", "bearer", "oauth2_client", "oauth2_code", "ssh"]; hosts: list[str]
    secret: NotRequired[str]; username: NotRequired[str]; where: NotRequired[Literal["header", "query"]]
    name: NotRequired[str]; prefix: NotRequired[str]; authorize_url: NotRequired[str]; token_url: NotRequired[str]
    client_id: NotRequired[str]; scopes: NotRequired[str]; issuer: NotRequired[str]
    client_auth: NotRequired[Literal["body", "header"]]; parameters: NotRequired[dict[str, str]]
    pkce: NotRequired[bool]; check_url: NotRequired[str]; passphrase: NotRequired[str]; host_key: NotRequired[str]
class ConnectionTest(TypedDict):
    outcome: Literal["failed", "hosts", "not_ready", "nothing", "ok", "refused", "timeout", "unreachable"]; ok: bool
    status: int | None; who: str; message: str; hint: str; called: str; took_ms: int
class ConnectionTested(TypedDict): at_ms: int; result: ConnectionTest
class ConnectionUses(TypedDict): used_by: list[EnvUse]
class ConnectionView(TypedDict):
    name: str; kind: Literal["api_key", "basic", "bearer", "oauth2_client", "oauth2_code", "ssh"] | None
    hosts: list[str]; state: Literal["ready", "sign_in", "sign_in_again", "unreadable"]; problem: str; provider: str
    check: str; expires_at_ms: int | None; created_by: str; created_at_ms: int; last_used_at_ms: int | None
    tested: ConnectionTested | None
class ConnectorDeleted(TypedDict): service: str; deleted: bool
class ConnectorDocument(TypedDict): document: dict[str, Any]
class ConnectorList(TypedDict): connectors: list[ConnectorView]
class ConnectorView(TypedDict):
    service: str; type: str; title: str; operations: int; created_by: str; changed_at_ms: int
class Continuation(TypedDict): run: str; workflow: str; version: int | None; draft: str | None; blocks: list[BlockFate]
class CronPreview(TypedDict): expr: str; tz: str; upcoming_ms: list[int]
class DeliveryView(TypedDict): at_ms: int; outcome: str; delivery: str | None; run: str | None
class Diagnostic(TypedDict):
    code: str; severity: Literal["error", "warning"]; pointer: str; message: str; hint: NotRequired[str]
    block: NotRequired[str | None]; field: NotRequired[str | None]
class Divergence(TypedDict): a: EventHead | None; b: EventHead | None; fields: list[str]
class DocumentList(TypedDict): documents: list[DocumentView]; next: str | None
class DocumentView(TypedDict):
    name: str; version: int; title: str; source: str; media_type: str; sha256: str; chars: int; chunks: int
    embedded: int; state: Literal["failed", "pending", "visible"]; run: str; added_at_ms: int; added_by: str | None
class DraftAddress(TypedDict):
    url: str; until_ms: int; auth: Literal["github", "hmac", "none", "token"]; secret: str | None
    secret_env: str | None
class DraftDeleted(TypedDict): id: str; deleted: bool
class DraftEvent(TypedDict): run: str | None; input: Any; after: str | None; until_ms: int | None; newest: bool
class DraftFolder(TypedDict): id: str; folder: str
class DraftPage(TypedDict): drafts: list[DraftSummary]; next: str | None
class RunAccepted(TypedDict):
    run: str; workflow: str; version: int | None
    status: Literal["cancelled", "failed", "queued", "running", "succeeded", "waiting"]; created: bool
    diagnostics: list[Diagnostic]; urls: RunUrls
class DraftSaved(TypedDict):
    id: str; name: str; rev: int; updated_at_ms: int; diagnostics: list[Diagnostic]; tasks: list[Task]
class DraftSummary(TypedDict):
    id: str; name: str; rev: int; base_name: str | None; base_version: int | None; base_rev: int | None
    created_at_ms: int; updated_at_ms: int; folder: str; last_run: LastRun | None
class SavedWorkflow(TypedDict):
    name: str; version: int; hash: str; created: bool; diagnostics: list[Diagnostic]; activated: bool
    replaced: int | None
class DraftView(TypedDict):
    id: str; name: str; rev: int; base_name: str | None; base_version: int | None; base_rev: int | None
    created_at_ms: int; updated_at_ms: int; folder: str; document: Any; diagnostics: list[Diagnostic]; tasks: list[Task]
class DueRetry(TypedDict): key: str; attempt: int; due_ms: int
class EnvName(TypedDict): name: str; set: bool; secret: bool; used_by: list[EnvUse]
class EnvNames(TypedDict): env: list[EnvName]
class EnvUse(TypedDict):
    kind: Literal["draft", "workflow"]; id: str; name: str; blocks: list[str]; version: int | None; rev: int | None
class EventHead(TypedDict): seq: int; type: str; key: str | None; attempt: int; data: dict[str, Any]; output: str | None
class EventOnWire(TypedDict):
    run: str; seq: int; at_ms: int; type: str; node: str | None; block: str | None; path: str; key: str | None
    attempt: int; data: dict[str, Any]
class EventPage(TypedDict): events: list[EventOnWire]; count: int; next: int | None
class Example(TypedDict): name: str; title: str; description: str; document: dict[str, Any]; template: bool
class Examples(TypedDict): examples: list[Example]
class FileValue(TypedDict):
    type: Literal["file"]; id: str; name: str; media_type: str; size: int; proof: NotRequired[str]
class FireView(TypedDict):
    due_ms: int; at_ms: int; outcome: Literal["failed", "missed", "queued", "skipped", "started"]; run: str | None
    error: str | None
class ForkPreview(TypedDict):
    run: str; seq: int; calls: int; usage: dict[str, int]; cost: float | None; again: list[Call]; more: bool
class GcAccepted(TypedDict): created: bool; job: GcJob
class GcJob(TypedDict):
    dry_run: bool; older_than_s: float | None; keep: int; began_at_ms: int; updated_at_ms: int; id: str
    state: Literal["done", "failed", "interrupted", "running"]; counts: Collected; error: str | None
class GraphEdge(TypedDict): source: str; target: str; handle: str; state: str; counts: NotRequired[dict[str, int]]
class GraphNode(TypedDict):
    id: str; block: str; type: str; name: str; region: str; state: str; counts: NotRequired[dict[str, int]]
    sentinel: NotRequired[str | None]
class Health(TypedDict): status: Literal["ok"]
class InputList(TypedDict): inputs: list[Any]
class SignInLink(TypedDict): url: str; expires_in_s: int
class KeepDropped(TypedDict): run: str; dropped: bool
class KeptRuns(TypedDict): kept: list[KeptView]
class KeptView(TypedDict): run: str; workflow: str; note: str; kept_at_ms: int
class KnowledgeDeleted(TypedDict): name: str; deleted: bool
class KnownProvider(TypedDict):
    id: str; title: str; authorize_url: str; token_url: str; hosts: list[str]; docs: str; scopes: str; issuer: str
    client_auth: Literal["body", "header"]; pkce: bool; parameters: dict[str, str]; check_url: str; who: str
class Lane(TypedDict):
    run: str; seq: int; function: str; code: str | None; tasks: list[LaneTask]; items: list[LaneItem]; left_off: int
class StepView(TypedDict):
    n: int; kind: Literal["mark", "model", "step", "tool", "wait"]; name: str; input_hash: str
    effect: Literal["none", "read", "write"]; attempt: int; started_seq: int; started_at_ms: int
    status: Literal["cancelled", "failed", "lost", "retrying", "running", "succeeded", "waiting"]
    times: NotRequired[int]; finished_seq: NotRequired[int | None]; finished_at_ms: NotRequired[int | None]
    usage: NotRequired[dict[str, int]]; cost: NotRequired[float | None]; prices: NotRequired[str]
    error: NotRequired[dict[str, Any] | None]; from_run: NotRequired[str | None]; line: NotRequired[int]
    task: NotRequired[int]; above: NotRequired[int]; group: NotRequired[str]; shown: NotRequired[Any]
    wait: NotRequired[StepWait | None]; due_ms: NotRequired[int | None]
class LaneTask(TypedDict): task: int; above: int; from_seq: int; until_seq: int | None
class LastRun(TypedDict):
    id: str; version: int | None; status: Literal["cancelled", "failed", "queued", "running", "succeeded", "waiting"]
    created_at_ms: int; finished_at_ms: int | None
class Loom(TypedDict): blocks: list[str]; handles: list[str]; runs: list[LoomRun]; complete: bool
class LoomRun(TypedDict):
    id: str; status: str; created_at_ms: int; version: NotRequired[int | None]; finished_at_ms: NotRequired[int | None]
    key: NotRequired[str | None]; error: NotRequired[str | None]; uses: NotRequired[list[list[int]]]
    exits: NotRequired[list[list[int]]]; cells: NotRequired[list[list[int]]]; cut: NotRequired[bool]
class Me(TypedDict):
    actor: str; via: str; role: Literal["admin", "approver", "editor", "metrics", "viewer"]; user: str | None; name: str
    workflows: list[str] | None
class MemoryForgotten(TypedDict): deleted: int
class MemoryHead(TypedDict): workflow: str; scope: str; key: str; turns: int; bytes: int; last_at_ms: int
class MemoryList(TypedDict): conversations: list[MemoryHead]
class MemoryTurns(TypedDict): turns: list[TurnView]
class MigrateAnswer(TypedDict): run: str; version: int; plan_hash: str; moved: bool
class Models(TypedDict): endpoints: list[Offer]
class NodeDiff(TypedDict): key: str; a: NodeHead; b: NodeHead; output: list[ValueDiff]; more: bool
class NodeHead(TypedDict): status: str; attempt: int; route: str | None; error: str | None
class NodeReplay(TypedDict):
    key: str; block: str; result: Literal["changed", "not_reached", "same", "unknown", "would_call"]
    value: ValueDiff | None; would: str; sends: bool; answered: bool; error: str
class NodeShown(TypedDict):
    run: str; key: str; node: str; block: str; name: str; type: str; path: str; seq: int
    status: Literal["cancelled", "failed", "needs_attention", "retrying", "running", "skipped", "succeeded", "waiting"] | Literal["pending"]
    attempt: int; attempts: list[AttemptView]; input: Any; input_error: dict[str, Any] | None; output: Any
    error: dict[str, Any] | None; route: str | None; reason: str | None; because: str | None; reused: bool
    checkpoint: CheckpointShown | None; steps: list[StepView]; input_size: int | None; input_truncated: bool
    output_size: int | None; output_truncated: bool; input_preview: NotRequired[str]; output_preview: NotRequired[str]
class NodeView(TypedDict):
    key: str; node: str; block: str; path: str
    status: Literal["cancelled", "failed", "needs_attention", "retrying", "running", "skipped", "succeeded", "waiting"]
    attempt: int; started_at_ms: NotRequired[int | None]; finished_at_ms: NotRequired[int | None]
    route: NotRequired[str | None]; reason: NotRequired[str | None]; error: NotRequired[dict[str, Any] | None]
    output: NotRequired[Any]; lost: NotRequired[int]; cached: NotRequired[bool]; child: NotRequired[str | None]
    output_size: NotRequired[int | None]; output_truncated: NotRequired[bool]; steps: NotRequired[int]
    usage: NotRequired[dict[str, int] | None]; cost: NotRequired[float | None]; unpriced: NotRequired[int]
    reused_usage: NotRequired[dict[str, int] | None]; reused_cost: NotRequired[float | None]
class NotificationView(TypedDict):
    channel: str; to: str; status: str; attempts: int; reminder: NotRequired[bool]; due_at_ms: NotRequired[int | None]
    settled_at_ms: NotRequired[int | None]; error: NotRequired[str | None]
class Offer(TypedDict): name: str; host: str; ready: bool; models: list[Priced]
class Offered(TypedDict): id: str; method: str; path: str; title: str; tag: str | None; problem: str | None
class OfferedTool(TypedDict): name: str; description: str; reads: bool
class OpenApiImported(TypedDict): operations: list[Offered]; connector: dict[str, Any] | None
class OpenContainer(TypedDict): key: str; kind: str; count: int; opened: int; closed: int
class OpenScope(TypedDict): path: str; undecided: int; dead: bool
class OpenWait(TypedDict): key: str; attempt: int; kind: str; due_ms: int | None; on_expire: str
class ParentView(TypedDict): run: str; key: str
class Passage(TypedDict):
    text: str; score: float; similarity: float | None; document: str; version: int; title: str; source: str
    position: int
class Priced(TypedDict): name: str; input: float; output: float
class ProcessStats(TypedDict):
    worker: str; runs_active: int; attempts_active: int; runs_started: int; runs_ended: dict[str, int]; commits: int
    changes: int; write_retries: int; event_streams: int; event_loop_lag_ms: float; blocks: list[BlockStats]
class PublicWait(TypedDict):
    run: str; workflow: str; id: str; key: str; block: str; label: str
    kind: Literal["approval", "attention", "child", "form", "signal", "timer", "webhook"]
    status: Literal["answered", "cancelled", "expired", "pending"]; request: Any; schema: Any; actions: list[str]
    opened_at_ms: int; expires_at_ms: int | None; age_s: float; title: str
    run_status: Literal["cancelled", "failed", "queued", "running", "succeeded", "waiting"]; name: str | None
    correlation: str | None; response: Any; answered_by: str | None; answered_at_ms: int | None
class PushView(TypedDict): registered: bool; expires_at_ms: int | None; delivered_at_ms: int | None; error: str | None
class QueryAnswer(TypedDict): run: str; name: str; answer: Any
class QueueStats(TypedDict): pool: str; runs: int; oldest_ms: int
class RefusalView(TypedDict):
    outcome: str; count: int; first_at_ms: int; last_at_ms: int; delivery: str | None; run: str | None
class RerunOfMany(TypedDict):
    source: str; run: str | None; created: bool; blocks: list[BlockFate]; code: str; error: str
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
class RerunsAnswer(TypedDict): runs: list[RerunOfMany]
class RunCounts(TypedDict): queued: int; running: int; waiting: int; succeeded: int; failed: int; cancelled: int
class RunDeleted(TypedDict): run: str; runs: int
class RunDetail(TypedDict):
    id: str; workflow: str; version: int | None
    status: Literal["cancelled", "failed", "queued", "running", "succeeded", "waiting"]; input: Any; output: Any
    error: dict[str, Any] | None; seq: int; created_at_ms: int; started_at_ms: int | None; finished_at_ms: int | None
    response: dict[str, Any] | None; variables: dict[str, Any]; waits: list[WaitView]; draft_id: str | None
    draft_rev: int | None; parent: ParentView | None; children: list[ChildView]; child_waits: list[WaitView]
    children_active: int; unread: int; usage: UsageView | None; by: str | None; continues: str | None
    continued_as: str | None; stale: bool; stale_since_ms: int | None; lacks: str | None; state: Any
    nodes: list[NodeView]; failed_nodes: list[str]; urls: RunUrls
class RunDiff(TypedDict):
    a: RunHead; b: RunHead; same: bool; same_plan: bool; diverged: Divergence | None; nodes: list[NodeDiff]
    only_a: list[str]; only_b: list[str]; equal: int; differing: int; input: list[ValueDiff]; output: list[ValueDiff]
class RunDocument(TypedDict):
    run: str; workflow: str; version: int | None; hash: str; draft_id: str | None; draft_rev: int | None
    imported: str | None; document: dict[str, Any]
class RunGraph(TypedDict): run: str; plan_hash: str; nodes: list[GraphNode]; edges: list[GraphEdge]
class RunHead(TypedDict): run: str; workflow: str; version: int | None; status: str; seq: int
class RunPage(TypedDict):
    runs: list[RunSummary]; next: str | None; counts: RunCounts | None
    capped: list[Literal["cancelled", "failed", "queued", "running", "succeeded", "waiting"]]
class RunReplay(TypedDict):
    run: str; workflow: str; version: int | None; created_at_ms: int; before: str
    result: Literal["changed", "failed", "not_called", "not_replayed", "other_way", "played", "same", "would_call"]
    reason: str; now: str | None; way: Way | None
    blocks: dict[str, Literal["changed", "not_reached", "same", "unknown", "would_call"]]; differences: list[NodeReplay]
    used: Used; recorded: Used | None; score: Scored | None
class RunState(TypedDict):
    run: str; workflow: str; version: int | None; seq: int; last_seq: int; at_ms: int; status: str; phase: str
    error: dict[str, Any] | None; nodes: list[NodeView]; waits: list[OpenWait]; retries: list[DueRetry]
    ready: list[str]; scopes: list[OpenScope]; containers: list[OpenContainer]; variables: dict[str, Any]
    due_ms: int | None; state: Any
class RunSummary(TypedDict):
    id: str; workflow: str; version: int | None
    status: Literal["cancelled", "failed", "queued", "running", "succeeded", "waiting"]; error: dict[str, Any] | None
    seq: int; created_at_ms: int; started_at_ms: int | None; finished_at_ms: int | None; parent_run_id: str | None
    input_summary: str; duration_ms: int | None; draft_id: str | None; draft_rev: int | None; key: str | None
    by: str | None; step: str | None; stale: bool; stale_since_ms: int | None; lacks: str | None
class RunTimes(TypedDict):
    since_ms: int; width_ms: int; counts: dict[str, list[int]]
    capped: list[Literal["cancelled", "failed", "queued", "running", "succeeded", "waiting"]]
class RunUrls(TypedDict):
    self: str; events: str; graph: str; why: str; plan: str; cancel: str; page: str; document: str; nodes: str
    rerun: str
class RunWhy(TypedDict): run: str; why: list[Why]
class ScheduleView(TypedDict):
    id: str; workflow: str; version: int | None; trigger: str | None; cron: str; tz: str; input: Any; enabled: bool
    overlap: Literal["allow", "queue", "skip"]; catch_up: Literal["all", "none", "one"]; origin: str
    next_run_at_ms: int | None; queued_at_ms: int | None; last_run_at_ms: int | None; last_run_id: str | None
    error: str | None; created_at_ms: int; updated_at_ms: int; upcoming_ms: list[int]; made_by: str | None; polls: bool
    push: PushView | None
class ScheduleList(TypedDict): schedules: list[ScheduleView]
class ScheduleSpec(TypedDict):
    workflow: str; cron: str; tz: NotRequired[str]; version: NotRequired[int | None]; trigger: NotRequired[str | None]
    input: NotRequired[dict[str, Any]]; enabled: NotRequired[bool]
    overlap: NotRequired[Literal["allow", "queue", "skip"]]; catch_up: NotRequired[Literal["all", "none", "one"]]
class Scored(TypedDict): value: float | None; reason: str; output: str; difference: ValueDiff | None
class SearchResults(TypedDict): results: list[Passage]
class SecretDeleted(TypedDict): name: str; deleted: bool
class SecretList(TypedDict): secrets: list[SecretView]
class SecretView(TypedDict):
    name: str; version: int; hosts: list[str]; places: list[str]; created_by: str; created_at_ms: int
    last_used_at_ms: int | None; readable: bool; in_environment: bool
class SecretsResealed(TypedDict): resealed: int; relinked: int
class ServerStats(TypedDict):
    at_ms: int; runs_open: dict[str, int]; queues: list[QueueStats]; timer_lag_ms: int; schedule_lag_ms: int
    waits_open: dict[str, int]; notifications_pending: int; database_bytes: int; workers: list[WorkerStats]
    process: ProcessStats
class Session(TypedDict): id: str; user: str; created_at_ms: int; seen_at_ms: int; current: bool; device: str
class SessionList(TypedDict): sessions: list[Session]
class SessionsEnded(TypedDict): ended: int
class ShortRun(TypedDict): id: str; status: str; created_at_ms: int; duration_ms: int | None
class SignIn(TypedDict): url: str; redirect_uri: str; until_ms: int
class SignalAccepted(TypedDict): run: str; name: str; seq: int; new: bool
class SignalList(TypedDict): signals: list[SignalView]
class SignalView(TypedDict):
    seq: int; name: str; correlation: str | None; payload: Any; dedupe_key: str | None; received_at_ms: int
    received_by: str | None; taken_by: str | None
class SpentView(TypedDict):
    key: str; calls: int; unpriced: int; input_tokens: int; cached_tokens: int; cache_write_tokens: int
    output_tokens: int; reasoning_tokens: int; cost: str | None
class StepWait(TypedDict):
    kind: Literal["approval", "attention", "child", "form", "signal", "timer", "webhook"]; id: NotRequired[str | None]
    title: NotRequired[str]; due_ms: NotRequired[int | None]; child: NotRequired[str | None]
class Task(TypedDict):
    id: str; kind: Literal["choose", "connect", "fill", "model", "python", "replace", "secret", "triggers"]; title: str
    blocks: list[str]; pointers: NotRequired[list[str]]; type: NotRequired[str]; name: NotRequired[str]
    hint: NotRequired[str]
class Token(TypedDict):
    id: str; prefix: str; name: str; user: str | None; role: Literal["admin", "approver", "editor", "metrics", "viewer"]
    workflows: list[str] | None; created_at_ms: int; expires_at_ms: int; used_at_ms: int | None
class TokenList(TypedDict): tokens: list[Token]
class TokenMade(TypedDict): id: str; token: str; expires_at_ms: int
class TokenRevoked(TypedDict): id: str; revoked: Literal[True]
class ToolServerChecked(TypedDict): tools: list[OfferedTool]
class TriggerDeleted(TypedDict): id: str; deleted: bool
class TurnView(TypedDict): run: str; at_ms: int; messages: list[dict[str, Any]]
class UpdateAnswer(TypedDict): run: str; name: str; id: str; answered: bool; answer: Any
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
class UsageView(TypedDict): total: SpentView; items: list[SpentView]; prices: list[str]; currency: str
class Used(TypedDict): cost_usd: float | None; tokens: int; ms: int; calls: int
class User(TypedDict):
    id: str; name: str; role: Literal["admin", "approver", "editor", "viewer"]; created_at_ms: int; sessions: int
    seen_at_ms: int | None
class UserChanged(TypedDict):
    id: str; role: Literal["admin", "approver", "editor", "viewer"] | None; schedules: list[str]
class UserList(TypedDict): users: list[User]
class Validation(TypedDict): valid: bool; diagnostics: list[Diagnostic]; tasks: list[Task]
class ValueDiff(TypedDict): pointer: str; a: str | None; b: str | None
class Verified(TypedDict): valid: bool; rows: int; broken_at: int | None; hash: str
class Version(TypedDict): version: str; signed_in: bool; read_only: bool
class VersionPage(TypedDict): name: str; active: int; versions: list[VersionRow]; next: int | None
class VersionRow(TypedDict): version: int; hash: str; created_at_ms: int
class WaitCounts(TypedDict): pending: int; answered: int; cancelled: int; expired: int
class WaitPage(TypedDict):
    waits: list[Wait]; next: str | None; counts: WaitCounts | None
    capped: list[Literal["answered", "cancelled", "expired", "pending"]]
class WaitView(TypedDict):
    run: str; workflow: str; id: str; key: str; block: str; label: str
    kind: Literal["approval", "attention", "child", "form", "signal", "timer", "webhook"]
    status: Literal["answered", "cancelled", "expired", "pending"]; request: Any; schema: Any; actions: list[str]
    opened_at_ms: int; expires_at_ms: int | None; age_s: float; title: str
    run_status: Literal["cancelled", "failed", "queued", "running", "succeeded", "waiting"]
    name: NotRequired[str | None]; correlation: NotRequired[str | None]; response: NotRequired[Any]
    answered_by: NotRequired[str | None]; answered_at_ms: NotRequired[int | None]; link: NotRequired[str | None]
    notifications: NotRequired[list[NotificationView]]
class Way(TypedDict): key: str; block: str; before: list[str]; now: list[str]
class WebhookView(TypedDict):
    id: str; kind: Literal["chat", "form", "webhook"]; url: str; workflow: str; version: int | None; trigger: str | None
    auth: Literal["github", "hmac", "none", "token"]; secret_env: str | None; respond: Literal["immediate", "run"]
    timeout_s: float; headers: list[str]; enabled: bool; origin: str; last_run_at_ms: int | None
    last_run_id: str | None; problem: str | None; created_at_ms: int; updated_at_ms: int
class WebhookList(TypedDict): webhooks: list[WebhookView]
class WebhookRotated(TypedDict): id: str; secret: str
class WebhookSpec(TypedDict):
    workflow: str; version: NotRequired[int | None]; trigger: NotRequired[str | None]
    auth: NotRequired[Literal["github", "hmac", "none", "token"]]; secret_env: NotRequired[str | None]
    respond: NotRequired[Literal["immediate", "run"]]; timeout_s: NotRequired[float]; headers: NotRequired[list[str]]
    enabled: NotRequired[bool]
class Why(TypedDict): key: str; state: str; reasons: list[str]
class WorkerStats(TypedDict): name: str; runs: int; lease_ms: int
class WorkflowDeleted(TypedDict): name: str; schedules: int; webhooks: int
class WorkflowFolder(TypedDict): name: str; folder: str
class WorkflowHead(TypedDict):
    name: str; version: int; hash: str; created_at_ms: int; activated_at_ms: int; newest: int; versions: int
    last_run: LastRun | None; folder: str; changed_by: str | None; title: str
class WorkflowPage(TypedDict): workflows: list[WorkflowHead]
class WorkflowTitle(TypedDict): name: str; title: str
class WorkflowVersion(TypedDict):
    name: str; version: int; hash: str; created_at_ms: int; active: int; newest: int; document: Any
class DraftRunAccepted(RunAccepted): draft: str; rev: int
class ForkAccepted(RunAccepted): source: str; seq: int
class RetryAccepted(RunAccepted):
    source: str; how: Literal["from_block", "from_node", "now", "whole_container"]; block: str
class DraftVersion(SavedWorkflow): draft: str; rev: int
class Invited(SignInLink): id: str
class LaneItem(StepView): phase: NotRequired[str]
class Wait(PublicWait): link: str | None; notifications: list[NotificationView]
class ScheduleDetail(ScheduleView): fires: list[FireView]
class WebhookDetail(WebhookView): secret: str | None; deliveries: list[DeliveryView]; refused: list[RefusalView]
