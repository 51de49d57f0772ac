"""The open work of a database, for metrics. See `load` in the contract."""

from __future__ import annotations

from typing import Protocol

from executor.kernel.store.topics.load import DatabaseLoad


class LoadStore(Protocol):
    async def load(self) -> DatabaseLoad:
        """Return the load. The parts may be of slightly different times."""
