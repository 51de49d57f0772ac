"""Feeds, rows of databases, mailboxes and folders as triggers, each with a real server or file."""

from __future__ import annotations

import email
import os
import sqlite3
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, closing
from email.message import EmailMessage
from email.policy import default
from pathlib import Path
from typing import Any

import pytest

from compiler.compile import compile_document
from executor.blocks.connectors.stored import connectors
from executor.blocks.http.client import GuardedClient
from executor.blocks.sandbox.sandbox import Sandbox
from executor.blocks.services import Services
from executor.blocks.types.registry import Registry
from executor.blocks.types.xml import xml_value
from executor.blocks.vault.connection import Connection
from executor.errors import BlockError
from executor.kernel.store.sqlite.store import SQLiteStore
from executor.open.engine import Engine
from executor.open.testing.engines import SECRET, ManualClock
from executor.service.triggers import polls
from tests.support.endpoints import Request, answer, http
from tests.support.imap import Imap, imap
from tests.support.sftp import sftp
from tests.support.until import until

RSS = """<?xml version="1.0"?><rss version="2.0" xmlns:atom="http://www.w3.org/2005/Atom"
 xmlns:dc="http://purl.org/dc/elements/1.1/" xmlns:content="http://purl.org/rss/1.0/modules/content/">
<channel><title>News</title><link>https://news.example</link><atom:link rel="self" href="https://news.example/rss"/>
{items}</channel></rss>"""
ATOM = """<feed xmlns="http://www.w3.org/2005/Atom"><id>f</id><updated>2027-01-01T00:00:00Z</updated>
<title>News</title>{items}</feed>"""


def rss(*numbers: int) -> str:
    return RSS.format(
        items="".join(
            f"<item><title>Item {n}</title><link>https://news.example/{n}</link><guid isPermaLink='false'>g{n}</guid>"
            f"<pubDate>Fri, {n:02} Jan 2027 08:00:00 GMT</pubDate><dc:creator>Ada</dc:creator>"
            f"<description>About {n}</description><content:encoded><![CDATA[<p>{n}</p>]]></content:encoded></item>"
            for n in numbers
        )
    )


def atom(*numbers: int) -> str:
    return ATOM.format(
        items="".join(
            f"<entry><id>urn:{n}</id><title type='html'>Item {n}</title><author><name>Ada</name></author>"
            f"<link rel='replies' href='https://news.example/{n}/replies'/><link href='https://news.example/{n}'/>"
            f"<updated>2027-01-{n:02}T08:00:00Z</updated><summary>About {n}</summary></entry>"
            for n in numbers
        )
    )


class Polled:
    """An engine with one trigger, polled when `again` is called."""

    def __init__(self, engine: Engine, clock: ManualClock) -> None:
        self.engine, self._clock = engine, clock

    async def again(self, seconds: float = 61) -> list[dict[str, Any]]:
        """Poll, and return the outputs of all runs so far, oldest first."""
        self._clock.set(self._clock.now_ms() + round(seconds * 1000))
        await until(self._is_done)
        runs = [await self.engine.runs.view(row.id) for row in await self.engine.runs.list()]
        return sorted((run.output for run in runs), key=lambda output: str(output["id"]))

    async def _is_done(self) -> bool:
        (row,) = await self.engine.store.list_schedules()
        next_ms, now_ms = row.next_run_at_ms or 0, self._clock.now_ms()
        is_due = next_ms <= now_ms or next_ms == now_ms + polls.CLAIM_MS  # or claimed
        counts = await self.engine.runs.count()
        is_open = counts.get("queued", 0) + counts.get("running", 0)
        return not (is_due or is_open or self.engine.schedules.scheduler.polls.under_way)

    async def error(self) -> str | None:
        return (await self.engine.schedules.all())[0].error


@asynccontextmanager
async def polled(tmp_path: Path, type: str, params: dict[str, Any], **services: Any) -> AsyncIterator[Polled]:
    sandbox, clock = Sandbox(threads=1), ManualClock()
    engine = await Engine.open(
        SQLiteStore(tmp_path / "weft.db"),
        registry=Registry.load(connectors(), sandbox=sandbox),
        services=Services(sandbox=sandbox, http=GuardedClient(("127.0.0.1",)), **services),
        secret=SECRET,
        clock=clock,
    )
    try:
        secret = Connection("basic", secret="a password", username="bob")
        await engine.connections.put("post", secret, [str(params.get("server", "127.0.0.1"))])
        document = {"format": "weft/1", "name": "polled", "blocks": {"e": {"type": type, "params": params}}}
        await engine.workflows.save(document)
        one = Polled(engine, clock)
        await one.again(0)
        yield one
    finally:
        await engine.close()


# --- feeds ---


@pytest.mark.parametrize("made", [rss, atom], ids=["rss", "atom"])
async def test_entries_of_a_feed(made: Any, tmp_path: Path) -> None:
    body, asked = made(3, 2), []

    def serve(request: Request) -> bytes:
        asked.append(request.headers.get("if-none-match"))
        if request.headers.get("if-none-match") == f'"{len(body)}"':
            return answer(304)
        return answer(200, body.encode(), content_type="application/rss+xml", etag=f'"{len(body)}"')

    async with http(serve) as server, polled(tmp_path, "event.feed", {"url": f"{server.url}/feed"}) as feed:
        assert await feed.again() == [] and asked[-1] is not None
        body = made(5, 4, 3, 2)
        four, five = await feed.again()
        assert (four["event"]["title"], five["event"]["title"]) == ("Item 4", "Item 5")
        assert five["event"]["link"] == "https://news.example/5"
        assert (five["event"]["author"], five["event"]["summary"]) == ("Ada", "About 5")
        body = made(5, 4, 3, 2, 1)  # one of before the first poll
        assert len(await feed.again()) == 2 and await feed.error() is None
        body = "<html><body>Not found</body></html>"
        await feed.again()
        assert "no RSS or Atom feed" in (await feed.error() or "")


def test_xml_with_a_dtd_or_too_deep_is_refused() -> None:
    bomb = '<!DOCTYPE a [<!ENTITY b "bbbbbbbbbb"><!ENTITY c "&b;&b;&b;&b;">]><a>&c;</a>'
    for text in (bomb, "<a>" * 100 + "</a>" * 100, "<a><b></a>"):
        with pytest.raises(BlockError, match="XML is not valid"):
            xml_value(text)
    assert xml_value("no XML") == "no XML"
    assert xml_value("<a x='1'>t<b>1</b><b>2</b></a>") == {"@x": "1", "b": ["1", "2"], "#text": "t"}


# --- rows ---


async def test_rows_of_a_database(tmp_path: Path) -> None:
    path = tmp_path / "shop.db"
    with closing(sqlite3.connect(path)) as db:
        db.execute("CREATE TABLE orders (id INTEGER PRIMARY KEY, item TEXT)")
        db.executemany("INSERT INTO orders (item) VALUES (?)", [("old",)] * 2_500)
        db.commit()
        query = "SELECT id, item FROM orders WHERE id > coalesce(:cursor, 0) ORDER BY id"
        params = {"database": "shop.db", "query": query}
        async with polled(tmp_path, "event.rows", params, sqlite_folders=(str(tmp_path),)) as rows:
            assert await rows.again() == [] and await rows.error() is None
            db.executemany("INSERT INTO orders (item) VALUES (?)", [("tea",), ("paper",)])
            db.commit()
            found = await rows.again()
            assert [(one["id"], one["event"]) for one in found] == [
                ("2501", {"id": 2501, "item": "tea"}),
                ("2502", {"id": 2502, "item": "paper"}),
            ]


def test_a_query_has_only_the_cursor() -> None:
    params = {"database": "shop.db", "query": "SELECT id FROM orders WHERE id > :last"}
    document = {"format": "weft/1", "name": "rows", "blocks": {"e": {"type": "event.rows", "params": params}}}
    found = compile_document(document, Registry.load(connectors())).diagnostics
    (error,) = (each for each in found if each.severity == "error")
    assert (error.pointer, error.hint) == ("/blocks/e/params/query", "Only :cursor has a value.")


# --- mails ---


async def content_of(engine: Engine, file: dict[str, Any]) -> bytes:
    files = engine.parts.files
    return b"".join([part async for part in files.content(await files.head(file["id"]))])


@pytest.fixture
async def server() -> AsyncIterator[Imap]:
    async with imap() as one:
        yield one


async def test_mails_of_a_folder(server: Imap, tmp_path: Path) -> None:
    server.add("Old")
    async with polled(tmp_path, "event.mail", {"server": server.place, "connection": "post"}) as mails:
        assert await mails.again() == [] and await mails.error() is None
        server.add("Grüße", "Text of the mail", file="data.csv")
        server.add("Second")
        first, second = await mails.again()
        assert (first["id"], first["event"]["subject"], second["event"]["subject"]) == ("1:2", "Grüße", "Second")
        assert first["event"]["from"] == "Ada <ada@example.org>" and first["event"]["attachments"] == ["data.csv"]
        assert first["event"]["text"] == "Text of the mail\n"
        (stored,) = first["event"]["files"]
        assert (stored["name"], stored["media_type"], stored["size"]) == ("data.csv", "text/csv", 1)
        assert await content_of(mails.engine, stored) == b"1" and second["event"]["files"] == []
        assert await mails.again() == [first, second]
        server.validity = 2  # the folder was made again
        await mails.again()
        assert "renumbered" in (await mails.error() or "")
        server.add("Third")
        assert [one["event"]["subject"] for one in await mails.again()] == ["Grüße", "Second", "Third"]
        assert not any("a password" in str(run) for run in await mails.again())


async def test_more_mails_than_one_poll_reads(server: Imap, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("executor.blocks.types.mailbox.MAILS_MAX", 2)
    async with polled(tmp_path, "event.mail", {"server": server.place, "connection": "post"}) as mails:
        for n in range(5):
            server.add(f"Mail {n}")
        assert [one["event"]["subject"] for one in await mails.again()] == [f"Mail {n}" for n in range(5)]
        block = {"type": "event.mail", "params": {"server": server.place, "connection": "post"}}
        draft = await mails.engine.drafts.create({"format": "weft/1", "name": "one", "blocks": {"e": block}})
        assert (await mails.engine.listening.poll(draft.id, "e")).input["event"]["subject"] == "Mail 4"
        begun = await mails.engine.listening.poll(draft.id, "e", "")
        server.add("Next")
        assert (await mails.engine.listening.poll(draft.id, "e", begun.after)).input["event"]["subject"] == "Next"


async def test_mails_that_are_large_or_malformed(server: Imap, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("executor.blocks.types.mailbox.MAIL_BYTES_MAX", 2_000)
    monkeypatch.setattr("executor.blocks.types.mailbox.POLL_BYTES_MAX", 1_000)
    monkeypatch.setattr("executor.blocks.types.mailbox.BEGINNING_BYTES", 500)
    async with polled(tmp_path, "event.mail", {"server": server.place, "connection": "post"}) as mails:
        await mails.again()
        server.add("Large", "Its text", file="data.csv", content=b"x" * 3_000)
        server.add("Many", file="a.csv", content=b"12345678901")
        server.mails[3] = b"From: <\r\nTo: a:b;@\r\nContent-Disposition: attachment; filename*=[\r\n\r\nHello"
        forwarded = EmailMessage()
        forwarded.set_content("See below")
        forwarded.add_attachment(email.message_from_bytes(b"Subject: Inner\r\n\r\nText", policy=default))
        server.mails[4] = bytes(forwarded)
        large, many, malformed, outer = (one["event"] for one in await mails.again())
        assert (large["text"], large["attachments"], large["files"]) == ("Its text\n", ["data.csv"], [])
        assert many["files"][0]["size"] == 11
        assert (malformed["from"], malformed["to"]) == ("<", "a:b;@")
        assert b"Subject: Inner" in await content_of(mails.engine, outer["files"][0])
        assert outer["files"][0]["media_type"] == "message/rfc822"

        monkeypatch.setattr(mails.engine.parts.files, "bytes_max", 10)
        server.add("Limited", file="b.csv", content=b"12345678901")
        event = (await mails.again())[-1]["event"]
        assert (event["attachments"], event["files"]) == (["b.csv"], []) and await mails.error() is None


async def test_a_wrong_password_and_a_server_that_is_not_there(server: Imap, tmp_path: Path) -> None:
    async with polled(tmp_path, "event.mail", {"server": server.place, "connection": "post"}) as mails:
        wrong = Connection("basic", secret="another password", username="bob")
        await mails.engine.connections.put("post", wrong, [server.place])
        await mails.again()
        error = await mails.error() or ""
        assert "refused the sign-in" in error and "another password" not in error
    params = {"server": "127.0.0.1:9", "connection": "post"}
    folder = tmp_path / "other"
    folder.mkdir()
    async with polled(folder, "event.mail", params) as mails:
        assert "could not be reached" in (await mails.error() or "")


# --- files ---


async def test_files_of_a_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("executor.blocks.types.dropped.POLL_FILES_MAX", 2)
    folder = tmp_path / "in" / "orders"
    (folder / "below").mkdir(parents=True)
    (folder / "old.csv").write_text("old")
    (tmp_path / "secret.csv").write_text("outside")
    params = {"folder": "orders", "pattern": "*.csv", "below": True}
    async with polled(tmp_path, "event.file", params, file_folders=(str(tmp_path / "in"),)) as files:
        (folder / "a.csv").write_text("part")
        assert await files.again() == []
        (folder / "a.csv").write_text("part, and the rest")
        assert await files.again() == [], "it was being written"
        (folder / "link.csv").symlink_to(tmp_path / "secret.csv")
        (folder / "aside").symlink_to(tmp_path, target_is_directory=True)
        for name in (".b.csv", "b.txt", "below/c.csv", "d.csv"):
            (folder / name).write_text(name)
        (one,) = await files.again()
        assert (one["event"]["path"], one["event"]["size"]) == ("a.csv", 18)
        found = await files.again()
        assert sorted(each["event"]["path"] for each in found) == ["a.csv", "below/c.csv", "d.csv"]
        assert await files.again() == found and await files.error() is None
        stored = next(each["event"]["file"] for each in found if each["event"]["path"] == "below/c.csv")
        assert (stored["name"], stored["media_type"]) == ("c.csv", "text/csv")
        assert await content_of(files.engine, stored) == b"below/c.csv"
        holders = [
            row.id
            for row in await files.engine.runs.list()
            if await files.engine.store.files_of_run(row.id, [stored["id"]])
        ]
        assert len(holders) == 1, "its run holds it"

        for n in range(5):
            (folder / f"{n}.csv").write_text("many")
        await files.again()
        assert len(await files.again()) == 8

        monkeypatch.setattr(files.engine.parts.files, "bytes_max", 10)
        (folder / "large.csv").write_text("more than 10 bytes")
        await files.again()
        assert len(await files.again()) == 8
        error = await files.error() or ""
        assert "'large.csv' has 18 bytes" in error and "larger than 10 bytes" in error
        assert len(await files.again()) == 8 and await files.error() is None, "it is listed once"


async def test_files_that_were_there_come_in_one_list(tmp_path: Path) -> None:
    (folder := tmp_path / "in").mkdir()
    (folder / "a").write_text("1")
    params = {"folder": str(folder), "existing": True, "batch_max": 10, "debounce_s": 100}
    async with polled(tmp_path, "event.file", params, file_folders=(str(folder),)) as files:
        assert await files.again() == []
        (folder / "b").write_text("2")
        assert await files.again() == [] and await files.again() == []
        assert await files.again() == []
        (run,) = await files.again()
        assert [event["name"] for event in run["events"]] == ["a", "b"]


async def test_a_file_that_changes_or_cannot_be_read_is_listed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (folder := tmp_path / "in").mkdir()
    async with polled(tmp_path, "event.file", {"folder": str(folder)}, file_folders=(str(folder),)) as files:
        (folder / "a").write_text("1")
        await files.again()
        save = files.engine.parts.files.save

        async def change(content: Any, name: str) -> Any:
            (folder / "a").write_text("another text")
            return await save(content, name)

        monkeypatch.setattr(files.engine.parts.files, "save", change)
        assert await files.again() == [] and "changed while it was read" in (await files.error() or "")
        monkeypatch.undo()
        await files.again()
        (one,) = await files.again()
        assert one["event"]["size"] == 12
        (folder / "b").write_text("2")
        await files.again()
        monkeypatch.setattr(os, "open", lambda *_: (_ for _ in ()).throw(PermissionError(13, "Permission denied")))
        await files.again()
        assert "'b' cannot be read: Permission denied" in (await files.error() or "")


@pytest.mark.parametrize(
    ("folder", "permitted", "message"),
    [
        ("orders", False, "permits no folders"),
        ("..", True, "is in no folder that this server permits"),
        ("aside", True, "is in no folder that this server permits"),
        ("missing", True, "there is no folder 'missing'"),
        ("own", True, "has the database of weft itself"),
    ],
)
async def test_a_folder_that_is_not_permitted(folder: str, permitted: bool, message: str, tmp_path: Path) -> None:
    (tmp_path / "in" / "own").mkdir(parents=True)
    (tmp_path / "in" / "aside").symlink_to(tmp_path, target_is_directory=True)
    services = {
        "file_folders": (str(tmp_path / "in"),) if permitted else (),
        "own_database": str(tmp_path / "in" / "own" / "weft.db"),
    }
    async with polled(tmp_path, "event.file", {"folder": folder}, **services) as files:
        assert message in (await files.error() or "")


# --- files at an SFTP server ---


async def test_files_at_an_sftp_server(tmp_path: Path) -> None:
    """One run for a file once it is complete, and another one when it was written again."""
    async with sftp(tmp_path / "in") as server:
        params = {"server": server.place, "connection": "post", "folder": "/", "pattern": "*.csv", "every_s": 10}
        (server.root / "old.csv").write_text("old")
        async with polled(tmp_path, "event.sftp", params) as files:
            assert "cannot sign in to an SFTP server" in (await files.error() or "")
            await files.engine.connections.put("post", server.connection(), [server.place])
            assert await files.again(3_700) == [] and await files.error() is None
            for name in ("new.csv", "other.txt", ".weft-1.part"):
                (server.root / name).write_text("half")
            (server.root / "folder.csv").mkdir()
            assert await files.again(11) == []
            (server.root / "new.csv").write_text("all of it")
            assert await files.again(11) == []
            (first,) = await files.again(11)
            modified = int((server.root / "new.csv").stat().st_mtime) * 1000
            assert first["event"] == {
                "path": "/new.csv", "name": "new.csv", "kind": "file", "size": 9, "modified": modified
            }  # fmt: skip
            assert await files.again(11) == [first]
            (server.root / "new.csv").write_text("once more, longer")
            await files.again(11)
            assert sorted(one["event"]["size"] for one in await files.again(11)) == [9, 17]
            assert await files.error() is None
