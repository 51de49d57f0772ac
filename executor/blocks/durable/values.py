"""Values that durable functions take from outside, the same each time that their code runs. They are no steps: nothing
is recorded for them."""

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
