"""A transaction of statements that none has to wait for: on libpq itself, in one write, with the answers read after it.

psycopg's cursors would send each statement by itself, and convert each parameter and each answer one by one. All
statements up to the Sync are one transaction, which the Sync commits: BEGIN and COMMIT are not sent.
"""

from __future__ import annotations

import re
import select
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from struct import Struct
from typing import Any, Final

import psycopg
from psycopg import abc
from psycopg.adapt import Dumper, Transformer
from psycopg.errors import InvalidSqlStatementName, error_from_result
from psycopg.pq import ConnStatus, ExecStatus, Format
from psycopg.pq.abc import PGresult

from executor.kernel.store.postgres.limited import LimitedConnection, Silent
from executor.kernel.store.statements import Row, Values

ELEMENTS: Final = {"bigint": 20, "text": 25, "bytea": 17}  # the numbers that PostgreSQL has for them
_HEADER, _NUMBER, _LENGTH = Struct(">iiiii").pack, Struct(">iq").pack, Struct(">i").pack
_NULL: Final = _LENGTH(-1)
_PARAMETER = re.compile(r"%\((\w+)\)s")


class Array(bytes):
    """A list in the binary form of PostgreSQL. The statement must name its type."""


class ArrayDumper(Dumper):
    format = Format.BINARY

    def dump(self, obj: Any) -> bytes:
        return bytes(obj)


def array_of(type: str, values: Iterable[Any]) -> Array:
    if type == "bigint":
        items = [_NULL if each is None else _NUMBER(8, each) for each in values]
    else:
        if type == "text":
            values = [None if each is None else each.encode() for each in values]
        items = [_NULL if each is None else _LENGTH(len(each)) + each for each in values]
    if not items:
        return Array(_HEADER(0, 0, ELEMENTS[type], 0, 0)[:12])
    return Array(_HEADER(1, 0, ELEMENTS[type], len(items), 1) + b"".join(items))


@cache
def in_numbers(text: str) -> tuple[bytes, Sequence[str]]:
    """Return a statement of psycopg in the form of libpq, and the names of its parameters in their order."""
    places: dict[str, str] = {}
    numbered = _PARAMETER.sub(lambda found: places.setdefault(found[1], f"${len(places) + 1}"), text)
    return numbered.replace("%%", "%").encode(), tuple(places)


class Answer:
    """The rows of a statement, once its transaction is committed."""

    def __init__(self, connection: LimitedConnection) -> None:
        self._connection = connection
        self.result: PGresult | None = None

    def fetchall(self) -> list[Row]:
        assert self.result is not None, "not committed"
        loads: abc.Transformer = Transformer(self._connection)
        loads.set_pgresult(self.result)
        return loads.load_rows(0, self.result.ntuples, tuple)


class Batched:
    """A transaction whose statements are sent by `commit`."""

    def __init__(self, connection: LimitedConnection) -> None:
        self._connection = connection
        self._pgconn = connection.pgconn
        self._asked: list[tuple[str, list[bytes | None], list[Format], Answer]] = []
        self._expected: list[tuple[str, bytes] | Answer] = []
        self._results: list[PGresult] = []

    def ask(self, text: str, values: Values = ()) -> Answer:
        found: Mapping[str, Any] = values or {}
        parameters: list[bytes | None] = []
        formats: list[Format] = []
        for name in in_numbers(text)[1]:
            value = found[name]
            if isinstance(value, int):
                parameters.append(b"%d" % value)
                formats.append(Format.TEXT)
            else:
                parameters.append(value.encode() if isinstance(value, str) else value)
                formats.append(Format.BINARY)
        answer = Answer(self._connection)
        self._asked.append((text, parameters, formats, answer))
        return answer

    def send(self, text: str, values: Values = ()) -> None:
        self.ask(text, values)

    def commit(self) -> None:
        """Raises psycopg.Error."""
        try:
            self._try()
        except InvalidSqlStatementName:  # psycopg drops all that are prepared, after a rollback; nothing is committed
            self._connection.prepared.clear()
            self._try()

    def _try(self) -> None:
        self._expected, self._results = [], []
        self._pgconn.enter_pipeline_mode()
        for asked in self._asked:
            self._send(*asked)
        self._pgconn.pipeline_sync()
        try:
            self._receive()
        except psycopg.OperationalError:
            self._pgconn.finish()
            if not self._results or self._results[-1].status != ExecStatus.FATAL_ERROR:
                raise  # else the server has given a reason before it ended the session
        for each, result in zip(self._expected, self._results, strict=False):
            if isinstance(each, Answer):
                each.result = result
            elif result.status == ExecStatus.COMMAND_OK:
                self._connection.prepared[each[0]] = each[1]
        for result in self._results:
            if result.status == ExecStatus.FATAL_ERROR:
                raise error_from_result(result)

    def _send(self, text: str, parameters: list[bytes | None], formats: list[Format], answer: Answer) -> None:
        pgconn, connection = self._pgconn, self._connection
        if connection.prepare_threshold is None:  # a pool would not keep it
            pgconn.send_query_params(in_numbers(text)[0], parameters, param_formats=formats)
        else:
            name = connection.prepared.get(text)
            if name is None:
                name = b"weft_%d" % next(connection.numbers)
                pgconn.send_prepare(name, in_numbers(text)[0])
                self._expected.append((text, name))
            pgconn.send_query_prepared(name, parameters, formats)
        self._expected.append(answer)

    def _receive(self) -> None:
        """Wait for all answers. Raises psycopg.OperationalError if the session is lost."""
        pgconn = self._pgconn
        while True:
            while pgconn.flush() or pgconn.is_busy():
                self._wait()
            result = pgconn.get_result()
            if result is None:
                if pgconn.status == ConnStatus.BAD:
                    raise psycopg.OperationalError(pgconn.get_error_message())
            elif result.status == ExecStatus.PIPELINE_SYNC:
                pgconn.exit_pipeline_mode()
                return
            else:
                self._results.append(result)

    def _wait(self) -> None:
        """For more of the answers, or until more can be sent: for at most the limit of the session. Raises Silent."""
        pgconn, limit_s = self._pgconn, self._connection.limit_s
        poll = select.poll()
        poll.register(pgconn.socket, select.POLLIN | (select.POLLOUT if pgconn.flush() else 0))
        found = poll.poll(None if limit_s is None else limit_s * 1000)
        if not found:
            raise Silent("the database does not answer")
        if found[0][1] & ~select.POLLOUT:
            pgconn.consume_input()
