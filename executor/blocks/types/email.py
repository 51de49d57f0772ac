"""`email`: sends a mail, or writes it to the log when no mail server is set up.

The Message-ID follows from the idempotency key, so a mail that was sent twice (a crash after the server took it) can be
recognised: mail programs and many servers show it once.
"""

from __future__ import annotations

import asyncio
import hashlib
import logging
import re
from collections.abc import Sequence
from email.errors import HeaderParseError
from email.message import EmailMessage
from email.policy import SMTP
from email.utils import formatdate
from functools import partial
from typing import Any

from compiler.catalog import Finding, Params
from executor.blocks.http.binding import check_no_place
from executor.blocks.services import Services, services_of
from executor.blocks.types.connected import CONNECTION, signed_in
from executor.blocks.types.declared import block_type
from executor.blocks.types.file_contents import attachments
from executor.blocks.types.mail import SERVER, Account, account_of, deliver, mailbox, mailboxes
from executor.blocks.types.params import FILLED, TypedParams, changed, invalid, param, shape
from executor.blocks.vault.connection import Credential
from executor.kernel.handler.base import Done, StepContext
from executor.kernel.values.files import File
from executor.kernel.values.payload import render
from executor.kernel.values.redact import Redactor

_RECIPIENTS_MAX = 100
_LOGGED_MAX = 64 * 1024  # characters of a body in the log
# Python's parser of addresses raises these for some malformed addresses, beside its documented errors.
_TRIPS = (AttributeError, IndexError, TypeError)

_SPECIALS = re.compile(r'[,;:<>()\[\]@"\\]+')

_log = logging.getLogger(__name__)


def _check(params: Params) -> tuple[Finding, ...]:
    if params.get("server") in (None, "") or params.get("connection") not in (None, ""):
        return ()
    hint = "Choose a connection whose hosts contain the mail server."
    return (Finding("required", "/connection", "A mail server of the block needs a connection.", hint),)


class EmailParams(TypedParams):
    to: Any = param(
        "To",
        "One address, several separated by commas, or a list.",
        required=True,
        widget="text",
        anyOf=[
            {"type": "string", "pattern": FILLED},
            {"type": "array", "minItems": 1, "items": {"type": "string", "pattern": FILLED}},
        ],
    )
    cc: Any = param(
        "Cc",
        "One address, several separated by commas, or a list.",
        widget="text",
        advanced=True,
        anyOf=[{"type": "string"}, {"type": "array", "items": {"type": "string"}}],
    )
    subject: str = param("Subject", "Subject line of the email.", required=True, pattern=FILLED)
    body: Any = param("Body", "Plain text. Other values are sent as JSON.", widget="longtext", rows=8, weft="secret")
    attachments: Any = param("Attachments", "A file, or a list of files, up to 20 MiB in total.", widget="reference")
    from_: str | None = param("From", "Leave empty to use the sender of the server.", advanced=True)
    connection: str | None = changed(
        CONNECTION, description="Signs in to the mail server: a user name and password, or OAuth 2."
    )
    server: str | None = SERVER


@block_type(
    type="email",
    title="Email",
    description="Sends an email as plain text.",
    category="action",
    params=EmailParams.json_schema,
    check=_check,
    effect="write",
    idempotent=False,  # the Message-ID lets a reader recognise a repeat, and many do not
    output=shape(
        message_id="string",
        transport={"enum": ["log", "smtp"]},
        to={"type": "array", "items": {"type": "string"}},
        refused={"type": "array", "items": {"type": "string"}},
    ),
    addresses=("/to", "/cc"),
    attempts=3,
    sentence="To {to}: {subject} | To {to} | Send an email",
    icon="mail",
)
async def block(ctx: StepContext) -> Done:
    """Output {"message_id", "transport", "to", "refused"}: `to` has all recipients, copies included, and `refused`
    those of them that the mail server did not take while it took others. Raises BlockError: params_invalid;
    mail_failed, retryable unless the server refused for good; address_refused; and those of connections."""
    mail = services_of(ctx).mail
    # In a thread: encoding a body of 16 MiB takes a second.
    params = EmailParams(ctx.params)
    compose_mail = partial(compose, params, mail.sender, ctx.idempotency_key, ctx.now_ms)
    files = await attachments(ctx, params.attachments, "attachments")
    message, recipients = await asyncio.to_thread(compose_mail)
    if files:
        await asyncio.to_thread(attach, message, files)
    sender = mailboxes(params.from_ or mail.sender, "from")[0][1]

    async def send(credential: Credential | None) -> list[str]:
        account = account_of(params.server, credential, sender)
        return await post(message, recipients, services_of(ctx), ctx.key, account)

    refused = await signed_in(ctx, params.connection, send)
    transport = "smtp" if params.server is not None or mail.transport == "smtp" else "log"
    output = {"message_id": str(message["Message-ID"]), "transport": transport, "to": recipients}
    return Done(output | {"refused": refused})


async def post(
    message: EmailMessage, recipients: list[str], services: Services, about: str, account: Account | None = None
) -> list[str]:
    """Send it, or write it to the log if there is no mail server, with `about` as the origin. Return the recipients
    that were refused while others were accepted. Raises BlockError: mail_failed, secret_host_refused; and
    address_refused for a server of the account."""
    if services.mail.transport == "smtp" or (account is not None and account.place is not None):
        return await deliver(message, recipients, services, account)
    check_no_place("the log; no mail server is set up")
    kept = (secret.value for secret in services.kept.values())
    hidden = (value for value in (*services.env.values(), *kept) if value != services.base_url)  # links stay readable
    text_part = message.get_body(("plain",))
    assert text_part is not None, "each mail begins with its text"
    body = await asyncio.to_thread(text_part.get_content)
    shown = Redactor(hidden).redact_cut(f"{_heads(message)}\n{body[:_LOGGED_MAX]}")
    if len(body) > _LOGGED_MAX:
        shown += f"\n[{len(body) - _LOGGED_MAX} more characters]"
    for part in message.iter_attachments():
        shown += f"\n[attached: {part.get_filename()}]"
    _log.info("mail of %s (no mail server is configured):\n%s", about, shown)
    return []


def compose(params: EmailParams, sender: str, idempotency_key: str, now_ms: int) -> tuple[EmailMessage, list[str]]:
    """Return the mail, and the bare addresses it goes to. Raises BlockError(params_invalid), also for line breaks in
    heads."""
    senders = [mailbox(params.from_ or sender, "from")]
    to, copies = mailboxes(params.to, "to"), mailboxes(params.cc, "cc")
    if "\r" in params.subject or "\n" in params.subject:
        raise invalid("subject must be one line")
    if not to:
        raise invalid("to is empty")
    if len(to) + len(copies) > _RECIPIENTS_MAX:
        raise invalid(f"a mail can have up to {_RECIPIENTS_MAX} recipients, this one has {len(to) + len(copies)}")
    message = EmailMessage(policy=SMTP)
    digest = hashlib.sha256(idempotency_key.encode("utf-8", "surrogatepass")).hexdigest()[:32]
    try:
        message["From"] = _joined(senders)
        message["To"] = _joined(to)
        if copies:
            message["Cc"] = _joined(copies)
        message["Subject"] = params.subject
        message["Date"] = formatdate(now_ms / 1000)
        message["Message-ID"] = f"<{digest}@{senders[0][1].rpartition('@')[2]}>"
        message.set_content("" if params.body is None else render(params.body))
    except (ValueError, HeaderParseError, *_TRIPS) as error:
        raise invalid(f"the mail could not be created: {error}") from None
    return message, list(dict.fromkeys(address for _, address in [*to, *copies]))


def attach(message: EmailMessage, files: Sequence[tuple[File, bytes]]) -> None:
    for file, content in files:
        main, _, sub = file.media_type.partition("/")
        main, sub = ("application", "octet-stream") if main in ("multipart", "message") else (main, sub)
        message.add_attachment(content, maintype=main, subtype=sub, filename=file.name)


def _joined(pairs: Sequence[tuple[str, str]]) -> str:
    quoted = ((_quotable(name), address) for name, address in pairs)
    return ", ".join(f'"{name}" <{address}>' if name else address for name, address in quoted)


def _quotable(name: str) -> str:
    """Return the name for use in quotes. Python's writer of mails may drop the quotes of a name that is not ASCII; then
    its commas and brackets would be read as those of the list."""
    if not name.isascii():
        name = _SPECIALS.sub(" ", name)
    return name.replace("\\", "\\\\").replace('"', '\\"')


def _heads(message: EmailMessage) -> str:
    return "".join(f"{name}: {value}\n" for name, value in message.items() if name in ("From", "To", "Cc", "Subject"))
