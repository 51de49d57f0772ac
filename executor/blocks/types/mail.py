"""The mail server that takes a mail: the operator's, or one that a block names together with a connection. The latter
is dialled by the rules of `http`, and gets a password or a token only over TLS or on this machine.

Mail addresses in params are one mailbox an item, `ada@example.org` or `Ada Lovelace <ada@example.org>`. Only commas
that the author of the document wrote separate items. The value of a reference is part of one item, with any content, so
the data of a run never adds a recipient. Groups and routes of RFC 5322 do not exist here.
"""

from __future__ import annotations

import asyncio
import copy
import ipaddress
import re
import socket
import ssl
from email.message import EmailMessage
from typing import Any, Final

from msgspec import Struct

from executor.blocks.http.binding import check_place, is_bound, opened
from executor.blocks.http.handles import has_handle
from executor.blocks.http.parts import SIGN_IN, Part
from executor.blocks.services import MailSettings, Services
from executor.blocks.types.params import invalid, param
from executor.blocks.vault.connection import Credential
from executor.errors import BlockError
from executor.kernel.values.resolve import written

_SPECIAL = r"\s<>()\[\],;:\\\"\x00-\x1f\x7f"
_ADDRESS = re.compile(rf"[^@{_SPECIAL}]+@[^@{_SPECIAL}]+")
_QUOTED = re.compile(r'"((?:[^"\\]|\\.)*)"')
_SHOWN = 80
HINT = "use one address per item; a text with commas is possible only in the document itself"


def items_of(value: Any, name: str) -> list[str]:
    """Return the items of a text or of a list of texts; empty ones are left out. Raises BlockError(params_invalid)."""
    if value is None or value == "":
        return []
    if isinstance(value, list):
        if not all(isinstance(item, str) for item in value):
            raise invalid(f"{name} must contain addresses as text")
        found = value
    elif isinstance(value, str):
        found = _split(value)
    else:
        raise invalid(f"{name} must contain addresses as text")
    for item in found:
        if any(ord(character) < 0x20 or ord(character) == 0x7F for character in item):
            raise invalid(f"{name} contains a line break or another control character")
    return [str(item) for item in found if item.strip()]


def mailbox(item: str, name: str) -> tuple[str, str]:
    """Return (name, address). The address is the text in the last angle brackets, or all of the item; the text before
    the brackets is a name, including commas. Raises BlockError(params_invalid)."""
    text = item.strip()
    shown, address = "", text
    if text.endswith(">"):
        shown, _, rest = text.rpartition("<")
        address = rest[:-1].strip()
    if _ADDRESS.fullmatch(address) is None or "=?" in address:
        raise invalid(f"{name} contains {text[:_SHOWN]!r}, which is not a mail address", hint=HINT)
    shown = shown.strip()
    quoted = _QUOTED.fullmatch(shown)
    return re.sub(r"\\(.)", r"\1", quoted[1]) if quoted else shown, address


def mailboxes(value: Any, name: str) -> list[tuple[str, str]]:
    """Return (name, address) of each. Raises BlockError(params_invalid), also for a value without an address."""
    found = [mailbox(item, name) for item in items_of(value, name)]
    if not found and value and (not isinstance(value, str) or value.strip()):
        raise invalid(f"{name} contains no mail address", hint=HINT)
    return found


def _split(text: str) -> list[str]:
    """Split at commas that the author wrote, outside of quotes that the author wrote."""
    by_author, quoted, start = written(text), False, 0
    items: list[str] = []
    for at, character in enumerate(text):
        if not by_author[at]:
            continue
        if character == '"':
            quoted = not quoted
        elif character == "," and not quoted:
            items.append(text[start:at])
            start = at + 1
    return [*items, text[start:]]


_TIMEOUT_S: Final = 30
_CONNECT_S: Final = 10
_IMPLICIT_TLS_PORT: Final = 465
_PORT: Final = 587
_PLACE: Final = re.compile(r"([A-Za-z0-9._-]{1,253}|\[[0-9A-Fa-f:.]{2,45}\])(?::([0-9]{1,5}))?")
_KINDS: Final = ("basic", "oauth2_code", "oauth2_client")
CERTIFICATE_HINT: Final = (
    "for a certificate of your own authority, set SSL_CERT_FILE of the server to a file with the authorities to trust"
)
SERVER: Final[Any] = param(
    "Mail server",
    "host:port, such as smtp.example.com:587. Leave empty to use the mail server of weft.",
    pattern=f"^({_PLACE.pattern})?$",
    weft="literal",
)


class Account(Struct, frozen=True):
    """The account for a mail server. `place` is None for the operator's server. `token`: an access token (XOAUTH2)
    instead of the password."""

    username: str
    password: str = ""
    token: str = ""
    place: tuple[str, int] | None = None


def account_of(server: str | None, credential: Credential | None, sender: str) -> Account | None:
    """Return the account, or None for the operator's. `sender`: the bare address in From, whose account a token is for.
    Raises BlockError(params_invalid)."""
    if credential is None:
        if server is not None:
            raise invalid("server needs a connection", "choose a connection whose hosts contain the mail server")
        return None
    if credential.kind not in _KINDS:
        hint = "use a user name and password, or an OAuth 2 sign-in"
        raise invalid(f"the connection {credential.connection} cannot sign in to a mail server", hint)
    place = None if server is None else place_of(server, _PORT)
    if credential.kind == "basic":
        return Account(credential.username, credential.value, place=place)
    return Account(sender, token=credential.value, place=place)


async def deliver(
    message: EmailMessage, recipients: list[str], services: Services, account: Account | None
) -> list[str]:
    """Send a mail, and return the recipients that were refused while others were accepted. Raises BlockError:
    mail_failed, address_refused, secret_host_refused, secret_misplaced."""
    import aiosmtplib  # with the first mail: few servers send one through SMTP

    mail = services.mail
    host, port = (mail.host, mail.port) if account is None or account.place is None else account.place
    check_place("smtp", host.strip("[]"), port, _parts(message, account))
    message = _opened(message)
    how = _signing_in(mail, account)
    try:
        if account is not None and account.place is not None:
            link, here = await dialled(services, host, port)
            how |= {"sock": link, "start_tls": None if here else True}
        else:
            how |= {"port": port, "start_tls": mail.start_tls}
        if port == _IMPLICIT_TLS_PORT:
            how["start_tls"] = None
        refused, _ = await aiosmtplib.send(
            message,
            recipients=recipients,
            hostname=host.strip("[]"),
            use_tls=port == _IMPLICIT_TLS_PORT,
            timeout=_TIMEOUT_S,
            **how,
        )
        return list(refused)
    except aiosmtplib.SMTPRecipientsRefused as error:
        codes = [refusal.code for refusal in error.recipients]
        addresses = ", ".join(refusal.recipient for refusal in error.recipients)
        temporary = any(400 <= c < 500 for c in codes)
        raise _failed(f"the mail server refused the recipients {addresses}", temporary) from error
    except aiosmtplib.SMTPResponseException as error:
        reply = "and refused it" if is_bound() else str(error.message)[:200]  # it may quote the mail
        signing_in = isinstance(error, aiosmtplib.SMTPAuthenticationError) and error.code >= 500
        status = {"answer_status": 401} if signing_in else {}
        temporary = 400 <= error.code < 500
        raise _failed(f"the mail server answered {error.code} {reply}", temporary, **status) from error
    except (aiosmtplib.SMTPException, OSError) as error:
        if (wrong := _wrong_certificate(error)) is not None:
            problem = f"the certificate of the mail server {host} is not valid: {wrong.verify_message}"
            raise _failed(problem, False, hint=CERTIFICATE_HINT) from error
        raise _failed(f"the mail server could not be reached: {error}", True) from error
    except ValueError as error:
        raise _failed(f"the mail could not be sent: {error}", False) from error


def _parts(message: EmailMessage, account: Account | None) -> list[Part]:
    signs_in = [] if account is None else [(SIGN_IN, account.password), (SIGN_IN, account.token)]
    return [("body", _text(message)), *signs_in]


def _text(message: EmailMessage) -> str:
    part = message.get_body(("plain",))
    assert part is not None, "each mail begins with its text"
    return str(part.get_content())


def _opened(message: EmailMessage) -> EmailMessage:
    """Return the message with the values of secrets in its text, the only part that can have any."""
    content = _text(message)
    if not has_handle(content):
        return message
    with_values = copy.deepcopy(message)
    text_part = with_values.get_body(("plain",))
    assert text_part is not None
    text_part.set_content(opened(content).removesuffix("\n"))
    return with_values


def _signing_in(mail: MailSettings, account: Account | None) -> dict[str, Any]:
    if account is None:
        return {"username": mail.username, "password": mail.password}
    if not account.token:
        return {"username": account.username, "password": opened(account.password)}

    async def token() -> str:
        return opened(account.token)

    return {"username": account.username, "oauth_token_generator": token}


async def dialled(services: Services, host: str, port: int) -> tuple[socket.socket, bool]:
    """Connect to a permitted address. Also returns True if that is on this machine. Raises BlockError(address_refused)
    and OSError."""
    loop = asyncio.get_running_loop()
    problem: OSError | None = None
    for address in await services.http.addresses(host.strip("[]"), port):
        parsed = ipaddress.ip_address(address)
        link = socket.socket(socket.AF_INET6 if parsed.version == 6 else socket.AF_INET, socket.SOCK_STREAM)
        link.setblocking(False)
        try:
            async with asyncio.timeout(_CONNECT_S):
                await loop.sock_connect(link, (address, port))
        except (OSError, TimeoutError) as error:
            link.close()
            problem = error if isinstance(error, OSError) else OSError(f"no connection within {_CONNECT_S} s")
        except BaseException:
            link.close()
            raise
        else:
            return link, parsed.is_loopback
    raise problem or OSError("the host has no address")


def place_of(given: str, usual: int) -> tuple[str, int]:
    """Return host and port of a server, the usual port if there is none. Raises BlockError(params_invalid)."""
    found = _PLACE.fullmatch(given)
    port = int(found[2] or usual) if found else 0
    if found is None or not 0 < port < 65536:
        raise invalid(f"server must be host:port, not {given[:100]!r}")
    return found[1], port


def _wrong_certificate(error: BaseException | None) -> ssl.SSLCertVerificationError | None:
    while error is not None and not isinstance(error, ssl.SSLCertVerificationError):
        error = error.__cause__ or error.__context__
    return error


def _failed(message: str, retryable: bool, **more: Any) -> BlockError:
    return BlockError(message, code="mail_failed", retryable=retryable, **more)
