"""A lost attempt on a page that works without scripts: three buttons, an output to type; and the server's addresses
hear of it."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
from msgspec.structs import replace

from executor.open.engine import Engine
from server.app import build_engine, create_app
from server.settings import Settings
from tests.support.endpoints import answer, http
from tests.unit.server.conftest import BASE

HTML = {"accept": "text/html"}
DOCUMENT: dict[str, Any] = {
    "format": "weft/1",
    "name": "tell",
    "blocks": {
        "start": {"type": "start"},
        "mail": {"type": "email", "name": "Tell her", "params": {"to": "ada@example.org", "subject": "Hello"}},
    },
    "edges": [{"source": "start", "target": "mail"}],
}


@asynccontextmanager
async def silence() -> AsyncIterator[tuple[int, asyncio.Event]]:
    """A mail server that says nothing: its port, and when a client connected."""
    called = asyncio.Event()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        called.set()
        await reader.read()
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    try:
        yield server.sockets[0].getsockname()[1], called
    finally:
        server.close()


async def lose(settings: Settings) -> str:
    async with silence() as (port, called):
        engine = await build_engine(replace(settings, mail_transport="smtp", mail_port=port))
        run = (await engine.submit(DOCUMENT)).run
        await asyncio.wait_for(called.wait(), 60)
        await engine.close(grace_s=0)
    return run


async def told(engine: Engine, run: str) -> Any:
    async with asyncio.timeout(60):
        while True:
            for wait in await engine.waits.list("pending", run):
                if wait.notifications and wait.notifications[0].status == "sent":
                    return wait
            await asyncio.sleep(0.02)


async def test_a_lost_attempt_is_settled_on_a_page(settings: Settings, tmp_path: Path) -> None:
    run = await lose(settings)
    async with http(lambda request: answer(200)) as hook:
        settings = replace(settings, notify_webhook=f"{hook.url}/lost", allow_private=("127.0.0.1",))
        engine = await build_engine(settings)
        try:
            wait = await told(engine, run)
            transport = httpx.ASGITransport(app=create_app(settings, engine))
            async with httpx.AsyncClient(transport=transport, base_url=BASE) as client:
                page = await client.get(wait.link, headers=HTML)
                assert page.status_code == 200 and "<script" not in page.text
                assert "<h1>Attempt 1 of Tell her was lost</h1>" in page.text
                for words in ("Run it again", "Mark as done", "Mark as failed"):
                    assert f">{words}</button>" in page.text
                assert 'name="field.output"' in page.text and "(optional)" in page.text
                assert 'class="primary"' not in page.text, "no answer is the usual one"

                wrong = await client.post(wait.link, data={"action": "done", "field.output": "{id: 7}"})
                assert wrong.status_code == 422 and "valid JSON" in wrong.text and "{id: 7}" in wrong.text
                right = {"action": "done", "field.output": '{"message_id": "<seen>"}', "by": "Ada"}
                assert (await client.post(wait.link, data=right)).status_code == 200
                async for _ in engine.follow(run):
                    pass
                assert (await engine.runs.view(run)).output == {"message_id": "<seen>"}
        finally:
            await engine.close()
    body = json.loads(hook.seen[0].body)
    assert (body["kind"], body["actions"], body["link"]) == ("attention", ["retry", "done", "fail"], wait.link)
