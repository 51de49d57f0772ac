"""Checkpoints in the model store."""

from __future__ import annotations

from typing import TYPE_CHECKING

from executor.errors import Fenced
from executor.kernel.store.topics.snapshots import CheckpointRow

if TYPE_CHECKING:
    from tests.support.model_store.store import _Run


class ModelCheckpoints:
    """What ModelStore can do with checkpoints."""

    _open: dict[str, _Run]

    def __init__(self) -> None:
        super().__init__()
        self._checkpoints: dict[tuple[str, str], CheckpointRow] = {}  # by run id and node key

    async def put_checkpoint(self, epoch: int, row: CheckpointRow) -> None:
        run = self._open.get(row.run_id)
        if run is None or run.row.epoch != epoch:
            raise Fenced(f"run {row.run_id}: epoch {epoch} is no longer current", run=row.run_id)
        self._checkpoints[row.run_id, row.node] = row

    async def get_checkpoint(self, run_id: str, node: str) -> CheckpointRow | None:
        return self._checkpoints.get((run_id, node))
