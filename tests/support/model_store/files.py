"""Files in the model store."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from executor.kernel.store.topics.contents import decode_head

if TYPE_CHECKING:
    from tests.support.model_store.store import _Run


class ModelFiles:
    """What ModelStore can do with files."""

    _runs: dict[str, _Run]
    _blobs: dict[str, bytes]

    def _use(self, hash: str, now_ms: int) -> None: ...

    async def put_parts(self, parts: Sequence[tuple[str, bytes]], run: str | None, now_ms: int) -> bool:
        if run is not None and run not in self._runs:
            return False
        for key, content in parts:
            self._blobs.setdefault(key, content)
            self._use(key, now_ms)
            if run is not None:
                self._runs[run].held.add(key)
        return True

    async def hold_files(self, ids: Sequence[str], run: str | None, now_ms: int) -> list[str]:
        if run is not None and run not in self._runs:
            return []
        return self._hold(ids, None if run is None else self._runs[run], now_ms)

    async def files_of_run(self, run_id: str, ids: Sequence[str]) -> list[str]:
        held = self._runs[run_id].held if run_id in self._runs else set()
        return [id for id in ids if id in held]

    async def holds_file(self, id: str, workflows: Sequence[str]) -> bool:
        return any(id in run.held and run.row.workflow in workflows for run in self._runs.values())

    def _hold(self, ids: Sequence[str], run: _Run | None, now_ms: int) -> list[str]:
        found = [id for id in ids if id in self._blobs]
        for id in found:
            for key in (id, *decode_head(self._blobs[id]).parts):
                if key in self._blobs:
                    self._use(key, now_ms)
                    if run is not None:
                        run.held.add(key)
        return found
