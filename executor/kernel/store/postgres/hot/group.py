"""Splits a group into statements with arrays, in order.

A run has one item of each kind in a group, and several only in the order in which the kinds are written. Its other
items come after them, as they were submitted.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from executor.kernel.store.batches import has_only_events, is_one_batch
from executor.kernel.store.postgres.batch import array_of
from executor.kernel.store.postgres.hot.appends import Appends, Ends, Newest, Post, Posts, only_ends
from executor.kernel.store.postgres.hot.begins import Begins, begin_of
from executor.kernel.store.postgres.hot.claims import Claim, Claims, Release, Releases, is_plain
from executor.kernel.store.postgres.hot.kind import LOCK_HEADS, Answered, Asked, Kind, Session
from executor.kernel.store.run_rows import Append
from executor.kernel.store.topics.claims import claim
from executor.kernel.store.topics.inbox import post_message
from executor.kernel.store.topics.journal import append
from executor.kernel.store.topics.leases import begin_run, release
from executor.kernel.store.topics.runs import create_run
from executor.kernel.store.writer import Item, Outcome

# In the order in which they are written: changes of runs that this process has, of any, and what it may have then.
KINDS: Final[tuple[type[Kind[Any]], ...]] = (Appends, Begins, Ends, Releases, Posts, Claims)
_APPENDS, _BEGINS, _ENDS, _RELEASES, _POSTS, _CLAIMS = range(len(KINDS))
LATER: Final = len(KINDS)  # after all of them
OF_CLAIMS: Final = ""  # instead of a run
Entry = tuple[int, str, Any]  # the place of the kind, the run, and the item's change of it


class HotGroup:
    """`taken`: numbers of the items that are in its statements."""

    def __init__(self, items: Sequence[Item]) -> None:
        entries: list[dict[str, tuple[int, Any]]] = [{} for _ in KINDS]
        places: dict[str, int] = {}  # of the last item of each run
        for number, item in enumerate(items):
            if (entry := _entry(item)) is not None:
                place, run, asked = entry
                if item.alone or place == LATER or place <= places.get(run, -1):
                    place = LATER
                else:
                    entries[place][run] = (number, asked)
                places[run] = place
        self._kinds = [kind(of_kind) for kind, of_kind in zip(KINDS, entries, strict=True) if of_kind]
        self.taken = {number for kind in self._kinds for number in kind.numbers}
        self._answers: list[Answered] = []

    def write(self, tx: Asked) -> None:
        if any(kind.locks for kind in self._kinds):
            locked = {run for kind in self._kinds if not isinstance(kind, Begins | Claims) for run in kind.runs}
            tx.send(LOCK_HEADS, {"runs": array_of("text", sorted(locked))})
        self._answers = [kind.write(tx) for kind in self._kinds]

    def look(self, session: Session) -> None:
        """After the answers to `write` were lost, and the group is known to be on disk. Raises psycopg.Error."""
        self._answers = [kind.look(session) for kind in self._kinds]

    def outcomes(self, newest: Newest) -> dict[int, Outcome | None]:
        """Return the outcome of each item taken, after the commit. For None see Kind."""
        found: dict[int, Outcome | None] = {}
        for kind, answer in zip(self._kinds, self._answers, strict=True):
            rows = answer.fetchall()
            if isinstance(kind, Appends):
                kind.find_messages(rows, newest)
            found.update(zip(kind.numbers, kind.outcomes(rows), strict=True))
        return found


def _entry(item: Item) -> Entry | None:
    """Return the kind, the run and the change of an item, or None if it is of no kind and no run."""
    write, args = item.write, item.args
    if write is append:
        change: Append = args[0]
        if only_ends(change):
            return _ENDS, change.run_id, change
        is_plain_append = change.records and has_only_events(change) and is_one_batch(change.records)
        return _APPENDS if is_plain_append else LATER, change.run_id, change
    if write is create_run or write is begin_run:
        begin = begin_of(*args)
        return LATER if begin is None else _BEGINS, args[0].id, begin
    if write is release:
        return _RELEASES, args[0], Release(*args)
    if write is post_message:
        return _POSTS, args[0], Post(*args)
    if write is claim and is_plain(of_any := Claim(*args)):
        return _CLAIMS, OF_CLAIMS, of_any
    return None
