"""The store contract. `tests/conformance/store` tests it; every backend must pass.

Every store

 1. What a method reports as done survives a crash of the process and of the machine.
 2. Each change of several rows is one transaction: all or nothing, also over kill -9.
 3. Readers never wait for writers and never see half a transaction.
 4. Any number of processes may have a store open on one database. Every rule holds over all of them: a change that
    depends on what it found fails, or changes nothing, when another process was first. None relies on a single writer,
    on where a row lies, or on files.
 5. Times are Unix milliseconds and always come from the caller; the store has no clock and no policy. Times of
    different processes may differ, and rows may have equal times: each order of a list is completed by ids, or is the
    order of numbers that the store gives out (`seq`, `n`). Ids, names and paths are ordered by code point.
 6. Bytes that go in come out unchanged. The store looks into them for one thing only: the name `blob` in a record's
    `data`. A run holds the files that `NewRun.files` names as soon as it exists.

The journal

 7. Per run, `seq` is dense, 1..n, assigned in the transaction that stores the events. There is no order over the events
    of several runs. `append` states the seq that it expects and the epoch that it holds; if either differs, nothing is
    written and Fenced is raised.
 8. A run has at most one owner, and a worker one lease for all runs that it owns; while it lasts, no other claims them.
    `claim` raises the epoch; every later write with an older epoch raises Fenced.
 9. `release` of a run that is to wait succeeds only when nothing arrived meanwhile (same epoch, same seq, empty inbox):
    an answer cannot be lost while the owner goes to sleep.
10. A run with a cancel request (`cancel_run`, `Append.cancels`) ends only when its owner has consumed it from the
    inbox; else `append` writes nothing and raises Unheard.
11. A run that is claimed below one that has a cancel request, or has ended, has `orphaned` set.
12. A run moves to another plan (`Append.move`) in the append that records it: its row and its journal never disagree.
13. A run made from other ones (`NewRun.sources`) has its copied records, waits, signals and blobs as soon as it exists,
    and holds the files that they hold; at that time the other runs exist: nothing that it refers to can have been
    deleted.

Waits, and notifications about them

14. A wait is closed once. Its row and the message in the inbox are one transaction; later callers get the row of the
    first.
15. A notification exists if and only if its wait does: both are written in one transaction.
16. `claim_notifications` gives a notification to one caller, and to no other before `lease_ms` have passed, or the time
    that `keep_notification` gave it since. Each claim is one attempt, unless it is freed as one that sent nothing. A
    notification whose wait is closed becomes `cancelled` when it is due, and is not claimed; but one of the channel
    `job` is: it has to end what it began.
17. `keep_notification` and `settle_notification` count only for the attempt that was claimed last: a caller whose lease
    lapsed changes nothing.

Child runs: rows in the table of runs, with `parent_run_id`, and in `parent_key` the id of the wait that the child's end
closes

18. A child exists if and only if its wait does: both are one transaction (`Append.children`), and a wait has one child.
19. What one run sends to another (`Append.posts`, `Append.cancels`: the end of a child, a cancel on its way down) is in
    the other's inbox if and only if the append is stored. A run that has ended receives nothing.
20. The runs below one root are its family, and its row is changed in the transactions that change them: `runs` made so
    far, `open` ones, `bytes` of outputs. If a child would be one too many (`Append.family_max`), nothing of its append
    is written. The family is over when its root gets a cancel request, or ends.

Runs that continue as new

49. A run that continues another one exists if and only if that one has ended: both are one transaction (`Append.next`).
    It has the priority of the run before, the signals that that one has not received with the files that they name,
    and is not claimed before `NewRun.due_ms`.

Cached results and checkpoints

21. A cached result is written in the append that records the success it came from (`Append.cached`), so the cache never
    holds what no journal has. A second row of the same key replaces the first.
22. An expired result is never found; `delete_expired_cache` deletes its row.
23. `put_checkpoint` names the epoch of the run's owner; if that is not the run's, or the run has ended, nothing is
    written and Fenced is raised. A node key has one checkpoint, the last; it is no event, and `seq` stays. It is
    deleted with its run.

Snapshots of long open runs

24. A run has at most one snapshot, the last that was written (`Append.snapshot`, `release`): in the same transaction as
    what it was given to, and not at all if that fails. It is deleted when the run ends, moves to another plan, or is
    deleted. Nothing else depends on it: it may be deleted at any time.

Workflows: numbered versions of a document

25. One version of a workflow is active: the one stored last, or an older one that was stored or activated again. It
    runs where no version is named.
26. The triggers of a document are written in the transaction that makes its version active. What people set (`enabled`)
    and what happened (`last_run_id`, the secret's generation) outlives a version.
27. `delete_workflow` deletes the active version, schedules and webhooks of a name in one transaction, and only while no
    run of it is open. The versions stay for the runs that ended; the next one stored under the name counts on from
    them. `delete_orphans` deletes them when the last run of the name has been deleted.

Schedules and webhooks

28. One fire time of a schedule starts one run, whichever process asks: `fire` names the time that it expects, moves the
    schedule on and creates the run in one transaction. If another process was first, nothing is written.
29. A delivery starts one run: a delivery with the id or the digest of an earlier one is not stored, and the run of that
    one is returned. Nor is one to a webhook that was changed, switched off or deleted after the request was checked
    against it. Ids are remembered for at least a day; digests of `github`, whose signature contains no time, as long as
    the webhook exists and its secret's generation is the same.
30. Of refused requests there is one row for each webhook and reason, and none of a webhook that does not exist.

Deletion

31. `delete_runs` deletes a run with everything that belongs to it in one transaction: no reader sees half a run. It
    decides in that transaction whether a run may be deleted: it has ended, no child of it is open, and no open run
    reads outputs of it (`NewRun.source_run_id`).
32. A child is deleted after its parent, never before it, so a reader of a parent finds its children.
33. `delete_orphans` deletes a plan, document or blob only if no run refers to it in the transaction that deletes it,
    and nothing has used it since the time that the caller names, as far back as a use may be noted late
    (USED_EVERY_MS) at least. Storing it again is a use. A plan that a message in an inbox asks a run to move to is
    referred to.

Sessions: one row for each browser that is signed in, by the hash of what it holds; the server decides how long it lasts

34. A session that was deleted is never found again. `seen_at_ms` only grows, and seeing a session does not bring back
    one that was deleted. Of more than SESSIONS_MAX, those seen longest ago are deleted.
35. A claim takes runs of its pools only, which have equal shares of it. The `fair` keys of a pool take turns, in order
    of the text, from after the key that the claim names, and from the first again: with k keys and room for m runs
    each has ceil(m / k). Within a key the highest priority comes first, then the longest due, then the lowest id; the
    first run of every key comes before the second of any. Runs whose owner's lease has lapsed come before these, by the
    time since when they are free; they have half of the claim, and what the others leave.
36. Of the runs with the key of a limit, no more than its `at_most` have an owner at the same time; a run whose owner's
    lease has lapsed counts until it is claimed again. A run for which there is no place is not claimed, and does not
    keep others from being claimed; when a place is free, the one with the highest priority, then the longest due, is
    found again. A run with a cancel request needs no place. Of the runs with the key of a rate, the first claims are
    1 / per_s seconds apart: one that comes too early makes the run due at its time.
37. Of the attempts with the key of a block's limit, no more than `at_most` have a place at once, reserved or used, each
    by its own `at_most`. Those that wait are served in the order in which they asked. A place is left with the append
    that ends its attempt (`Append.places`), or when the run has another epoch. An attempt of an older epoch whose place
    was not used has not begun.
38. A secret gets a new value only from a caller that names its version: of two at once one is refused. A secret that
    is sealed again keeps its version, and one that has a new value meanwhile is left as it is. Of two documents of a
    connector, the one committed last counts.

People

39. A user who was deleted has no sessions, tokens and sign-in links from then on. A code of a sign-in link counts once.
40. The first audited change that is submitted while a person or a program acts (`acting`) and its audit row are one
    transaction. A change without effect writes no row. `topics/store.py` lists the changes that are audited.
41. Rows of the audit have the numbers 1..n. Each has the hash of itself and of the hash before it; `audit_head` has
    that of the last. No row is changed or deleted.

Memory of agents

42. A turn of a conversation is written once, however often it is asked for. Turns have the order in which they were
    written, the same for each reader, and of two that are written at the same time one is first. What a workflow
    remembers is deleted with it; what belongs to a scope is not.

Usage

43. Usage and cost of a step (`Append.usage`) are added in the append that records its end, so each end counts once.
    Usage that a run takes over from another one counts for that one alone.
44. When a run is deleted, its usage stays: the sums of a day are the same before and after.

Load

45. `load` counts what is open without waiting for writes, and looks at no more than COUNTED_MAX rows of each kind.

Alerts

46. An alert for operators is written in the transaction of its cause (`Append.alerts`, `Fire.alerts`), or with
    `add_alerts`. Of one cause there is one alert for each address, and it is in one message.
47. Of two messages to one address the second is made `every_ms` after the first at the earliest, with all that has come
    up meanwhile. An alert about a wait that is closed when it is due is in no message.
48. Messages are claimed, kept and settled as notifications are. Alerts about a run, and the start of its error
    workflow, are deleted with the run.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from typing import Protocol

from executor.kernel.store.alerts import AlertStore
from executor.kernel.store.connectors import ConnectorStore
from executor.kernel.store.files import FileStore
from executor.kernel.store.keys import KeyStore
from executor.kernel.store.load import LoadStore
from executor.kernel.store.memory import MemoryStore
from executor.kernel.store.people import PeopleStore
from executor.kernel.store.places import PlaceStore
from executor.kernel.store.run_rows import (
    DEFAULT_POOLS,
    Append,
    Appended,
    ClockRepair,
    EventFilter,
    NewRun,
    Record,
    Resumed,
    RunRow,
)
from executor.kernel.store.secrets import SecretStore
from executor.kernel.store.statements import RunStatus
from executor.kernel.store.stats import Stats
from executor.kernel.store.topics.cache import CacheRow
from executor.kernel.store.topics.checkpoints import CheckpointRow
from executor.kernel.store.topics.drafts import DraftHead, DraftRow, LastRun
from executor.kernel.store.topics.families import ChildRow, FamilyRow
from executor.kernel.store.topics.inbox import InboxRow, SignalRow
from executor.kernel.store.topics.limits import Full
from executor.kernel.store.topics.outbox import NotificationRow, NotificationStatus
from executor.kernel.store.topics.schedules import FIRES_KEPT, Fire, Fired, FireRow, ScheduleRow
from executor.kernel.store.topics.sessions import SessionRow
from executor.kernel.store.topics.snapshots import SnapshotRow
from executor.kernel.store.topics.upkeep import Orphans, Removable, Retired
from executor.kernel.store.topics.waits import Answered, WaitRow, WaitStatus
from executor.kernel.store.topics.webhooks import DELIVERIES_KEPT, DeliveryRow, RefusalRow, WebhookRow
from executor.kernel.store.topics.workflows import (
    Declared,
    DeletedWorkflow,
    Stored,
    VersionRow,
    WorkflowHead,
    WorkflowRow,
)
from executor.kernel.store.usage import UsageStore


class ContentStore(Protocol):
    """Contents that are stored by their hash, once."""

    async def get_plan(self, hash: str) -> bytes | None: ...

    async def put_plan(self, hash: str, plan: bytes, now_ms: int) -> None:
        """Store a plan that no run has yet; once, by hash."""

    async def get_document(self, hash: str) -> bytes | None:
        """Return the document of a run that is not one of a stored workflow; see `RunRow.document_hash`."""

    async def get_blob(self, hash: str) -> bytes | None: ...


class WorkflowStore(Protocol):
    """Versions of documents."""

    async def put_workflow(
        self, name: str, document: bytes, hash: str, now_ms: int, declared: Declared | None = None
    ) -> Stored:
        """Store the next version of `name`, or find the existing version with this hash; it is the active one from now
        on. `declared` are the triggers of the document, which replace those of the version that was active; None leaves
        them."""

    async def activate_workflow(
        self, name: str, version: int, now_ms: int, declared: Declared | None = None
    ) -> Stored | None:
        """As `put_workflow` with the document of `version`. Returns None if there is no such workflow or version."""

    async def get_workflow(self, name: str, version: int | None = None) -> WorkflowRow | None:
        """Return the active version, or with a number that one, also of a workflow that was deleted."""

    async def list_workflows(self) -> list[WorkflowRow]:
        """Return the active version of each workflow, by name."""

    async def get_head(self, name: str) -> WorkflowHead | None:
        """Return the head, or None if there is no such workflow, or it was deleted."""

    async def list_heads(self) -> list[WorkflowHead]:
        """Return heads by name. Costs a look into an index for each, however many runs there are."""

    async def list_versions(self, name: str, before: int | None = None, limit: int = 200) -> list[VersionRow]:
        """Return versions below `before`, newest first; [] for a workflow that was deleted."""

    async def delete_workflow(self, name: str) -> DeletedWorkflow | None:
        """See rule 27. Drafts of it are based on nothing from then on. Returns None if there is no such workflow."""


class DraftStore(Protocol):
    """Documents that are being edited."""

    async def put_draft(
        self, id: str, expected_rev: int, name: str, document: bytes, now_ms: int, base_version: int | None = None
    ) -> tuple[DraftRow | None, bool]:
        """Store revision expected_rev + 1 of a draft; 0 makes a new one, and only then `base_version` counts (of
        `name`, as base_rev 1). If the second value is False nothing was written, and the first is the draft as it is,
        or None if there is none."""

    async def get_draft(self, id: str) -> DraftRow | None: ...

    async def list_drafts(self, before: str | None = None, limit: int = 200) -> list[DraftHead]:
        """Newest change first (updated_at, id). `before`: the draft id that ended the previous page."""

    async def last_runs(self, drafts: Sequence[str]) -> dict[str, LastRun]:
        """Return the run of each draft that was created last, by draft id. Drafts without a run are left out. Costs a
        look into an index for each, however many runs there are."""

    async def rebase_draft(self, id: str, rev: int, workflow: str, version: int) -> DraftRow | None:
        """Note that revision `rev` was stored as `version` of `workflow`; the draft's own rev stays. Returns the
        draft as it is now, or None if there is none."""

    async def delete_draft(self, id: str, expected_rev: int | None = None) -> bool:
        """Delete a draft; its runs stay. Returns False, with nothing changed, if there is no such draft, or its rev
        moved."""


class RunStore(Protocol):
    async def create_run(self, run: NewRun) -> tuple[RunRow, bool]:
        """Store plan, document, run (status queued, next_run_at = now) and records in one transaction. With an
        idempotency key already used for this workflow the stored run is returned and the second value is False."""

    async def begin_run(self, run: NewRun, owner: str, lease_ms: int, first: Append) -> tuple[RunRow, bool]:
        """As `create_run`; if the run is new also as `claim` of it by `owner` and `append` of `first`, in the same
        transaction. `first` is of epoch 1, follows the records of `run`, and makes no children. A run that ends in
        `first` needs no lease: that of `owner` may stay as it is."""

    async def get_run(self, run_id: str) -> RunRow | None: ...

    async def runs_by_key(self, workflow: str, first: str, last: str, limit: int) -> list[RunRow]:
        """Return the last runs whose idempotency key is from `first` to `last`, by that key backwards."""

    async def last_seqs(self, run_ids: Sequence[str]) -> dict[str, int]:
        """Return the last seq of each; runs that do not exist are left out."""

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
        """Count runs by status; a status without runs is left out, and COUNT_MAX means that number or more."""

    async def list_inputs(
        self, workflow: str | None = None, draft: str | None = None, bytes_max: int = 65_536, limit: int = 100
    ) -> list[bytes]:
        """Return inputs of at most `bytes_max` bytes, repeats included, newest run first."""

    async def output_bytes(self, run_id: str) -> int:
        """Return the bytes of all outputs in its journal."""


class LeaseStore(Protocol):
    """Ownership of runs, and their due times."""

    async def claim(
        self,
        owner: str,
        now_ms: int,
        lease_ms: int,
        limit: int = 1,
        run_id: str | None = None,
        pools: Mapping[str, str] = DEFAULT_POOLS,
    ) -> list[RunRow]:
        """Own runs that are due: status queued, running or waiting, next_run_at <= now, without an owner or with one
        whose lease has lapsed. epoch + 1, stalls + 1, status running, started_at kept; the lease of `owner` ends
        `lease_ms` from now. `run_id` narrows the claim to one run. Which runs, and in which order: rule 35."""

    async def renew(self, owner: str, run_ids: Sequence[str], now_ms: int, lease_ms: int) -> set[str]:
        """Let the lease of `owner` end `lease_ms` from now. Returns those of `run_ids` that it still owns: the others
        were claimed by another worker, or have ended. What it owns beside `run_ids` has no owner from now on: it has
        dropped that, or the answer to its claim was lost. A worker that owns nothing then has no lease."""

    async def release(
        self,
        run_id: str,
        epoch: int,
        seq: int,
        next_run_at_ms: int | None,
        status: RunStatus,
        snapshot: SnapshotRow | None = None,
    ) -> bool:
        """Give the run up. Returns False, with nothing changed, if the epoch or seq moved, or the run would wait and
        its inbox is not empty. If `next_run_at_ms` is None only a message wakes it. With `running` it continues as soon
        as it is claimed. Sets stalls to 0: a worker that gives a run up was not taken down by it."""

    async def next_due(self, pools: Collection[str] = DEFAULT_POOLS) -> int | None:
        """Return when `claim` could find something: min over open runs of these pools of max(next_run_at, end of its
        owner's lease). While there are runs that are due, any time at which one of them was."""

    async def count_queued(self, pool: str, upto: int) -> int:
        """Count runs of the pool that wait for a worker: without an owner and due, or without a place of a limit. Not
        counted further than `upto`. One that becomes due by time may be missing until the next claim."""

    async def waits_for(self, run_id: str) -> Full | None:
        """Return the limit because of which the run was not claimed, or None."""

    async def repair_clock_skew(self, now_ms: int, lease_max_ms: int) -> ClockRepair:
        """After the wall clock was set back: free the runs of workers whose lease ends later than `lease_max_ms` from
        now, and make due what was due at a time that has not come yet, except runs that wait."""


class JournalStore(Protocol):
    async def append(self, change: Append) -> Appended:
        """Sets stalls to 0. Raises Fenced (lost lease or moved seq), Unheard (it would end the run, whose cancel
        request was not consumed) and LimitExceeded (`family_max`): nothing was written."""

    async def read_events(self, run_id: str, after: int = 0, limit: int = 10_000) -> list[Record]:
        """Return events in seq order."""

    async def find_events(self, run_id: str, where: EventFilter) -> tuple[list[Record], int]:
        """Return a page, and the count of all that match, ignoring `after` and `limit`."""


class InboxStore(Protocol):
    """Messages and signals to a run from outside."""

    async def read_inbox(self, run_id: str) -> list[InboxRow]: ...

    async def post_message(self, run_id: str, message: bytes, now_ms: int, plan_hash: str | None = None) -> bool:
        """Append to the inbox and make the run due now. `plan_hash` is of the plan that the message asks the
        run to move to. Returns False if there is no such run, or it has ended."""

    async def cancel_run(self, run_id: str, message: bytes, now_ms: int) -> bool:
        """As `post_message`; the run cannot end before it has consumed this one. A root's family is then over."""

    async def post_signal(
        self,
        run_id: str,
        name: str,
        correlation: str | None,
        payload: bytes,
        dedupe_key: str | None,
        by: str | None,
        message: bytes,
        now_ms: int,
    ) -> tuple[SignalRow, bool] | None:
        """Store the signal (seq = 1.. per run) and wake the run. A repeated dedupe_key returns the first row and False.
        Returns None if there is no such run, or it has ended."""

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
        """In order of arrival, consumed ones too; `received_after_ms` is inclusive, so that a caller who asks
        for what came after the first of two does not miss the second of the same millisecond."""


class WaitStore(Protocol):
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
        `before`: run and wait id that ended the previous page."""

    async def count_waits(
        self, run_id: str | None = None, kind: str | None = None, workflow: str | None = None
    ) -> dict[str, int]:
        """Count waits by status; a status without waits is left out, and COUNT_MAX means that number or more."""

    async def answer_wait(
        self, token_hash: str, response: bytes, by: str | None, message: bytes, now_ms: int
    ) -> Answered | None:
        """pending -> answered once, message into the inbox, run due now; one transaction. Returns None if there
        is no such wait."""

    async def answer_and_claim(
        self,
        token_hash: str,
        response: bytes,
        by: str | None,
        message: bytes,
        now_ms: int,
        owner: str,
        lease_ms: int,
        pools: Mapping[str, str] = DEFAULT_POOLS,
    ) -> tuple[Answered | None, Resumed | None]:
        """As `answer_wait`; if this is the answer also as `claim` of its run by `owner`, in the same transaction. The
        second value is None if the run was not free."""

    async def cancel_wait(
        self, run_id: str, wait_id: str, by: str | None, message: bytes, now_ms: int
    ) -> Answered | None:
        """pending -> cancelled once, returned as by `answer_wait`; None if there is no such wait."""

    async def expire_wait(self, run_id: str, wait_id: str, message: bytes, now_ms: int) -> bool:
        """pending -> expired once, the message into the inbox, the run due now; one transaction. Returns
        False if it was not pending."""


class NotificationStore(Protocol):
    """An outbox of notifications to people about waits."""

    async def claim_notifications(self, now_ms: int, lease_ms: int, limit: int) -> list[NotificationRow]:
        """Claim pending ones that are due, oldest first: attempts + 1, due again when the lease is over. Those of waits
        that are closed become `cancelled` instead."""

    async def keep_notification(
        self, run_id: str, wait_id: str, n: int, attempt: int, until_ms: int, counts: bool = True
    ) -> bool:
        """Let the claim of attempt number `attempt` last until then; it is free at a time that has come. With
        `counts=False` nothing was sent, so it was no attempt. Returns False, with nothing changed, if it was cancelled,
        or another attempt was begun."""

    async def settle_notification(
        self,
        run_id: str,
        wait_id: str,
        n: int,
        attempt: int,
        status: NotificationStatus,
        now_ms: int,
        due_at_ms: int | None = None,
        error: str | None = None,
    ) -> bool:
        """Record how attempt number `attempt` ended; `pending` with `due_at_ms` tries again then. Returns False, with
        nothing changed, if another attempt was begun meanwhile."""

    async def next_notification_ms(self) -> int | None:
        """Return when the next one is due, or None if there is none to send."""

    async def list_notifications(self, waits: Sequence[tuple[str, str]]) -> list[NotificationRow]:
        """Return all notifications of these waits (run id, wait id), in the order of their numbers for each wait."""


class ChildStore(Protocol):
    """ "Below": children, their children, and so on, as long as all of them are open."""

    async def get_family(self, root_id: str) -> FamilyRow | None:
        """Return the family, or None if the run never had a child."""

    async def list_children(self, run_id: str, limit: int = 200) -> list[ChildRow]:
        """Newest first (created_at, id)."""

    async def list_ancestors(self, run_id: str, limit: int = 100) -> list[str]:
        """Return the run's parent, the parent's parent and so on; [] for a run that no run started."""

    async def list_waits_below(self, run_id: str, limit: int = 200) -> list[WaitRow]:
        """Return pending waits of the runs below, oldest first, without those for a child."""

    async def count_active_below(self, run_id: str, now_ms: int) -> int:
        """Count runs below that are queued or running, or are due."""


class CacheStore(Protocol):
    async def find_cached(self, key: str, now_ms: int) -> CacheRow | None:
        """Return the row, or None if there is none or it has expired (expires_at <= now)."""

    async def clear_cache(self, workflow: str | None = None) -> int:
        """Delete everything, or what runs of this workflow left. Returns how many rows were deleted."""

    async def delete_expired_cache(self, now_ms: int, limit: int) -> int:
        """Delete at most `limit` rows that expired before `now_ms`, oldest first. Returns how many were deleted."""


class CheckpointStore(Protocol):
    """Progress of an attempt, kept for the attempt that follows."""

    async def put_checkpoint(self, epoch: int, row: CheckpointRow) -> None:
        """Replace the one before. Raises Fenced."""

    async def get_checkpoint(self, run_id: str, node: str) -> CheckpointRow | None: ...


class SnapshotStore(Protocol):
    """Snapshots of runs: rule 24. An append or a release writes them."""

    async def get_snapshot(self, run_id: str) -> SnapshotRow | None: ...

    async def delete_snapshots(self) -> int:
        """Delete all of them. Returns how many there were."""


class ScheduleStore(Protocol):
    async def put_schedule(self, row: ScheduleRow) -> ScheduleRow:
        """Make it, or change it: see `merged_schedule` for what stays. Returns the row as it is now."""

    async def get_schedule(self, id: str) -> ScheduleRow | None: ...

    async def list_schedules(self, workflow: str | None = None, limit: int = 1_000) -> list[ScheduleRow]:
        """By id."""

    async def switch_schedule(
        self, id: str, enabled: bool, next_run_at_ms: int | None, now_ms: int, times: tuple[str, str]
    ) -> ScheduleRow | None:
        """Switch a schedule on or off. Switching off deletes a queued fire time; a schedule that is on keeps its next
        fire time. `times` are the cron and tz that `next_run_at_ms` was calculated from; a schedule that has others by
        now is not switched on. Returns the row as it is now, or None if there is no such schedule."""

    async def delete_schedule(self, id: str) -> bool:
        """Delete a schedule; its runs stay."""

    async def due_schedules(self, now_ms: int, limit: int) -> list[ScheduleRow]:
        """Return schedules with a fire time that has come, or with a queued one and no open run; longest due first."""

    async def next_schedule_ms(self) -> tuple[int | None, bool]:
        """Return the earliest `next_run_at_ms`, and whether any fire time is queued."""

    async def fire(self, fire: Fire) -> Fired | None:
        """Fire a schedule: rule 28. Returns None, with nothing changed, if the schedule is not as the fire expects."""

    async def list_fires(self, schedule_id: str, limit: int = FIRES_KEPT) -> list[FireRow]:
        """Newest first."""


class WebhookStore(Protocol):
    async def put_webhook(self, row: WebhookRow) -> WebhookRow:
        """Make it, or change it: see `merged_webhook` for what stays. Returns the row as it is now."""

    async def get_webhook(self, id: str) -> WebhookRow | None: ...

    async def list_webhooks(self, workflow: str | None = None, limit: int = 1_000) -> list[WebhookRow]:
        """By id."""

    async def switch_webhook(self, id: str, enabled: bool, now_ms: int) -> WebhookRow | None: ...

    async def rotate_webhook(self, id: str, generation: int, now_ms: int) -> WebhookRow | None:
        """Give the secret a new generation. The old one is no longer valid, and digests signed with it are deleted."""

    async def delete_webhook(self, id: str) -> bool:
        """Delete a webhook with its deliveries and refusals; its runs stay."""

    async def deliver(
        self, webhook: WebhookRow, delivery: DeliveryRow, run: NewRun
    ) -> tuple[DeliveryRow, RunRow | None]:
        """Store the delivery and its run in one transaction. If the delivery is a copy nothing is written: the first
        value is the first delivery, the second None. Raises Fenced, with nothing written, if the webhook differs from
        `webhook` by now (except in its last run)."""

    async def list_deliveries(self, webhook_id: str, limit: int = DELIVERIES_KEPT) -> list[DeliveryRow]:
        """Newest first."""

    async def add_refusals(self, rows: Sequence[RefusalRow]) -> None:
        """Count them to those of the same webhook and reason, as `RefusalRow.after` does; one transaction."""

    async def list_refusals(self, webhook_id: str) -> list[RefusalRow]:
        """Return refusals, the reason that came last first; at most REASONS_KEPT."""


class UpkeepStore(Protocol):
    """Deletion of what is no longer needed."""

    def deleting(self) -> AbstractAsyncContextManager[bool]:
        """Enter a sweep of old runs. Yields False if another process is at it, where several share the database for
        long."""

    async def retire_days(self, ended_before_ms: int | None, every_days: int) -> Retired | None:
        """Begin a new part of the journals, and drop those whose runs ended before this time; a run that may not go
        moves to another. For the holder of `deleting`, where journals are in parts, each of the runs of `every_days`
        days. Returns None if there are no parts."""

    async def find_removable(
        self,
        ended_before_ms: int,
        keep: int = 0,
        limit: int = 100,
        after: str | None = None,
        workflow: str | None = None,
        but_not: Sequence[str] = (),
    ) -> list[Removable]:
        """Oldest first (created_at, id): runs that ended before this time and may be deleted. `keep`: except so
        many of each workflow, the newest that have ended; children follow their parent and are not counted. `after`: a
        run id, what was created up to it is left out. `workflow`: only its runs; `but_not`: all but those of these."""

    async def delete_runs(self, run_ids: Sequence[str]) -> list[str]:
        """Delete runs in one transaction. Returns the ids that were deleted: those that may not be, or do not exist,
        are left out."""

    async def delete_orphans(self, unused_since_ms: int, limit: int = 1000) -> Orphans:
        """Delete at most `limit` of each kind, versions of at most `limit` workflows, and no more blobs after 32 MiB of
        them. If all counts are 0 there are none left."""

    async def count_orphans(self, unused_since_ms: int) -> Orphans:
        """Count what `delete_orphans` would delete in all."""

    async def upkeep_note(self, name: str) -> bytes | None:
        """Return the last note of this name."""

    async def put_upkeep_note(self, name: str, data: bytes, now_ms: int) -> None:
        """Store a note in place of the one before."""


class SessionStore(Protocol):
    async def put_session(self, row: SessionRow, created_after_ms: int, seen_after_ms: int) -> bool:
        """Store a new session. Those that were created, or seen, no later than these times are deleted. Returns
        True."""

    async def get_session(self, hash: str) -> SessionRow | None: ...

    async def see_session(self, hash: str, seen_at_ms: int) -> None: ...

    async def delete_session(self, hash: str) -> bool: ...

    async def list_sessions(self) -> list[SessionRow]:
        """Seen last first."""

    async def delete_sessions(self, user_id: str | None = None) -> int:
        """Delete all sessions, or those of a user."""


class Store(
    ContentStore,
    FileStore,
    WorkflowStore,
    DraftStore,
    RunStore,
    LeaseStore,
    PlaceStore,
    JournalStore,
    InboxStore,
    WaitStore,
    NotificationStore,
    ChildStore,
    CacheStore,
    CheckpointStore,
    SnapshotStore,
    ScheduleStore,
    WebhookStore,
    UpkeepStore,
    SessionStore,
    SecretStore,
    KeyStore,
    ConnectorStore,
    PeopleStore,
    MemoryStore,
    UsageStore,
    LoadStore,
    AlertStore,
    Protocol,
):
    """All topics of a store. Every method raises DatabaseWriteFailed or DatabaseUnavailable (executor.errors) when the
    database cannot do it."""

    async def open(self) -> None:
        """Create or migrate the schema. Refuses a database newer than this code (SchemaTooNew)."""

    async def close(self) -> None: ...

    def stop_retrying(self) -> None:
        """Let no write that finds the database busy be tried again from now on: a process that is to end has only
        seconds."""

    def check_identity(self) -> None:
        """Check the database without waiting. Raises DatabaseReplaced if what is open is no longer the database that
        was opened, so nothing is written."""

    async def time_us(self) -> int | None:
        """Return the Unix time of the database server, which is the time of all processes on it, or None if it has no
        clock but that of this machine."""

    @property
    def stats(self) -> Stats:
        """Counts of what this process has committed."""

    async def ping_read(self) -> None:
        """Prove by a read that the database can be read; raises otherwise."""

    async def ping(self) -> None:
        """Prove by a read and a small write that the database works; raises otherwise."""
