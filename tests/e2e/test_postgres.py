"""Servers on one PostgreSQL database: runs, answers and links on any of them, and a server that is killed."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import httpx_sse
import pytest

pytest.importorskip("psycopg")

from tests.support.server import SyncServerProcess

Start = Callable[..., SyncServerProcess]
SHARED = {"WEFT_SECRET_KEY": "k" * 32, "WEFT_LEASE_MS": "1500"}


@pytest.fixture
def start(postgres: str, start_server: Start) -> Start:
    return lambda **environ: start_server(WEFT_DB=postgres, **SHARED, **environ)


def test_a_run_continues_in_another_server(start: Start, asking: dict[str, Any], tmp_path: Path) -> None:
    first, second = start(), start()
    with (
        httpx.Client(base_url=first.url, timeout=90) as client,
        httpx.Client(base_url=second.url, timeout=90) as other,
    ):
        created = client.post("/api/runs?wait=60", json={"document": asking})
        assert (created.status_code, created.json()["status"]) == (202, "waiting"), created.text
        run = created.json()["run"]
        (wait,) = client.get("/api/waits", params={"run": run}).json()["waits"]
        first.kill()
        link = httpx.URL(wait["link"]).path  # sealed with the key that both have
        assert other.post(link, json={"action": "approve", "fields": {"note": "x"}}).status_code == 200
        again = other.post(link, json={"action": "reject", "fields": {"note": "y"}})
        assert again.status_code == 409, again.text
        events = _until_the_end(other, run)
        assert events[-1]["data"]["status"] == "succeeded"
        assert other.get(f"/api/runs/{run}").json()["output"]["body"]["body"] == {"note": "x"}
        third = start()
        with httpx.Client(base_url=third.url, timeout=90) as late:
            assert _until_the_end(late, run) == events
    assert not list(tmp_path.glob("weft.*")), "a key, a token or a file beside a database that servers share"
    assert second.stop() == third.stop() == 0


def test_runs_of_one_server_are_followed_at_another(start: Start) -> None:
    first, second = start(), start()
    document = {
        "format": "weft/1",
        "name": "chain",
        "blocks": {"start": {"type": "start"}, "a": {"type": "wait", "params": {"seconds": 1}}, "b": {"type": "set"}},
        "edges": [{"source": "start", "target": "a"}, {"source": "a", "target": "b"}],
    }
    with (
        httpx.Client(base_url=first.url, timeout=90) as client,
        httpx.Client(base_url=second.url, timeout=90) as other,
    ):
        headers = {"idempotency-key": "once"}
        asked = [each.post("/api/runs", json={"document": document}, headers=headers) for each in (client, other)]
        assert asked[0].json()["run"] == asked[1].json()["run"], "the key counts for all servers"
        events = _until_the_end(other, asked[0].json()["run"])
        assert [event["seq"] for event in events] == list(range(1, len(events) + 1))
        assert events[-1]["data"]["status"] == "succeeded"
        assert client.get("/healthz").json() == {"status": "ok"}
    assert first.stop() == second.stop() == 0


def _until_the_end(client: httpx.Client, run: str) -> list[dict[str, Any]]:
    """Its events, as a stream has them."""
    with httpx_sse.connect_sse(client, "GET", f"/api/runs/{run}/events", timeout=90) as source:
        return [frame.json() for frame in source.iter_sse() if frame.data]
