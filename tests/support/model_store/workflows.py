"""Workflows in the model store."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from msgspec.structs import replace

from executor.errors import Conflict
from executor.kernel.store.topics.drafts import DraftRow, LastRun
from executor.kernel.store.topics.schedules import ScheduleRow
from executor.kernel.store.topics.webhooks import WebhookRow
from executor.kernel.store.topics.workflows import (
    Declared,
    DeletedWorkflow,
    Stored,
    VersionRow,
    WorkflowHead,
    WorkflowRow,
)

if TYPE_CHECKING:
    from tests.support.model_store.store import _Run


class ModelWorkflows:
    """What ModelStore does for this topic."""

    _runs: dict[str, _Run]
    _open: dict[str, _Run]
    _drafts: dict[str, DraftRow]
    _schedules: dict[str, ScheduleRow]
    _webhooks: dict[str, WebhookRow]
    _put_declared: Callable[[str, Declared], None]
    _delete_schedule: Callable[[str], bool]
    _delete_webhook: Callable[[str], bool]
    _forget_workflow: Callable[[str], None]
    _clear_cache: Callable[[str | None], int]

    def __init__(self) -> None:
        super().__init__()
        self._workflows: dict[str, list[WorkflowRow]] = {}
        self._active: dict[str, tuple[int, int]] = {}  # name -> version, since when
        self._fronts: dict[str, tuple[str, str | None, str]] = {}  # name -> folder, who changed it, title

    async def put_workflow(
        self,
        name: str,
        document: bytes,
        hash: str,
        now_ms: int,
        declared: Declared | None = None,
        by: str | None = None,
        replaces: int | None = None,
    ) -> Stored:
        versions = self._workflows.setdefault(name, [])
        row = next((row for row in versions if row.hash == hash), None)
        active, _ = self._active.get(name, (None, 0))
        if replaces is not None and active not in (None, replaces, row.version if row else None):
            raise Conflict("another version is active", code="would_replace", active=active)
        created = row is None
        if row is None:
            row = WorkflowRow(name, len(versions) + 1, hash, document, now_ms)
            versions.append(row)
        return self._make_active(row, created, now_ms, declared, by)

    async def activate_workflow(
        self, name: str, version: int, now_ms: int, declared: Declared | None = None, by: str | None = None
    ) -> Stored | None:
        row = await self.get_workflow(name, version)
        return None if row is None or name not in self._active else self._make_active(row, False, now_ms, declared, by)

    def _make_active(
        self, row: WorkflowRow, created: bool, now_ms: int, declared: Declared | None, by: str | None
    ) -> Stored:
        before, _ = self._active.get(row.name, (None, 0))
        if before != row.version:
            self._active[row.name] = row.version, now_ms
            folder, _, title = self._fronts.get(row.name, ("", None, ""))
            self._fronts[row.name] = folder, by, title
        if declared is not None:
            self._put_declared(row.name, declared.of_version(row.version))
        return Stored(row, created, before != row.version, before if before != row.version else None)

    async def get_workflow(self, name: str, version: int | None = None) -> WorkflowRow | None:
        versions = self._workflows.get(name, [])
        if version is None:
            version, _ = self._active.get(name, (0, 0))
        return versions[version - 1] if 1 <= version <= len(versions) else None

    async def list_workflows(self) -> list[WorkflowRow]:
        return [self._workflows[name][version - 1] for name, (version, _) in sorted(self._active.items())]

    async def get_head(self, name: str) -> WorkflowHead | None:
        if name not in self._active:
            return None
        version, since_ms = self._active[name]
        versions = self._workflows[name]
        row = versions[version - 1]
        last = max(
            (run.row for run in self._runs.values() if run.row.workflow == name),
            key=lambda run: (run.created_at_ms, run.id),
            default=None,
        )
        return WorkflowHead(
            name,
            version,
            row.hash,
            row.created_at_ms,
            since_ms,
            newest=len(versions),
            versions=len(versions),
            last_run=None
            if last is None
            else LastRun(last.id, last.version, last.status, last.created_at_ms, last.finished_at_ms),
            folder=self._fronts[name][0],
            changed_by=self._fronts[name][1],
            title=self._fronts[name][2],
        )

    async def named(self, text: str) -> str:
        titled = [name for name, front in sorted(self._fronts.items()) if front[2] == text and text]
        return text if text in self._active or not titled else titled[0]

    async def put_title(self, name: str, title: str) -> bool:
        others = {other: front[2] for other, front in self._fronts.items() if other in self._active and other != name}
        if name not in self._active or (title and title in {*others, *others.values()}):
            return False
        self._fronts[name] = *self._fronts[name][:2], title
        return True

    async def put_in_folder(self, name: str, folder: str) -> bool:
        if name not in self._active:
            return False
        self._fronts[name] = folder, *self._fronts[name][1:]
        return True

    async def list_heads(self) -> list[WorkflowHead]:
        heads = [await self.get_head(name) for name in sorted(self._active)]
        return [head for head in heads if head is not None]

    async def list_versions(self, name: str, before: int | None = None, limit: int = 200) -> list[VersionRow]:
        if name not in self._active:
            return []
        below = [row for row in self._workflows[name] if before is None or row.version < before]
        return [VersionRow(row.version, row.hash, row.created_at_ms) for row in below[::-1][:limit]]

    async def delete_workflow(self, name: str) -> DeletedWorkflow | None:
        if name not in self._active:
            return None
        open_runs = sum(run.row.workflow == name for run in self._open.values())
        if open_runs:
            return DeletedWorkflow(open_runs)
        schedules = [row.id for row in self._schedules.values() if row.workflow == name]
        webhooks = [row.id for row in self._webhooks.values() if row.workflow == name]
        for id in schedules:
            self._delete_schedule(id)
        for id in webhooks:
            self._delete_webhook(id)
        for draft in list(self._drafts.values()):
            if draft.base_name == name:
                self._drafts[draft.id] = replace(draft, base_name=None, base_version=None, base_rev=None)
        self._forget_workflow(name)
        self._clear_cache(name)
        del self._active[name], self._fronts[name]
        return DeletedWorkflow(0, len(schedules), len(webhooks))
