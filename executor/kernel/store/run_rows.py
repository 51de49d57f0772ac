"""Runs and their journals as rows: what a run is made of, what its owner writes, what is returned. Times are Unix
milliseconds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from operator import attrgetter
from types import MappingProxyType
from typing import Final

import orjson
from msgspec import Struct

from executor.kernel.store.statements import RunStatus
from executor.kernel.store.topics.alerts import AlertRow
from executor.kernel.store.topics.cache import CacheRow
from executor.kernel.store.topics.families import FamilyMax, FamilyRow
from executor.kernel.store.topics.inbox import SignalRow
from executor.kernel.store.topics.outbox import NotificationRow
from executor.kernel.store.topics.snapshots import SnapshotRow
from executor.kernel.store.topics.usage import UsageRow
from executor.kernel.store.topics.waits import WaitRow, WaitUpdate

DEFAULT_POOL: Final = "default"
# The pools of a worker, and in each the key after which its next claim begins.
DEFAULT_POOLS: Final[Mapping[str, str]] = MappingProxyType({DEFAULT_POOL: ""})


class Placement(Struct, frozen=True):
    """`fair`: runs of a pool take turns by it; "": by the name of the workflow. `priority`: among runs with the same,
    higher first. `limits`: keys, and how many runs with the key may have an owner at once. `rates`: keys, and how many
    runs with the key may start in a second."""

    pool: str = DEFAULT_POOL
    priority: int = 0
    fair: str = ""
    limits: tuple[tuple[str, int], ...] = ()
    rates: tuple[tuple[str, float], ...] = ()

    @property
    def is_limited(self) -> bool:
        """Returns True if a claim must check more than that the run is due."""
        return bool(self.limits or self.rates)


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


class EventFilter(Struct, frozen=True):
    """`after` is exclusive. `node`: in every scope, unless `path` names one. `types` empty means all. `newest`: the
    last event of these types alone, without other conditions."""

    after: int = 0
    limit: int = 1000
    node: str | None = None
    types: tuple[str, ...] = ()
    since_ms: int | None = None
    path: str | None = None
    newest: bool = False


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
    started_by: str | None = None
    sources: tuple[str, ...] = ()
    source_run_id: str | None = None
    waits: tuple[WaitRow, ...] = ()
    signals: tuple[SignalRow, ...] = ()
    blobs: tuple[tuple[str, bytes], ...] = ()
    placement: Placement = Placement()
    files: tuple[str, ...] = ()
    due_ms: int | None = None


class RunRow(Struct, frozen=True):
    """`root_id`: the topmost run above, None for a run without a parent. `lease_until_ms`: of all runs of its owner."""

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


class Append(Struct, frozen=True, gc=False):
    """Everything one transaction of a run's owner writes. Nothing else ever writes a run's events. `children`: runs
    that waits opened here wait for. `posts`: (run id, message) for the inboxes of other runs; `cancels`: the same, as
    `cancel_run` posts it. `move`: its new plan. `root`: of the family that it is in, or begins with its first child:
    its row is changed, and `output_bytes` are added to it. `snapshot`: of events before this append. `places`: of
    limits, which attempts leave that end here: node key and number of each; with them, if only with an empty list, go
    those of older epochs, and all when the run ends. `usage`: of steps that end here. `alerts`: for operators. `next`:
    the run that continues this one, which ends; it gets its priority. `reopens_family`: its children run though the
    family is over, because a cleanup makes them. `needed`: the format that the run is known to need (`formats.py`)."""

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
    reopens_family: bool = False
    needed: int = 0


class Appended(Struct, frozen=True, gc=False):
    """`seq`: the new one. `inbox_n`: of the newest message, 0 if there is none. `family`: with `Append.root`."""

    seq: int
    inbox_n: int
    family: FamilyRow | None = None


_SAME = tuple(name for name in RunRow.__struct_fields__ if name in NewRun.__struct_fields__)
_values_of = attrgetter(*_SAME)


def new_row(run: NewRun, root: str | None) -> RunRow:
    return RunRow(
        **dict(zip(_SAME, _values_of(run), strict=True)),
        status="queued",
        output=None,
        error=None,
        seq=len(run.records),
        epoch=0,
        lease_owner=None,
        lease_until_ms=None,
        next_run_at_ms=run.now_ms if run.due_ms is None else run.due_ms,
        created_at_ms=run.now_ms,
        started_at_ms=None,
        finished_at_ms=None,
        root_id=root,
    )


def blobs_of(records: Sequence[Record]) -> set[str]:
    """Hashes of the blobs that hold outputs of these records; see `executor.kernel.values.payload.split`."""
    found = set()
    for record in records:
        if record.data is not None and b'"blob"' in record.data:
            hash = orjson.loads(record.data).get("blob")
            if isinstance(hash, str):
                found.add(hash)
    return found
