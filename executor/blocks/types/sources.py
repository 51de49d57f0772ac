"""Triggers that poll a feed, the rows of a database, a mailbox, or a folder of this server or of an SFTP server:
`event.feed`, `event.rows`, `event.mail`, `event.file`, `event.sftp`."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from functools import partial
from typing import Any, Final

import msgspec

from compiler.catalog import EVENT, BlockSpec, Finding, Params
from executor.blocks.services import services_of
from executor.blocks.types import dropped, http, mail, mailbox, sftp, sql
from executor.blocks.types.connected import CONNECTION, signed_in
from executor.blocks.types.params import FILLED, TypedParams, changed, param, shape
from executor.blocks.types.polled import Before, Event, Found, Polling, digest, event_spec, passed_on
from executor.blocks.types.xml import xml_value
from executor.blocks.vault.connection import Credential
from executor.errors import BlockError
from executor.kernel.handler.base import Done, StepContext
from executor.kernel.values.payload import render

Poll = Callable[[StepContext, Before], Awaitable[Found]]


class SourceBlock:
    def __init__(self, spec: BlockSpec, poll: Poll) -> None:
        self.type = spec.type
        self.spec = spec
        self.poll = poll

    async def run(self, ctx: StepContext) -> Done:
        return await passed_on(ctx)


# --- feeds ---

_TEXT = {"type": "string"}
_ENTRY: Final = shape(title=_TEXT, link=_TEXT, published=["string", "null"], author=_TEXT, summary=_TEXT, content=_TEXT)


class _Feed(TypedParams):
    url: str = param("Address of the feed", "RSS or Atom.", required=True, weft="secret", url=True, pattern=FILLED)
    connection: str | None = CONNECTION


async def _poll_feed(ctx: StepContext, before: Before) -> Found:
    """Read the entries, oldest first. An old one that comes back when another one is deleted is no event."""
    params = _Feed(ctx.params)
    position = before.position if isinstance(before.position, dict) else {}
    headers = {"If-None-Match": position["etag"]} if position.get("etag") else {}
    asked = {"url": params.url, "headers": headers, "connection": params.connection}
    answer = (await http.block.run(msgspec.structs.replace(ctx, params=asked))).output
    if answer["status"] == 304:
        return Found([], position)
    listed = _listed(xml_value(answer["body"]) if isinstance(answer["body"], str) else None)
    if listed is None:
        raise BlockError("the address answers with no RSS or Atom feed", code="feed_invalid", retryable=False)
    entries = [(_id_of(item), _entry(item)) for item in reversed(listed)]
    times = [time for _, entry in entries if (time := _time(entry["published"])) is not None]
    floor = position.get("floor")
    if before.first:
        floor = min(times, default=None)
    events = [Event(id, entry) for id, entry in entries if not _is_older(entry, floor)]
    return Found(events, {"etag": answer["headers"].get("etag"), "floor": floor})


def _is_older(entry: Mapping[str, Any], floor: float | None) -> bool:
    time = _time(entry["published"])
    return floor is not None and time is not None and time < floor


def _listed(feed: Any) -> list[Any] | None:
    """Return the items of RSS (in a channel), of RSS 1.0 or of Atom."""
    if not isinstance(feed, dict) or not {"channel", "entry", "item", "updated"} & feed.keys():
        return None
    found = feed.get("entry") or feed.get("item")
    if found is None and isinstance(feed.get("channel"), dict):
        found = feed["channel"].get("item")
    items = found if isinstance(found, list) else [] if found is None else [found]
    return [item for item in items if isinstance(item, dict)]


def _text(value: Any) -> str:
    """Return the text of an element, or of the first one of several with this name."""
    if isinstance(value, list):
        return next((text for text in map(_text, value) if text), "")
    if isinstance(value, dict):
        return _text(value.get("#text") or value.get("name") or "")
    return value if isinstance(value, str) else ""


def _entry(item: Mapping[str, Any]) -> dict[str, Any]:
    links = item.get("link")
    linked = [one for one in (links if isinstance(links, list) else [links]) if isinstance(one, dict)]
    linked.sort(key=lambda one: one.get("@rel", "alternate") != "alternate")
    return {
        "title": _text(item.get("title")),
        "link": _text(links) or next((str(one.get("@href")) for one in linked if one.get("@href")), ""),
        "published": _text(item.get("pubDate") or item.get("published") or item.get("date") or item.get("updated"))
        or None,
        "author": _text(item.get("author") or item.get("creator")),
        "summary": _text(item.get("description") or item.get("summary")),
        "content": _text(item.get("encoded") or item.get("content")),
    }


def _id_of(item: Mapping[str, Any]) -> str:
    entry = _entry(item)
    return (
        _text(item.get("guid") or item.get("id")) or entry["link"] or digest(f"{entry['title']} {entry['published']}")
    )


def _time(text: str | None) -> float | None:
    for read in (datetime.fromisoformat, parsedate_to_datetime):
        try:
            found = read(text or "")
        except (ValueError, TypeError):
            continue
        return (found if found.tzinfo else found.replace(tzinfo=UTC)).timestamp()
    return None


# --- rows of a database ---

_SQL = sql.block.spec.params["properties"]
ROWS_MAX: Final = 1_000  # of one query
READS_MAX: Final = 100  # of the first poll, which looks for the end


class _Rows(TypedParams):
    database: str = param("Database", _SQL["database"]["description"], required=True, weft="secret", pattern=FILLED)
    connection: str | None = changed(CONNECTION, description=_SQL["connection"]["description"])
    query: str = param(
        "Query",
        "One SELECT that reads rows after :cursor in the order of the cursor. :cursor is null at the first poll.",
        required=True,
        widget="code",
        rows=6,
        weft="literal",
        ui={"language": "sql"},
        pattern=FILLED,
    )
    cursor: str = param(
        "Cursor column", "A column that grows from row to row. Its last value is the next :cursor.", default="id"
    )
    key: str | None = param("Key column", "Identifies a row. Without it, the cursor does.", advanced=True)


async def _poll_rows(ctx: StepContext, before: Before) -> Found:
    params = _Rows(ctx.params)
    position = before.position if isinstance(before.position, dict) else {}
    cursor, events = position.get("cursor"), []
    for _ in range(READS_MAX if before.first else 1):
        asked = {
            "database": params.database,
            "connection": params.connection,
            "query": params.query,
            "parameters": {"cursor": cursor},
            "read_only": True,
            "max_rows": ROWS_MAX,
        }
        rows = (await sql.block.run(msgspec.structs.replace(ctx, params=asked))).output["rows"]
        for column in (params.cursor, *([params.key] if params.key else [])):
            if rows and rows[0].get(column) is None:
                raise BlockError(f"the rows have no {column}", code="rows_invalid", retryable=False)
        found = [Event(render(row[params.key or params.cursor]), row) for row in rows]
        events += found
        if not rows or rows[-1][params.cursor] == cursor:
            break
        cursor = rows[-1][params.cursor]
    else:
        if before.first:
            message = f"the first poll read {len(events)} rows and did not reach the last one"
            raise BlockError(
                message, code="events_too_many", retryable=False, hint="let the query begin at a later row"
            )
    more = not before.first and any(event.id not in before.seen for event in events)
    return Found(events, {"cursor": cursor}, more)


def _check_rows(params: Params) -> tuple[Finding, ...]:
    check = sql.block.spec.check
    assert check is not None
    found = check({**params, "parameters": {"cursor": None}})
    hint = "Only :cursor has a value."
    return tuple(
        msgspec.structs.replace(one, pointer="/query", hint=hint) if one.pointer == "/parameters" else one
        for one in found
    )


# --- mails ---


class _Mail(TypedParams, literal=True):
    server: str = changed(mail.SERVER, title="Mail server", description="host:port of IMAP.", required=True)
    connection: str | None = changed(CONNECTION, required=True)
    account: str | None = param("Account", "The mail address, for a sign-in with OAuth 2.", advanced=True)
    folder: str = param("Folder", default="INBOX")


async def _poll_mail(ctx: StepContext, before: Before) -> Found:
    params = _Mail(ctx.params)
    position = before.position if isinstance(before.position, dict) else {}
    marks = before.first and not (before.newest or Polling(ctx.params).existing)

    async def read(credential: Credential | None) -> mailbox.Read:
        server = params.server if params.server.rstrip("]").rpartition(":")[2].isdigit() else f"{params.server}:993"
        account = mail.account_of(server, credential, params.account or "")
        assert account is not None and account.place is not None, "there is a connection and a server"
        return await mailbox.read(services_of(ctx), account, params.folder, position, marks, before.newest)

    found = await signed_in(ctx, params.connection, read)
    files = services_of(ctx).files
    assert files is not None, "the engine sets it"
    events = [Event(f"{found.validity}:{one.uid}", load=partial(one.loaded, files)) for one in found.mails]
    note = "the server renumbered the folder: mails since the last poll are left out" if found.renumbered else None
    return Found(events, {"validity": found.validity, "uid": found.uid}, found.more, note)


# --- files at an SFTP server ---

SFTP_S: Final = 60  # of one poll


class _Sftp(TypedParams, literal=True):
    server: str = sftp.AT
    connection: str | None = sftp.SIGNS_IN
    folder: str = param("Folder", "Without / at its beginning, in the home folder of the user.", default=".")
    pattern: str = sftp.NAMES


async def _poll_sftp(ctx: StepContext, before: Before) -> Found:
    """The events have what the server lists; a run reads the file, with the retries of its block."""
    params = _Sftp(ctx.params)

    files = await sftp.at_server(
        ctx,
        params.server,
        params.connection,
        SFTP_S,
        lambda at: sftp.listed(at, params.folder, params.pattern, dropped.FILES_MAX, only_files=True),
    )
    files.sort(key=lambda file: (file.modified, file.path))
    events = [(Event(file.id, msgspec.structs.asdict(file)), 0) for file in files]
    return dropped.complete(ctx, before, params.folder, events)


def _source(type: str, title: str, starts: str, params: type[TypedParams], poll: Poll, **spec: Any) -> SourceBlock:
    about = f"Starts the workflow for each {starts}."
    return SourceBlock(event_spec(EVENT + type, title, about, params.json_schema, **spec), poll)


def sources() -> list[SourceBlock]:
    """Make the block types."""
    return [
        _source(
            "feed", "Feed", "new entry of an RSS or Atom feed", _Feed, _poll_feed, event=lambda _: _ENTRY,
            sentence="New entry of {url} | New entry of a feed", icon="http",
        ),
        _source(
            "rows", "New rows", "new row that a query of a database finds", _Rows, _poll_rows,
            event=lambda _: {"type": "object", "additionalProperties": True}, check=_check_rows,
            sentence="New rows: {query} | New rows of a database", icon="sql",
        ),
        _source(
            "mail", "New mail", "new mail in a folder of a mailbox (IMAP)", _Mail, _poll_mail,
            event=lambda _: mailbox.MAIL, sentence="New mail in {folder} | New mail", icon="email",
        ),
        _source(
            "file", "New file", "file that appears in a folder of the server", dropped.Params, dropped.poll,
            event=lambda _: dropped.FILE, sentence="New file in {folder} | New file", icon="file",
        ),
        _source(
            "sftp", "New file at an SFTP server", "file that appears in a folder of an SFTP server", _Sftp, _poll_sftp,
            event=lambda _: sftp.ENTRY, sentence="New file in {folder} at {server} | New file at an SFTP server",
            icon="file",
        ),
    ]  # fmt: skip
