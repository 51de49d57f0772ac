"""A run that waits outlives its server: links stay valid, work continues where it was, and nothing is done again."""

from __future__ import annotations

import asyncio
import random
import time
from collections import Counter
from functools import partial
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.e2e.crash.altered import Wall
from tests.e2e.crash.conftest import ON_A_FILE, Servers
from tests.support.documents import document
from tests.support.journal import Journal
from tests.support.server import ServerProcess, free_port
from tests.support.service import Service
from tests.support.until import until

HOUR_S = 3_600
FORM = {"type": "object", "properties": {"note": {"type": "string"}}}


def ask(title: str, parent: str | None = None) -> dict[str, Any]:
    block: dict[str, Any] = {"type": "approval", "params": {"title": title, "fields": FORM}}
    return block | ({"parent": parent} if parent else {})


def call(service: Service, name: str) -> dict[str, Any]:
    return {
        "type": "http",
        "params": {
            "method": "POST",
            "idempotency_header": "Idempotency-Key",
            "url": f"{service.url}/{name}",
            "body": {},
        },
    }


def asking_between_calls(service: Service) -> dict[str, Any]:
    blocks = {"before": call(service, "before"), "ask": ask("Go on?")}
    return document(
        "resume", "start before", "before ask", "ask after", blocks=blocks | {"after": call(service, "after")}
    )


def two_in_parallel(service: Service) -> dict[str, Any]:
    """Branches of a parallel; each calls before it asks."""
    blocks = {
        "fan": {"type": "parallel", "params": {"mode": "count", "count": 2}},
        "before": call(service, "before") | {"parent": "fan"},
        "ask": ask("Branch <parallel.index>?", "fan"),
        "after": call(service, "after"),
    }
    return document("resume", "start fan", "fan body before", "before ask", "fan after", blocks=blocks)


def two_side_by_side(service: Service) -> dict[str, Any]:
    """Plain branches that meet again."""
    blocks = {"left": ask("Left?"), "right": ask("Right?"), "after": call(service, "after")}
    return document("resume", "start left", "start right", "left after", "right after", blocks=blocks)


async def run_until_it_waits(server: ServerProcess, workflow: dict[str, Any]) -> str:
    async with httpx.AsyncClient(base_url=server.url, timeout=30) as client, asyncio.timeout(60):
        begun = await client.post("/api/runs", json={"document": workflow})
        run = str(begun.json()["run"])
        while (status := (await client.get(f"/api/runs/{run}")).json()["status"]) != "waiting":
            assert status in ("queued", "running"), status
            await asyncio.sleep(0.02)
        return run


async def links(server: ServerProcess, run: str) -> dict[str, str]:
    """Path of each open link, by wait key."""
    async with httpx.AsyncClient(base_url=server.url, timeout=30) as client:
        waits = (await client.get("/api/waits", params={"run": run})).json()["waits"]
    return {wait["key"]: httpx.URL(wait["link"]).path for wait in waits}


async def press(server: ServerProcess, link: str, by: str = "Ada", note: str = "fine") -> httpx.Response:
    async with httpx.AsyncClient(base_url=server.url, timeout=30) as client:
        return await client.post(link, json={"action": "approve", "by": by, "fields": {"note": note}})


async def ended(server: ServerProcess, run: str, timeout_s: float = 60) -> dict[str, Any]:
    """The run, once it has come to its end."""
    async with httpx.AsyncClient(base_url=server.url, timeout=30) as client, asyncio.timeout(timeout_s):
        while True:
            view: dict[str, Any] = (await client.get(f"/api/runs/{run}")).json()
            if view["status"] in ("succeeded", "failed", "cancelled"):
                return view
            await asyncio.sleep(0.02)


async def test_an_open_approval_continues_where_it_was(servers: Servers, service: Service) -> None:
    servers.allow(service)
    server = await servers.start()
    run = await run_until_it_waits(server, asking_between_calls(service))
    before = await links(server, run)
    await server.kill()
    assert Journal(servers.db).runs[run]["lease_owner"] is None, (
        "the next server would have to wait for its lease to lapse"
    )

    server = await servers.start()
    assert await links(server, run) == before
    assert (await press(server, before["ask"])).status_code == 200
    view = await ended(server, run)
    assert view["status"] == "succeeded"
    assert await server.stop(30) == 0

    journal = Journal(servers.db)
    journal.results_are_recorded_once()
    assert journal.started(run) == Counter(["start", "before", "ask", "after"])
    assert [(made.path, made.key) for made in service.calls] == [
        ("/before", f"{run}:before"),
        ("/after", f"{run}:after"),
    ]


async def test_a_reminder_is_sent_once_by_the_servers_that_follow(servers: Servers, service: Service) -> None:
    """The one that asked is killed before it is due, and both that follow after they have sent it."""
    servers.allow(service)
    asking = {"title": "Go on?", "expires_in_s": 3600, "remind_before_s": 3594}
    block = {"type": "approval", "params": {**asking, "notify": {"webhook": f"{service.url}/told"}}}
    server = await servers.start()
    run = await run_until_it_waits(server, document("remind", "start ask", blocks={"ask": block}))

    async def sent(count: int) -> bool:
        async with httpx.AsyncClient(base_url=both[0].url, timeout=30) as client:
            (wait,) = (await client.get("/api/waits", params={"run": run})).json()["waits"]
        return [one["status"] for one in wait["notifications"][:count]] == ["sent"] * count

    both = [server]
    await until(partial(sent, 1))
    await server.kill()

    both = [await servers.start(), await servers.start(free_port(random.Random()))]
    await until(partial(sent, 2))
    for server in both:
        await server.kill()

    await servers.start()
    await asyncio.sleep(2.5)  # two leases: time to send it again
    assert [(call.key, call.body["event"]) for call in service.calls] == [
        (f"{run}:ask!1", "wait.opened"),
        (f"{run}:ask!1:reminder", "wait.reminder"),
    ]


@pytest.mark.parametrize("shape", [two_in_parallel, two_side_by_side])
async def test_sibling_approvals_are_answered_one_by_one_over_restarts(
    servers: Servers, service: Service, shape: Any
) -> None:
    servers.allow(service)
    server = await servers.start()
    run = await run_until_it_waits(server, shape(service))
    both = await links(server, run)
    (first, first_link), (second, second_link) = sorted(both.items())
    await server.kill()

    server = await servers.start()
    assert await links(server, run) == both
    assert (await press(server, first_link, by="Ada", note="one")).status_code == 200
    await server.kill()  # the answer is acknowledged, and that is all we know

    server = await servers.start()
    assert await links(server, run) == {second: second_link}
    late = await press(server, first_link, by="Bob")
    assert (late.status_code, late.json()["answered_by"]) == (409, "Ada")
    assert (await press(server, second_link, by="Eve", note="two")).status_code == 200
    view = await ended(server, run)
    assert view["status"] == "succeeded"
    assert await server.stop(30) == 0

    journal = Journal(servers.db)
    journal.results_are_recorded_once()
    # The answered wait was taken while its server was killed; whichever block that hit, the asking ones ran once.
    started = journal.started(run)
    assert (started[first], started[second]) == (1, 1)
    answered = {wait["id"].rpartition("!")[0]: wait["answered_by"] for wait in journal.waits.values()}
    assert answered == {first: "Ada", second: "Eve"}
    assert Counter(made.key for made in service.calls)[f"{run}:after"] == 1


async def test_a_second_press_learns_who_was_first_and_when(servers: Servers, service: Service) -> None:
    servers.allow(service)
    server = await servers.start()
    run = await run_until_it_waits(server, asking_between_calls(service))
    link = (await links(server, run))["ask"]
    first = (await press(server, link)).json()
    await server.kill()

    server = await servers.start()
    late = await press(server, link, by="Bob")
    assert late.status_code == 409
    told = late.json()
    assert (told["code"], told["answered_by"], told["answered_at_ms"]) == (
        "already_answered",
        "Ada",
        first["answered_at_ms"],
    )
    assert told["answer"] == {"note": "fine", "action": "approve"}
    when = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(first["answered_at_ms"] / 1000))
    async with httpx.AsyncClient(base_url=server.url, timeout=30) as client:
        for page, status in (
            (await client.post(link, data={"action": "reject", "by": "Bob"}), 409),
            (await client.get(link), 200),
        ):
            assert page.status_code == status
            assert "already answered by Ada" in page.text
            assert when in page.text
    assert (await ended(server, run))["status"] == "succeeded"


@ON_A_FILE  # with PostgreSQL the time is that of its server, which a test cannot set
async def test_a_timer_that_came_due_meanwhile_fires_at_the_start(servers: Servers, tmp_path: Path) -> None:
    """So early that the server hardly takes calls yet; nevertheless the run may call this very server, in one try."""
    servers.alter(ALTERED_CLOCK=str(tmp_path / "clock"))
    wall = Wall(tmp_path / "clock")
    sleep = {"type": "wait", "params": {"seconds": HOUR_S}}
    params = {
        "method": "POST",
        "idempotency_header": "Idempotency-Key",
        "url": "${WEFT_BASE_URL}/demo/echo",
        "body": {},
    }
    echo = {"type": "http", "params": params, "policy": {"retry": {"max_attempts": 1}}}
    workflow = document("resume", "start sleep", "sleep after", blocks={"sleep": sleep, "after": echo})
    server = await servers.start()
    runs = await asyncio.gather(*(run_until_it_waits(server, workflow) for _ in range(5)))
    await server.kill()
    wall.step(HOUR_S)

    server = await servers.start()
    ready_ms = wall.now_ms()
    for run in runs:
        view = await ended(server, run)
        assert view["status"] == "succeeded", view["error"]
    assert await server.stop(30) == 0
    journal = Journal(servers.db)
    for run in runs:
        assert journal.started(run) == Counter(["start", "sleep", "after"])
        (fired,) = (row["at_ms"] for row in journal.events[run] if row["type"] == "wait.closed")
        assert fired < ready_ms + 4_000, "not at the start, but when an idle server looks at its database: every 5 s"
