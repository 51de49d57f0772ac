"""A query on a PostgreSQL server. Needs psycopg, the extra `[postgres]`; loaded with the first such query.

The name of the server is resolved here, and only permitted addresses are dialled (`hostaddr`), while certificates are
still checked against the name. Parts of an operator's address that name other places are refused.
"""

from __future__ import annotations

import asyncio
import contextlib
from typing import Any, Final

import orjson
import psycopg
from psycopg import generators, pq
from psycopg.adapt import Loader, PyFormat
from psycopg.adapt import Transformer as _Transformer
from psycopg.conninfo import conninfo_to_dict
from psycopg.types.json import Jsonb, set_json_loads

from executor.blocks.databases import refusals
from executor.blocks.databases.dialled import CLOSE_S, CONNECT_S, Addresses, dialled, invalid, login_refused
from executor.blocks.databases.rows import Answer, Gathered, Login, Query
from executor.blocks.databases.statement import Numbered, numbered
from executor.blocks.http.binding import opened
from executor.blocks.http.handles import has_handle
from executor.errors import BlockError, Lost

# The permitted parts of an address. Not: hostaddr, service and passfile, which name other places or read files of this
# machine, and those that write files.
_PARTS: Final = frozenset(
    {"application_name", "channel_binding", "client_encoding", "connect_timeout", "dbname", "gssencmode", "host",
     "keepalives", "keepalives_count", "keepalives_idle", "keepalives_interval", "options", "password", "port",
     "require_auth", "ssl_max_protocol_version", "ssl_min_protocol_version", "sslcert", "sslcrl", "sslkey", "sslmode",
     "sslnegotiation", "sslrootcert", "target_session_attrs", "tcp_user_timeout", "user"}
)  # fmt: skip
# The permitted parts if a connection signs in. Then the document has the address, so nothing may read a file of this
# machine.
_PARTS_OF_DOCUMENTS: Final = frozenset(
    {"application_name", "channel_binding", "client_encoding", "connect_timeout", "dbname", "host", "port", "sslmode",
     "sslnegotiation", "target_session_attrs", "user"}
)  # fmt: skip
_SETTINGS: Final = """SELECT set_config('statement_timeout', $1, true), set_config('DateStyle', 'ISO', true),
 set_config('IntervalStyle', 'iso_8601', true), set_config('bytea_output', 'hex', true)"""
_ROLLED_BACK: Final = ("40001", "40P01", "55P03")  # serialization, deadlock, lock: the same query may succeed later
_GONE: Final = ("08", "57P")


async def ask(address: str, query: Query, addresses: Addresses, login: Login | None = None) -> Answer:
    """Run a query. `addresses`: returns those of a host that may be dialled; raises BlockError and OSError. Raises as
    `Databases.ask`."""
    place, parts = await _dialled(address, addresses, login)
    hidden = has_handle(address)
    try:
        async with asyncio.timeout(min(CONNECT_S, query.timeout_s)):
            connection = await psycopg.AsyncConnection.connect(
                **parts, cursor_factory=psycopg.AsyncRawCursor, prepare_threshold=None
            )
    except TimeoutError:
        raise refusals.unreachable(place, f"it did not answer within {min(CONNECT_S, query.timeout_s):g} s") from None
    except psycopg.Error as error:
        raise _no_connection(place, error, hidden) from None
    try:
        return await _asked(connection, query, place)
    finally:
        await connection.close()


async def _dialled(address: str, addresses: Addresses, login: Login | None) -> tuple[str, dict[str, Any]]:
    """Return (host:port, the parameters to connect with). Raises BlockError."""
    try:
        parts: dict[str, Any] = dict(conninfo_to_dict(opened(address)))
    except psycopg.ProgrammingError:  # its text has the password in it
        raise invalid("it must have the form postgresql://user:password@host:port/database") from None
    if strange := sorted(parts.keys() - (_PARTS if login is None else _PARTS_OF_DOCUMENTS)):
        raise invalid(
            f"{strange[0]} is not possible here"
            if login is None
            else f"{strange[0]} is not possible here, as a connection signs in"
        )
    if login is not None:
        parts |= {"user": login.user or parts.get("user") or "", "password": opened(login.password)}
        if not parts["user"]:
            raise invalid("it must name the user, postgresql://user@host/database, as the connection has none")
    host, port = str(parts.get("host") or ""), str(parts.get("port") or "5432")
    if not host or "/" in host or "@" in host:
        raise invalid("it must name a host; sockets are not possible here")
    if "," in host or not port.isdecimal() or not 0 < int(port) < 65536:
        raise invalid("it must name one host and one port")
    place, permitted = await dialled("postgresql", address, host, int(port), addresses, login)
    parts |= {"host": ",".join([host] * len(permitted)), "hostaddr": ",".join(permitted), "port": port}
    # Empty, not missing: else libpq would look into the environment and the files of the server's own account.
    parts |= {"password": parts.get("password") or "", "passfile": "/dev/null"}
    return place, {"application_name": "weft", "connect_timeout": CONNECT_S, **parts}


async def _asked(connection: psycopg.AsyncConnection[Any], query: Query, place: str) -> Answer:
    text = numbered(query.text)
    gathered = Gathered(query.max_rows)
    try:
        # The server stops the query; the timeout is for a server that does not answer at all.
        async with asyncio.timeout(query.timeout_s + CLOSE_S):
            await connection.set_read_only(query.read_only)
            await connection.execute(_SETTINGS, [str(max(1, round(query.timeout_s * 1000)))])
            await _read(connection, text, query, gathered)
    except TimeoutError:
        raise refusals.out_of_time(query.timeout_s) from None
    except asyncio.CancelledError:
        with contextlib.suppress(Exception):
            await connection.cancel_safe(timeout=CLOSE_S)
        raise
    except psycopg.Error as error:
        raise _explained(error, query, text, place) from None
    if query.read_only:
        return gathered.answer
    try:
        async with asyncio.timeout(CONNECT_S):
            await connection.commit()
    except (TimeoutError, psycopg.Error) as error:
        if isinstance(error, psycopg.Error) and error.sqlstate and not error.sqlstate.startswith(_GONE):
            raise _explained(error, query, text, place) from None  # a constraint that is checked at the end
        raise Lost(f"the connection to {place} was lost while the change was committed") from None
    return gathered.answer


async def _read(connection: psycopg.AsyncConnection[Any], text: Numbered, query: Query, gathered: Gathered) -> None:
    """Send the query, and take its rows one after the other as they come. Raises psycopg.Error."""
    link, types = connection.pgconn, _transformer(connection)
    values = [_bound(name, query.parameters[name]) for name in text.names]
    try:
        bound = types.dump_sequence(values, [PyFormat.AUTO] * len(values))
    except (psycopg.Error, UnicodeError, OverflowError, TypeError, ValueError) as error:
        raise refusals.bad_parameter(", ".join(text.names), str(error)) from None
    link.send_query_params(text.text.encode(), bound, types.types, types.formats, result_format=pq.Format.TEXT)
    link.set_single_row_mode()
    await connection.wait(generators.send(link))
    first = room = True
    while (result := await connection.wait(generators.fetch(link))) is not None:
        match result.status:
            case pq.ExecStatus.SINGLE_TUPLE | pq.ExecStatus.TUPLES_OK:
                types.set_pgresult(result, set_loaders=first)
                if first:
                    gathered.named([(result.fname(n) or b"").decode("utf-8", "replace") for n in range(result.nfields)])
                    first = False
                for row in range(result.ntuples):
                    room = room and gathered.add(types.load_row(row, tuple))
                if not room and query.read_only:
                    await connection.cancel_safe(timeout=CLOSE_S)
                    return
                if result.status == pq.ExecStatus.TUPLES_OK and not query.read_only:
                    gathered.answer.affected = _changed(result)
            case pq.ExecStatus.COMMAND_OK:
                gathered.answer.affected = None if query.read_only else _changed(result)
            case pq.ExecStatus.EMPTY_QUERY:
                return
            case pq.ExecStatus.COPY_IN | pq.ExecStatus.COPY_OUT | pq.ExecStatus.COPY_BOTH:
                raise refusals.not_permitted("use COPY from or to the client")
            case _:
                raise psycopg.errors.error_from_result(result, "utf-8")


def _changed(result: Any) -> int:
    """SELECT counts the rows that it returns, which are not changed."""
    tag = (result.command_status or b"").split(b" ")[0]
    return result.command_tuples or 0 if tag in (b"INSERT", b"UPDATE", b"DELETE", b"MERGE") else 0


def _bound(name: str, value: Any) -> Any:
    match value:
        case dict():
            return Jsonb(value, dumps=orjson.dumps)
        case list() if any(isinstance(item, dict | list) for item in value):
            return Jsonb(value, dumps=orjson.dumps)
        case str() if "\x00" in value:
            raise refusals.bad_parameter(name, "PostgreSQL holds no text with a NUL in it")
        case _:
            return value


class _Text(Loader):
    """Returns a value as the server writes it."""

    def load(self, data: Any) -> str:
        return bytes(data).decode("utf-8", "replace")


class _Timestamp(_Text):
    """`2026-01-31 12:00:00+01` as ISO 8601 has it."""

    def load(self, data: Any) -> str:
        text = super().load(data)
        day, blank, rest = text.partition(" ")
        if not blank or text.endswith(" BC"):
            return text  # infinity, and years before our era
        return f"{day}T{rest}:00" if rest[-3:-2] in ("+", "-") else f"{day}T{rest}"


def _transformer(connection: psycopg.AsyncConnection[Any]) -> Any:
    set_json_loads(orjson.loads, connection)
    for name in ("date", "time", "timetz", "interval"):
        connection.adapters.register_loader(name, _Text)
    for name in ("timestamp", "timestamptz"):
        connection.adapters.register_loader(name, _Timestamp)
    return _Transformer(connection)


def _explained(error: psycopg.Error, query: Query, text: Numbered, place: str) -> BlockError:
    state = error.sqlstate or ""
    message = (error.diag.message_primary or str(error)).strip()
    if state == "57014":
        return refusals.out_of_time(query.timeout_s)
    if state == "25006":
        return refusals.changes_data(message)
    if not state or state.startswith(_GONE):
        return refusals.unreachable(place, f"it was lost: {message}. The query has changed nothing")
    if error.diag.message_detail:
        message = f"{message}. {error.diag.message_detail}"
    at = error.diag.statement_position
    position = text.original(int(at) - 1) if at and at.isdecimal() else None
    retryable = state in _ROLLED_BACK
    return refusals.failed(
        query.text, message, position=position, retryable=retryable, hint=error.diag.message_hint or ""
    )


def _no_connection(place: str, error: psycopg.Error, hidden: bool) -> BlockError:
    message = " ".join(str(error).split())
    if (error.sqlstate or "").startswith("28") or "authentication failed" in message:
        return login_refused(place)
    if hidden:
        message = f"it ended with {error.sqlstate}" if error.sqlstate else "it is not there, or does not answer"
    return refusals.unreachable(place, message[:500])
