"""Places of limits of blocks: what a store is asked for, and what it answers. See rule 37 of the contract."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from executor.kernel.store.topics.places import Ask, Assigned, PlaceRow


class PlaceStore(Protocol):
    """See rule 37. A place is left by an append (`Append.places`)."""

    async def ask_places(self, asker: str, asks: Sequence[Ask]) -> Assigned:
        """Add the asks after those that wait already; then as `assign_places` with their keys."""

    async def assign_places(self, asker: str, keys: Sequence[str]) -> Assigned:
        """Reserve the free places with these keys for those that wait, in order; the asker's own are used at once, also
        those that others have reserved for it."""

    async def places_to_assign(self, asker: str, keys: Sequence[str]) -> list[str]:
        """Return which of these keys have a free place for an attempt that waits, or a place that is reserved for the
        asker. Only reads."""

    async def places_of(self, run_id: str) -> list[PlaceRow]:
        """Return all places of an open run, also of older epochs, by number."""
