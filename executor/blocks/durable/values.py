"""Values that durable functions take from outside, the same each time that their code runs. They are no steps; for
`patched` alone something is recorded."""

from __future__ import annotations

from datetime import datetime
from random import Random
from uuid import UUID

from executor.blocks.durable.running import present


def now() -> datetime:
    """Return the time in UTC: that at which the last step or wait before this ended."""
    return present("now").now


def random() -> Random:
    """Return a random number generator with a seed of its own."""
    return Random(present("random").seed())  # for no secrets


def uuid() -> UUID:
    return UUID(bytes=present("uuid").seed()[:16], version=4)


def patched(name: str) -> bool:
    """Return True where the new code is for this run, and False where the run made its calls with the old code:
    `if weft.patched("fraud-check"): await check(order)`. The same call has the same answer in each entry."""
    return present("patched").patched(name)
