"""The cleanups of an example under kill -9: the next server finishes each one, also in a run that is cancelled."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.e2e.crash.conftest import Servers
from tests.support.journal import Journal, key_of, log_is_clean
from tests.support.server import ServerProcess
from tests.support.service import Call, Service
from tests.support.until import until

pytestmark = pytest.mark.proof

EXAMPLE = Path(__file__).parents[3] / "examples" / "cleanup.json"
SESSIONS = 3


def calling(service: Service) -> dict[str, Any]:
    """The example, with cleanups that call the test's service."""
    document: dict[str, Any] = json.loads(EXAMPLE.read_text())
    for block in ("close", "report"):
        assert document["blocks"][block]["params"]["url"] == "${WEFT_BASE_URL}/demo/echo"
        document["blocks"][block]["params"]["url"] = f"{service.url}/{block}"
    return document


@pytest.mark.parametrize("place", ["sqlite", "postgres"], indirect=True)
@pytest.mark.parametrize("end", ["succeeded", "cancelled"])
async def test_cleanups_are_finished_after_a_kill(servers: Servers, service: Service, end: str) -> None:
    servers.allow(service)
    service.holds |= {"/close", "/report"}
    server = await servers.start()

    async def ask(method: str, path: str, body: Any = None) -> dict[str, Any]:
        async with httpx.AsyncClient(base_url=server.url, timeout=30) as client:
            response = await client.request(method, path, json=body)
            assert response.status_code in (200, 202), response.text
            return dict(response.json())

    async def killed_during(name: str, calls: int) -> ServerProcess:
        """The server dies in these calls; the next one makes them again and gets their answers."""
        await server.kill()
        before = len(service.calls)
        following = await servers.start()
        await until(lambda: [call.path for call in service.calls[before:]] == [name] * calls)
        service.release()
        return following

    run = (await ask("POST", "/api/runs", {"document": calling(service)}))["run"]
    await until(lambda: len(service.held()) == SESSIONS)
    if end == "cancelled":
        await ask("POST", f"/api/runs/{run}/cancel", {})
    server = await killed_during("/close", SESSIONS)
    await until(lambda: [call.path for call in service.held()] == ["/report"])
    server = await killed_during("/report", 1)
    async with asyncio.timeout(60):
        while (view := await ask("GET", f"/api/runs/{run}"))["status"] != end:
            assert view["status"] in ("queued", "running", "waiting", "cancelling"), view
            await asyncio.sleep(0.05)
    assert await server.stop(30) == 0

    assert sorted(call.body["close"] for call in first_of_each(service, "/close")) == [
        f"session-{n}" for n in range(SESSIONS)
    ]
    (report,) = first_of_each(service, "/report")
    done = report.body["done"]
    assert done is None if end == "cancelled" else [isinstance(order, dict) for order in done] == [False, True, False]
    journal = Journal(servers.db)
    journal.is_sound()
    journal.is_dense()
    opened = [key_of(event) for event in journal.events[run] if event["type"] == "cleanup.opened"]
    assert sorted(opened) == [*(f"session:end@each[{n}]" for n in range(SESSIONS)), "start"]
    if end == "succeeded":
        journal.all_succeeded()
        journal.results_are_recorded_once()
    log_is_clean(servers.log)


def first_of_each(service: Service, path: str) -> list[Call]:
    """One call for each idempotency key: it was made again with the same key."""
    return list({call.key: call for call in reversed(service.calls) if call.path == path}.values())
