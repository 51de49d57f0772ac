"""The results of checking a database: the invariants by number, one Finding for each violation, a Condition for each
part of its surroundings, and the Evidence from outside that some of them need.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any, Literal

from msgspec import Struct

INVARIANTS: dict[str, str] = {
    "I1": "acknowledged data is present",
    "I2": "a run ends once, as its row says",
    "I3": "a node key is decided once",
    "I4": "the journal has no gaps and matches the rows",
    "I5": "a block starts only after its dependencies have ended",
    "I6": "no block of a run starts after it was cancelled",
    "I7": "a run has at most one owner, and none after it has ended",
    "I8": "timers fire once, and neither early nor never",
    "I9": "a wait is resumed once, and its row matches the journal",
    "I10": "an event stream matches the journal",
    "I11": "the database contains no secrets",
    "I12": "the file is intact, and all referenced data exists unchanged",
}


Level = Literal["ok", "warning", "error"]


class Condition(Struct, frozen=True):
    """The state of one part of the system: `what` was found and, unless `level` is ok, how to `fix` it."""

    name: str
    level: Level
    what: str
    fix: str = ""


class Finding(Struct, frozen=True):
    """A violation. `run` and `node` (a node key) are empty when it is not about one."""

    invariant: str
    what: str
    fix: str
    run: str = ""
    node: str = ""


class Part(Struct, frozen=True):
    """The part of a database that is checked: runs that are open, have ended since `since_ms`, have an id above `done`,
    or are named, and of the data that runs share, the part used since then."""

    since_ms: int = 0
    done: str = ""
    named: Sequence[str] = ()

    @property
    def is_all(self) -> bool:
        return not self.since_ms


class Evidence(Struct, frozen=True):
    """Facts that are known only outside.

    acknowledged  ids of runs whose submit was answered with 2xx
    transcripts   by run id: the events a client was sent from the beginning, in the order it got them. Each has `seq`
                  and `type`, and may have `at_ms`, `node`, `path`, `attempt`: the given ones are compared
    secrets       texts that must be nowhere in the database, in no usual encoding
    keys          ids of the keys that processes here have, the present one first
    """

    acknowledged: Collection[str] = ()
    transcripts: Mapping[str, Sequence[Mapping[str, Any]]] = {}
    secrets: Collection[str] = ()
    keys: Sequence[str] = ()
