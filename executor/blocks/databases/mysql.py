"""A query on a MySQL or MariaDB server. Needs PyMySQL, the extra `[mysql]`; loaded with the first such query.

PyMySQL would write parameters into the text of the query. Here the server prepares the text with `?` in it, and gets
each value as a variable of the session, its text in hexadecimal digits: no value can become part of a statement, in any
character set or `sql_mode`. A prepared statement is one statement, and cannot read files of this machine.
"""

from __future__ import annotations

import asyncio
import contextlib
import re
import socket
import ssl
import struct
from collections.abc import Callable, Sequence
from decimal import Decimal
from typing import Any, Final, TypeVar
from urllib.parse import unquote

import orjson
import pymysql
from anyio import CapacityLimiter, to_thread
from pymysql.constants import FIELD_TYPE
from pymysql.cursors import SSCursor

from executor.blocks.databases import refusals
from executor.blocks.databases.dialled import CLOSE_S, CONNECT_S, Addresses, dialled, invalid, login_refused, parts_of
from executor.blocks.databases.rows import Answer, Gathered, Login, Query
from executor.blocks.databases.statement import questioned
from executor.blocks.http.binding import opened
from executor.blocks.http.handles import has_handle
from executor.errors import BlockError, Lost

T = TypeVar("T")

_MODES: Final = ("DISABLED", "PREFERRED", "REQUIRED", "VERIFY_CA", "VERIFY_IDENTITY")
# They read files of this machine: an operator may write them, a document may not.
_FILES: Final = ("ssl-ca", "ssl-cert", "ssl-key")
_READS: Final = frozenset({"select", "with", "show", "describe", "desc", "explain", "values", "table"})
_ROWS: Final = frozenset({"insert", "replace", "delete", "update"})
# A comment that the server executes begins with `/*!` or `/*M!`, and is none here.
_FIRST: Final = re.compile(r"(?:\s|\(|--(?:\s[^\n]*|$)|\#[^\n]*|/\*(?!M?!).*?\*/)*(?P<word>\w*)", re.DOTALL | re.M)
_REFUSED_LOGIN: Final = (1044, 1045, 1698)
_OUT_OF_TIME: Final = (1969, 3024)
_READ_ONLY: Final = 1792
_ROLLED_BACK: Final = (1205, 1213)  # a lock, a deadlock: the same query may succeed later
_ENDED: Final = (1053, 1077, 1152, 1184, 1317, 1927)  # by the server, or by its administrator
# PyMySQL raises these if the other side speaks another protocol.
_STRANGE: Final = (AssertionError, LookupError, RuntimeError, TypeError, ValueError, struct.error)


def _moment(text: str) -> str:
    return text.replace(" ", "T")


_DECODERS: Final[dict[int, Callable[[Any], Any]]] = {
    **dict.fromkeys((FIELD_TYPE.DECIMAL, FIELD_TYPE.NEWDECIMAL), Decimal),
    **dict.fromkeys((FIELD_TYPE.TINY, FIELD_TYPE.SHORT, FIELD_TYPE.INT24, FIELD_TYPE.LONG, FIELD_TYPE.LONGLONG), int),
    **dict.fromkeys((FIELD_TYPE.FLOAT, FIELD_TYPE.DOUBLE), float),
    **dict.fromkeys((FIELD_TYPE.DATETIME, FIELD_TYPE.TIMESTAMP), _moment),
    FIELD_TYPE.YEAR: int,
    FIELD_TYPE.BIT: lambda bits: int.from_bytes(bits, "big"),
    FIELD_TYPE.JSON: orjson.loads,
}


class _Server:
    """One connection, used by one thread at a time. `cut` ends it from any other."""

    def __init__(self, addresses: Sequence[str], options: dict[str, Any], seconds: float) -> None:
        self._addresses = addresses
        self._options = options
        self._seconds = seconds
        self._twin: socket.socket | None = None
        self._is_cut = False
        self.link: Any = None

    def connect(self) -> None:
        """Raises pymysql.Error and OSError."""
        options = self._options
        for at, address in enumerate(self._addresses, 1):
            try:
                found = socket.create_connection((address, options["port"]), min(CONNECT_S, self._seconds))
                self._addresses = [address]
                break
            except OSError:
                if at == len(self._addresses):
                    raise
        self._twin = found.dup()  # TLS takes the other one
        if self._is_cut:
            self.cut()
        wait_s = self._seconds + CONNECT_S
        self.link = pymysql.Connection(**options, defer_connect=True, read_timeout=wait_s, write_timeout=wait_s)
        self.link.connect(found)

    def cut(self) -> None:
        self._is_cut = True
        if self._twin is not None:
            with contextlib.suppress(OSError):
                self._twin.shutdown(socket.SHUT_RDWR)
            self._twin.close()

    def kill(self) -> None:
        """End the query on the server, by a second connection."""
        other = _Server(self._addresses, self._options, CLOSE_S)
        try:
            other.connect()
            other.link.kill(self.link.thread_id())
        finally:
            other.cut()


async def ask(address: str, query: Query, addresses: Addresses, login: Login | None = None) -> Answer:
    """Run a query. `addresses`: returns those of a host that may be dialled; raises BlockError and OSError. Raises as
    `Databases.ask`."""
    if query.read_only and _first_word(query.text) not in _READS:
        raise refusals.changes_data("it does not begin with SELECT, WITH, SHOW, DESCRIBE or EXPLAIN")
    options = _parts(address, login)
    place, permitted = await dialled("mysql", address, options["host"], options["port"], addresses, login)
    server = _Server(permitted, options, query.timeout_s)
    try:
        try:
            await _in_thread(server.connect, min(CONNECT_S, query.timeout_s))
        except TimeoutError:
            raise refusals.unreachable(place, f"it did not answer within {CONNECT_S} s") from None
        except (pymysql.Error, OSError, *_STRANGE) as error:
            raise _no_connection(place, error, has_handle(address)) from None
        answer = await _asked(server, query, place)
        server.link.close()  # the server would count an aborted connection otherwise
        return answer
    finally:
        server.cut()


def _first_word(text: str) -> str:
    found = _FIRST.match(text)
    return "" if found is None else found["word"].lower()


def _parts(address: str, login: Login | None) -> dict[str, Any]:
    """Return the options of a connection. Raises BlockError."""
    form, allowed = "mysql://user:password@host:port/database", ("ssl-mode",) if login else ("ssl-mode", *_FILES)
    url, host, port, more = parts_of(address, 3306, form, allowed)
    user = (login.user if login else None) or unquote(url.username or "")
    if not user:
        raise invalid("it must name the user, mysql://user@host/database")
    password = opened(login.password) if login else unquote(url.password or "")
    return {
        "host": host, "port": port, "user": user, "password": password.encode(),
        "database": unquote(url.path[1:]) or None, "charset": "utf8mb4", "conv": _DECODERS, "program_name": "weft",
        "autocommit": None,
        **_secured(more),
    }  # fmt: skip


def _secured(more: dict[str, str]) -> dict[str, Any]:
    mode = more.pop("ssl-mode", "VERIFY_CA" if more else "PREFERRED").upper()
    if mode not in _MODES:
        raise invalid(f"ssl-mode must be one of {', '.join(_MODES)}")
    if mode in ("DISABLED", "PREFERRED"):
        if more:
            raise invalid(f"{next(iter(more))} needs ssl-mode=REQUIRED, VERIFY_CA or VERIFY_IDENTITY")
        return {"ssl_disabled": mode == "DISABLED"}
    try:
        context = ssl.create_default_context(cafile=more.get("ssl-ca"))
        if "ssl-cert" in more:
            context.load_cert_chain(more["ssl-cert"], more.get("ssl-key"))
    except OSError as error:
        raise invalid(f"a file of ssl-ca, ssl-cert or ssl-key cannot be used: {error.strerror}") from None
    context.check_hostname = mode == "VERIFY_IDENTITY"
    if mode == "REQUIRED":
        context.verify_mode = ssl.CERT_NONE
    return {"ssl": context}


async def _in_thread(work: Callable[[], T], seconds: float) -> T:
    """Leave the thread when the time is over: it ends as its connection is cut."""
    async with asyncio.timeout(seconds):
        return await to_thread.run_sync(work, abandon_on_cancel=True, limiter=CapacityLimiter(1))


async def _asked(server: _Server, query: Query, place: str) -> Answer:
    gathered = Gathered(query.max_rows)
    word = _first_word(query.text)
    undone = query.read_only or word in _READS | _ROWS  # if it does not end; others commit by themselves
    unknown = Lost(f"{word.upper()} was interrupted at {place}: it may have changed something")
    try:
        # The server stops what reads; here ends the time of all else, and of a server that does not answer.
        await _in_thread(lambda: _read(server.link, query, gathered), query.timeout_s + CLOSE_S / 2)
    except TimeoutError:
        await _killed(server)
        raise (refusals.out_of_time(query.timeout_s) if undone else unknown) from None
    except asyncio.CancelledError:
        await _killed(server)
        raise
    except (pymysql.Error, *_STRANGE) as error:
        raise (_explained(error, query, place) if undone or not _is_over(error) else unknown) from None
    if query.read_only:
        return gathered.answer
    try:
        await _in_thread(server.link.commit, CONNECT_S)
    except (TimeoutError, pymysql.Error, *_STRANGE) as error:
        if not isinstance(error, TimeoutError) and not _is_over(error):
            raise _explained(error, query, place) from None
        raise Lost(f"the connection to {place} was lost while the change was committed") from None
    return gathered.answer


async def _killed(server: _Server) -> None:
    with contextlib.suppress(Exception):
        await _in_thread(server.kill, CLOSE_S)


def _read(link: Any, query: Query, gathered: Gathered) -> None:
    """Send the query, and take its rows one after the other as they come. Raises pymysql.Error and BlockError."""
    text, order = questioned(query.text)
    values = {f"@weft_{at}": _literal(name, query.parameters[name]) for at, name in enumerate(order)}
    values["@weft_query"] = _literal("query", text)
    access = "READ ONLY" if query.read_only else "READ WRITE"
    for before in (
        f"SET SESSION max_statement_time = {query.timeout_s}"
        if "MariaDB" in link.get_server_info()
        else f"SET SESSION max_execution_time = {max(1, round(query.timeout_s * 1000))}",
        f"SET SESSION TRANSACTION {access}",
        f"START TRANSACTION {access}",
        f"SET {', '.join(f'{name} = {value}' for name, value in values.items())}",
        "PREPARE weft FROM @weft_query",
    ):
        link.query(before)
    given = f" USING {', '.join(name for name in values if name != '@weft_query')}" if order else ""
    cursor = link.cursor(SSCursor)
    try:
        cursor.execute(f"EXECUTE weft{given}")
        _gather(cursor, query, gathered)
    finally:
        # Otherwise the end of the cursor would read what is left, which may have no end.
        if (result := getattr(cursor, "_result", None)) is not None and result.unbuffered_active:
            result.unbuffered_active = False
            result.connection = None


def _gather(cursor: Any, query: Query, gathered: Gathered) -> None:
    count, room = 0, True
    if returns := cursor.description is not None:
        gathered.named([column[0] for column in cursor.description])
        while (row := cursor.fetchone()) is not None:
            count += 1
            room = room and gathered.add(row)
            if not room and query.read_only:
                return
    if not query.read_only:
        counts = count if _first_word(query.text) in _ROWS else 0  # RETURNING of MariaDB has a row for each change
        gathered.answer.affected = counts if returns else cursor.rowcount
    while cursor.nextset():  # of a CALL, of which a later statement may fail
        while cursor.fetchone() is not None:
            pass


def _literal(name: str, value: Any) -> str:
    """Return a value as SQL, without a character of it."""
    match value:
        case None:
            return "NULL"
        case bool():
            return str(int(value))
        case int():
            return f"{value:d}"
        case float():
            return f"{value!r}" if "e" in repr(value) else f"{value!r}e0"
        case str():
            try:
                return f"CONVERT(X'{value.encode().hex()}' USING utf8mb4)"
            except UnicodeError as error:
                raise refusals.bad_parameter(name, str(error)) from None
        case _:
            try:
                return _literal(name, orjson.dumps(value).decode())
            except TypeError as error:
                raise refusals.bad_parameter(name, str(error)) from None


def _number(error: Exception) -> int:
    return error.args[0] if isinstance(error, pymysql.Error) and error.args and isinstance(error.args[0], int) else 0


def _is_over(error: Exception) -> bool:
    """Return whether the query has not ended by itself."""
    number = _number(error)
    return number < 1000 or 2000 <= number < 3000 or number in _ENDED + _OUT_OF_TIME


def _explained(error: Exception, query: Query, place: str) -> BlockError:
    number, message = _number(error), str(error.args[-1] if error.args else error).strip()
    if number in _OUT_OF_TIME:
        return refusals.out_of_time(query.timeout_s)
    if number == _READ_ONLY and query.read_only:
        return refusals.changes_data(message)
    if _is_over(error):
        return refusals.unreachable(place, f"it was lost: {message}. The query has changed nothing")
    return refusals.failed(query.text, message, retryable=number in _ROLLED_BACK)


def _no_connection(place: str, error: Exception, hidden: bool) -> BlockError:
    number = _number(error)
    if number in _REFUSED_LOGIN:
        return login_refused(place)
    message = " ".join(str(error.args[-1] if error.args else error).split())
    if hidden:
        message = f"it ended with {number}" if 0 < number < 2000 else "it is not there, or does not answer"
    return refusals.unreachable(place, message[:500])
