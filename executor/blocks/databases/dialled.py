"""The server of a query: its name is resolved here, and only permitted addresses are dialled."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Final
from urllib.parse import SplitResult, parse_qsl, unquote, urlsplit

from executor.blocks.databases import refusals
from executor.blocks.databases.rows import Login
from executor.blocks.http.addresses import refused
from executor.blocks.http.binding import check_place, opened
from executor.blocks.http.handles import has_handle
from executor.blocks.http.parts import ADDRESS, SIGN_IN, Part
from executor.errors import BlockError

CONNECT_S: Final = 10
CLOSE_S: Final = 5.0
Addresses = Callable[[str, int], Awaitable[Sequence[str]]]


def parts_of(
    address: str, port: int, form: str, allowed: Sequence[str]
) -> tuple[SplitResult, str, int, dict[str, str]]:
    """Return the address, its host and port (or `port`), and what follows its `?`. `form`: what an address looks like;
    `allowed`: names that may follow the `?`. Raises BlockError, whose message has no part of the address."""
    try:
        url = urlsplit(opened(address))
        host, port = url.hostname or "", url.port or port
        more = {name.lower(): value for name, value in parse_qsl(url.query, keep_blank_values=True)}
    except ValueError:  # its text has the password in it
        raise invalid(f"it must have the form {form}") from None
    if more.keys() - set(allowed):  # not named: a ? in the password begins them as well
        raise invalid(f"only {', '.join(allowed)} may follow its ?")
    if not host or "/" in unquote(host) or "," in host:
        raise invalid("it must name one host; sockets are not possible here")
    return url, host, port, more


async def dialled(
    scheme: str, address: str, host: str, port: int, addresses: Addresses, login: Login | None, kind: str = "sql"
) -> tuple[str, Sequence[str]]:
    """Return how messages name the server, and its addresses that may be dialled. `kind`: what codes of errors begin
    with. Raises BlockError."""
    hidden = has_handle(address)
    place = "the database" if hidden else f"{host}:{port}"  # a secret has the address: no message has parts of it
    sent: list[Part] = [(ADDRESS, address), (SIGN_IN, "" if login is None else login.password)]
    check_place(scheme, host, port, sent, chosen=hidden)
    try:
        return place, await addresses(host, port)
    except (OSError, UnicodeError) as error:
        why = "" if hidden else f": {error}"
        raise refusals.unreachable(place, f"the host name cannot be resolved{why}", kind) from None
    except BlockError as error:
        if hidden and error.code == "address_refused":
            raise refused(place, error.hint) from None
        raise


def login_refused(place: str, kind: str = "sql") -> BlockError:
    message = f"{place} refused the user or the password"
    return BlockError(message, code=f"{kind}_login", retryable=False, answer_status=401)


def invalid(message: str) -> BlockError:
    return BlockError(f"the address of the database cannot be used: {message}", code="params_invalid", retryable=False)
