"""A command for a Redis or Valkey server. Needs redis-py, the extra `[redis]`; loaded with the first such command.

The server answers in RESP3, which has objects, numbers and truth values. No answer is read beyond its bound.
"""

from __future__ import annotations

import asyncio
import contextlib
import ssl
from collections.abc import Sequence
from typing import Any, Final
from urllib.parse import unquote

import orjson
from redis import exceptions as errors
from redis._parsers import _AsyncRESP3Parser
from redis.asyncio.connection import Connection, SSLConnection
from redis.maint_notifications import MaintNotificationsConfig

from executor.blocks.databases import refusals
from executor.blocks.databases.commands import Command
from executor.blocks.databases.dialled import CONNECT_S, Addresses, dialled, invalid, login_refused, parts_of
from executor.blocks.databases.rows import BYTES_MAX, Login, plain
from executor.blocks.http.binding import opened
from executor.blocks.http.handles import has_handle
from executor.errors import BlockError, Lost

KIND: Final = "redis"
# They read files of this machine: an operator may write them, a document may not.
_FILES: Final = ("ssl_ca_certs", "ssl_certfile", "ssl_keyfile")
_CHECKS: Final = "ssl_cert_reqs"
# The parser raises these if the other side speaks another protocol.
_STRANGE: Final = (LookupError, RuntimeError, TypeError, ValueError)
_LATER: Final = (errors.TryAgainError, errors.ClusterDownError, errors.BusyLoadingError)


class _TooLarge(RuntimeError):
    """The answer is larger than its bound."""


class _Parser(_AsyncRESP3Parser):
    """A parser that reads only so many bytes."""

    left = BYTES_MAX

    async def _read(self, length: int) -> bytes:
        self._take(length)
        return await super()._read(length)

    async def _readline(self) -> bytes:
        line = await super()._readline()
        self._take(len(line) + 2)
        return line

    def _take(self, length: int) -> None:
        self.left -= length
        if self.left < 0:
            raise _TooLarge


class _Secured(SSLConnection):
    """A connection to an address, with a certificate for the name `place`."""

    def __init__(self, *, place: str, **options: Any) -> None:
        self._place = place
        super().__init__(**options)

    def _connection_arguments(self) -> dict[str, Any]:
        return {**super()._connection_arguments(), "server_hostname": self._place}


async def ask(address: str, command: Command, addresses: Addresses, login: Login | None = None) -> Any:
    """Send a command, and return its answer as JSON. `addresses` as in `mysql.ask`. Raises as `Databases.command`."""
    secure, host, port, options = _parts(address, login)
    place, permitted = await dialled("redis", address, host, port, addresses, login, KIND)
    seconds = min(CONNECT_S, command.timeout_s)
    try:
        async with asyncio.timeout(seconds):
            link = await _connected(secure, host, port, permitted, options)
    except TimeoutError:
        raise refusals.unreachable(place, f"it did not answer within {seconds:g} s", KIND) from None
    except (errors.RedisError, OSError, *_STRANGE) as error:
        raise _no_connection(place, error, has_handle(address)) from None
    try:
        return await _asked(link, command, place)
    finally:
        await link.disconnect(nowait=True)


def _parts(address: str, login: Login | None) -> tuple[bool, str, int, dict[str, Any]]:
    """Return whether TLS is used, the host, the port, and the options of a connection. Raises BlockError."""
    form, files = "redis://user:password@host:port/0", () if login else _FILES
    url, host, port, more = parts_of(address, 6379, form, (_CHECKS, *files))
    secure, number = url.scheme.lower() == "rediss", url.path.strip("/") or "0"
    if not number.isdecimal():
        raise invalid(f"its path must be the number of a database, {form}")
    if more and not secure:
        raise invalid(f"{next(iter(more))} needs rediss://")
    if more.get(_CHECKS, "required") not in ("required", "none"):
        raise invalid(f"{_CHECKS} must be required or none")
    user = (login.user if login else None) or unquote(url.username or "")
    password = opened(login.password) if login else unquote(url.password or "")
    options = {"db": int(number), "username": user or None, "password": password or None, **more}
    return secure, host, port, options | ({"ssl_check_hostname": False} if more.get(_CHECKS) == "none" else {})


async def _connected(secure: bool, host: str, port: int, permitted: Sequence[str], options: dict[str, Any]) -> Any:
    """Raises redis.RedisError, OSError."""
    options = {
        "port": port, "protocol": 3, "parser_class": _Parser, "socket_timeout": None, "socket_connect_timeout": None,
        "driver_info": None, "maint_notifications_config": MaintNotificationsConfig(enabled=False), **options,
    }  # fmt: skip
    for at, address in enumerate(permitted, 1):
        link: Any = _Secured(place=host, host=address, **options) if secure else Connection(host=address, **options)
        try:
            if secure:
                await asyncio.to_thread(_read_certificates, link)
            await link.connect()
            return link
        except BaseException as error:
            await link.disconnect(nowait=True)
            if at == len(permitted) or not isinstance(error, errors.ConnectionError):
                raise
    raise AssertionError("there is at least one address")


def _read_certificates(link: SSLConnection) -> None:
    try:
        link.ssl_context.get()
    except OSError as error:
        raise invalid(f"a file of {', '.join(_FILES)} cannot be used: {error.strerror}") from None


async def _asked(link: Any, command: Command, place: str) -> Any:
    name, unknown = command.name, Lost(f"{command.name} was interrupted at {place}: it may have changed something")
    try:
        async with asyncio.timeout(command.timeout_s):
            await link.send_command(*(word.encode() for word in (*name.split(), *command.arguments)))
            return _as_json(await link.read_response(disable_decoding=True), command.parse)
    except TimeoutError:
        if not command.reads:
            raise unknown from None
        message = f"{name} took longer than {command.timeout_s:g} s"
        raise BlockError(message, code="redis_timeout", retryable=False, hint="raise timeout_s of the block") from None
    except _TooLarge:
        message = f"the answer has more than {BYTES_MAX} bytes{'' if command.reads else f'; {name} was executed'}"
        hint = "ask for a part of it, as with LRANGE or HSCAN"
        raise BlockError(message, code="redis_too_large", retryable=False, hint=hint) from None
    except (errors.ResponseError, errors.AuthenticationError, errors.BusyLoadingError) as error:
        raise _explained(error, name, place) from None
    except (errors.RedisError, OSError, *_STRANGE):
        if not command.reads:
            raise unknown from None
        raise refusals.unreachable(place, "it was lost, or it does not speak RESP3", KIND) from None


def _as_json(value: Any, parse: bool = False) -> Any:
    """Return texts as texts; what is not UTF-8 is base64."""
    match value:
        case bytes():
            if parse:
                with contextlib.suppress(orjson.JSONDecodeError):
                    return orjson.loads(value)
            try:
                return value.decode()
            except UnicodeDecodeError:
                return plain(value)
        case list():
            return [_as_json(item, parse) for item in value]
        case dict():
            return {str(_as_json(name)): _as_json(item, parse) for name, item in value.items()}
        case _:
            return plain(value)


def _explained(error: Exception, name: str, place: str) -> BlockError:
    """Return the error of an answer that refuses the command: then it was not executed."""
    if isinstance(error, errors.AuthenticationError):
        return login_refused(place, KIND)
    message, hint = " ".join(str(error).split())[:500], ""
    if isinstance(error, errors.NoPermissionError):  # its text has the name of the user
        message = "its user has no right to this command, or to one of the keys"
    elif isinstance(error, errors.AskError):  # its text has an address, which a secret may have
        message, hint = "another server of the cluster has the key", "weft does not follow a Redis Cluster to its parts"
    later = isinstance(error, _LATER) or message.startswith("BUSY ")
    code = "redis_busy" if later else "redis_failed"
    return BlockError(f"{place} refused {name}: {message}", code=code, retryable=later, hint=hint)


def _no_connection(place: str, error: Exception, hidden: bool) -> BlockError:
    if isinstance(error, errors.ResponseError | errors.AuthenticationError | errors.BusyLoadingError):
        return _explained(error, "the connection", place)
    cause = error.__context__
    if isinstance(cause, ssl.SSLError):
        return refusals.unreachable(place, f"TLS failed ({cause.reason})", KIND)
    message = "it is not there, or does not answer" if hidden else " ".join(str(error).split())[:500]
    return refusals.unreachable(place, message, KIND)
