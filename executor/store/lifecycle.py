"""Runs that are made from other runs, and runs that change their plan.

23. A run made from other ones (`NewRun.sources`) has its copied records, waits, signals and blobs from the moment it is
    there, and the other runs are there at that moment: nothing it refers to can have been deleted.
24. A run moves to another plan (`Append.move`) in the append that says so: its row and its journal never disagree.
"""

from __future__ import annotations

from typing import Protocol

from msgspec import Struct


class Move(Struct, frozen=True):
    """The plan that a run follows from this append on, and the version of its workflow that it is the plan of."""

    version: int
    plan_hash: str
    plan: bytes


class LifecycleStore(Protocol):
    """The part of a Store that this topic adds."""

    async def put_plan(self, hash: str, plan: bytes) -> None:
        """Store a plan that no run has yet; once, by hash."""
