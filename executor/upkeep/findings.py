"""What checking a database says: the invariants by number, one Finding for each thing that is not as it should be, and
the Evidence from outside that some of them need."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from msgspec import Struct

INVARIANTS: dict[str, str] = {
    "I1": "what was acknowledged is there",
    "I2": "a run ends once, and as its row says",
    "I3": "a node key is decided once",
    "I4": "the journal is dense and folds to what the rows say",
    "I5": "a block starts only after what it depends on has ended",
    "I6": "nothing of a cancelled run starts after the cancel",
    "I7": "a run has at most one owner, and none once it has ended",
    "I8": "timers fire once, not early, and none is forgotten",
    "I9": "a pause is resumed once, and its row agrees with the journal",
    "I10": "a stream gave exactly the journal",
    "I11": "no secret is in the database",
    "I12": "the file is sound, and what rows refer to exists, as it was written",
}


class Finding(Struct, frozen=True):
    """One violation. `run` and `node` (a node key) are empty when it is not about one."""

    invariant: str
    what: str
    mend: str
    run: str = ""
    node: str = ""


class Evidence(Struct, frozen=True):
    """What only the world outside knows.

    acknowledged  ids of runs whose submit was answered with 2xx
    transcripts   by run id: the events a client was sent from the beginning, in the order it got them. Each has `seq`
                  and `type`, and may have `at_ms`, `node`, `path`, `attempt`: what is there is compared
    secrets       texts that must be nowhere in the database, in no usual encoding
    """

    acknowledged: Collection[str] = ()
    transcripts: Mapping[str, Sequence[Mapping[str, Any]]] = {}
    secrets: Collection[str] = ()
