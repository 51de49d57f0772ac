"""An item that comes alone shares nothing, and may be committed in the thread of the event loop.

See docs/decisions/0022-lone-appends-in-the-loop.md.
"""

from __future__ import annotations

from time import perf_counter

from executor.errors import DatabaseUnavailable, DatabaseWriteFailed
from executor.kernel.store.gathering import Item, Outcome
from executor.kernel.store.run_rows import Append
from executor.kernel.store.sqlite.connection import CommitUncertain, Database
from executor.kernel.store.sqlite.errors import as_weft_error
from executor.kernel.store.sqlite.writer import CHECKPOINT_COMMITS, Group, Stats, Writer
from executor.kernel.store.topics.journal import append
from executor.kernel.store.writer import Retry

HERE_BYTES = 64 * 1024  # larger appends are never committed in the event loop's thread


class LoneWriter(Writer):
    """`commit_here_below_s`: see SQLiteStore."""

    def __init__(self, database: Database, retry: Retry, stats: Stats, commit_here_below_s: float = 0.0) -> None:
        super().__init__(database, retry, stats)
        self._commit_here_below_s = commit_here_below_s
        self._doubt: tuple[Group, CommitUncertain] | None = None  # of a commit in the event loop's thread

    def _commit_here(self) -> bool:
        """Commit the only item there is, in the event loop's thread: two switches between threads cost as much as a
        fast sync. False: the writer's thread has to do it, which can wait."""
        if not (self._commit_here_below_s and self._may_commit_here(self._gathered[0])):
            return False
        if not self._at_work.acquire(blocking=False):  # the log is being copied
            return False
        group, outcome = Group(self._gathered), None
        began_s = perf_counter()
        try:
            self._write(group, wait=False)
            [outcome] = self._count(group)
            self._stats.seconds.observe(perf_counter() - began_s)
        except CommitUncertain as uncertain:
            self._doubt = group, uncertain  # the thread looks what became of it
        except Exception as error:
            failure = as_weft_error(error, path=self._database.path)
            if isinstance(failure, DatabaseWriteFailed):
                return False
            if isinstance(failure, DatabaseUnavailable):
                [(_, outcome)], _ = self._failed_to_write(group.items, failure)
            else:
                outcome = Outcome(None, failure)
        finally:
            self._at_work.release()
        self._gathered = []
        self._request_gathered = False
        self._under_way += 1
        if outcome is None or self._commits in (1, CHECKPOINT_COMMITS):
            self._wake()
        if outcome is not None:
            # In the next pass, so that a run whose steps take no time leaves some to others.
            self._loop.call_soon(self._settle, [(group.items[0].future, outcome)])
        return True

    def _may_commit_here(self, item: Item) -> bool:
        return self._database.is_open and self._database.commit_s < self._commit_here_below_s and _is_small(item)

    def _clear_up(self) -> None:
        """Find out whether a commit in the event loop's thread that raised is on disk."""
        if self._doubt is None:
            return
        group, uncertain = self._doubt
        again: list[Item] = []
        with self._at_work:
            try:
                self._find_out(group, uncertain)
                settled = list(zip(group.items, self._count(group), strict=True))
            except Exception as error:
                failure = as_weft_error(error, path=self._database.path)
                if isinstance(failure, DatabaseUnavailable | DatabaseWriteFailed):
                    settled, again = self._failed_to_write(group.items, failure)
                else:
                    settled = [(item, Outcome(None, failure)) for item in group.items]
            self._doubt = None
        self._deliver([(item.future, outcome) for item, outcome in settled])
        self._waiting[:0] = again
        if again:
            self._back_off(again[0].tries)


def _is_small(item: Item) -> bool:
    if item.write is not append:
        return False
    change: Append = item.args[0]
    size = sum(len(record.data or b"") + len(record.output or b"") for record in change.records)
    return size + sum(len(content) for _, content in change.blobs) <= HERE_BYTES
