"""Decides which code can fold a journal, for processes of different versions on one database.

A journal needs the highest format of its events. A process claims only runs whose journals it can fold, so code that
knows new events may run beside code that does not. To add an event that older code must not meet: raise FORMAT by one,
and name the event in SINCE. Events that older code folds without harm need nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Final

from executor.kernel.store.run_rows import Record

FORMAT: Final = 7  # of the newest events that this code folds; 0: those of the first release
# Types of events and the formats with which they came.
SINCE: Mapping[str, int] = MappingProxyType(
    {
        "step.started": 1,
        "step.finished": 1,
        "step.lost": 1,
        "cleanup.opened": 2,
        "cleanup.stopped": 2,
        "run.continuing": 3,
        "run.recovered": 6,
        "node.left": 7,
        "step.retrying": 7,
        "node.state": 7,
        "update.answered": 7,
    }
)


# An event that is older than one of its members: the JSON of the member, and the format with which that came.
SAYS_SINCE: Mapping[str, tuple[bytes, int]] = MappingProxyType(
    {
        "wait.opened": (b'"beside":true', 4),
        "cleanup.opened": (b'"given_up":true', 5),
        "run.started": (b'"keeps":true', 6),
    }
)


def needed(records: Iterable[Record]) -> int:
    """Return the format that code has to support to fold these."""
    needs = 0
    for record in records:  # each append asks twice: a call for each record would be half of its cost
        type = record.type
        if type in SINCE and SINCE[type] > needs:
            needs = SINCE[type]
        if type in SAYS_SINCE:
            text, since = SAYS_SINCE[type]
            if since > needs and text in (record.data or b""):
                needs = since
    return needs
