"""The queue settings of a run: who may execute it, and when its turn comes, from its workflow's settings and its
input."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from msgspec import Struct

DEFAULT_POOL: Final = "default"
# The pools of a worker, and in each the key after which its next claim begins.
DEFAULT_POOLS: Final[Mapping[str, str]] = MappingProxyType({DEFAULT_POOL: ""})


class Placement(Struct, frozen=True):
    """`fair`: runs of a pool take turns by it; "": by the name of the workflow. `priority`: among runs with the same,
    higher first. `limits`: keys, and how many runs with the key may have an owner at once. `rates`: keys, and how many
    runs with the key may start in a second."""

    pool: str = DEFAULT_POOL
    priority: int = 0
    fair: str = ""
    limits: tuple[tuple[str, int], ...] = ()
    rates: tuple[tuple[str, float], ...] = ()

    @property
    def is_limited(self) -> bool:
        """Returns True if a claim must check more than that the run is due."""
        return bool(self.limits or self.rates)


class Full(Struct, frozen=True):
    """The limit that a run waits for."""

    key: str
    held: int
    at_most: int
