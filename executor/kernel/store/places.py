"""Places of limits of blocks: what a store is asked for, and what it answers. See rule 37 of the contract."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, Protocol

from msgspec import Struct

PlaceState = Literal[0, 1, 2]
WAITS: PlaceState = 0
RESERVED: PlaceState = 1  # its process has yet to be notified
USED: PlaceState = 2


class Ask(Struct, frozen=True):
    """An attempt that wants a place. `epoch`: of the lease that it runs under."""

    run_id: str
    epoch: int
    node: str
    attempt: int
    key: str
    at_most: int


class Assigned(Struct, frozen=True):
    """The result of a look at places.

    asked    the number of the place of each ask, in their order, None if the run has another epoch by now
    begin    numbers of places of the asker's attempts, which may begin now
    others   places were reserved for other processes
    again    keys to look at again soon: another process was looking at them, or there is more to assign
    """

    asked: tuple[int | None, ...] = ()
    begin: tuple[int, ...] = ()
    others: bool = False
    again: tuple[str, ...] = ()


class PlaceRow(Struct, frozen=True):
    """`held`: places with this key that are reserved or used; `at_most` of them may be."""

    number: int
    node: str
    attempt: int
    epoch: int
    state: PlaceState
    key: str
    at_most: int
    held: int


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
