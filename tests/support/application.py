"""The server's application in this process, without a socket."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import httpx

from executor.open.engine import Engine
from server.app import build_engine, create_app
from server.settings import Settings

BASE = "http://127.0.0.1:8765"


@asynccontextmanager
async def application(settings: Settings) -> AsyncIterator[tuple[Engine, httpx.AsyncClient]]:
    """Yield the engine and a client; both are closed at the end."""
    engine = await build_engine(settings)
    transport = httpx.ASGITransport(app=create_app(settings, engine))
    async with httpx.AsyncClient(transport=transport, base_url=BASE) as client:
        try:
            yield engine, client
        finally:
            await engine.close()
