"""Child runs in the model store."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from msgspec.structs import replace

from executor.errors import Conflict
from executor.kernel.store.run_rows import Append, NewRun, RunRow
from executor.kernel.store.statements import TERMINAL
from executor.kernel.store.topics.families import ChildRow, FamilyRow, check_room
from executor.kernel.store.topics.waits import WaitRow

if TYPE_CHECKING:
    from tests.support.model_store.store import _Run


class ModelChildren:
    """What ModelStore can tell of child runs."""

    _runs: dict[str, _Run]

    def __init__(self) -> None:
        super().__init__()
        self._by_parent: dict[str, dict[str, str]] = {}  # parent run -> parent key -> child run
        self._families: dict[str, FamilyRow] = {}  # root -> family

    def _note_parent(self, id: str, parent: str | None, key: str | None) -> None:
        """Part of creating a run."""
        if parent is not None and key is not None:
            self._by_parent.setdefault(parent, {})[key] = id

    def _check_children(self, children: Sequence[NewRun]) -> None:
        """Part of an append, before anything is changed."""
        keys = {(child.parent_run_id, child.parent_key) for child in children}
        if len(keys) < len(children) or any(key in self._by_parent.get(run or "", {}) for run, key in keys):
            raise Conflict("a wait has one child")

    def _check_family(self, append: Append) -> None:
        """Part of an append, before anything is changed."""
        run = self._runs.get(append.run_id)
        family = self._families.get(run.row.root_id or run.row.id) if run is not None else None
        if append.children and family is not None:
            check_room(family, len(append.children), append.family_max)

    def _add_to_family(self, parent: str) -> str:
        """Part of creating a child. Returns the root."""
        above = self._runs.get(parent)
        root = parent if above is None else above.row.root_id or parent
        family = self._families.get(root, FamilyRow(0, 0, 0, False))
        self._families[root] = replace(family, runs=family.runs + 1, open=family.open + 1)
        return root

    def _append_to_family(self, append: Append, finished: bool) -> FamilyRow | None:
        """Part of an append."""
        family = self._families.get(append.root) if append.root is not None else None
        if append.root is None or family is None:
            return None
        below = append.root != append.run_id
        family = self._families[append.root] = FamilyRow(
            family.runs,
            family.open - (finished and below),
            family.bytes + append.output_bytes,
            family.over or (finished and not below),
        )
        return family

    def _end_family(self, root: str) -> None:
        if root in self._families:
            self._families[root] = replace(self._families[root], over=True)

    def _is_orphaned(self, row: RunRow) -> bool:
        seen: set[str] = set()  # ids of deleted runs may be used again, and then a run may be above itself
        while row.parent_run_id is not None and row.parent_run_id not in seen:
            seen.add(row.parent_run_id)
            run = self._runs.get(row.parent_run_id)
            if run is None:
                return False
            row = run.row
            if run.cancel_n is not None or row.status in TERMINAL:
                return True
        return False

    async def get_family(self, root_id: str) -> FamilyRow | None:
        return self._families.get(root_id)

    async def list_children(self, run_id: str, limit: int = 200) -> list[ChildRow]:
        rows = [_child(run) for run in self._children(run_id)]
        return sorted(rows, key=lambda row: (row.created_at_ms, row.id), reverse=True)[:limit]

    async def list_ancestors(self, run_id: str, limit: int = 100) -> list[str]:
        above: list[str] = []
        run = self._runs.get(run_id)
        while run is not None and run.row.parent_run_id is not None and len(above) < limit:
            above.append(run.row.parent_run_id)
            run = self._runs.get(run.row.parent_run_id)
        return above

    async def list_waits_below(self, run_id: str, limit: int = 200) -> list[WaitRow]:
        waits = [wait for run in self._below(run_id) for wait in run.waits.values()]
        found = [wait for wait in waits if wait.status == "pending" and wait.kind != "child"]
        return sorted(found, key=lambda wait: (wait.opened_at_ms, wait.run_id, wait.id))[:limit]

    async def count_active_below(self, run_id: str, now_ms: int) -> int:
        rows = [run.row for run in self._below(run_id)]
        due = [row for row in rows if row.next_run_at_ms is not None and row.next_run_at_ms <= now_ms]
        return len({row.id for row in rows if row.status != "waiting"} | {row.id for row in due})

    def _children(self, run_id: str) -> list[_Run]:
        return [self._runs[child] for child in self._by_parent.get(run_id, {}).values() if child in self._runs]

    def _below(self, run_id: str) -> Iterator[_Run]:
        for run in self._children(run_id):
            if run.row.status not in TERMINAL:
                yield run
                yield from self._below(run.row.id)


def _child(run: _Run) -> ChildRow:
    row = run.row
    assert row.parent_run_id is not None and row.parent_key is not None
    return ChildRow(
        row.id,
        row.workflow,
        row.version,
        row.status,
        row.parent_run_id,
        row.parent_key,
        row.created_at_ms,
        row.finished_at_ms,
    )
