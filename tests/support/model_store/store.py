"""A second store, in memory: the contract as plain code, with the same promises but for the disk.

It is the model that the product's store is compared with: `tests/conformance/store` runs against both. Other tests use
it where they need no disk.

No method awaits anything, so each is atomic within its event loop. Each checks first and changes afterwards: what
raises has changed nothing.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence

from msgspec import Struct, field
from msgspec.structs import replace

from executor.errors import Conflict, Fenced, Unheard
from executor.kernel.store.formats import FORMAT, needed
from executor.kernel.store.run_rows import (
    DEFAULT_POOLS,
    Append,
    Appended,
    ClockRepair,
    EventFilter,
    NewRun,
    Placement,
    Record,
    RunRow,
    blobs_of,
)
from executor.kernel.store.statements import COUNT_MAX, TERMINAL, RunStatus
from executor.kernel.store.topics import run_lists
from executor.kernel.store.topics.claims import Continued
from executor.kernel.store.topics.contents import USED_EVERY_MS, files_in
from executor.kernel.store.topics.drafts import DraftHead, DraftRow, LastRun
from executor.kernel.store.topics.inbox import InboxRow, SignalRow
from executor.kernel.store.topics.limits import Full
from executor.kernel.store.topics.snapshots import SnapshotRow
from executor.kernel.store.topics.store import Store
from executor.kernel.store.topics.waits import Answered, WaitRow, WaitStatus
from tests.support.model_store.cache import ModelCache
from tests.support.model_store.checkpoints import ModelCheckpoints
from tests.support.model_store.children import ModelChildren
from tests.support.model_store.connectors import ModelConnectors
from tests.support.model_store.files import ModelFiles
from tests.support.model_store.keys import ModelKeys
from tests.support.model_store.lifecycle import ModelLifecycle
from tests.support.model_store.load import ModelLoad
from tests.support.model_store.memory import ModelMemory
from tests.support.model_store.notifications import ModelNotifications
from tests.support.model_store.people import ModelPeople, with_audit
from tests.support.model_store.places import ModelPlaces
from tests.support.model_store.queue import ModelLimits, find_claimable
from tests.support.model_store.secrets import ModelSecrets
from tests.support.model_store.snapshots import ModelSnapshots
from tests.support.model_store.triggers import ModelTriggers
from tests.support.model_store.upkeep import ModelUpkeep
from tests.support.model_store.workflows import ModelWorkflows


class _Run(Struct):
    """A run and all that belongs to it. `inbox_n` is the highest inbox number ever given out, `cancel_n` that of
    the last cancel; `moves`: the plans that messages ask it to move to, by inbox number."""

    row: RunRow  # without `lease_until_ms`, which is the owner's
    events: list[Record]
    placement: Placement = Placement()
    source_run_id: str | None = None
    started_by: str | None = None
    waits: dict[str, WaitRow] = field(default_factory=dict)
    inbox: dict[int, bytes] = field(default_factory=dict)
    inbox_n: int = 0
    cancel_n: int | None = None
    moves: dict[int, str] = field(default_factory=dict)
    signals: list[SignalRow] = field(default_factory=list)
    held: set[str] = field(default_factory=set)  # keys of files and of their parts


class ModelStore(
    ModelFiles,
    ModelWorkflows,
    ModelNotifications,
    ModelChildren,
    ModelCache,
    ModelCheckpoints,
    ModelSnapshots,
    ModelTriggers,
    ModelUpkeep,
    ModelLifecycle,
    ModelPeople,
    ModelPlaces,
    ModelSecrets,
    ModelKeys,
    ModelMemory,
    ModelConnectors,
    ModelLoad,
    Store,
):
    def __init__(self) -> None:
        super().__init__()
        self._plans: dict[str, bytes] = {}
        self._blobs: dict[str, bytes] = {}
        self._documents: dict[str, bytes] = {}
        self._used_at_ms: dict[str, int] = {}  # by hash
        self._drafts: dict[str, DraftRow] = {}
        self._runs: dict[str, _Run] = {}
        self._open: dict[str, _Run] = {}  # those that have not ended
        self._until_ms: dict[str, int] = {}  # when the lease of each worker ends
        self._by_idempotency_key: dict[tuple[str, str], str] = {}
        self._limits = ModelLimits()
        self._by_token: dict[str, tuple[str, str]] = {}  # token hash -> run id, wait id

    async def open(self) -> None:
        pass

    async def close(self) -> None:
        pass

    # --- plans and documents

    async def get_plan(self, hash: str) -> bytes | None:
        return self._plans.get(hash)

    async def get_blob(self, hash: str) -> bytes | None:
        return self._blobs.get(hash)

    async def get_document(self, hash: str) -> bytes | None:
        return self._documents.get(hash)

    # --- drafts

    async def put_draft(
        self, id: str, expected_rev: int, name: str, document: bytes, now_ms: int, base_version: int | None = None
    ) -> tuple[DraftRow | None, bool]:
        old = self._drafts.get(id)
        if expected_rev != (0 if old is None else old.rev):
            return old, False
        if old is None:
            based = base_version is not None
            new = DraftRow(
                id, name, 1, name if based else None, base_version, 1 if based else None, now_ms, now_ms, "", document
            )
        else:
            new = replace(old, name=name, rev=expected_rev + 1, updated_at_ms=now_ms, document=document)
        self._drafts[id] = new
        return new, True

    async def get_draft(self, id: str) -> DraftRow | None:
        return self._drafts.get(id)

    async def list_drafts(self, before: str | None = None, limit: int = 200) -> list[DraftHead]:
        if before is not None and before not in self._drafts:
            return []
        rows = sorted(self._drafts.values(), key=_freshness, reverse=True)
        if before is not None:
            rows = [row for row in rows if _freshness(row) < _freshness(self._drafts[before])]
        return [_head(row) for row in rows[:limit]]

    async def last_runs(self, drafts: Sequence[str]) -> dict[str, LastRun]:
        found: dict[str, LastRun] = {}
        for row in self._newest(None, None):
            if row.draft_id is not None and row.draft_id in drafts and row.draft_id not in found:
                found[row.draft_id] = LastRun(row.id, row.version, row.status, row.created_at_ms, row.finished_at_ms)
        return found

    async def rebase_draft(self, id: str, rev: int, workflow: str, version: int) -> DraftRow | None:
        draft = self._drafts.get(id)
        if draft is not None:
            draft = self._drafts[id] = replace(draft, base_name=workflow, base_version=version, base_rev=rev)
            folder, by, title = self._fronts.get(workflow, ("", None, ""))
            if workflow in self._fronts:
                self._fronts[workflow] = folder or draft.folder, by, title
        return draft

    async def put_draft_in_folder(self, id: str, folder: str) -> bool:
        if id in self._drafts:
            self._drafts[id] = replace(self._drafts[id], folder=folder)
        return id in self._drafts

    async def delete_draft(self, id: str, expected_rev: int | None = None) -> bool:
        draft = self._drafts.get(id)
        if draft is None or expected_rev not in (None, draft.rev):
            return False
        del self._drafts[id]
        return True

    # --- runs

    async def create_run(self, run: NewRun) -> tuple[RunRow, bool]:
        if run.idempotency_key is not None:
            known = self._by_idempotency_key.get((run.workflow, run.idempotency_key))
            if known is not None:
                return self._shown(self._runs[known].row), False
        if run.id in self._runs:
            raise Conflict(f"run {run.id} exists already")
        self._check_sources(run.sources)
        self._note_parent(run.id, run.parent_run_id, run.parent_key)
        root = None if run.parent_run_id is None else self._add_to_family(run.parent_run_id)
        row = RunRow(
            id=run.id,
            workflow=run.workflow,
            version=run.version,
            plan_hash=run.plan_hash,
            status="queued",
            input=run.input,
            output=None,
            error=None,
            seq=len(run.records),
            epoch=0,
            lease_owner=None,
            lease_until_ms=None,
            next_run_at_ms=run.now_ms if run.due_ms is None else run.due_ms,
            idempotency_key=run.idempotency_key,
            request_hash=run.request_hash,
            parent_run_id=run.parent_run_id,
            parent_key=run.parent_key,
            created_at_ms=run.now_ms,
            started_at_ms=None,
            finished_at_ms=None,
            document_hash=run.document_hash,
            draft_id=run.draft_id,
            draft_rev=run.draft_rev,
            root_id=root,
        )
        if run.document is not None:
            assert run.document_hash is not None
            self._documents.setdefault(run.document_hash, run.document)
        if run.document_hash is not None:
            self._use(run.document_hash, run.now_ms)
        self._plans.setdefault(run.plan_hash, run.plan)
        self._use(run.plan_hash, run.now_ms)
        waits = {wait.id: wait for wait in run.waits}
        begun = _numbered(run.records, 0)
        made = _Run(row, begun, run.placement, run.source_run_id, run.started_by, waits, signals=list(run.signals))
        self._runs[run.id] = self._open[run.id] = made
        self._by_token |= {wait.token_hash: (run.id, wait.id) for wait in run.waits}
        for hash, content in run.blobs:
            self._blobs.setdefault(hash, content)
            self._use(hash, run.now_ms)
        self._hold(run.files, made, run.now_ms)
        made.held |= {key for source in run.sources for key in self._runs[source].held}
        if run.idempotency_key is not None:
            self._by_idempotency_key[run.workflow, run.idempotency_key] = run.id
        return row, True

    async def begin_run(self, run: NewRun, owner: str, lease_ms: int, first: Append) -> tuple[RunRow, bool]:
        row, created = await self.create_run(run)
        if created:
            await self.claim(owner, run.now_ms, lease_ms, run_id=run.id, pools={run.placement.pool: ""})
            await self.append(first)
        return row, created

    def _use(self, hash: str, now_ms: int) -> None:
        if hash not in self._used_at_ms or self._used_at_ms[hash] < now_ms - USED_EVERY_MS:
            self._used_at_ms[hash] = now_ms

    async def get_run(self, run_id: str) -> RunRow | None:
        run = self._runs.get(run_id)
        return None if run is None else self._shown(run.row)

    def _shown(self, row: RunRow) -> RunRow:
        return row if row.lease_owner is None else replace(row, lease_until_ms=self._until_ms[row.lease_owner])

    def _claimable_at_ms(self, run: _Run) -> int | None:
        """When it is due and the lease of its owner, if any, has lapsed. None: not before a message arrives."""
        if run.row.next_run_at_ms is None:
            return None
        return max(run.row.next_run_at_ms, self._until_ms.get(run.row.lease_owner or "", 0))

    async def runs_by_key(self, workflow: str, first: str, last: str, limit: int) -> list[RunRow]:
        rows = [run.row for run in self._runs.values() if run.row.workflow == workflow]
        found = [(row.idempotency_key, row) for row in rows if row.idempotency_key is not None]
        ordered = sorted(found, key=lambda each: each[0], reverse=True)
        return [row for key, row in ordered if first <= key <= last][:limit]

    async def version(self) -> int | None:
        return None

    async def last_seqs(self, run_ids: Sequence[str]) -> dict[str, int]:
        return {id: self._runs[id].row.seq for id in run_ids if id in self._runs}

    async def list_runs(
        self,
        workflow: str | None = None,
        status: str | None = None,
        before: str | None = None,
        limit: int = 50,
        draft: str | None = None,
        *,
        parent: str | None = None,
        since: int | None = None,
        until: int | None = None,
        text: str | None = None,
        by: str | None = None,
        key: str | None = None,
        without: Mapping[run_lists.Without, str] = run_lists.NOTHING,
    ) -> list[RunRow]:
        if before is not None and before not in self._runs:
            return []
        found = [row for row in self._newest(workflow, draft) if status in (None, row.status)]
        found = [row for row in found if parent in (None, row.parent_run_id)]
        found = [row for row in found if since is None or row.created_at_ms >= since]
        found = [row for row in found if until is None or row.created_at_ms < until]
        if before is not None:
            found = [row for row in found if _age(row) < _age(self._runs[before].row)]
        found = [row for row in found if by is None or self._runs[row.id].started_by == by]
        if text is not None or key is not None or without:
            found = [row for row in found[: run_lists.SCAN_MAX] if (text or "").lower() in _texts(row)]
            found = [row for row in found if key in (None, row.idempotency_key)]
        for name, value in without.items():
            found = [row for row in found if not self._is(row, name, value)]
        return found[:limit]

    def _is(self, row: RunRow, name: run_lists.Without, value: str) -> bool:
        if name == "text":
            return value.lower() in _texts(row)
        return value == {"by": self._runs[row.id].started_by, "status": row.status, "workflow": row.workflow}[name]

    async def starters(self, ids: Sequence[str]) -> dict[str, tuple[str | None, bool]]:
        return {id: (self._runs[id].started_by, False) for id in ids if id in self._runs}  # it reads no plans

    async def count_runs(self, workflow: str | None = None, draft: str | None = None) -> dict[str, int]:
        counts = Counter(row.status for row in self._newest(workflow, draft))
        return {status: min(count, COUNT_MAX) for status, count in counts.items()}

    async def count_by_time(
        self, since: int, until: int, width: int, workflow: str | None = None
    ) -> list[tuple[RunStatus, int, int]]:
        rows = await self.list_runs(workflow, limit=len(self._runs), since=since, until=until)
        counts = Counter((row.status, (row.created_at_ms - since) // width) for row in rows)
        return [(status, part, count) for (status, part), count in counts.items()]

    async def list_inputs(
        self, workflow: str | None = None, draft: str | None = None, bytes_max: int = 65_536, limit: int = 100
    ) -> list[bytes]:
        inputs = [row.input for row in self._newest(workflow, draft)]
        return [input for input in inputs if len(input) <= bytes_max][:limit]

    def _newest(self, workflow: str | None, draft: str | None) -> list[RunRow]:
        rows = (self._shown(run.row) for run in self._runs.values())
        found = [row for row in rows if workflow in (None, row.workflow) and draft in (None, row.draft_id)]
        return sorted(found, key=_age, reverse=True)

    async def claim(
        self,
        owner: str,
        now_ms: int,
        lease_ms: int,
        limit: int = 1,
        run_id: str | None = None,
        pools: Mapping[str, str] = DEFAULT_POOLS,
    ) -> list[RunRow]:
        due = [run for run in self._open.values() if run_id in (None, run.row.id) and run.placement.pool in pools]
        due = [run for run in due if (at_ms := self._claimable_at_ms(run)) is not None and at_ms <= now_ms]
        due = [run for run in due if run.row.id not in self._limits.blocked and needed(run.events) <= FORMAT]
        found = find_claimable(due, limit, pools, lambda run: self._claimable_at_ms(run) or 0)
        claimed = [run for run in found if self._limits.admit(run, run.cancel_n is not None, now_ms)]
        held = Counter(run.row.lease_owner for run in self._open.values() if run.row.lease_owner is not None)
        for run in claimed:
            run.row = replace(
                run.row,
                lease_owner=owner,
                epoch=run.row.epoch + 1,
                stalls=run.row.stalls + 1,
                status="running",
                started_at_ms=now_ms if run.row.started_at_ms is None else run.row.started_at_ms,
                former_owner=run.row.lease_owner,
                lost_together=held[run.row.lease_owner or ""] > 1,
                orphaned=self._is_orphaned(run.row),
                pool=run.placement.pool if run_id is None else "",
                fair=(run.placement.fair or run.row.workflow) if run_id is None else "",
                limited=bool(run.placement.limits),
            )
        if claimed:
            self._until_ms[owner] = now_ms + lease_ms
        rows = [self._shown(run.row) for run in claimed]
        for run in claimed:  # what it says of this claim is not part of the run
            run.row = replace(
                run.row, former_owner=None, lost_together=False, orphaned=False, pool="", fair="", limited=False
            )
        return rows

    async def renew(self, owner: str, run_ids: Collection[str], now_ms: int, lease_ms: int) -> set[str]:
        held = [self._open[run_id] for run_id in set(run_ids) if run_id in self._open]
        held = [run for run in held if run.row.lease_owner == owner]
        if owner in self._until_ms:
            self._until_ms[owner] = now_ms + lease_ms
        for run in self._open.values():
            if run.row.lease_owner == owner and run.row.id not in run_ids:
                run.row = replace(run.row, lease_owner=None)
        if not held:
            self._until_ms.pop(owner, None)
        return {run.row.id for run in held}

    async def output_bytes(self, run_id: str) -> int:
        run = self._runs.get(run_id)
        if run is None:
            return 0
        blobs = sum(len(self._blobs.get(hash, b"")) for hash in blobs_of(run.events))
        return blobs + sum(len(record.output or b"") for record in run.events)

    async def release(
        self,
        run_id: str,
        epoch: int,
        seq: int,
        next_run_at_ms: int | None,
        status: RunStatus,
        snapshot: SnapshotRow | None = None,
    ) -> bool:
        run = self._open.get(run_id)
        if run is None or (run.row.epoch, run.row.seq) != (epoch, seq) or (run.inbox and status != "running"):
            return False
        run.row = replace(run.row, status=status, lease_owner=None, next_run_at_ms=next_run_at_ms, stalls=0)
        self._limits.free(run_id)
        if snapshot is not None:
            self._snapshots[run_id] = snapshot
        return True

    async def repair_clock_skew(self, now_ms: int, lease_max_ms: int) -> ClockRepair:
        repaired = ahead_ms = 0
        for run in self._open.values():
            row = run.row
            until_ms = self._until_ms.get(row.lease_owner or "")
            leased = until_ms is not None and until_ms > now_ms + lease_max_ms
            due_ms = row.next_run_at_ms
            late = due_ms is not None and due_ms > now_ms and (row.status != "waiting" or bool(run.inbox))
            if leased:
                row = replace(row, lease_owner=None)
            if leased or late:
                run.row = replace(row, next_run_at_ms=now_ms if due_ms is None else min(due_ms, now_ms))
                repaired += 1
                if leased and until_ms is not None:
                    ahead_ms = max(ahead_ms, until_ms - now_ms - lease_max_ms)
                if late and due_ms is not None:
                    ahead_ms = max(ahead_ms, due_ms - now_ms)
        return ClockRepair(repaired, ahead_ms)

    async def count_queued(self, pool: str, upto: int) -> int:
        free = [run for run in self._open.values() if run.row.lease_owner is None and run.placement.pool == pool]
        return min(upto, sum(run.row.status != "waiting" or run.row.id in self._limits.blocked for run in free))

    async def waits_for(self, run_id: str) -> Full | None:
        key = self._limits.blocked.get(run_id)
        return (
            None if key is None else Full(key, self._limits.held(key), dict(self._runs[run_id].placement.limits)[key])
        )

    async def next_due(self, pools: Collection[str] = DEFAULT_POOLS) -> int | None:
        open = [run for run in self._open.values() if run.placement.pool in pools]
        open = [run for run in open if run.row.id not in self._limits.blocked and needed(run.events) <= FORMAT]
        times = [self._claimable_at_ms(run) for run in open]
        return min((time for time in times if time is not None), default=None)

    # --- the journal

    async def append(self, change: Append) -> Appended:
        finished = change.finished or change.status in TERMINAL
        assert not finished or change.status in TERMINAL, f"run {change.run_id} cannot finish as {change.status}"
        self._check_family(change)
        run = self._open.get(change.run_id)
        if run is None or (run.row.epoch, run.row.seq) != (change.epoch, change.expected_seq):
            raise Fenced(
                f"run {change.run_id}: epoch {change.epoch} at seq {change.expected_seq} is no longer current",
                run=change.run_id,
            )
        if finished and run.cancel_n in run.inbox and run.cancel_n not in change.consumed_inbox:
            raise Unheard(f"run {change.run_id} has not processed its cancel request", run=change.run_id)
        new_ids = {wait.id for wait in change.waits}
        new_tokens = {wait.token_hash for wait in change.waits}
        if len(new_ids) + len(new_tokens) < 2 * len(change.waits):
            raise Conflict("two waits of one append have the same id or token")
        if new_ids & run.waits.keys() or new_tokens & self._by_token.keys():
            raise Conflict(f"run {change.run_id} has opened one of these waits before")
        self._check_children(change.children)

        seq = change.expected_seq + len(change.records)
        run.events.extend(_numbered(change.records, change.expected_seq))
        for wait in change.waits:
            run.waits[wait.id] = wait
            self._by_token[wait.token_hash] = (wait.run_id, wait.id)
        for closed in change.closed_waits:
            old = run.waits.get(closed.id)
            if old is not None and old.status == "pending":
                run.waits[closed.id] = replace(
                    old,
                    status=closed.status,
                    response=closed.response,
                    answered_by=closed.answered_by,
                    answered_at_ms=closed.at_ms,
                )
        for n in change.consumed_inbox:
            run.inbox.pop(n, None)
            run.moves.pop(n, None)
        for signal, consumer in change.consumed_signals:
            if 1 <= signal <= len(run.signals):
                run.signals[signal - 1] = replace(run.signals[signal - 1], consumed_by=consumer)
        for hash, content in change.blobs:
            self._blobs.setdefault(hash, content)
            self._use(hash, change.now_ms)
        self._add_notifications(change.notifications)
        for child in change.children:
            await self.create_run(child)
        for target, message in change.posts:
            await self.post_message(target, message, change.now_ms)
        for target, message in change.cancels:
            await self.cancel_run(target, message, change.now_ms)
        self._put_cached(change.cached)
        self._add_usage(change.usage)
        self._add_alerts(change.alerts)
        run.row = replace(
            run.row,
            seq=seq,
            stalls=0,
            status=change.status or run.row.status,
            output=run.row.output if change.output is None else change.output,
            error=run.row.error if change.error is None else change.error,
        )
        self._move(run, change.move, change.now_ms)
        if change.move is not None or finished:
            self._snapshots.pop(change.run_id, None)
        elif change.snapshot is not None:
            self._snapshots[change.run_id] = change.snapshot
        if change.places is not None:
            self._leave_places(change.run_id, change.epoch + finished, change.places)
        if finished:
            self._finish(run, change.now_ms)
        if change.next is not None:
            left = [signal for signal in run.signals if signal.consumed_by is None]
            signals = tuple(replace(signal, run_id=change.next.id, seq=n) for n, signal in enumerate(left, 1))
            named = [id for signal in left for id in files_in(signal.payload) if id in run.held]
            placement = replace(change.next.placement, priority=run.placement.priority)
            files = (*change.next.files, *named)
            await self.create_run(replace(change.next, placement=placement, signals=signals, files=files))
        return Appended(seq, max(run.inbox, default=0), self._append_to_family(change, finished))

    def _finish(self, run: _Run, now_ms: int) -> None:
        """A run that has ended has no lease, is never due, waits for nothing, and takes nothing more."""
        run.inbox.clear()
        run.moves.clear()
        run.row = replace(run.row, finished_at_ms=now_ms, lease_owner=None, next_run_at_ms=None)
        for wait in list(run.waits.values()):
            if wait.status == "pending":
                run.waits[wait.id] = replace(wait, status="cancelled", answered_at_ms=now_ms)
        del self._open[run.row.id]
        self._limits.free(run.row.id)

    async def read_events(self, run_id: str, after: int = 0, limit: int = 10_000) -> list[Record]:
        run = self._runs.get(run_id)
        return [] if run is None else run.events[after : after + limit]

    async def find_events(self, run_id: str, where: EventFilter) -> tuple[list[Record], int]:
        run = self._runs.get(run_id)
        found = [
            record
            for record in (run.events if run is not None else [])
            if where.node in (None, record.node)
            and where.path in (None, record.path)
            and (not where.types or record.type in where.types)
            and (where.since_ms is None or record.at_ms >= where.since_ms)
        ]
        if where.newest:
            return found[-1:], len(found[-1:])
        return [record for record in found if record.seq > where.after][: where.limit], len(found)

    # --- messages from outside

    async def read_inbox(self, run_id: str) -> list[InboxRow]:
        run = self._runs.get(run_id)
        return [InboxRow(run_id, n, message) for n, message in run.inbox.items()] if run is not None else []

    async def post_message(self, run_id: str, message: bytes, now_ms: int, plan_hash: str | None = None) -> bool:
        run = self._open.get(run_id)
        if run is None:
            return False
        run.inbox_n += 1
        run.inbox[run.inbox_n] = message
        if plan_hash is not None:
            run.moves[run.inbox_n] = plan_hash
        due = run.row.next_run_at_ms
        run.row = replace(run.row, next_run_at_ms=now_ms if due is None else min(due, now_ms))
        return True

    async def cancel_run(self, run_id: str, message: bytes, now_ms: int) -> bool:
        self._end_family(run_id)
        posted = await self.post_message(run_id, message, now_ms)
        if posted:
            self._open[run_id].cancel_n = self._open[run_id].inbox_n
            self._limits.cancel(run_id)
        return posted

    async def find_wait(self, token_hash: str) -> WaitRow | None:
        known = self._by_token.get(token_hash)
        return None if known is None else await self.get_wait(*known)

    async def get_wait(self, run_id: str, wait_id: str) -> WaitRow | None:
        run = self._runs.get(run_id)
        return None if run is None else run.waits.get(wait_id)

    def _wait_of(self, run: str, wait: str) -> WaitRow | None:
        return self._runs[run].waits.get(wait) if run in self._runs else None

    def _relinked(self, row: WaitRow, was: str) -> None:
        self._runs[row.run_id].waits[row.id] = row
        self._by_token.pop(was, None)
        self._by_token[row.token_hash] = row.run_id, row.id

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
        found = [wait for wait in self._waits(run_id, kind, workflow) if status in (None, wait.status)]
        found = [wait for wait in found if key in (None, wait.id.rpartition("!")[0])]
        found.sort(key=_opening)
        if before is not None:
            last = await self.get_wait(*before)
            found = [wait for wait in found if last is not None and _opening(wait) > _opening(last)]
        return found[:limit]

    async def count_waits(
        self, run_id: str | None = None, kind: str | None = None, workflow: str | None = None
    ) -> dict[str, int]:
        counts = Counter(wait.status for wait in self._waits(run_id, kind, workflow))
        return {status: min(count, COUNT_MAX) for status, count in counts.items()}

    def _waits(self, run_id: str | None, kind: str | None, workflow: str | None) -> Iterator[WaitRow]:
        for run in self._runs.values():
            if run_id in (None, run.row.id) and workflow in (None, run.row.workflow):
                yield from (wait for wait in run.waits.values() if kind in (None, wait.kind))

    async def answer_wait(
        self, token_hash: str, response: bytes, by: str | None, message: bytes, now_ms: int
    ) -> Answered | None:
        wait = await self.find_wait(token_hash)
        if wait is None:
            return None
        if wait.status != "pending":
            return Answered(False, wait)
        posted = await self.post_message(wait.run_id, message, now_ms)
        assert posted, f"wait {wait.id} of run {wait.run_id} is pending, but the run has ended"
        wait = replace(wait, status="answered", response=response, answered_by=by, answered_at_ms=now_ms)
        self._runs[wait.run_id].waits[wait.id] = wait
        return Answered(True, wait)

    async def answer_and_continue(
        self,
        token_hash: str,
        response: bytes,
        by: str | None,
        message: bytes,
        now_ms: int,
        owner: str,
        lease_ms: int,
        pools: Mapping[str, str],
        first: Append,
    ) -> Continued | None:
        wait = await self.find_wait(token_hash)
        run = None if wait is None else self._open.get(wait.run_id)
        before = None if run is None else (run.row.epoch + 1, run.row.seq, run.row.status, run.row.lease_owner)
        fits = before == (first.epoch, first.expected_seq, "waiting", None) and run is not None and not run.inbox
        answered = await self.answer_wait(token_hash, response, by, message, now_ms)
        if answered is None or not answered.won:
            return None if answered is None else Continued(answered.won, answered.wait)
        assert run is not None and wait is not None
        if not fits or run.placement.is_limited or self._is_orphaned(run.row):
            return Continued(True, answered.wait)
        if not await self.claim(owner, now_ms, lease_ms, 1, wait.run_id, pools):
            return Continued(True, answered.wait)
        run.inbox.clear()
        run.inbox_n -= 1
        return Continued(True, answered.wait, await self.append(replace(first, consumed_inbox=())))

    async def cancel_wait(
        self, run_id: str, wait_id: str, by: str | None, message: bytes, now_ms: int
    ) -> Answered | None:
        wait = await self.get_wait(run_id, wait_id)
        if wait is None:
            return None
        if wait.status != "pending":
            return Answered(False, wait)
        posted = await self.post_message(run_id, message, now_ms)
        assert posted, f"wait {wait_id} of run {run_id} is pending, but the run has ended"
        wait = replace(wait, status="cancelled", answered_by=by, answered_at_ms=now_ms)
        self._runs[run_id].waits[wait_id] = wait
        return Answered(True, wait)

    async def expire_wait(self, run_id: str, wait_id: str, message: bytes, now_ms: int) -> bool:
        wait = await self.get_wait(run_id, wait_id)
        if wait is None or wait.status != "pending":
            return False
        posted = await self.post_message(run_id, message, now_ms)
        assert posted, f"wait {wait_id} of run {run_id} is pending, but the run has ended"
        self._runs[run_id].waits[wait_id] = replace(wait, status="expired", answered_at_ms=now_ms)
        return True

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
        run = self._runs.get(run_id)
        if run is None:
            return None
        for known in run.signals:
            if dedupe_key is not None and known.dedupe_key == dedupe_key:
                return known, False
        if not await self.post_message(run_id, message, now_ms):
            return None
        row = SignalRow(run_id, len(run.signals) + 1, name, correlation, payload, dedupe_key, now_ms, by)
        run.signals.append(row)
        return row, True

    async def unconsumed_signals(self, run_id: str) -> list[SignalRow]:
        run = self._runs.get(run_id)
        return [signal for signal in run.signals if signal.consumed_by is None] if run is not None else []

    async def list_signals(
        self,
        run_id: str,
        name: str | None = None,
        correlation: str | None = None,
        received_after_ms: int | None = None,
        limit: int = 200,
    ) -> list[SignalRow]:
        run = self._runs.get(run_id)
        found = [
            signal
            for signal in (run.signals if run is not None else [])
            if name in (None, signal.name)
            and correlation in (None, signal.correlation)
            and (received_after_ms is None or signal.received_at_ms >= received_after_ms)
        ]
        return found[:limit]

    def stop_retrying(self) -> None:
        pass

    def check_identity(self) -> None:
        pass

    async def time_us(self) -> None:
        pass

    async def ping_read(self) -> None:
        pass

    async def ping(self) -> None:
        pass


def _numbered(records: Sequence[Record], after: int) -> list[Record]:
    """The store numbers the rows; what `Record.seq` says does not matter here."""
    return [record if record.seq == seq else replace(record, seq=seq) for seq, record in enumerate(records, after + 1)]


def _age(row: RunRow) -> tuple[int, str]:
    return row.created_at_ms, row.id


def _opening(wait: WaitRow) -> tuple[int, str, str]:
    return wait.opened_at_ms, wait.run_id, wait.id


def _freshness(row: DraftHead) -> tuple[int, str]:
    return row.updated_at_ms, row.id


def _head(row: DraftRow) -> DraftHead:
    return DraftHead(*(getattr(row, name) for name in DraftHead.__struct_fields__))


with_audit(ModelStore)


def _texts(row: RunRow) -> str:
    """Return the text that a search compares; no text has a line break in it."""
    return "\n".join((row.id, row.idempotency_key or "", (row.error or b"").decode())).lower()
