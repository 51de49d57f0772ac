"""Reads new mails of a folder by IMAP, with the client of Python in a thread. The server is dialled by the rules of
`http`, and gets a password only over TLS or on this machine. Nothing is marked as read.

UIDs of a folder grow, as long as its UIDVALIDITY is the same (RFC 3501, 2.3.1.1).
"""

from __future__ import annotations

import asyncio
import email
import email.policy
import imaplib
import re
import socket
import ssl
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from email.message import EmailMessage
from functools import partial
from typing import Any, Final

from msgspec import Struct

from executor.blocks.http.binding import check_place, opened
from executor.blocks.http.parts import SIGN_IN
from executor.blocks.services import Services
from executor.blocks.types.mail import Account, dialled
from executor.blocks.types.params import shape
from executor.errors import BlockError, LimitExceeded
from executor.kernel.values.files import SCHEMA, Files, in_parts

TLS_PORT: Final = 993
TIMEOUT_S: Final = 30
MAILS_MAX: Final = 50  # of one poll
MAIL_BYTES_MAX: Final = 32 * 1024 * 1024  # of a larger one, the beginning is read
BEGINNING_BYTES: Final = 1024 * 1024
POLL_BYTES_MAX: Final = 32 * 1024 * 1024  # they are in memory until the runs are made; one mail is always read
TEXT_CHARS_MAX: Final = 200_000
FILES_MAX: Final = 100  # of one mail

MAIL: Final = shape(
    subject="string", **{"from": "string"}, to="string", cc="string", date="string", message_id="string",
    text="string", html="string", attachments={"type": "array", "items": {"type": "string"}},
    files={"type": "array", "items": SCHEMA},
)  # fmt: skip


class Attachment(Struct, frozen=True):
    name: str
    media_type: str
    content: bytes


class Mail(Struct, frozen=True):
    """A mail, and the contents of its attachments if all of it was read."""

    uid: int
    value: dict[str, Any]
    attachments: list[Attachment]

    async def loaded(self, files: Files) -> dict[str, Any]:
        """Store the attachments, and return the value with these files. One that is too large is left out."""
        stored = []
        for one in self.attachments:
            try:
                name = files.redact(one.name)
                stored.append((await files.save(in_parts(one.content), name, one.media_type)).value)
            except LimitExceeded:  # its name is among the attachments
                continue
        return {**self.value, "files": stored}


class Read(Struct, frozen=True):
    """`mails`: oldest first. `uid`: the last one that was read."""

    validity: int
    uid: int
    mails: list[Mail]
    more: bool = False
    renumbered: bool = False


async def read(
    services: Services, account: Account, folder: str, position: Mapping[str, Any], marks: bool, newest: bool
) -> Read:
    """Return the mails after `position`, or the last one with `newest`, or only the end of the folder with `marks`.
    Raises BlockError: mail_failed, address_refused, secret_host_refused."""
    assert account.place is not None
    host, port = account.place[0].strip("[]"), account.place[1]
    check_place("imap", host, port, [(SIGN_IN, account.password), (SIGN_IN, account.token)])
    try:
        link, here = await dialled(services, host, port)
    except OSError as error:
        raise _failed(f"the mail server could not be reached: {error}", True) from error
    new = partial(_new, folder=folder, position=dict(position), marks=marks, newest=newest)
    return await asyncio.to_thread(_read, link, here, host, port, account, new)


class _Client(imaplib.IMAP4):
    """On a connection that was made before, because its address was checked."""

    def __init__(self, host: str, link: socket.socket) -> None:
        self._link = link
        super().__init__(host, timeout=TIMEOUT_S)

    def _create_socket(self, timeout: float | None) -> socket.socket:
        return self._link


def _read(
    link: socket.socket,
    here: bool,
    host: str,
    port: int,
    account: Account,
    new: Callable[[imaplib.IMAP4], Read],
) -> Read:
    try:
        link.settimeout(TIMEOUT_S)
        context = ssl.create_default_context()
        with link if port != TLS_PORT else context.wrap_socket(link, server_hostname=host) as dialled_link:
            client = _Client(host, dialled_link)
            if port != TLS_PORT and not here:
                client.starttls(context)
            _sign_in(client, account)
            try:
                return new(client)
            finally:
                client.logout()
    except imaplib.IMAP4.error as error:
        raise _failed(f"the mail server refused: {str(error)[:200]}", isinstance(error, imaplib.IMAP4.abort)) from error
    except OSError as error:
        raise _failed(f"the mail server could not be reached: {error}", True) from error


def _sign_in(client: imaplib.IMAP4, account: Account) -> None:
    try:
        if account.token:
            text = f"user={account.username}\x01auth=Bearer {opened(account.token)}\x01\x01"
            client.authenticate("XOAUTH2", lambda _: text.encode())
        else:
            client.login(account.username, opened(account.password))
    except imaplib.IMAP4.error as error:
        # Its text may have parts of what was sent.
        raise BlockError(
            "the mail server refused the sign-in", code="mail_failed", retryable=False, answer_status=401
        ) from error


def _new(client: imaplib.IMAP4, folder: str, position: dict[str, Any], marks: bool, newest: bool) -> Read:
    quoted = '"' + folder.replace("\\", "\\\\").replace('"', '\\"') + '"'
    status, answer = client.select(quoted, readonly=True)
    if status != "OK":
        raise _failed(f"there is no folder {folder[:80]!r}: {answer[0]!r:.100}", False)
    validity = _number(client.response("UIDVALIDITY")[1])
    following = _number(client.response("UIDNEXT")[1])
    renumbered = validity != position.get("validity", validity)
    last = 0 if renumbered else int(position.get("uid") or 0)
    _, listed = client.uid("SEARCH", f"UID {last + 1}:*")
    uids = sorted(uid for uid in map(int, (listed[0] or b"").split()) if uid > last)  # `*` is the last one, at least
    if marks or renumbered:
        return Read(validity, max([*uids, following - 1, 0]), [], renumbered=renumbered)
    if newest:
        uids = uids[-1:]
    mails, read = _mails(client, uids[:MAILS_MAX])
    return Read(validity, max([last, *uids[:read]]), mails, len(uids) > read)


def _mails(client: imaplib.IMAP4, uids: list[int]) -> tuple[list[Mail], int]:
    """Return mails of POLL_BYTES_MAX at most, but one at least, and how many UIDs that are."""
    found: list[Mail] = []
    left = POLL_BYTES_MAX
    sizes = dict(_sizes(client, uids)) if uids else {}
    for n, uid in enumerate(uids):
        size = sizes.get(uid, MAIL_BYTES_MAX + 1)
        whole = size <= MAIL_BYTES_MAX
        left -= size if whole else BEGINNING_BYTES
        if n and left < 0:
            return found, n
        data = _fetched(client, uid, MAIL_BYTES_MAX if whole else BEGINNING_BYTES)
        if data is not None:  # else it was deleted meanwhile
            found.append(_mail(uid, data, whole))
    return found, len(uids)


def _sizes(client: imaplib.IMAP4, uids: list[int]) -> Iterator[tuple[int, int]]:
    _, answer = client.uid("FETCH", ",".join(map(str, uids)), "(UID RFC822.SIZE)")
    for line in answer:
        text = line if isinstance(line, bytes) else b""
        uid, size = re.search(rb"UID (\d+)", text), re.search(rb"RFC822\.SIZE (\d+)", text)
        if uid and size:
            yield int(uid[1]), int(size[1])


def _fetched(client: imaplib.IMAP4, uid: int, count: int) -> bytes | None:
    _, answer = client.uid("FETCH", str(uid), f"(UID BODY.PEEK[]<0.{count}>)")
    return next((part[1] for part in answer if isinstance(part, tuple)), None)


# Python's parser of mails raises errors of many kinds, IndexError too, for some malformed headers. Each mail is an
# event all the same.


def _mail(uid: int, data: bytes, whole: bool) -> Mail:
    message = email.message_from_bytes(data, policy=email.policy.default)
    assert isinstance(message, EmailMessage), "what the policy makes"
    names = {"subject": "subject", "from": "from", "to": "to", "cc": "cc", "date": "date", "message-id": "message_id"}
    headers = {field: _header(message, name) for name, field in names.items()}
    files = list(_attachments(message))
    value = {
        **headers,
        "text": _part(message, "plain"),
        "html": _part(message, "html"),
        "attachments": [file.name for file in files],
        "files": [],
    }
    return Mail(uid, value, files if whole else [])


def _header(message: EmailMessage, name: str) -> str:
    try:
        return str(message.get(name) or "")
    except Exception:
        raw = next((value for key, value in message.raw_items() if key.lower() == name), "")
        return " ".join(str(raw).encode(errors="replace").decode().split())


def _attachments(message: EmailMessage) -> Iterator[Attachment]:
    """Yield those that can be read."""
    try:
        parts = list(message.iter_attachments())[:FILES_MAX]
    except Exception:
        return
    for part in parts:
        with suppress(Exception):
            kind = part.get_content_type()
            yield Attachment(part.get_filename() or kind, kind, _content(part))


def _content(part: EmailMessage) -> bytes:
    content = part.get_payload(decode=True)
    if isinstance(content, bytes):
        return content
    parts = list(part.iter_parts())
    return parts[0].as_bytes() if len(parts) == 1 else part.as_bytes()  # one: a mail that was forwarded as a file


def _part(message: EmailMessage, kind: str) -> str:
    try:
        part = message.get_body((kind,))
        return "" if part is None else str(part.get_content())[:TEXT_CHARS_MAX]
    except Exception:  # also a charset that is not known, parts that do not fit
        return ""


def _number(values: list[Any] | None) -> int:
    text = values[0] if values else None
    return int(text) if isinstance(text, bytes) and text.isdigit() else 0


def _failed(message: str, retryable: bool) -> BlockError:
    return BlockError(message, code="mail_failed", retryable=retryable)
