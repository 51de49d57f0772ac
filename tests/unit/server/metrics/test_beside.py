"""What a process shows of itself, on loopback."""

from __future__ import annotations

import logging
from typing import Any, cast

import httpx
import pytest

from executor.errors import DatabaseReplaced, DatabaseUnavailable
from executor.open.engine import Engine
from server.metrics import ProcessMeters
from server.metrics.beside import Metrics


@pytest.fixture(autouse=True)
def access_log(monkeypatch: pytest.MonkeyPatch) -> None:
    """uvicorn switches it off for the whole process: tests behind these have it again."""
    log = logging.getLogger("uvicorn.access")
    monkeypatch.setattr(log, "propagate", log.propagate)
    monkeypatch.setattr(log, "handlers", log.handlers)


async def test_numbers_are_in_the_format_of_prometheus(engine: Engine) -> None:
    metrics = Metrics(ProcessMeters())
    metrics.engine = engine
    metrics.process.ticked(0.25)
    await metrics.listen(0)
    try:
        async with httpx.AsyncClient(base_url=f"http://127.0.0.1:{metrics.port}") as client:
            answer = await client.get("/metrics")
            assert answer.headers["content-type"].startswith("text/plain; version=0.0.4")
            values = dict(line.rsplit(" ", 1) for line in answer.text.splitlines() if not line.startswith("#"))
            assert values["weft_event_loop_lag_seconds"] == "0.25"
            assert values["weft_worker_draining"] == values["weft_runs_active"] == "0.0"
            assert values["weft_database_up"] == "1.0"
            statuses = [(await client.request(method, path)).status_code for method, path in _OTHERS]
            assert statuses == [404, 405, 200]
    finally:
        await metrics.close()


async def test_it_listens_on_the_address_that_it_is_given(engine: Engine) -> None:
    """127.0.0.2 is loopback as well, and not where the default listens."""
    metrics = Metrics(ProcessMeters())
    metrics.engine = engine
    await metrics.listen(0, "127.0.0.2")
    try:
        assert metrics.address == f"127.0.0.2:{metrics.port}"
        async with httpx.AsyncClient() as client:
            assert (await client.get(f"http://{metrics.address}/metrics")).status_code == 200
            with pytest.raises(httpx.ConnectError):
                await client.get(f"http://127.0.0.1:{metrics.port}/metrics")
    finally:
        await metrics.close()


_OTHERS = (("GET", "/"), ("POST", "/metrics"), ("HEAD", "/metrics"))


class Process:
    """The engine of a worker, as far as health sees it."""

    healthy_as: Exception | None = None
    readable_as: Exception | None = None

    async def readable(self) -> None:
        if self.readable_as is not None:
            raise self.readable_as

    async def healthy(self) -> None:
        if self.healthy_as is not None:
            raise self.healthy_as


@pytest.mark.parametrize(
    ("state", "status"),
    [
        ({}, 200),
        ({"engine": None}, 503),
        ({"draining": True}, 503),
        ({"readable_as": DatabaseUnavailable("gone")}, 503),
    ],
)
async def test_readiness_is_that_of_the_database_until_the_worker_stops(state: dict[str, Any], status: int) -> None:
    assert (await _beside(state)._ready(cast(Any, None))).status_code == status


@pytest.mark.parametrize(
    ("state", "status"),
    [
        ({}, 200),
        ({"engine": None}, 200),
        ({"draining": True}, 200),
        ({"readable_as": DatabaseUnavailable("gone")}, 200),
        ({"healthy_as": DatabaseReplaced("another file")}, 503),
    ],
)
async def test_a_worker_is_alive_until_only_another_start_helps(state: dict[str, Any], status: int) -> None:
    assert (await _beside(state)._alive(cast(Any, None))).status_code == status


def _beside(state: dict[str, Any]) -> Metrics:
    metrics, process = Metrics(ProcessMeters()), Process()
    process.healthy_as, process.readable_as = state.get("healthy_as"), state.get("readable_as")
    metrics.process.draining = state.get("draining", False)
    metrics.engine = None if "engine" in state else cast(Any, process)
    return metrics
