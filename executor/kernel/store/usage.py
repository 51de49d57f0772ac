"""Usage and cost of steps: the rows, and the methods of a store for them. See rules 43 and 44 of the contract."""

from __future__ import annotations

from typing import Protocol

from executor.kernel.store.topics.usage import By, UsageSum


class UsageStore(Protocol):
    async def usage_of(self, run_id: str) -> list[UsageSum]:
        """Return the usage of the run and all runs below it, by model."""

    async def usage_between(self, first_day: int, last_day: int, by: By, workflow: str | None = None) -> list[UsageSum]:
        """Both days are part of it. Of more than GROUPS_MAX sums those that cost most."""
