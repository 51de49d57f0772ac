"""Values that durable functions take from outside, the same each time that their code runs, and the state that they
publish. They are no steps; for `patched` alone something is recorded."""

from __future__ import annotations

from datetime import datetime
from random import Random
from typing import Any
from uuid import UUID

from executor.blocks.durable.running import Info, present


def state(value: Any) -> None:
    """Publish a value, in the place of the one before: anyone who may see the run sees it, and queries compute from it.
    It is recorded together with what the function does next."""
    present("state").state(value)


def info() -> Info:
    """Return the run of this durable function. In a step `weft.context()` has it."""
    return present("info").info


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
