"""A client that reads the stream of a run over all lost connections, and loses no event and reads none twice."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Collection
from contextlib import suppress
from typing import Any

import httpx
import orjson

from server.client.stream import SseParser

Transcript = list[dict[str, Any]]


class Follower:
    """`url`: where to ask, each time anew; `busy`: statuses that mean to ask again. Counts "streams lost"."""

    def __init__(
        self,
        http: httpx.AsyncClient,
        counts: Counter[str],
        *,
        url: Callable[[], str],
        busy: Collection[int],
        again_s: float,
        timeout: httpx.Timeout,
    ) -> None:
        self._http = http
        self._counts = counts
        self._url = url
        self._busy = busy
        self._again_s = again_s
        self._timeout = timeout

    async def follow(self, run: str, transcript: Transcript) -> None:
        """Until the run has ended. The server must continue exactly where the reader was."""
        while True:
            with suppress(httpx.TransportError):
                if await self._follow_once(run, transcript):
                    return
            self._counts["streams lost"] += 1
            await asyncio.sleep(self._again_s)

    async def _follow_once(self, run: str, transcript: Transcript) -> bool:
        """True after the run's last event."""
        headers = {"accept": "text/event-stream", "last-event-id": str(len(transcript))}
        url = f"{self._url()}/api/runs/{run}/events"
        async with self._http.stream("GET", url, headers=headers, timeout=self._timeout) as response:
            if response.status_code in self._busy:
                return False
            assert response.status_code == 200, (await response.aread()).decode()
            parser = SseParser()
            async for chunk in response.aiter_bytes():
                for frame in parser.feed(chunk):
                    if frame.id is None:
                        continue
                    event = orjson.loads(frame.data)
                    assert int(frame.id) == event["seq"] == len(transcript) + 1, "an event is missing, or comes twice"
                    transcript.append(event)
                    if event["type"] == "run.finished":
                        return True
        return False
