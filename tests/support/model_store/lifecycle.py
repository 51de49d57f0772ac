"""Runs made from other runs in the model store."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from msgspec.structs import replace

from executor.errors import NotFound
from executor.kernel.store.run_rows import Move

if TYPE_CHECKING:
    from tests.support.model_store.store import _Run


class ModelLifecycle:
    """What ModelStore does for this topic."""

    _runs: dict[str, _Run]
    _plans: dict[str, bytes]
    _use: Callable[[str, int], None]

    async def put_plan(self, hash: str, plan: bytes, now_ms: int) -> None:
        self._plans.setdefault(hash, plan)
        self._use(hash, now_ms)

    def _move(self, run: _Run, move: Move | None, now_ms: int) -> None:
        """Part of an append."""
        if move is not None:
            self._plans.setdefault(move.plan_hash, move.plan)
            self._use(move.plan_hash, now_ms)
            run.row = replace(run.row, plan_hash=move.plan_hash, version=move.version)

    def _check_sources(self, runs: tuple[str, ...]) -> None:
        """Part of creating a run, before anything is changed. Raises NotFound."""
        for run in runs:
            if run not in self._runs:
                raise NotFound(f"run '{run}' no longer exists", code="run_not_found")
