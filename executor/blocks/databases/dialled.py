"""The server of a query: its name is resolved here, and only permitted addresses are dialled."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Final

from executor.blocks.databases import refusals
from executor.blocks.databases.rows import Login
from executor.blocks.http.addresses import refused
from executor.blocks.http.binding import check_place
from executor.blocks.http.handles import has_handle
from executor.blocks.http.parts import ADDRESS, SIGN_IN, Part
from executor.errors import BlockError

CONNECT_S: Final = 10
CLOSE_S: Final = 5.0
Addresses = Callable[[str, int], Awaitable[Sequence[str]]]


async def dialled(
    scheme: str, address: str, host: str, port: int, addresses: Addresses, login: Login | None
) -> tuple[str, Sequence[str]]:
    """Return how messages name the server, and its addresses that may be dialled. Raises BlockError."""
    hidden = has_handle(address)
    place = "the database" if hidden else f"{host}:{port}"  # a secret has the address: no message has parts of it
    sent: list[Part] = [(ADDRESS, address), (SIGN_IN, "" if login is None else login.password)]
    check_place(scheme, host, port, sent, chosen=hidden)
    try:
        return place, await addresses(host, port)
    except (OSError, UnicodeError) as error:
        why = "" if hidden else f": {error}"
        raise refusals.unreachable(place, f"the host name cannot be resolved{why}") from None
    except BlockError as error:
        if hidden and error.code == "address_refused":
            raise refused(place, error.hint) from None
        raise


def login_refused(place: str) -> BlockError:
    message = f"{place} refused the user or the password"
    return BlockError(message, code="sql_login", retryable=False, answer_status=401)


def invalid(message: str) -> BlockError:
    return BlockError(f"the address of the database cannot be used: {message}", code="params_invalid", retryable=False)
