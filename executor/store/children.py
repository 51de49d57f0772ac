"""Runs that other runs started. The rows are in the table of runs: `parent_run_id`, and in `parent_key` the id of the
wait that the child's end closes.

12. A child is there if and only if its wait is: both are one transaction (`Append.children`), and a wait has one child.
13. What one run tells another (`Append.posts`: the end of a child, a cancel on its way down) lies in the other's inbox
    if and only if the append is on disk. A run that has ended is told nothing more.
27. The runs below one root are its family, and its row is changed in the transactions that change them: `runs` made so
    far, `open` ones, `bytes` of outputs. A child that would be one too many (`Append.family_max`) is not made, nor is
    anything else of its append. The family is over when its root is told to cancel, or ends.
28. A run that is claimed below one that was told to cancel, or has ended, is said to be `orphaned`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from msgspec import Struct

from executor.errors import LimitExceeded

if TYPE_CHECKING:
    from executor.store.base import RunStatus, WaitRow


class FamilyMax(Struct, frozen=True):
    """How many runs there may be below one root."""

    open: int = 10_000
    runs: int = 100_000


class FamilyRow(Struct, frozen=True):
    """`runs` were made below the root, `open` of them have not ended; `bytes`: see `Append.output_bytes`."""

    runs: int
    open: int
    bytes: int
    over: bool


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

    async def get_family(self, root_id: str) -> FamilyRow | None:
        """None: it never had a child."""

    async def list_children(self, run_id: str, limit: int = 200) -> list[ChildRow]:
        """Newest first (created_at, id)."""

    async def list_ancestors(self, run_id: str, limit: int = 100) -> list[str]:
        """The run's parent, the parent's parent and so on; [] for a run that nobody started."""

    async def list_waits_below(self, run_id: str, limit: int = 200) -> list[WaitRow]:
        """Pending waits of the runs below, oldest first, without those for a child."""

    async def count_active_below(self, run_id: str, now_ms: int) -> int:
        """Runs below that are queued or running, or are due."""


def check_room(family: FamilyRow, more: int, most: FamilyMax) -> None:
    """Raises LimitExceeded."""
    if family.open + more > most.open:
        raise LimitExceeded(
            f"more than {most.open:,} runs would be open below one run",
            code="limit_family_open",
            hint="Does the workflow run itself without end? Start fewer runs at a time, "
            "for example with `concurrency` of the parallel.",
        )
    if family.runs + more > most.runs:
        raise LimitExceeded(
            f"more than {most.runs:,} runs would have been started below one run",
            code="limit_family_runs",
            hint="Does the workflow run itself without end? Use a loop to repeat blocks without new runs.",
        )
