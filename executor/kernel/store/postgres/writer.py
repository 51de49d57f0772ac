"""Commits the groups of a process on PostgreSQL, and finds out whether a commit whose answer was lost is on disk.

A group is one transaction. What is frequent is one statement for all items of a kind (`hot/`), and a group of nothing
else is one write and one way to the server and back (`Session.batch`). Others come after them (`Session.group`), and
wait for the server only where they ask for rows. Processes that commit at once share syncs too, but that is
PostgreSQL's work.

When the answer to a commit is lost, the writer's own row shows whether the group is on disk: a new session changes it,
which waits until the old one is over, and so that the group can no longer be committed if it was not.
"""

from __future__ import annotations

import logging
import random
import time
from collections.abc import Mapping

import psycopg

from executor.errors import DatabaseDown, DatabaseUnavailable, DatabaseWriteFailed, WeftError
from executor.kernel.store.migrate import packaged_migrations
from executor.kernel.store.postgres.connection import CommitUncertain, Session, Tx
from executor.kernel.store.postgres.dialect import (
    ADD_WRITER,
    CLOSE_GROUP,
    DELETE_WRITER,
    FORGET_OLD_WRITERS,
    LAST_GROUP,
    MARK_GROUP,
)
from executor.kernel.store.postgres.errors import as_weft_error, may_pass, message_of
from executor.kernel.store.postgres.hot.appends import newest_messages
from executor.kernel.store.postgres.hot.group import HotGroup
from executor.kernel.store.postgres.migrate import migrate
from executor.kernel.store.writer import GroupWriter, Item, Outcome, Retry, Stats

log = logging.getLogger("weft.store")

# 40 seconds; twice as long each time, with jitter, so that a fleet does not come at once. The pauses are so short that
# a database that is back is noticed within a second.
RETRY = Retry(attempts=82, base_ms=50, cap_ms=500, jitter=0.5)


class Writer(GroupWriter):
    group_max = 256  # it holds the rows of their runs

    def __init__(self, session: Session, stats: Stats) -> None:
        super().__init__(RETRY, stats)
        self._session = session
        self._group = 0

    # --- on the writer's thread

    def _prepare(self) -> Exception | None:
        try:
            migrate(self._session, packaged_migrations("postgres"))
            self._register()
        except Exception as error:
            self._session.drop()
            failure = as_weft_error(error)
            if isinstance(failure, DatabaseWriteFailed):
                kind = DatabaseDown if may_pass(error) else DatabaseUnavailable
                return kind(f"the database cannot be used: {str(error.__cause__ or error).strip()}")
            return failure
        return None

    def _register(self) -> None:
        with self._session.tx("register") as tx:
            tx.cursor.execute(FORGET_OLD_WRITERS)
            tx.cursor.execute(ADD_WRITER, {"id": self._id})

    def _leave(self) -> None:
        try:
            self._session.connection.execute(DELETE_WRITER, {"id": self._id})
        except psycopg.Error as error:
            log.warning("the writer could not clean up: %s", error)

    def _drop(self) -> None:
        self._session.drop()

    def _in_our_words(self, error: Exception) -> Exception:
        return as_weft_error(error)

    def _commit(self, items: list[Item]) -> list[Outcome | None]:
        self._group += 1
        hot = HotGroup(items)
        outcomes: dict[int, Outcome | None] = {}
        try:
            self._write(items, hot, outcomes)
        except psycopg.errors.DivisionByZero:  # of MARK_GROUP: without its row no outcome could be known
            self._register()
            raise DatabaseWriteFailed("the row of this writer was gone, and is there again") from None
        except (
            psycopg.errors.ReadOnlySqlTransaction
        ) as error:  # another host was promoted, and this one is a standby now
            self._session.drop()
            raise DatabaseWriteFailed(f"the database takes no writes: {message_of(error)}") from error
        except CommitUncertain as uncertain:
            self._find_out(uncertain, hot)
        outcomes.update(hot.outcomes(self._newest_messages))
        for n, item in enumerate(items):
            item.alone = outcomes[n] is None
        stats = self._stats
        stats.items += sum(outcome is not None for outcome in outcomes.values())
        stats.commits += 1
        stats.group_max = max(stats.group_max, len(items))
        return [outcomes[n] for n in range(len(items))]

    def _write(self, items: list[Item], hot: HotGroup, outcomes: dict[int, Outcome | None]) -> None:
        """Fills `outcomes` of the items that are not in `hot`. Raises CommitUncertain, and as `_commit`."""
        session = self._session
        with session.batch("group") if len(hot.taken) == len(items) else session.group("group") as tx:
            tx.send(MARK_GROUP, {"group": self._group, "id": self._id})
            for item in items:
                session.fault(f"write.{item.write.__name__.lstrip('_')}")
            hot.write(tx)
            for n, item in enumerate(items):
                if n not in hot.taken:
                    try:
                        outcomes[n] = Outcome(item.write(tx, *item.args))
                    except WeftError as error:
                        outcomes[n] = Outcome(None, error)

    def _find_out(self, uncertain: CommitUncertain, hot: HotGroup) -> None:
        """After the answer to a COMMIT was lost: on a new session, as soon as there is one."""
        for tries in range(1, RETRY.attempts + 1):
            self._session.drop()
            try:
                session, group = self._session.connection, {"id": self._id, "group": self._group}
                session.execute(CLOSE_GROUP, group)
                if session.execute(LAST_GROUP, group).fetchall() != [(self._group,)]:
                    self._group += 1  # has the number of the one that closed it
                    raise DatabaseWriteFailed(f"the write failed: {uncertain.__cause__}") from uncertain
                return hot.look(session)
            except psycopg.Error as error:
                failure = error
            if self._no_retries:
                break
            time.sleep(RETRY.delay_s(tries, random.random()))
        raise DatabaseUnavailable(f"a commit failed, and it is unknown whether it is on disk: {failure}") from failure

    def _newest_messages(self, posted: dict[str, int]) -> Mapping[str, int]:
        try:
            return newest_messages(self._session.connection, list(posted))
        except psycopg.Error:
            return posted


def ping(tx: Tx) -> None:
    """The group it is in writes the row of the writer."""
