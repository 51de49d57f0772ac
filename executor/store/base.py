"""The store contract, in prose. `tests/conformance/store` is its test; every backend must pass it.

1. Everything a method reports as done is on disk when it returns (SQLite: synchronous=FULL).
2. Every multi-row change is one transaction: all or nothing, also over kill -9.
3. Per run, `seq` is dense, 1..n, assigned in the transaction that stores the events. `append` states the seq it
   expects and the epoch it holds; if either differs nothing is written and `Fenced` is raised.
4. A run has at most one live lease. `claim` raises the epoch; every later write of an older epoch raises Fenced.
5. `release` of a run that is to wait succeeds only when nothing arrived meanwhile (same epoch, empty inbox): an answer
   cannot be lost while the owner goes to sleep.
   A run that was told to cancel (`cancel_run`, `Append.cancels`) ends only when its owner has taken that out of the
   inbox: else `append` writes nothing and raises Unheard.
6. A wait is answered once. The winner's row and the inbox fact are one transaction; all others see who won and when.
7. Readers never wait for the writer and never see half a transaction.
8. Bytes go in and come out unchanged; the store never looks inside `document`, `ir`, `data`, `output`, `fact`.

Times are Unix milliseconds and always come from the caller. The store has no clock and no policy.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, Literal, Protocol

from msgspec import Struct

from executor.store.cache import CacheRow, CacheStore
from executor.store.checkpoints import CheckpointStore
from executor.store.children import ChildStore, FamilyMax, FamilyRow
from executor.store.lifecycle import LifecycleStore, Move
from executor.store.notifications import NotificationRow, NotificationStore
from executor.store.sessions import SessionStore
from executor.store.triggers import TriggerStore
from executor.store.upkeep import UpkeepStore
from executor.store.workflows import LastRun, WorkflowStore

RunStatus = Literal["queued", "running", "waiting", "succeeded", "failed", "cancelled"]
WaitStatus = Literal["pending", "answered", "cancelled", "expired"]
TERMINAL: frozenset[str] = frozenset({"succeeded", "failed", "cancelled"})
VERSION_MAX: Final = 2**31 - 1  # of a workflow; a larger number is refused before a database sees it


class Record(Struct, frozen=True):
    """One row of the journal. `node` and `path` are texts of compiler.keys; `data` is JSON without key and attempt."""

    seq: int
    at_ms: int
    type: str
    node: str | None
    path: str
    attempt: int
    data: bytes | None = None
    output: bytes | None = None


class WorkflowRow(Struct, frozen=True):
    name: str
    version: int
    hash: str
    document: bytes
    created_at_ms: int


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


class NewRun(Struct, frozen=True):
    """A run to be created together with its plan and its document (each by hash, once) and its first records.
    `document` None with a hash: the document is there already. `draft_id`, `draft_rev`: the revision it is a run of.
    `sources`: runs that it takes something over from, which must be there. `waits` are the rows of waits among its
    records, `signals` what it has been sent, in order from seq 1; `blobs` hold what no source has."""

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
    waits: tuple[WaitRow, ...] = ()
    signals: tuple[SignalRow, ...] = ()
    blobs: tuple[tuple[str, bytes], ...] = ()


class RunRow(Struct, frozen=True):
    """`root_id`: the topmost run above, None for a run that no run started."""

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
    former_owner: str | None = None  # whose lease had lapsed, says `claim`
    lost_together: bool = False  # `claim` says so when that owner had other runs as well
    orphaned: bool = False  # `claim` says so of a run below one that was told to cancel, or has ended


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


class InboxRow(Struct, frozen=True):
    """A fact waiting for the run's owner. `n` is unique per run and growing."""

    run_id: str
    n: int
    fact: bytes


class WaitUpdate(Struct, frozen=True):
    """Close a wait that is still pending (a wait already answered keeps its answer)."""

    id: str
    status: Literal["cancelled", "expired", "answered"]
    response: bytes | None = None
    answered_by: str | None = None
    at_ms: int | None = None


class Append(Struct, frozen=True):
    """Everything one transaction of a run's owner writes. Nothing else ever writes a run's events. `children`: runs
    that waits opened here wait for; `posts`: (run id, fact) for the inboxes of other runs; `cancels`: the same, as
    `cancel_run` posts it; `move`: its new plan. `root`: of the family that it is in, or begins with its first child:
    its row is changed, and `output_bytes` are added to it."""

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


class Appended(Struct, frozen=True):
    """`seq`: the new one. `inbox_n`: of the newest fact in its inbox, 0: it is empty. `family`: as it is now, with
    `Append.root`."""

    seq: int
    inbox_n: int
    family: FamilyRow | None = None


class EventFilter(Struct, frozen=True):
    """`after` is exclusive. `node` is a node id (every scope of it); `types` empty means all."""

    after: int = 0
    limit: int = 1000
    node: str | None = None
    types: tuple[str, ...] = ()
    since_ms: int | None = None


class Mended(Struct, frozen=True):
    """Outcome of `mend_clock`: how many runs, and how far ahead of the time given the furthest of their times was."""

    runs: int
    ahead_ms: int


class Answered(Struct, frozen=True):
    """Outcome of `answer_wait`: `won` tells whether this call was the one; `wait` is the row as it stands now."""

    won: bool
    wait: WaitRow


class Store(
    WorkflowStore,
    NotificationStore,
    ChildStore,
    CacheStore,
    CheckpointStore,
    TriggerStore,
    UpkeepStore,
    LifecycleStore,
    SessionStore,
    Protocol,
):
    """See the module text. Every method raises DatabaseWriteFailed / DatabaseUnavailable (executor.errors) when the
    disk says no."""

    async def open(self) -> None:
        """Create or migrate the schema. Refuses a database newer than this code (SchemaTooNew)."""

    async def close(self) -> None: ...

    # plans and documents
    async def get_plan(self, hash: str) -> bytes | None: ...

    async def get_document(self, hash: str) -> bytes | None:
        """The document of a run that is not one of a stored workflow; see `RunRow.document_hash`."""

    async def get_blob(self, hash: str) -> bytes | None: ...

    # drafts
    async def put_draft(
        self, id: str, expected_rev: int, name: str, document: bytes, now_ms: int, base_version: int | None = None
    ) -> tuple[DraftRow | None, bool]:
        """Revision expected_rev + 1 of a draft; 0 makes a new one, and only then `base_version` counts (of `name`, as
        base_rev 1). Second value False: nothing was written, the first is the draft as it stands, None: there is
        none."""

    async def get_draft(self, id: str) -> DraftRow | None: ...

    async def list_drafts(self, before: str | None = None, limit: int = 200) -> list[DraftHead]:
        """Newest change first (updated_at, id). `before`: the draft id that ended the previous page."""

    async def last_runs(self, drafts: Sequence[str]) -> dict[str, LastRun]:
        """The run of each draft that was created last, by draft id. Drafts without a run are left out. Costs a look
        into an index for each, however many runs there are."""

    async def rebase_draft(self, id: str, rev: int, workflow: str, version: int) -> DraftRow | None:
        """Note that revision `rev` was stored as `version` of `workflow`; the draft's own rev stays. The draft as it is
        now, or None when there is none."""

    async def delete_draft(self, id: str, expected_rev: int | None = None) -> bool:
        """False, and nothing changed: no such draft, or its rev moved. Its runs stay."""

    # runs
    async def create_run(self, run: NewRun) -> tuple[RunRow, bool]:
        """Plan, document, run (status queued, next_run_at = now) and records, one transaction. With an idempotency key
        already used for this workflow the stored run is returned and the second value is False."""

    async def get_run(self, run_id: str) -> RunRow | None: ...

    async def last_seqs(self, run_ids: Sequence[str]) -> dict[str, int]:
        """The last seq of each; runs that do not exist are left out."""

    async def list_runs(
        self,
        workflow: str | None = None,
        status: str | None = None,
        before: str | None = None,
        limit: int = 50,
        draft: str | None = None,
        *,
        parent: str | None = None,
    ) -> list[RunRow]:
        """Newest first (created_at, id). `before`: the run id that ended the previous page."""

    async def count_runs(self, workflow: str | None = None, draft: str | None = None) -> dict[str, int]:
        """Runs by status; a status without runs is not there."""

    async def list_inputs(
        self, workflow: str | None = None, draft: str | None = None, bytes_max: int = 65_536, limit: int = 100
    ) -> list[bytes]:
        """Inputs of at most `bytes_max` bytes, repeats included, newest run first."""

    async def claim(
        self, owner: str, now_ms: int, lease_ms: int, limit: int = 1, run_id: str | None = None
    ) -> list[RunRow]:
        """Lease runs that are due: status queued, running or waiting, next_run_at <= now, no live lease; oldest first.
        epoch + 1, stalls + 1, status running, started_at kept. `run_id` narrows the claim to one run."""

    async def renew(self, owner: str, run_ids: Sequence[str], now_ms: int, lease_ms: int) -> set[str]:
        """Extend the leases this owner still holds, in one UPDATE. Returns those it still holds."""

    async def output_bytes(self, run_id: str) -> int:
        """Of all outputs in its journal."""

    async def release(self, run_id: str, epoch: int, seq: int, next_run_at_ms: int | None, status: RunStatus) -> bool:
        """Free the lease. False, and nothing changed, when the epoch or seq moved, or when the run would wait and its
        inbox is not empty. next_run_at None: only a fact wakes it. `running`: it goes on as soon as somebody claims
        it."""

    async def next_due(self, now_ms: int) -> int | None:
        """Earliest time at which `claim` could find something: min over open runs of max(next_run_at, lease_until)."""

    async def mend_clock(self, now_ms: int, lease_max_ms: int) -> Mended:
        """After the wall clock was set back: free leases that end later than `lease_max_ms` from now, and make due what
        was due at a time that has not come yet, but for runs that wait."""

    # the journal
    async def append(self, append: Append) -> Appended:
        """Sets stalls to 0. Raises Fenced (lost lease or moved seq), Unheard (it would end the run, which has not heard
        of a cancel) and LimitExceeded (`family_max`): nothing was written."""

    async def read_events(self, run_id: str, after: int = 0, limit: int = 10_000) -> list[Record]:
        """In seq order."""

    async def find_events(self, run_id: str, where: EventFilter) -> tuple[list[Record], int]:
        """A page and the count of all that match ignoring `after` and `limit`."""

    # facts from outside
    async def read_inbox(self, run_id: str) -> list[InboxRow]: ...

    async def post_fact(self, run_id: str, fact: bytes, now_ms: int) -> bool:
        """Append to the inbox and make the run due now. False: no such run, or it has ended."""

    async def cancel_run(self, run_id: str, fact: bytes, now_ms: int) -> bool:
        """As `post_fact`, with a fact that must be taken before the run can end. Of a root the whole family is over."""

    async def find_wait(self, token_hash: str) -> WaitRow | None: ...

    async def get_wait(self, run_id: str, wait_id: str) -> WaitRow | None: ...

    async def list_waits(
        self,
        status: WaitStatus | None = "pending",
        run_id: str | None = None,
        limit: int = 200,
        *,
        kind: str | None = None,
        workflow: str | None = None,
        key: str | None = None,
        before: tuple[str, str] | None = None,
    ) -> list[WaitRow]:
        """Oldest first (opened_at, run id, id), over all runs unless narrowed. `key`: of the node that waits.
        `before`: run and wait id that ended the page before."""

    async def count_waits(
        self, run_id: str | None = None, kind: str | None = None, workflow: str | None = None
    ) -> dict[str, int]:
        """By status; a status without waits is not there."""

    async def answer_wait(
        self, token_hash: str, response: bytes, by: str | None, fact: bytes, now_ms: int
    ) -> Answered | None:
        """pending -> answered once, the fact into the inbox, the run due now; one transaction. None: no such wait."""

    async def cancel_wait(self, run_id: str, wait_id: str, by: str | None, fact: bytes, now_ms: int) -> Answered | None:
        """pending -> cancelled once, as `answer_wait` answers. None: no such wait."""

    async def expire_wait(self, run_id: str, wait_id: str, fact: bytes, now_ms: int) -> bool:
        """pending -> expired once, the fact into the inbox, the run due now; one transaction. False: it was not
        pending."""

    async def post_signal(
        self,
        run_id: str,
        name: str,
        correlation: str | None,
        payload: bytes,
        dedupe_key: str | None,
        by: str | None,
        fact: bytes,
        now_ms: int,
    ) -> tuple[SignalRow, bool] | None:
        """Store the signal (seq = 1.. per run) and wake the run. A repeated dedupe_key returns the first row and False.
        None: no such run, or it has ended."""

    async def unconsumed_signals(self, run_id: str) -> list[SignalRow]:
        """In order of arrival."""

    async def list_signals(
        self,
        run_id: str,
        name: str | None = None,
        correlation: str | None = None,
        received_after_ms: int | None = None,
        limit: int = 200,
    ) -> list[SignalRow]:
        """In order of arrival, consumed ones too; `received_after_ms` is inclusive: of two that came in one
        millisecond none is passed over by who asks for what came after the first."""

    def hurry(self) -> None:
        """From now on a write that finds the database busy is not tried again: a process that is told to stop has
        seconds."""

    def check_file(self) -> None:
        """Waits for nothing. Raises DatabaseReplaced: the file is not the one that its path names any more, so nothing
        is written."""

    async def ping_read(self) -> None:
        """A read that waits for no writer proves that the database can be read; raises otherwise."""

    async def ping(self) -> None:
        """A read and a tiny write prove that the database works; raises otherwise."""
