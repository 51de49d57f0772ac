"""Deleting runs in the model store."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractAsyncContextManager, nullcontext
from itertools import islice
from typing import TYPE_CHECKING, Any

from executor.kernel.store.run_rows import RunRow, blobs_of
from executor.kernel.store.statements import TERMINAL
from executor.kernel.store.topics.upkeep import KeptRun, Orphans, Removable, Retired
from tests.support.model_store.alerts import ModelAlerts
from tests.support.model_store.usage import ModelUsage

if TYPE_CHECKING:
    from tests.support.model_store.store import _Run


class ModelUpkeep(ModelUsage, ModelAlerts):
    """What ModelStore can delete."""

    _open: dict[str, _Run]
    _workflows: dict[str, list[Any]]
    _active: dict[str, tuple[int, int]]
    _plans: dict[str, bytes]
    _used_at_ms: dict[str, int]
    _documents: dict[str, bytes]
    _blobs: dict[str, bytes]
    _by_idempotency_key: dict[tuple[str, str], str]
    _by_token: dict[str, tuple[str, str]]
    _by_parent: dict[str, dict[str, str]]
    _notifications: dict[tuple[str, str, int], Any]
    _cache: dict[str, Any]
    _checkpoints: dict[tuple[str, str], Any]
    _families: dict[str, Any]

    def __init__(self) -> None:
        super().__init__()
        self._notes: dict[str, bytes] = {}
        self._kept: dict[str, KeptRun] = {}

    def deleting(self) -> AbstractAsyncContextManager[bool]:
        return nullcontext(True)

    async def retire_days(self, ended_before_ms: int | None, every_days: int) -> Retired | None:
        return None

    async def find_removable(
        self,
        ended_before_ms: int,
        keep: int = 0,
        limit: int = 100,
        after: str | None = None,
        workflow: str | None = None,
        but_not: Sequence[str] = (),
    ) -> list[Removable]:
        rows = sorted((run.row for run in self._runs.values()), key=_age)
        newest: set[str] = set()
        if keep:
            by_workflow: dict[str, list[str]] = {}
            for row in rows:
                if row.status in TERMINAL and row.parent_run_id is None:
                    by_workflow.setdefault(row.workflow, []).append(row.id)
            newest = {id for ids in by_workflow.values() for id in ids[-keep:]}
        if after is not None:
            last = self._runs.get(after)
            rows = [row for row in rows if last is not None and _age(row) > _age(last.row)]
        sources = self._sources()
        found = (
            Removable(row.id, row.workflow, row.seq, row.finished_at_ms)
            for row in rows
            if row.finished_at_ms is not None and row.finished_at_ms < ended_before_ms
            if row.id not in newest and self._may_go(row, sources)
            if workflow in (None, row.workflow) and row.workflow not in but_not
        )
        return list(islice(found, limit))

    async def delete_runs(self, run_ids: Sequence[str]) -> list[str]:
        gone = []
        sources = self._sources()
        for id in run_ids:
            run = self._runs.get(id)
            if run is None or not self._may_go(run.row, sources):
                continue
            del self._runs[id]
            if run.row.idempotency_key is not None:
                del self._by_idempotency_key[run.row.workflow, run.row.idempotency_key]
            if run.row.parent_run_id is not None and run.row.parent_key is not None:
                self._by_parent.get(run.row.parent_run_id, {}).pop(run.row.parent_key, None)
            for wait in run.waits.values():
                self._by_token.pop(wait.token_hash, None)
            for key in [key for key in self._notifications if key[0] == id]:
                del self._notifications[key]
            self._delete_alerts_of_run(id)
            for place in [place for place in self._checkpoints if place[0] == id]:
                del self._checkpoints[place]
            for name in [name for name, row in self._cache.items() if row.run_id == id and row.scope == "run"]:
                del self._cache[name]
            self._fold_usage(id)
            root = run.row.root_id or id
            if root in self._families and root not in self._runs and not self._families[root].open:
                del self._families[root]
            gone.append(id)
        return gone

    async def delete_orphans(self, unused_since_ms: int, limit: int = 1000) -> Orphans:
        counts = []
        for stored, used in self._stored_and_used(unused_since_ms):
            orphans, size = [], 0
            for hash in [hash for hash in stored if hash not in used][:limit]:
                if size < 32 * 1024 * 1024:
                    orphans.append(hash)
                    size += len(stored.pop(hash))
            for hash in orphans:
                del self._used_at_ms[hash]
            counts.append(len(orphans))
        counts.append(sum(len(self._workflows.pop(name)) for name in self._unused_names()[:limit]))
        return Orphans(*counts)

    async def count_orphans(self, unused_since_ms: int) -> Orphans:
        counts = [len(stored.keys() - used) for stored, used in self._stored_and_used(unused_since_ms)]
        counts.append(sum(len(self._workflows[name]) for name in self._unused_names()))
        return Orphans(*counts)

    async def upkeep_note(self, name: str) -> bytes | None:
        kept = self._kept.get(name.removeprefix("kept:")) if name.startswith("kept:") else None
        return self._notes.get(name) if kept is None else kept.note

    async def put_upkeep_note(self, name: str, data: bytes, now_ms: int) -> None:
        self._notes[name] = data

    async def keep_run(self, run: str, note: bytes, now_ms: int) -> bool:
        found = self._runs.get(run)
        if found is None or found.row.status not in TERMINAL:
            return False
        at_ms = self._kept[run].at_ms if run in self._kept else now_ms
        self._kept[run] = KeptRun(run, found.row.workflow, at_ms, note)
        return True

    async def drop_kept_run(self, run: str) -> bool:
        return self._kept.pop(run, None) is not None

    async def kept_runs(self, workflow: str | None, limit: int) -> list[KeptRun]:
        kept = [each for each in self._kept.values() if workflow in (None, each.workflow)]
        return sorted(kept, key=lambda each: (each.at_ms, each.run), reverse=True)[:limit]

    def _unused_names(self) -> list[str]:
        """Deleted workflows without a run."""
        used = {run.row.workflow for run in self._runs.values()}
        return [name for name in self._workflows if name not in self._active and name not in used]

    def _may_go(self, row: RunRow, sources: set[str]) -> bool:
        children = self._by_parent.get(row.id, {}).values()
        return (
            row.status in TERMINAL
            and row.id not in self._kept
            and not any(child in self._open for child in children)
            and (row.parent_run_id is None or row.parent_run_id not in self._runs)
            and row.id not in sources
        )

    def _sources(self) -> set[str]:
        """Runs that open runs read outputs of."""
        return {run.source_run_id for run in self._open.values() if run.source_run_id is not None}

    def _stored_and_used(self, unused_since_ms: int) -> list[tuple[dict[str, bytes], set[str]]]:
        late = {hash for hash, used_at_ms in self._used_at_ms.items() if used_at_ms >= unused_since_ms}
        rows = [run.row for run in self._runs.values()]
        blobs = {hash for run in self._runs.values() for hash in blobs_of(run.events) | run.held}
        documents = {row.document_hash for row in rows if row.document_hash is not None}
        moves = {plan for run in self._open.values() for plan in run.moves.values()}
        return [
            (self._plans, {row.plan_hash for row in rows} | moves | late),
            (self._documents, documents | late),
            (self._blobs, blobs | late),
        ]


def _age(row: RunRow) -> tuple[int, str]:
    return row.created_at_ms, row.id
