"""The scripted model server of `weft dev-model`, on a free port of this machine: beside the test in its event loop, or
in a thread."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from threading import Thread
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


@contextmanager
def scripted_model(script: Path) -> Iterator[str]:
    """The address of a server in a thread that plays this script."""
    server = build_server(read_script(script.read_bytes()))
    with socket.socket() as listening:
        listening.bind((HOST, 0))
        listening.listen()
        thread = Thread(target=server.run, args=([listening],))
        thread.start()
        try:
            yield f"http://{HOST}:{listening.getsockname()[1]}/v1"
        finally:
            server.should_exit = server.force_exit = True
            thread.join()
