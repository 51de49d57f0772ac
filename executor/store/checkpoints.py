"""How far an attempt came: what it wants the attempt that follows to know. No event, and `seq` stays.

26. `put_checkpoint` names the epoch of the run's owner; if that is not the run's, or the run has ended, nothing is
    written and `Fenced` is raised. A node key has one checkpoint, the last. It is deleted with its run.
"""

from __future__ import annotations

from typing import Protocol

from msgspec import Struct


class CheckpointRow(Struct, frozen=True):
    """`node` is a text of compiler.keys: a block in its iteration and branch. `data` is JSON, `attempt` who kept it."""

    run_id: str
    node: str
    attempt: int
    at_ms: int
    data: bytes


class CheckpointStore(Protocol):
    """The part of a Store that this topic adds."""

    async def put_checkpoint(self, epoch: int, row: CheckpointRow) -> None:
        """In the place of the one before. Raises Fenced."""

    async def get_checkpoint(self, run_id: str, node: str) -> CheckpointRow | None: ...
