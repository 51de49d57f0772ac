"""The scripted model server of `weft dev-model`, on a free port of this machine, beside the test in its event loop."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import httpx
import msgspec

from examples.dev_model.app import HOST, build_server
from examples.dev_model.script import read_script


class DevModel:
    """A server of models that runs. `place`: host:port."""

    def __init__(self, place: str) -> None:
        self.place = place

    @property
    def url(self) -> str:
        return f"http://{self.place}/v1"

    async def calls(self) -> list[dict[str, Any]]:
        """The requests that it got, in order."""
        async with httpx.AsyncClient(trust_env=False) as client:
            found = await client.get(f"http://{self.place}/calls")
        calls: list[dict[str, Any]] = found.json()
        return calls


@asynccontextmanager
async def dev_model(*rules: dict[str, Any]) -> AsyncIterator[DevModel]:
    listening = socket.socket()
    listening.bind((HOST, 0))
    server = build_server(read_script(msgspec.json.encode({"rules": rules})))
    serving = asyncio.create_task(server.serve(sockets=[listening]))
    while not server.started:
        await asyncio.sleep(0.005)
    try:
        yield DevModel(f"{HOST}:{listening.getsockname()[1]}")
    finally:
        server.should_exit = server.force_exit = True
        await serving
        listening.close()
