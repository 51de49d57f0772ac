"""Snapshots in the model store."""

from __future__ import annotations

from executor.kernel.store.topics.snapshots import SnapshotRow


class ModelSnapshots:
    """What ModelStore can do with snapshots."""

    def __init__(self) -> None:
        super().__init__()
        self._snapshots: dict[str, SnapshotRow] = {}  # by run id

    async def get_snapshot(self, run_id: str) -> SnapshotRow | None:
        return self._snapshots.get(run_id)

    async def delete_snapshots(self) -> int:
        count = len(self._snapshots)
        self._snapshots.clear()
        return count
