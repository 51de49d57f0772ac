"""The rows of a store as frozen structs: what its methods are handed and what they return.

The rules are in `executor.kernel.store.contract`. Times are Unix milliseconds.
"""

from __future__ import annotations

from typing import Final, Literal, NamedTuple

from msgspec import Struct

from compiler.plan import CacheScope
from executor.kernel.store.alerts import AlertRow
from executor.kernel.store.placement import Placement
from executor.kernel.store.usage import UsageRow

RunStatus = Literal["queued", "running", "waiting", "succeeded", "failed", "cancelled"]

# --- the journal


class Record(Struct, frozen=True, gc=False):
    """One row of the journal. `node` and `path` are texts of compiler.keys; `data` is JSON without key and attempt."""

    seq: int
    at_ms: int
    type: str
    node: str | None
    path: str
    attempt: int
    data: bytes | None = None
    output: bytes | None = None


class Batch(NamedTuple):
    """One row of a journal: what one append writes, or a part of it. In the order of the columns."""

    seq: int
    first_seq: int
    output_bytes: int
    checksum: int
    head: str
    payload: bytes


class EventFilter(Struct, frozen=True):
    """`after` is exclusive. `node` is a node id (every scope of it, unless `path` names one); `types` empty means
    all."""

    after: int = 0
    limit: int = 1000
    node: str | None = None
    types: tuple[str, ...] = ()
    since_ms: int | None = None
    path: str | None = None


COUNT_MAX: Final = 100_000  # nothing is counted further: so many means "so many or more"

# --- workflows

VERSION_MAX: Final = 2**31 - 1  # of a workflow; a larger number is refused before a database sees it


class WorkflowRow(Struct, frozen=True):
    name: str
    version: int
    hash: str
    document: bytes
    created_at_ms: int


class VersionRow(Struct, frozen=True):
    """A version without its document."""

    version: int
    hash: str
    created_at_ms: int


class LastRun(Struct, frozen=True):
    """The run of a workflow that was created last."""

    id: str
    version: int | None
    status: RunStatus
    created_at_ms: int
    finished_at_ms: int | None


class WorkflowHead(Struct, frozen=True):
    """A workflow without a document. `version`, `hash` and `created_at_ms` are those of the active version; `newest` is
    the highest version, `versions` their number."""

    name: str
    version: int
    hash: str
    created_at_ms: int
    activated_at_ms: int
    newest: int
    versions: int
    last_run: LastRun | None = None


class Stored(Struct, frozen=True):
    """The active version as it is now. `created`: it is a new one. `activated`: it was not active before; `replaced`:
    the version that was."""

    row: WorkflowRow
    created: bool
    activated: bool
    replaced: int | None = None


class DeletedWorkflow(Struct, frozen=True):
    """The counts of what was deleted with a workflow. If `open_runs` is over 0 nothing was."""

    open_runs: int
    schedules: int = 0
    webhooks: int = 0


# --- drafts


class DraftHead(Struct, frozen=True):
    """A document being edited. `rev` counts its revisions from 1; revision `base_rev` is version `base_version` of the
    workflow `base_name`, all None until it was one."""

    id: str
    name: str
    rev: int
    base_name: str | None
    base_version: int | None
    base_rev: int | None
    created_at_ms: int
    updated_at_ms: int


class DraftRow(DraftHead, frozen=True):
    document: bytes


# --- what is stored by its hash

USED_EVERY_MS: Final = 600_000  # so often the use of a plan, document or blob is noted

# --- runs

TERMINAL: frozenset[str] = frozenset({"succeeded", "failed", "cancelled"})


class NewRun(Struct, frozen=True):
    """A run to be created together with its plan and its document (each by hash, once) and its first records.
    `document` is None with a hash if the document is there already. `draft_id` and `draft_rev` are the revision it is a
    run of. `sources` are runs that it takes something over from, which must be there. `source_run_id` is the run that
    it reads outputs of as long as it is open. `waits` are the rows of waits among its records, `signals` those sent to
    it, in order from seq 1; `blobs` hold what no source has. `files` are ids of those that it holds from the start. It
    is not claimed before `due_ms`, or at once if that is None."""

    id: str
    workflow: str
    version: int | None
    plan_hash: str
    plan: bytes
    input: bytes
    records: tuple[Record, ...]
    now_ms: int
    idempotency_key: str | None = None
    request_hash: str = ""
    parent_run_id: str | None = None
    parent_key: str | None = None
    document_hash: str | None = None
    document: bytes | None = None
    draft_id: str | None = None
    draft_rev: int | None = None
    sources: tuple[str, ...] = ()
    source_run_id: str | None = None
    waits: tuple[WaitRow, ...] = ()
    signals: tuple[SignalRow, ...] = ()
    blobs: tuple[tuple[str, bytes], ...] = ()
    placement: Placement = Placement()
    files: tuple[str, ...] = ()
    due_ms: int | None = None


class RunRow(Struct, frozen=True):
    """`root_id`: the topmost run above, None for a run that no run started. `lease_until_ms`: of its owner, for all its
    runs."""

    id: str
    workflow: str
    version: int | None
    plan_hash: str
    status: RunStatus
    input: bytes
    output: bytes | None
    error: bytes | None
    seq: int
    epoch: int
    lease_owner: str | None
    lease_until_ms: int | None
    next_run_at_ms: int | None
    idempotency_key: str | None
    request_hash: str
    parent_run_id: str | None
    parent_key: str | None
    created_at_ms: int
    started_at_ms: int | None
    finished_at_ms: int | None
    stalls: int = 0
    document_hash: str | None = None
    draft_id: str | None = None
    draft_rev: int | None = None
    root_id: str | None = None
    former_owner: str | None = None  # whose lease had lapsed, set by `claim`
    lost_together: bool = False  # set by `claim` if that owner had other runs as well
    orphaned: bool = False  # set by `claim` for a run below one that has a cancel request, or has ended
    pool: str = ""  # a claim of any runs sets where in the queue it was: the next begins after that
    fair: str = ""
    limited: bool = False  # set by `claim` for a run that has places of limits

    def stale_since_ms(self, now_ms: int) -> int | None:
        """Return when the lease of its owner lapsed, or None if it has no owner, or one whose lease lasts."""
        if self.lease_owner is None or self.lease_until_ms is None or self.lease_until_ms > now_ms:
            return None
        return self.lease_until_ms


class ClockRepair(Struct, frozen=True):
    """Outcome of `repair_clock_skew`: how many runs, and how far ahead of now the furthest of their times was."""

    runs: int
    ahead_ms: int


class Move(Struct, frozen=True):
    """The plan that a run follows from this append on, and the version of its workflow that it is the plan of."""

    version: int
    plan_hash: str
    plan: bytes


# --- families: runs that other runs started


class FamilyMax(Struct, frozen=True):
    """The most runs that there may be below one root."""

    open: int = 10_000
    runs: int = 100_000


class FamilyRow(Struct, frozen=True):
    """`runs` were made below the root, `open` of them have not ended; `bytes`: see `Append.output_bytes`."""

    runs: int
    open: int
    bytes: int
    over: bool


class ChildRow(Struct, frozen=True):
    """A child run as its parent needs it: no input, no output."""

    id: str
    workflow: str
    version: int | None
    status: RunStatus
    parent_run_id: str
    parent_key: str
    created_at_ms: int
    finished_at_ms: int | None


# --- waits, messages and signals

WaitStatus = Literal["pending", "answered", "cancelled", "expired"]


class WaitRow(Struct, frozen=True):
    """One opening of a durable pause. `id` is unique per run and opening (node key text + '!' + attempt).
    `name` and `correlation` are for signals. `request` is what is shown, `schema` the form, both JSON."""

    run_id: str
    id: str
    node: str
    path: str
    kind: str
    token_hash: str
    request: bytes
    schema: bytes | None
    status: WaitStatus
    opened_at_ms: int
    expires_at_ms: int | None = None
    on_expire: str = "fail"
    name: str | None = None
    correlation: str | None = None
    response: bytes | None = None
    answered_by: str | None = None
    answered_at_ms: int | None = None


class WaitUpdate(Struct, frozen=True):
    """Close a wait that is still pending (a wait already answered keeps its answer)."""

    id: str
    status: Literal["cancelled", "expired", "answered"]
    response: bytes | None = None
    answered_by: str | None = None
    at_ms: int | None = None


class Answered(Struct, frozen=True):
    """Outcome of `answer_wait`: `won` is True if this call closed the wait; `wait` is the row as it is now."""

    won: bool
    wait: WaitRow


RESUMED_EVENTS_MAX: Final = 100
RESUMED_OUTPUT_BYTES_MAX: Final = 64 * 1024


class Resumed(Struct, frozen=True):
    """A run that was claimed, with what its owner needs first, of the same moment: `output_bytes` of all its outputs,
    the messages in its inbox, and its journal. `output_bytes` is None if it has more than RESUMED_EVENTS_MAX events.
    `records` is None for that too, or if their outputs are large, or they are damaged."""

    row: RunRow
    output_bytes: int | None
    messages: tuple[InboxRow, ...]
    records: tuple[Record, ...] | None


class InboxRow(Struct, frozen=True):
    """A message for the run's owner. `n` is unique per run and growing."""

    run_id: str
    n: int
    message: bytes


class SignalRow(Struct, frozen=True):
    run_id: str
    seq: int
    name: str
    correlation: str | None
    payload: bytes
    dedupe_key: str | None
    received_at_ms: int
    received_by: str | None
    consumed_by: str | None = None


# --- notifications about waits

NotificationStatus = Literal["pending", "sent", "failed", "cancelled"]
JOB_CHANNEL: Final = "job"  # starts a Job and looks after it
NOT_CREATED: Final = ""  # the `error` of such a message until its Job exists, however many claims were lost before


class NotificationRow(Struct, frozen=True):
    """To one address. `n` counts those of a wait from 1; `content` is JSON without secrets; `attempts` made
    so far; `due_at_ms`: not before this time, or, while it is being sent, until when no other process tries."""

    run_id: str
    wait_id: str
    n: int
    channel: str
    content: bytes
    status: NotificationStatus
    attempts: int
    created_at_ms: int
    due_at_ms: int
    settled_at_ms: int | None = None
    error: str | None = None


# --- cached results


class CacheRow(Struct, frozen=True):
    """`key`: see `kernel.values.cache`. `output` is JSON, `route` the handle that the block chose, `run_id` the run
    that put it out."""

    key: str
    scope: CacheScope
    workflow: str
    run_id: str
    block: str
    type: str
    schema_sig: str
    route: str | None
    created_at_ms: int
    expires_at_ms: int
    output: bytes


# --- checkpoints


class CheckpointRow(Struct, frozen=True):
    """`node` is a text of compiler.keys: a block in its iteration and branch. `data` is JSON, `attempt` the one
    that stored it."""

    run_id: str
    node: str
    attempt: int
    at_ms: int
    data: bytes


# --- snapshots

SNAPSHOT_SEQ_MIN = 1_000  # events of a run that may have one: a shorter journal is folded as quickly


class SnapshotRow(Struct, frozen=True):
    """The folded state of a run's journal after `seq` events. The store does not look into it: `format`, `code` and
    `plan_hash` decide who can read it, `checksum` is of all other fields and the run's id (`runtime/snapshots`)."""

    seq: int
    format: int
    code: str
    plan_hash: str
    checksum: int
    data: bytes


# --- what the owner of a run writes


class Append(Struct, frozen=True, gc=False):
    """Everything one transaction of a run's owner writes. Nothing else ever writes a run's events. `children`: runs
    that waits opened here wait for. `posts`: (run id, message) for the inboxes of other runs; `cancels`: the same, as
    `cancel_run` posts it. `move`: its new plan. `root`: of the family that it is in, or begins with its first child:
    its row is changed, and `output_bytes` are added to it. `snapshot`: of events before this append. `places`: of
    limits, which attempts leave that end here: node key and number of each; with them, if only with an empty list, go
    those of older epochs, and all when the run ends. `usage`: of steps that end here. `alerts`: for operators. `next`:
    the run that continues this one, which ends; it gets its priority."""

    run_id: str
    epoch: int
    expected_seq: int
    records: tuple[Record, ...]
    now_ms: int
    waits: tuple[WaitRow, ...] = ()
    closed_waits: tuple[WaitUpdate, ...] = ()
    consumed_inbox: tuple[int, ...] = ()
    consumed_signals: tuple[tuple[int, str], ...] = ()
    blobs: tuple[tuple[str, bytes], ...] = ()
    notifications: tuple[NotificationRow, ...] = ()
    children: tuple[NewRun, ...] = ()
    posts: tuple[tuple[str, bytes], ...] = ()
    cancels: tuple[tuple[str, bytes], ...] = ()
    root: str | None = None
    output_bytes: int = 0
    family_max: FamilyMax = FamilyMax()
    cached: tuple[CacheRow, ...] = ()
    move: Move | None = None
    status: RunStatus | None = None
    output: bytes | None = None
    error: bytes | None = None
    finished: bool = False
    snapshot: SnapshotRow | None = None
    places: tuple[tuple[str, int], ...] | None = None
    usage: tuple[UsageRow, ...] = ()
    alerts: tuple[AlertRow, ...] = ()
    next: NewRun | None = None


class Appended(Struct, frozen=True, gc=False):
    """`seq`: the new one. `inbox_n`: of the newest message in its inbox, 0: it is empty. `family`: as it is now, with
    `Append.root`."""

    seq: int
    inbox_n: int
    family: FamilyRow | None = None


# --- upkeep: what may be deleted


class Removable(Struct, frozen=True):
    """A run that may be deleted. `seq` is the number of its events: what deleting it costs."""

    id: str
    workflow: str
    seq: int
    finished_at_ms: int


class Orphans(Struct, frozen=True):
    """The counts of what was deleted."""

    plans: int = 0
    documents: int = 0
    blobs: int = 0
    versions: int = 0

    @property
    def total(self) -> int:
        return self.plans + self.documents + self.blobs + self.versions


class Retired(Struct, frozen=True):
    """The counts of what was dropped with parts of the journals, and of these parts."""

    runs: int = 0
    events: int = 0
    parts: int = 0


# --- sessions

SESSIONS_MAX: Final = 1_000


class SessionRow(Struct, frozen=True):
    """`mark` is of the token that it was made with: with another token it does not count. `user_id`: who signed in;
    `device`: what their browser calls itself."""

    hash: str
    mark: str
    created_at_ms: int
    seen_at_ms: int
    user_id: str = ""
    device: str = ""
