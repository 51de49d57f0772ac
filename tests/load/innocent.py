"""A client that does nothing wrong, as a process of its own, and says as JSON how long it waited.

python -m tests.load.innocent URL

Until stdin ends, it asks for the version and starts a small run, each at its own pace and with a new connection, also
when earlier requests have no response yet. Then it prints two lists of milliseconds: of the reads and of the starts;
null for a request without the expected response.
"""

from __future__ import annotations

import asyncio
import json
import sys
import time
from urllib.parse import urlsplit

from tests.load.world import ending

READ_EVERY_S = 0.05
START_EVERY_S = 0.1
PATIENCE_S = 60.0


class Client:
    def __init__(self, url: str) -> None:
        parts = urlsplit(url)
        self._host, self._port = parts.hostname or "", parts.port or 80
        body = json.dumps({"document": ending("small", {"value": {"type": "set", "params": {"value": 1}}})})
        head = f"HTTP/1.1\r\nHost: {parts.netloc}\r\nConnection: close\r\n"
        self._read = f"GET /api/version {head}\r\n".encode()
        self._start = (
            f"POST /api/runs {head}Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n{body}".encode()
        )

    async def read(self) -> float | None:
        return await self._waited(self._read, b"HTTP/1.1 200 ")

    async def start(self) -> float | None:
        return await self._waited(self._start, b"HTTP/1.1 202 ")

    async def _waited(self, request: bytes, expected: bytes) -> float | None:
        began = time.monotonic()
        try:
            async with asyncio.timeout(PATIENCE_S):
                reader, writer = await asyncio.open_connection(self._host, self._port)
                try:
                    writer.write(request)
                    response = await reader.read()
                finally:
                    writer.transport.abort()
        except (TimeoutError, OSError):
            return None
        return (time.monotonic() - began) * 1000 if response.startswith(expected) else None


async def main(url: str) -> None:
    client = Client(url)
    ended = asyncio.create_task(asyncio.to_thread(sys.stdin.read))
    await client.read()
    await client.start()
    print(flush=True)
    reads: list[asyncio.Task[float | None]] = []
    starts: list[asyncio.Task[float | None]] = []
    began = time.monotonic()
    while not ended.done():
        spent_s = time.monotonic() - began
        if spent_s >= len(reads) * READ_EVERY_S:
            reads.append(asyncio.create_task(client.read()))
        if spent_s >= len(starts) * START_EVERY_S:
            starts.append(asyncio.create_task(client.start()))
        await asyncio.sleep(0.005)
    print(json.dumps([await asyncio.gather(*reads), await asyncio.gather(*starts)]))


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1]))
