"""What a worker shows of itself, on loopback."""

from __future__ import annotations

import logging
from typing import Any, cast

import httpx
import pytest

from executor.engine import Figures
from executor.errors import DatabaseUnavailable
from server.metrics import Metrics


@pytest.fixture(autouse=True)
def access_log(monkeypatch: pytest.MonkeyPatch) -> None:
    """uvicorn switches it off for the whole process: tests behind these have it again."""
    log = logging.getLogger("uvicorn.access")
    monkeypatch.setattr(log, "propagate", log.propagate)
    monkeypatch.setattr(log, "handlers", log.handlers)


class Process:
    """The engine of a worker, as far as metrics see it."""

    healthy_as: Exception | None = None

    async def healthy(self) -> None:
        if self.healthy_as is not None:
            raise self.healthy_as

    @property
    def figures(self) -> Figures:
        return Figures(runs=3, attempts=2, claims=7, commits=40)


async def test_numbers_are_in_the_format_of_prometheus() -> None:
    metrics = Metrics()
    metrics.engine, metrics.lag_s = cast(Any, Process()), 0.25
    await metrics.listen(0)
    try:
        async with httpx.AsyncClient(base_url=f"http://127.0.0.1:{metrics.port}") as client:
            answer = await client.get("/metrics")
            assert answer.headers["content-type"].startswith("text/plain; version=0.0.4")
            values = dict(line.split(" ") for line in answer.text.splitlines() if not line.startswith("#"))
            assert values == {
                "weft_worker_draining": "0",
                "weft_event_loop_lag_seconds": "0.25",
                "weft_runs_active": "3",
                "weft_attempts_active": "2",
                "weft_claims_total": "7",
                "weft_commits_total": "40",
            }
            assert answer.text.count("# TYPE ") == answer.text.count("# HELP ") == len(values)
            statuses = [(await client.request(method, path)).status_code for method, path in _OTHERS]
            assert statuses == [404, 405, 200]
    finally:
        await metrics.close()


_OTHERS = (("GET", "/"), ("POST", "/metrics"), ("HEAD", "/metrics"))


@pytest.mark.parametrize(
    ("state", "status"),
    [({}, 200), ({"engine": None}, 503), ({"draining": True}, 503), ({"healthy_as": DatabaseUnavailable("gone")}, 503)],
)
async def test_health_is_that_of_the_database_until_the_worker_stops(state: dict[str, Any], status: int) -> None:
    metrics, process = Metrics(), Process()
    process.healthy_as = state.pop("healthy_as", None)
    metrics.engine = cast(Any, process)
    for name, value in state.items():
        setattr(metrics, name, value)
    assert (await metrics._healthy())[0] == status
