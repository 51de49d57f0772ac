"""A session that writes: how it is opened, and the only way to a commit, `Session.tx()`.

READ COMMITTED, with row locks taken in the order of `kernel.store.topics`: a statement that waited for a row sees the
row as it is now, but all other rows as they were when it began. What a change depends on in other tables is therefore
looked at by a statement after the one that took the row (`Tx.lock`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import Any, Final, cast

import psycopg
from psycopg.conninfo import conninfo_to_dict, make_conninfo
from psycopg.pq import TransactionStatus
from psycopg.types.numeric import Int8Dumper

from executor.errors import DatabaseUnavailable, Fenced
from executor.kernel.store.postgres.batch import Array, ArrayDumper, Batched
from executor.kernel.store.postgres.dialect import ADD_BATCH, ADD_FIRST_BATCH, ADVANCE_HEAD, LOCK_HEAD, TEXTS
from executor.kernel.store.postgres.limited import LIMIT_S, LimitedConnection, prepare_where_kept, reachable
from executor.kernel.store.statements import Batch, Row, Values
from executor.kernel.store.statements import Tx as BaseTx

FaultPoint = Callable[[str], None]

# Locks are held for one group: a longer wait is for a process that was stopped, and is tried again.
SETTINGS: Final = {
    "lock_timeout": "1000",
    "statement_timeout": "30000",
    "idle_in_transaction_session_timeout": "10000",
    "default_transaction_isolation": "read committed",
    "synchronous_commit": "on",
    "jit": "off",
}
# Each statement is planned once; a plan that was made while a table was small is still used when it is not.
OF_WRITERS: Final = {"enable_seqscan": "off", "plan_cache_mode": "force_generic_plan"}
ESCAPED_SPACE: Final = "\\ "
LOST: Final = ("08", "57P")  # classes of errors: the session was lost, the server is going down or is not up yet


def is_address(dsn: str) -> bool:
    """Returns True if `dsn` is an address. PostgreSQL's error about an invalid one contains the password."""
    try:
        conninfo_to_dict(dsn)
    except psycopg.ProgrammingError:
        return False
    return True


def check_address(name: str, address: str) -> None:
    """`name`: of the setting or option that has it. Raises DatabaseUnavailable."""
    if not is_address(address):
        raise DatabaseUnavailable(f"{name} must have the form postgresql://user:password@host:port/database")


class CommitUncertain(Exception):
    """The session was lost in COMMIT: the transaction may be on disk or not. `__cause__` is the error."""


class _BoolDumper(psycopg.adapt.Dumper):
    oid = Int8Dumper.oid

    def dump(self, obj: Any) -> bytes:
        return b"1" if obj else b"0"


def prepare(connection: psycopg.BaseConnection[Any]) -> None:
    """Let parameters have the types of the columns: a statement is planned once, not for each size of its numbers."""
    connection.adapters.register_dumper(int, Int8Dumper)
    connection.adapters.register_dumper(bool, _BoolDumper)
    connection.adapters.register_dumper(Array, ArrayDumper)


def with_settings(dsn: str, **more: str) -> str:
    """Return the address of sessions that begin with SETTINGS and `more`. A SET would remain in the session of a pool
    (pgbouncer), which another client gets next. Raises psycopg.Error."""
    dsn = reachable(dsn, reads_only=more.get("default_transaction_read_only") == "on")
    settings = {**SETTINGS, **more}
    options = [f"-c {name}={value.replace(' ', ESCAPED_SPACE)}" for name, value in settings.items()]
    of_address = conninfo_to_dict(dsn).get("options")
    return make_conninfo(
        dsn, options=" ".join([*options, *([str(of_address)] if of_address else [])]), application_name="weft"
    )


class Tx(BaseTx):
    """A transaction that writes each append at once: where several processes write, the fence must come first."""

    __slots__ = ("cursor",)

    def __init__(self, cursor: psycopg.Cursor[Row]) -> None:
        super().__init__(messages=True)  # another process may post one at any time
        self.cursor = cursor

    def ask(self, text: str, values: Values = ()) -> psycopg.Cursor[Row]:
        """A cursor that has what this statement answers, or will have it."""
        return self.cursor.execute(cast(Any, text), values)

    def send(self, text: str, values: Values = ()) -> None:
        self.cursor.execute(cast(Any, text), values)

    def rows(self, sql: str, values: Values = ()) -> list[Row]:
        return self.ask(TEXTS[sql], values).fetchall()

    look = BaseTx.row

    def run(self, sql: str, values: Values = ()) -> int:
        return self.ask(TEXTS[sql], values).rowcount

    def do(self, sql: str, values: Values = ()) -> None:
        self.send(TEXTS[sql], values)

    def add_rows(self, sql: str, values: Sequence[Mapping[str, Any]]) -> None:
        self._send_each(TEXTS[sql], values)

    def lock(self, run: str) -> None:
        self.messages = True
        self.send(LOCK_HEAD, {"run": run})

    def append_later(self, run: str, epoch: int, after: int, batches: Sequence[Batch]) -> None:
        fence = {"run": run, "epoch": epoch, "after": after, "seq": batches[-1].seq}
        found = self.ask(ADVANCE_HEAD, fence).fetchone()
        if found is None:
            raise Fenced(f"run {run}: epoch {epoch} at seq {after} is no longer current", run=run)
        number, inbox_n = found
        self.messages = inbox_n > 0  # of this run, which is the one that is asked for next
        self.add_batches(run, number, batches)

    def add_batches(self, run: str, number: int, batches: Sequence[Batch]) -> None:
        for batch in batches:
            self.send(ADD_BATCH, {**batch._asdict(), "n": number})

    def begin_journals(self, batches: Sequence[tuple[str, Batch]]) -> None:
        self._send_each(ADD_FIRST_BATCH, [{**batch._asdict(), "run": run} for run, batch in batches])

    def _send_each(self, text: str, values: Sequence[Mapping[str, Any]]) -> None:
        if values:
            self.cursor.executemany(cast(Any, text), values)


class PipelinedTx(Tx):
    """Statements go to the server without waiting for the answers of those before: only who asks for rows waits. An
    error comes with the next answer, at the latest with that of the COMMIT."""

    __slots__ = ("_pipeline",)

    def __init__(self, cursor: psycopg.Cursor[Row], pipeline: psycopg.Pipeline) -> None:
        super().__init__(cursor)
        self._pipeline = pipeline

    def ask(self, text: str, values: Values = ()) -> psycopg.Cursor[Row]:
        """Execute on a cursor of its own: answers to the statements in a pipeline are put into `cursor`."""
        return self.cursor.connection.cursor().execute(cast(Any, text), values)

    def run(self, sql: str, values: Values = ()) -> int:
        cursor = self.ask(TEXTS[sql], values)
        self._pipeline.sync()
        return cursor.rowcount

    def _send_each(self, text: str, values: Sequence[Mapping[str, Any]]) -> None:
        for each in values:
            self.send(text, each)


class Session:
    """For one thread. `fault` is called at named points so that tests can break there, as on SQLite."""

    limit_s: float | None = LIMIT_S  # for each statement, or None for no limit

    def __init__(self, dsn: str, fault: FaultPoint) -> None:
        self._dsn = dsn
        self.fault = fault
        self._connection: LimitedConnection | None = None

    @property
    def connection(self) -> LimitedConnection:
        """Opened now if it was lost. Raises psycopg.Error."""
        if self._connection is None or self._connection.closed:
            dsn = with_settings(self._dsn, **OF_WRITERS)
            connection = LimitedConnection.connect(dsn, autocommit=True)
            prepare(connection)
            prepare_where_kept(connection)
            connection.limit_s = self.limit_s
            self._connection = connection
        return self._connection

    @contextmanager
    def without_limit(self) -> Iterator[None]:
        """For what may take long: the schema is changed."""
        before, self.limit_s = self.limit_s, None
        try:
            if self._connection is not None:
                self._connection.limit_s = None
            yield
        finally:
            self.limit_s = before
            if self._connection is not None:
                self._connection.limit_s = before

    @contextmanager
    def tx(self, name: str) -> Iterator[Tx]:
        """Commit the block. Raises psycopg.Error if nothing was committed, CommitUncertain if that is not known."""
        connection = self.connection
        cursor = connection.cursor()
        cursor.execute("BEGIN")
        try:
            yield Tx(cursor)
            self.fault(f"tx.{name}.before_commit")
        except BaseException:
            self._roll_back()
            raise
        try:
            cursor.execute("COMMIT")
        except psycopg.Error as error:
            raise CommitUncertain from error
        self.fault(f"tx.{name}.after_commit")

    @contextmanager
    def group(self, name: str) -> Iterator[PipelinedTx]:
        """As `tx`, in one pipeline: if the block asks for no rows, that is one way to the server and back."""
        connection = self.connection
        committing = False
        try:
            with connection.pipeline() as pipeline:
                tx = PipelinedTx(connection.cursor(), pipeline)
                tx.send("BEGIN")
                yield tx
                self.fault(f"tx.{name}.before_commit")
                committing = True
                commit = tx.cursor.execute("COMMIT")
        except BaseException as error:
            if committing and isinstance(error, psycopg.Error) and self._is_lost(error):
                raise CommitUncertain from error
            self._roll_back()
            raise
        assert commit.statusmessage == "COMMIT", commit.statusmessage
        self.fault(f"tx.{name}.after_commit")

    @contextmanager
    def batch(self, name: str) -> Iterator[Batched]:
        """As `group`, for a block that asks for no rows: it is all sent at its end, in one write."""
        connection = self.connection
        batched = Batched(connection)
        yield batched
        self.fault(f"tx.{name}.before_commit")
        try:
            batched.commit()
        except psycopg.Error as error:
            if self._is_lost(error):
                raise CommitUncertain from error
            raise
        finally:
            if connection.info.transaction_status != TransactionStatus.IDLE:
                self.drop()
        self.fault(f"tx.{name}.after_commit")

    def _is_lost(self, error: psycopg.Error) -> bool:
        """Returns True if the server may have committed: its answer was lost, for it reports what it did not commit."""
        state = error.sqlstate or ""
        return self._connection is None or self._connection.closed or not state or state.startswith(LOST)

    def _roll_back(self) -> None:
        connection = self._connection
        if connection is None or connection.info.transaction_status == TransactionStatus.IDLE:
            return
        if connection.info.transaction_status == TransactionStatus.INERROR:
            return self.drop()  # psycopg may count statements as prepared that the server passed over
        try:
            connection.execute("ROLLBACK")
        except psycopg.Error:
            self.drop()

    def drop(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            with suppress(psycopg.Error):
                connection.close()
