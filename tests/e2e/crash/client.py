"""One who asks a server, keeps what was acknowledged, and looks in the end where it is. Has runs of three kinds: a call
that the test's service holds back, a timer, a question."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import closing
from typing import Any

import httpx

from executor.kernel.store.sqlite.reading import open_reading
from executor.service.upkeep.findings import Evidence
from executor.service.upkeep.invariants import check
from tests.e2e.crash.conftest import Servers
from tests.support.journal import Journal
from tests.support.place import as_file
from tests.support.service import Service, chain
from tests.support.until import until

EACH = 5  # runs of each kind
OPEN = ("queued", "running", "waiting")
JSON = {"accept": "application/json"}


class Client:
    """Asks each thing once. `runs` by idempotency key: what was acknowledged."""

    def __init__(self, http: httpx.AsyncClient) -> None:
        self.http = http
        self.runs: dict[str, str] = {}

    async def start(self, key: str, document: Any) -> httpx.Response:
        body = {"document": document, "input": {"n": key}}
        answer = await self.http.post("/api/runs", json=body, headers={"idempotency-key": key})
        if answer.is_success:
            run = answer.json()["run"]
            assert self.runs.setdefault(key, run) == run, "one key, two runs"
        return answer

    async def answer(self, link: str) -> httpx.Response:
        return await self.http.post(link, json={"action": "approve", "by": "Ada"}, headers=JSON)

    async def begin(self, service: Service, nap_s: float) -> list[str]:
        """EACH of each kind; returns the links of the questions when all is under way. `service` holds /step/1."""
        documents = {"call": chain(service.url, 1), "nap": nap(nap_s), "ask": ask()}
        for n in range(EACH):
            for kind, document in documents.items():
                (await self.start(f"{kind}-{n}", document)).raise_for_status()
        await until(lambda: len(service.held()) == EACH)
        async with asyncio.timeout(60):
            while len(links := await self.links()) < EACH or len(await self.those("queued", "running")) > EACH:
                await asyncio.sleep(0.05)
        return links

    async def status(self, key: str) -> str:
        view: dict[str, Any] = (await self.http.get(f"/api/runs/{self.runs[key]}")).raise_for_status().json()
        return str(view["status"])

    async def those(self, *statuses: str) -> list[str]:
        """Keys of the runs with one of these statuses."""
        return [key for key in self.runs if await self.status(key) in statuses]

    async def ended(self, prefix: str = "", timeout_s: float = 60) -> None:
        """All runs whose key begins so."""
        try:
            async with asyncio.timeout(timeout_s):
                for key in [key for key in self.runs if key.startswith(prefix)]:
                    while await self.status(key) in OPEN:
                        await asyncio.sleep(0.05)
        except TimeoutError:
            raise AssertionError(f"{prefix!r}: after {timeout_s} s still open: {await self.those(*OPEN)}") from None

    async def links(self) -> list[str]:
        """Of the open questions."""
        waits: list[dict[str, Any]] = (await self.http.get("/api/waits")).raise_for_status().json()["waits"]
        return [httpx.URL(wait["link"]).path for wait in waits if wait["kind"] == "approval"]


def nap(seconds: float) -> dict[str, Any]:
    blocks = {
        "start": {"type": "start"},
        "nap": {"type": "wait", "params": {"seconds": seconds}},
        "last": {"type": "set", "params": {"value": "<start.n>"}},
    }
    edges = [{"source": "start", "target": "nap"}, {"source": "nap", "target": "last"}]
    return {"format": "weft/1", "name": "nap", "blocks": blocks, "edges": edges}


def ask() -> dict[str, Any]:
    blocks = {"start": {"type": "start"}, "ask": {"type": "approval", "params": {"title": "Go on?"}}}
    return {"format": "weft/1", "name": "ask", "blocks": blocks, "edges": [{"source": "start", "target": "ask"}]}


def sound(servers: Servers, client: Client, others: Sequence[str] = ()) -> Journal:
    """No process has the file open any more. `others`: runs that were not asked for by the client."""
    journal = Journal(servers.db)
    journal.is_sound()
    journal.is_dense()
    journal.all_succeeded()
    journal.results_are_recorded_once()
    assert sorted(journal.runs) == sorted([*client.runs.values(), *others])
    assert "Traceback" not in servers.log.read_text()
    with as_file(servers.db) as path, closing(open_reading(path)) as db:
        assert list(check(db, evidence=Evidence(acknowledged=list(client.runs.values())))) == []
    return journal
