"""Commits the groups of a SQLite file, and finds out whether a commit that raised is on disk.

An item reads and writes through `tx.db`; appends that have only events are collected, and written before anything else
is looked at (`Tx`). While another process holds the lock a group is tried again.

An append that comes alone shares nothing: in a program that asks for it, the thread of the event loop commits it, as
two switches between threads cost as much as a fast sync (docs/decisions/0022-lone-appends-in-the-loop.md). One thread
at a time uses the database.
"""

from __future__ import annotations

import logging
import sqlite3
import time
from time import perf_counter

from msgspec import Struct

from executor.errors import DatabaseUnavailable, DatabaseWriteFailed, WeftError
from executor.kernel.store.migrate import migrate, packaged_migrations
from executor.kernel.store.run_rows import Append
from executor.kernel.store.sqlite.connection import CommitUncertain, Database, Tx
from executor.kernel.store.sqlite.dialect import BATCH_IS_THERE
from executor.kernel.store.sqlite.errors import as_weft_error
from executor.kernel.store.topics.claims import answer_and_continue
from executor.kernel.store.topics.journal import append
from executor.kernel.store.writer import GroupWriter, Item, Outcome, Retry
from executor.kernel.store.writer import Stats as StoreStats

log = logging.getLogger("weft.store")

GROUP_ROWS_MIN = 64  # rows that a request may have to wait for; fewer would spend the time on syncs
IDLE_S = 0.05  # this long without work, then checkpoint
CHECKPOINT_COMMITS = 512  # about 8 MiB of WAL for small events, written over again and again
CHECKPOINT_ROWS = 8192
HERE_BYTES = 64 * 1024  # larger appends are never committed in the event loop's thread
LOOK_EVERY_S = 0.005  # whether the file is still the one that was opened

# The writer's own row has the last of its groups without events that was committed.
ADD_WRITER = "INSERT INTO writers (id, last_group) VALUES (?, 0) ON CONFLICT DO NOTHING"
MARK_GROUP = "UPDATE writers SET last_group = ? WHERE id = ?"
LAST_GROUP = "SELECT last_group FROM writers WHERE id = ?"
DELETE_WRITER = "DELETE FROM writers WHERE id = ?"
# Rows of processes that were killed; a thousand starts is more than ever write at once.
FORGET_OLD_WRITERS = "DELETE FROM writers WHERE rowid < (SELECT max(rowid) FROM writers) - 1000"


class Stats(StoreStats):
    rows: int = 0
    checkpoints: int = 0


class Group(Struct, eq=False):
    """The items of one transaction, with the outcomes of all, or of the first of them. `proof`: see Tx."""

    items: list[Item]
    outcomes: list[Outcome] = []
    changes: int = 0
    proof: tuple[str, int, int] | None = None


class Writer(GroupWriter):
    too_late = "another process holds the write lock of the database"
    _stats: Stats

    def __init__(self, database: Database, retry: Retry, stats: Stats, commit_here_below_s: float = 0.0) -> None:
        super().__init__(retry, stats)
        self._commit_here_below_s = commit_here_below_s
        self._doubt: tuple[Group, CommitUncertain] | None = None  # of a commit in the event loop's thread
        self._database = database
        self._group = 0
        self._look_again_s = 0.0
        self._commits = 0  # since the last checkpoint
        self._commits_seen = 0
        self._rows = 0

    # --- on the writer's thread, but for `_write` and `_count`, which `_commit_here` calls on that of the loop

    def _prepare(self) -> Exception | None:
        retries = 0
        while True:
            try:
                migrate(self._database, packaged_migrations())
                with self._database.tx("register") as tx:
                    tx.db.execute(ADD_WRITER, (self._id,))
                    tx.db.execute(FORGET_OLD_WRITERS)
                return None
            except Exception as error:
                self._database.drop()
                failure = as_weft_error(error, path=self._database.path)
                if not isinstance(failure, DatabaseWriteFailed) or retries == self._retry.attempts or self._no_retries:
                    return failure
                retries += 1
                self._back_off(retries)

    def _leave(self) -> None:
        try:
            with self._database.tx("unregister") as tx:
                tx.db.execute(DELETE_WRITER, (self._id,))
            self._database.checkpoint()
        except (sqlite3.Error, CommitUncertain, DatabaseUnavailable) as error:
            log.warning("the writer could not clean up: %s", error)

    def _drop(self) -> None:
        self._database.drop()

    def _in_our_words(self, error: Exception) -> Exception:
        return as_weft_error(error, path=self._database.path)

    def _commit(self, items: list[Item]) -> list[Outcome]:
        """See GroupWriter._commit; raises sqlite3.Error."""
        group = Group(items)
        try:
            self._write(group)
        except CommitUncertain as uncertain:
            self._find_out(group, uncertain)
        return self._count(group)

    def _write(self, group: Group, wait: bool = True) -> None:
        """`wait`: for the lock of another process. Raises CommitUncertain, and as `_commit`."""
        self._look_at_file()
        self._group += 1
        database = self._database
        database.wait_for_lock(wait)
        fault, items = database.fault, group.items
        with database.tx("group") as tx:
            for item in items:
                if fault is not None:
                    fault(f"write.{item.write.__name__.lstrip('_')}")
                try:
                    group.outcomes.append(Outcome(item.write(tx, *item.args)))
                except WeftError as error:
                    group.outcomes.append(Outcome(None, error))
                if self._request_waits and tx.changes >= GROUP_ROWS_MIN:
                    break
            group.changes, group.proof = tx.changes, tx.proof
            if group.changes and group.proof is None:
                tx.db.execute(MARK_GROUP, (self._group, self._id))

    def _find_out(self, group: Group, uncertain: CommitUncertain) -> None:
        """Return if the group was committed. Raises the error to report if it was not, or that is not known."""
        if not self._is_on_disk(group):
            raise as_weft_error(uncertain, again=True, path=self._database.path) from uncertain

    def _count(self, group: Group) -> list[Outcome]:
        stats = self._stats
        stats.items += len(group.outcomes)
        if group.changes:
            stats.commits += 1
            stats.rows += group.changes
            stats.group_max = max(stats.group_max, len(group.outcomes))
            self._commits += 1
            self._rows += group.changes
        return group.outcomes

    def _look_at_file(self) -> None:
        """Not for each of many small groups: a look takes 8 us. Raises DatabaseReplaced."""
        now_s = time.monotonic()
        if now_s >= self._look_again_s:
            self._database.check_file()
            self._look_again_s = now_s + LOOK_EVERY_S

    def _is_on_disk(self, group: Group) -> bool:
        """After a COMMIT that raised: look with a fresh connection. A group is there as a whole, so one of its events
        proves it; only a group without events needs the mark, which would cost every append a page."""
        self._database.drop()
        try:
            if group.proof is not None:
                return bool(self._database.db.execute(BATCH_IS_THERE, group.proof).fetchall())
            return self._database.db.execute(LAST_GROUP, (self._id,)).fetchall() == [(self._group,)]
        except sqlite3.Error as error:
            raise DatabaseUnavailable(f"a commit failed, and it is unknown whether it is on disk: {error}") from error

    # --- on the event loop, and what becomes of that

    def _commit_here(self) -> bool:
        """See decision 22. A lock of another process is never waited for here: the writer's thread does that."""
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
            self._resolve([(group.items[0].future, outcome)])
        return True

    def _may_commit_here(self, item: Item) -> bool:
        return self._database.is_open and self._database.commit_s < self._commit_here_below_s and _is_small(item)

    def _serve_next(self) -> bool:
        self._clear_up()
        return super()._serve_next()

    def _clear_up(self) -> None:
        """Find out whether a commit in the event loop's thread that raised is on disk."""
        if self._doubt is None:
            return
        (group, uncertain), self._doubt = self._doubt, None

        def find_out(items: list[Item]) -> list[Outcome]:
            self._find_out(group, uncertain)
            return self._count(group)

        self._serve_group(group.items, find_out)

    def _idle_s(self) -> float | None:
        return IDLE_S if self._commits else None

    def _pause(self, idle: bool) -> None:
        nothing_new = idle and self._commits == self._commits_seen
        if self._commits and (nothing_new or self._commits >= CHECKPOINT_COMMITS or self._rows >= CHECKPOINT_ROWS):
            with self._at_work:
                self._checkpoint()
        self._commits_seen = self._commits

    def _checkpoint(self) -> None:
        self._commits = self._rows = 0
        self._stats.checkpoints += 1
        self._database.checkpoint()


def _is_small(item: Item) -> bool:
    if item.write is not append and item.write is not answer_and_continue:
        return False
    change: Append = item.args[-1]
    size = sum(len(content) for _, content in change.blobs) if change.blobs else 0
    for record in change.records:
        size += len(record.data or b"") + len(record.output or b"")
    return size <= HERE_BYTES


def ping(tx: Tx) -> None:
    tx.db.execute("UPDATE writers SET last_group = last_group WHERE rowid = (SELECT max(rowid) FROM writers)")
