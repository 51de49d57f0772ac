"""A process that is killed or stopped delays nothing that it was at work with by more than a lease and a second:
runs, messages about waits, callback requests, Jobs, alerts, error workflows, scheduled times."""

from __future__ import annotations

import asyncio
import random
import re
import time
from collections import defaultdict
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final

import httpx
import pytest

from executor.service.notifications.sending import STOP_S
from tests.support.documents import document
from tests.support.endpoints import Request, answer, http
from tests.support.kubernetes import kubernetes
from tests.support.place import Place
from tests.support.server import ServerProcess, free_port
from tests.support.size import size
from tests.support.until import until

pytestmark = [pytest.mark.proof, pytest.mark.timeout(300)]

LEASE_S: Final = 3.0
LATE_S: Final = size(5, 1)  # one is promised; a busy machine has five


class Witness:
    """Answers no first request to an address, and each later one. `asked`: when, by address."""

    def __init__(self) -> None:
        self.asked: dict[str, list[float]] = defaultdict(list)
        self.keys: dict[str, set[str]] = defaultdict(set)

    async def __call__(self, request: Request) -> bytes:
        self.asked[request.target].append(time.monotonic())
        self.keys[request.target].add(request.headers.get("idempotency-key", ""))
        if len(self.asked[request.target]) == 1:
            await asyncio.sleep(600)
        return answer(200)


PAGE: Final = Path(__file__).parents[2] / "docs/reference/reliability.md"
ROWS: Final = {
    "run": "a run",
    "message": "a message about a wait",
    "callback": "the request of a `callback` block",
    "job": "the Job of a `job` block",
    "alert": "an alert",
}
LAGS: Final = ("weft_takeover_lag_seconds", "weft_notification_lag_seconds")


async def watch(url: str, highest: dict[str, float]) -> None:
    """What the metrics say of time without progress beyond the lease."""
    async with httpx.AsyncClient(base_url=url, timeout=60) as client:
        while True:
            text = (await client.get("/metrics")).text
            for name in LAGS:
                found = re.search(rf"^{name} (\S+)$", text, re.MULTILINE)
                assert found is not None
                highest[name] = max(highest.get(name, 0.0), float(found[1]))
            await asyncio.sleep(0.1)


class Fleet:
    """Processes on one database, each of which works, and the witness of what they send."""

    def __init__(self, place: Place, folder: Path, settings: dict[str, str]) -> None:
        self._place = place
        self._folder = folder
        self._settings = settings
        self.processes: list[ServerProcess] = []

    async def start(self) -> ServerProcess:
        port, log = free_port(random.Random()), self._folder / f"log-{len(self.processes)}"
        process = await ServerProcess.start(self._place, port, log, **self._settings)
        self.processes.append(process)
        await process.ready()
        return process


@pytest.fixture(params=["sqlite", "postgres"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Place:
    if request.param == "sqlite":
        return tmp_path / "weft.db"
    pytest.importorskip("psycopg")
    from tests.support.postgres import by_its_clock

    return by_its_clock(request.getfixturevalue("postgres"))


@asynccontextmanager
async def fleet_on(place: Place, folder: Path, witness: Witness | None = None) -> AsyncIterator[tuple[Fleet, str, Any]]:
    """The fleet, the address of the witness, and the cluster that Jobs are created in."""
    async with http(witness or (lambda request: answer(200))) as hook, kubernetes(folder) as (cluster, file):
        settings = {
            "WEFT_LEASE_MS": str(round(LEASE_S * 1000)),
            "WEFT_ALLOW_PRIVATE": "127.0.0.1",
            "WEFT_ALERT_WEBHOOK": f"{hook.url}/alert",
            "WEFT_KUBERNETES": "batch",
            "KUBECONFIG": str(file),
        }
        fleet = Fleet(place, folder, settings)
        try:
            yield fleet, hook.url, cluster
        finally:
            for process in fleet.processes:
                await process.clean_up()


def begin(kind: str, hook: str) -> dict[str, Any]:
    blocks: dict[str, dict[str, Any]] = {
        "message": {"type": "approval", "params": {"title": "Pay?", "notify": {"webhook": f"{hook}/message"}}},
        "callback": {"type": "callback", "params": {"send": {"url": f"{hook}/callback"}}},
        "job": {"type": "job", "params": {"adapter": "kubernetes", "image": "train:1"}},
        "alert": {"type": "function", "params": {"code": "throw new Error('no money')"}},
        "run": {"type": "http", "params": {"url": f"{hook}/run", "timeout_s": 60}},
    }
    return document(kind, "start a", blocks={"a": blocks[kind]})


def test_the_page_has_a_row_for_each() -> None:
    table = PAGE.read_text(encoding="utf-8").split("| at work with |")[1].split("\n\n")[0]
    rows = [line.split(" | ")[0].removeprefix("| ") for line in table.splitlines() if line.startswith("| ")]
    assert rows == list(ROWS.values())


@pytest.mark.parametrize("end", ["kill", "stop"])
async def test_what_a_process_was_sending_is_sent_by_another_within_a_lease(
    place: Place, end: str, tmp_path: Path
) -> None:
    witness = Witness()
    async with fleet_on(place, tmp_path, witness) as (fleet, hook, cluster):
        cluster.hangs = 1
        second = await fleet.start()
        second.freeze()  # so that all is claimed by the first
        first = await fleet.start()
        async with httpx.AsyncClient(base_url=first.url, timeout=60) as client:
            for kind in ROWS:
                (await client.post("/api/runs", json={"document": begin(kind, hook)})).raise_for_status()
        targets = ["/message", "/callback", "/alert", "/run"]
        await until(lambda: all(witness.asked[target] for target in targets) and cluster.asked)
        second.thaw()
        await asyncio.sleep(LEASE_S * 1.5)
        assert all(len(witness.asked[target]) == 1 for target in targets), "the claims last while they are needed"
        assert len(cluster.asked) == 1
        lags: dict[str, float] = {}
        watching = asyncio.create_task(watch(second.url, lags))
        began_s = time.monotonic()
        await (first.kill() if end == "kill" else first.stop(60))
        ended_s = time.monotonic()
        await until(lambda: all(len(witness.asked[target]) >= 2 for target in targets) and cluster.jobs)
        await asyncio.sleep(0.5)
        watching.cancel()
        await asyncio.gather(watching, return_exceptions=True)
        assert set(lags) == set(LAGS) and max(lags.values()) < LATE_S, lags
        late = {target: witness.asked[target][1] - began_s for target in targets}
        late["/job"] = cluster.created_s - began_s
        late["/run"] -= ended_s - began_s  # until then its block may end
        print(f"{end} on {type(place).__name__}: " + ", ".join(f"{key} {late_s:.1f} s" for key, late_s in late.items()))
        assert max(late.values()) < LEASE_S + LATE_S + (STOP_S if end == "stop" else 0), late
        assert all(len(witness.keys[target]) == 1 for target in targets), "the same key in each try"
        async with httpx.AsyncClient(base_url=second.url, timeout=60) as client:
            waits = (await client.get("/api/waits")).json()["waits"]
            sent = {wait["workflow"]: wait["notifications"][0] for wait in waits}
            assert {kind: told["status"] for kind, told in sent.items()} == {
                "message": "sent",
                "callback": "sent",
                "job": "pending",  # as long as its Job works
            }


@pytest.mark.parametrize("end", ["kill", "stop"])
async def test_a_scheduled_time_is_not_late_because_a_process_ends(place: Place, end: str, tmp_path: Path) -> None:
    async with fleet_on(place, tmp_path) as (fleet, _, _):
        second, first = await fleet.start(), await fleet.start()
        async with httpx.AsyncClient(base_url=second.url, timeout=60) as client:
            minutely = document("minutely", blocks={"start": {"type": "schedule", "params": {"cron": "* * * * *"}}})
            (await client.post("/api/workflows", json={"document": minutely})).raise_for_status()
            await asyncio.sleep(max(0.0, 59.7 - time.time() % 60))
            await (first.kill() if end == "kill" else first.stop(60))

            async def started() -> Any:
                return (await client.get("/api/runs", params={"workflow": "minutely"})).json()["runs"]

            await until(started)
            await asyncio.sleep(LEASE_S)
            created = [run["created_at_ms"] % 60_000 / 1000 for run in await started()]
        print(f"{end} on {type(place).__name__}: started {created[0]:.2f} s after its time")
        assert len(created) == 1 and created[0] < LEASE_S + LATE_S, created
