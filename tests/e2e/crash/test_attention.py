"""kill -9 while a mail is on its way: whether it was sent is not known, so a person is asked, and that answer holds."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import httpx
import pytest

from tests.e2e.crash.conftest import Servers
from tests.support.journal import Journal, log_is_clean

pytestmark = pytest.mark.proof

DOCUMENT = {
    "format": "weft/1",
    "name": "tell",
    "blocks": {
        "start": {"type": "start"},
        "mail": {"type": "email", "name": "Tell her", "params": {"to": "ada@example.org", "subject": "Hello"}},
        "end": {"type": "set", "params": {"value": {"id": "<mail.message_id>"}}},
    },
    "edges": [{"source": "start", "target": "mail"}, {"source": "mail", "target": "end"}],
}


@dataclass
class Post:
    """A mail server. It takes mails once `open` is set; until then it says nothing to who calls it."""

    port: int = 0
    callers: int = 0
    mails: list[str] = field(default_factory=list)
    open: asyncio.Event = field(default_factory=asyncio.Event)
    called: asyncio.Event = field(default_factory=asyncio.Event)

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.callers += 1
        self.called.set()
        try:
            await self.open.wait()
            await self._say(writer, "220 ready")
            while line := (await reader.readline()).decode().strip():
                word = line.split(" ")[0].upper()
                if word == "DATA":
                    await self._say(writer, "354 go on")
                    self.mails.append((await reader.readuntil(b"\r\n.\r\n")).decode())
                await self._say(writer, "221 bye" if word == "QUIT" else "250 ok")
        except (ConnectionError, asyncio.IncompleteReadError):
            pass
        finally:
            writer.close()

    async def _say(self, writer: asyncio.StreamWriter, text: str) -> None:
        writer.write(f"{text}\r\n".encode())
        await writer.drain()


@asynccontextmanager
async def post() -> AsyncIterator[Post]:
    made = Post()
    server = await asyncio.start_server(made.serve, "127.0.0.1", 0)
    made.port = server.sockets[0].getsockname()[1]
    try:
        yield made
    finally:
        made.open.set()
        server.close()


async def until_asked(client: httpx.AsyncClient, run: str) -> dict[str, Any]:
    async with asyncio.timeout(60):
        while True:
            waits = (await client.get("/api/waits", params={"run": run})).json()["waits"]
            if waits:
                return dict(waits[0])
            await asyncio.sleep(0.05)


@pytest.mark.parametrize(
    ("action", "fields", "status", "mails"),
    [
        ("retry", {}, "succeeded", 1),
        ("done", {"output": {"message_id": "<seen@example.org>"}}, "succeeded", 0),
        ("fail", {}, "failed", 0),
    ],
)
async def test_a_mail_under_way_is_asked_about(
    servers: Servers, action: str, fields: dict[str, Any], status: str, mails: int
) -> None:
    async with post() as server, httpx.AsyncClient(timeout=60, trust_env=False) as client:
        servers.send_mail_through(server.port)
        first = await servers.start()
        client.base_url = httpx.URL(first.url)
        run = (await client.post("/api/runs", json={"document": DOCUMENT})).json()["run"]
        async with asyncio.timeout(60):
            await server.called.wait()
        await first.kill()
        server.open.set()

        second = await servers.start()
        wait = await until_asked(client, run)
        assert (wait["kind"], wait["request"]["title"]) == ("attention", "Attempt 1 of Tell her was lost")
        await asyncio.sleep(0.3)  # more than a lease, had anybody wanted to try again
        assert server.callers == 1
        view = (await client.get(f"/api/runs/{run}")).json()
        assert [node["status"] for node in view["nodes"] if node["key"] == "mail"] == ["needs_attention"]

        path = httpx.URL(wait["link"]).path
        answer = await client.post(
            path, json={"action": action, "fields": fields, "by": "Ada"}, headers={"accept": "application/json"}
        )
        assert answer.status_code == 200, answer.text
        async with asyncio.timeout(60):
            while (view := (await client.get(f"/api/runs/{run}")).json())["status"] != status:
                await asyncio.sleep(0.05)
        assert len(server.mails) == mails
        if status == "succeeded":
            assert view["output"]["id"] == fields.get("output", {}).get("message_id", view["output"]["id"])
        assert await second.stop(timeout_s=30) == 0
    journal = Journal(servers.db)
    journal.is_sound()
    journal.is_dense()
    journal.results_are_recorded_once()
    assert journal.started(run)["mail"] == (2 if action == "retry" else 1)
    log_is_clean(servers.log)
