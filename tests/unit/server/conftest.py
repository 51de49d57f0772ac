"""A whole server in this process: a real engine over a fresh SQLite file, reached through ASGI without a socket."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine
from importlib import import_module
from pathlib import Path
from typing import Any

import httpx
import pytest
from click.testing import CliRunner
from msgspec.structs import replace
from starlette.applications import Starlette

from executor.open.engine import Engine
from server import cli
from server.app import build_engine, create_app
from server.cli import common
from server.client import AsyncClient
from server.settings import Settings

BASE = "http://127.0.0.1:8765"


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return Settings(db_path=str(tmp_path / "weft.db"), secret_key="a secret for tests only")


@pytest.fixture
async def engine(settings: Settings) -> AsyncIterator[Engine]:
    engine = await build_engine(settings)
    yield engine
    await engine.close()


@pytest.fixture
def app(settings: Settings, engine: Engine) -> Starlette:
    return create_app(settings, engine)


@pytest.fixture
async def client(app: Starlette) -> AsyncIterator[httpx.AsyncClient]:
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app=app), base_url=BASE) as client:
        yield client


@pytest.fixture
async def gate(tmp_path: Path) -> AsyncIterator[httpx.AsyncClient]:
    """A server with the token `the-token` and no engine behind it: what gets past the checks ends in an error here."""
    app = create_app(
        Settings(db_path=str(tmp_path / "weft.db"), secret_key="a secret for tests only", token="the-token")
    )
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app=app), base_url=BASE) as client:
        yield client


@pytest.fixture
async def locked(settings: Settings, engine: Engine) -> AsyncIterator[httpx.AsyncClient]:
    """The same engine behind a server that has a token: `the-token`."""
    app = create_app(replace(settings, token="the-token"), engine)
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app=app), base_url=BASE) as client:
        yield client


@pytest.fixture
def hello() -> dict[str, Any]:
    """Ends at once; its output is {"greeting": "hello <name>"}."""
    return {
        "format": "weft/1",
        "name": "hello",
        "input": {"type": "object", "properties": {"name": {"type": "string", "default": "world"}}},
        "blocks": {
            "start": {"type": "start", "name": "Start"},
            "greet": {"type": "set", "name": "Greet", "params": {"value": {"greeting": "hello <input.name>"}}},
        },
        "edges": [{"source": "start", "target": "greet"}],
    }


@pytest.fixture
def asking() -> dict[str, Any]:
    """Waits for a person, then ends with the answer."""
    fields = {
        "type": "object",
        "properties": {
            "note": {"type": "string", "title": "Your note"},
            "amount": {"type": "integer", "minimum": 1},
            "urgent": {"type": "boolean"},
            "level": {"enum": ["low", "high"]},
        },
        "required": ["amount"],
    }
    params = {
        "title": "Pay <b>now</b>?",
        "show": {"invoice": "INV-1", "text": "<input.text>"},
        "fields": fields,
        "actions": ["approve", "reject"],
    }
    return {
        "format": "weft/1",
        "name": "asking",
        "blocks": {
            "start": {"type": "start", "name": "Start"},
            "ask": {"type": "approval", "name": "Ask", "params": params},
        },
        "edges": [{"source": "start", "target": "ask"}],
    }


@pytest.fixture
def started(client: httpx.AsyncClient) -> Callable[..., Any]:
    """Start a document and wait until it ends or waits; returns the body of the answer."""

    async def start(document: dict[str, Any], input: Any = None) -> dict[str, Any]:
        response = await client.post("/api/runs?wait=60", json={"document": document, "input": input})
        assert response.status_code in (200, 202), response.text
        return dict(response.json())

    return start


@pytest.fixture
def weft(app: Starlette, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Any]:
    """Runs a command in a thread: it has an event loop of its own, the server has that of the test."""
    import_module("server.cli.upkeep")  # it takes run_async by its name, so it is loaded before that is replaced
    loops: list[asyncio.AbstractEventLoop] = []

    def in_loop(work: Coroutine[Any, Any, Any]) -> Any:
        return asyncio.run_coroutine_threadsafe(work, loops[-1]).result(60)

    def client(url: str, token: str | None) -> AsyncClient:
        return AsyncClient(url, token, transport=httpx.ASGITransport(app=app))

    monkeypatch.setattr(common, "run_async", in_loop)
    monkeypatch.setattr(common, "new_client", client)

    async def run(*arguments: str, input: str | None = None, **more: Any) -> Any:
        loops.append(asyncio.get_running_loop())
        return await asyncio.to_thread(CliRunner().invoke, cli.weft, arguments, input=input, **more)

    return run
