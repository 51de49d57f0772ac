"""Effects under kill -9: what may have happened is not done again without a question."""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
import orjson
import pytest

from tests.support.dev_model import dev_model
from tests.support.endpoints import Request, Server, http
from tests.support.server import ServerProcess, free_port
from tests.support.until import until

KEY = "AKIDEXAMPLE:wJalrXUtnFEMIK7MDENG"
# A write of each connector that a second request would make twice.
WRITES: dict[str, dict[str, Any]] = {
    "discord": {"operation": "send_message", "channel": "1", "text": "Hi"},
    "github": {"operation": "create_issue", "owner": "o", "repo": "r", "title": "Bug"},
    "gmail": {"operation": "send", "to": "ada@example.org", "subject": "Hi", "text": "Hello"},
    "google_sheets": {"operation": "append_rows", "spreadsheet": "1abc", "range": "A1", "rows": [["Door"]]},
    "linear": {"operation": "create_issue", "team": "9cfb", "title": "Bug"},
    "notion": {"operation": "create_page", "database": "d98", "properties": {}},
    "slack": {"operation": "send_message", "channel": "C1", "text": "Hi"},
    "telegram": {"operation": "send_message", "chat": "5", "text": "Hi"},
}
# A second one changes nothing more.
HARMLESS: dict[str, dict[str, Any]] = {
    "s3": {"operation": "put_object", "bucket": "tea", "key": "a", "content": "x"},
    "google_sheets": {"operation": "update_rows", "spreadsheet": "1abc", "range": "A1", "rows": [["Door"]]},
}


@asynccontextmanager
async def witness() -> AsyncIterator[tuple[Server, asyncio.Event]]:
    """Counts requests, and answers none of them before the event."""
    answered = asyncio.Event()

    async def handle(request: Request) -> bytes:
        await answered.wait()
        return b'HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 11\r\n\r\n{"ok":true}'

    async with http(handle) as server:
        yield server, answered
        answered.set()


def is_look(request: Request) -> bool:
    """Whether it only asks what a lost attempt did."""
    return request.method == "GET" or b'"query($id' in request.body


def writes(server: Server) -> list[Request]:
    return [request for request in server.seen if not is_look(request)]


def connector(service: str, params: dict[str, Any], url: str, name: str) -> dict[str, Any]:
    base = f"{url}/{name}" + ("/bot{{credential}}" if service == "telegram" else "")
    credential = KEY if service == "s3" else "123456:token-of-the-test"
    return {"type": f"connector.{service}", "params": {**params, "base_url": base, "credential": credential}}


def document(url: str) -> dict[str, Any]:
    blocks = {name: connector(name, params, url, name) for name, params in WRITES.items()}
    blocks |= {f"{name}-again": connector(name, params, url, f"{name}-again") for name, params in HARMLESS.items()}
    blocks["post"] = {"type": "http", "params": {"method": "POST", "url": f"{url}/post", "body": {}}}
    named = {"method": "POST", "url": f"{url}/post-again", "body": {}, "idempotency_header": "X-Request-Token"}
    blocks["post-again"] = {"type": "http", "params": named}
    tool = {"name": "pay", "block": "http", "params": {"url": f"{url}/pay", "method": "POST"}}
    # As a block it is recognized by its checkpoint; an agent's calls have none, so it is not sent again unasked.
    told = connector("slack", WRITES["slack"], url, "tell")
    tell = {"name": "tell", "block": told["type"], "params": told["params"]}
    for name, each in (("agent", tool), ("teller", tell)):
        blocks[name] = {"type": "agent", "params": {"model": "dev:m", "prompt": "Do it", "tools": [each]}}
    edges = [{"source": "start", "target": name} for name in blocks]
    return {"format": "weft/1", "name": "writes", "blocks": {"start": {"type": "start"}, **blocks}, "edges": edges}


RULES: list[dict[str, Any]] = [
    {"when": {"round": 0, "offers": "pay"}, "calls": [{"name": "pay", "arguments": {}}]},
    {"when": {"round": 0, "offers": "tell"}, "calls": [{"name": "tell", "arguments": {}}]},
    {"when": {"round": 1}, "text": "Done"},
]


@pytest.mark.proof
async def test_no_effect_is_repeated_without_a_question(tmp_path: Path) -> None:
    async with witness() as (server, answered), dev_model(*RULES) as model:
        environ = {"WEFT_LEASE_MS": "1000", "WEFT_ALLOW_PRIVATE": server.place, "WEFT_MODEL_DEV": model.url}
        port = free_port(random.Random())

        async def started() -> ServerProcess:
            process = await ServerProcess.start(tmp_path / "weft.db", port, tmp_path / "log", **environ)
            await process.ready()
            return process

        asked = document(server.url)
        names = [*WRITES, *(f"{name}-again" for name in HARMLESS), "post", "post-again", "pay", "tell"]
        first = await started()
        try:
            async with httpx.AsyncClient(base_url=first.url, timeout=60) as client:
                created = await client.post("/api/runs", json={"document": asked})
                assert created.status_code == 202, created.text
                run = created.json()["run"]
                await until(lambda: len(writes(server)) == len(names))
        finally:
            await first.kill()
        second = await started()
        try:
            async with httpx.AsyncClient(base_url=second.url, timeout=60) as client:
                again = [name for name in names if name.endswith("-again")]
                await until(lambda: len(writes(server)) == len(names) + len(again))
                answered.set()

                async def questions() -> set[str]:
                    waits = (await client.get("/api/waits", params={"run": run})).json()["waits"]
                    return {wait["id"].partition("!")[0] for wait in waits if wait["kind"] == "attention"}

                wanted = {*WRITES, "post", "agent", "teller"}
                async with asyncio.timeout(60):
                    while await questions() != wanted:
                        await asyncio.sleep(0.1)
            counted = Counter(request.target.split("/")[1].partition("?")[0] for request in writes(server))
            assert counted == {name: 2 if name in again else 1 for name in names}
        finally:
            await second.clean_up()


# Writes that the service can be asked about.
FOUND: dict[str, tuple[str, dict[str, Any]]] = {
    "github": ("github", WRITES["github"]),
    "comment": ("github", {"operation": "comment", "owner": "o", "repo": "r", "number": 1, "body": "Hi"}),
    "linear": ("linear", WRITES["linear"]),
    "remark": ("linear", {"operation": "comment", "issue": "b1", "body": "Hi"}),
    "slack": ("slack", WRITES["slack"]),
    "thread": ("slack", {**WRITES["slack"], "thread_ts": "1.5"}),
}


class Services:
    """GitHub, Linear and Slack. The first request of each block is never answered; what `-there` asked for was done,
    what `-gone` asked for was not."""

    def __init__(self) -> None:
        self.sent: dict[str, list[Any]] = {}
        self.over = asyncio.Event()

    async def handle(self, request: Request) -> bytes:
        name = request.target.split("/")[1]
        kind, _, end = name.partition("-")
        if is_look(request):
            return self.shown(kind, self.sent[name][0] if end == "there" else None)
        body = orjson.loads(request.body)
        self.sent.setdefault(name, []).append(body)
        if len(self.sent[name]) == 1:
            await self.over.wait()
        return _json({"ok": True, "data": {}, "second": name})

    def shown(self, kind: str, done: Any) -> bytes:
        match kind:
            case "github" | "comment":
                return _json([] if done is None else [{"number": 7, "body": done["body"]}])
            case "linear" | "remark":
                nodes = [] if done is None else [{"id": done["variables"]["input"]["id"], "url": "u"}]
                return _json({"data": {"issues" if kind == "linear" else "comments": {"nodes": nodes}}})
            case _:
                found = [] if done is None else [{"ts": "2.5", "bot_id": "B1", "metadata": done["metadata"]}]
                return _json({"ok": True, "messages": [{"ts": "1.5", "user": "U1"}, *found], "has_more": False})


def _json(body: Any) -> bytes:
    data = orjson.dumps(body)
    return b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n%s" % (len(data), data)


@pytest.mark.proof
async def test_a_service_that_can_be_asked_decides_what_a_kill_left_in_doubt(tmp_path: Path) -> None:
    services = Services()
    async with http(services.handle) as server:
        environ = {"WEFT_LEASE_MS": "1000", "WEFT_ALLOW_PRIVATE": server.place}
        port = free_port(random.Random())

        async def started() -> ServerProcess:
            process = await ServerProcess.start(tmp_path / "weft.db", port, tmp_path / "log", **environ)
            await process.ready()
            return process

        names = [f"{name}-{end}" for name in FOUND for end in ("there", "gone")]
        blocks = {name: connector(*FOUND[name.partition("-")[0]], server.url, name) for name in names}
        edges = [{"source": "start", "target": name} for name in blocks]
        asked = {"format": "weft/1", "name": "asks", "blocks": {"start": {"type": "start"}, **blocks}, "edges": edges}
        first = await started()
        try:
            async with httpx.AsyncClient(base_url=first.url, timeout=60) as client:
                run = (await client.post("/api/runs", json={"document": asked})).json()["run"]
                await until(lambda: len(services.sent) == len(names))
        finally:
            await first.kill()
        second = await started()
        try:
            async with httpx.AsyncClient(base_url=second.url, timeout=60) as client, asyncio.timeout(60):
                while (view := (await client.get(f"/api/runs/{run}")).json())["status"] == "running":
                    await asyncio.sleep(0.1)
            assert view["status"] == "succeeded", "no one was asked"
            counted = {name: len(sent) for name, sent in services.sent.items()}
            assert counted == {name: 1 if name.endswith("-there") else 2 for name in names}
            for sent in services.sent.values():
                assert sent[0] == sent[-1], "with the same key"
            results = {name: view["output"][name]["result"] for name in names}
            assert all(results[name]["second"] == name for name in names if name.endswith("-gone"))
            assert results["github-there"]["number"] == results["comment-there"]["number"] == 7
            assert results["slack-there"]["ts"] == results["thread-there"]["ts"] == "2.5"
            assert results["linear-there"]["data"]["issueCreate"]["issue"]["url"] == "u"
            assert results["remark-there"]["data"]["commentCreate"]["comment"]["url"] == "u"
        finally:
            services.over.set()
            await second.clean_up()
