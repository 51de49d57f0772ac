"""Runs that other runs started. The rows are in the table of runs: `parent_run_id`, and in `parent_key` the id of the
wait that the child's end closes.

12. A child is there if and only if its wait is: both are one transaction (`Append.children`), and a wait has one child.
13. What one run tells another (`Append.posts`: the end of a child, a cancel on its way down) lies in the other's inbox
    if and only if the append is on disk. A run that has ended is told nothing more.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from msgspec import Struct

if TYPE_CHECKING:
    from executor.store.base import RunStatus, WaitRow


class ChildRow(Struct, frozen=True):
    """What a parent needs to know of a child: no input, no output."""

    id: str
    workflow: str
    version: int | None
    status: RunStatus
    parent_run_id: str
    parent_key: str
    created_at_ms: int
    finished_at_ms: int | None


class ChildStore(Protocol):
    """The part of a Store that this topic adds. "Below": children, their children, and so on, as long as all of them
    are open."""

    async def list_children(self, run_id: str, limit: int = 200) -> list[ChildRow]:
        """Newest first (created_at, id)."""

    async def list_ancestors(self, run_id: str, limit: int = 100) -> list[str]:
        """The run's parent, the parent's parent and so on; [] for a run that nobody started."""

    async def list_waits_below(self, run_id: str, limit: int = 200) -> list[WaitRow]:
        """Pending waits of the runs below, oldest first, without those for a child."""

    async def count_active_below(self, run_id: str, now_ms: int) -> int:
        """Runs below that are queued or running, or are due."""
