"""The server as a process: it starts, follows, survives kill -9, and stops when told."""

from __future__ import annotations

import random
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import httpx_sse
import pytest

from tests.support.server import SyncServerProcess

Start = Callable[..., Any]
SSE = {"accept": "text/event-stream"}


def start_run(client: httpx.Client, document: dict[str, Any]) -> str:
    """Start it and come back when it waits."""
    answer = client.post("/api/runs?wait=60", json={"document": document})
    assert (answer.status_code, answer.json()["status"]) == (202, "waiting"), answer.text
    return str(answer.json()["run"])


def link_of(client: httpx.Client, run: str) -> str:
    (wait,) = client.get("/api/waits", params={"run": run}).json()["waits"]
    return str(wait["link"])


def read_events(client: httpx.Client, run: str, after: int = 0, count: int | None = None) -> list[dict[str, Any]]:
    """Follow until the stream ends, or until `count` events have come (then the connection is dropped)."""
    events: list[dict[str, Any]] = []
    headers = {"last-event-id": str(after)} if after else {}
    with httpx_sse.connect_sse(client, "GET", f"/api/runs/{run}/events", headers=headers, timeout=90) as source:
        for event in journal(source):
            events.append(event)
            if len(events) == count:
                break
    return events


def journal(source: httpx_sse.EventSource) -> Iterator[dict[str, Any]]:
    """The frames with data; the reconnection hint comes as a frame of its own."""
    return (frame.json() for frame in source.iter_sse() if frame.data)


def test_from_start_to_stop(start_server: Start, asking: dict[str, Any]) -> None:
    server = start_server()
    with httpx.Client(base_url=server.url, timeout=90) as client:
        assert client.get("/healthz").json() == {"status": "ok"}
        run = start_run(client, asking)
        answered = client.post(link_of(client, run), data={"field.note": "go", "action": "approve", "by": "Ada"})
        assert answered.status_code == 200 and "Thank you. Your answer “Approve” was recorded." in answered.text
        events = read_events(client, run)
        assert [event["seq"] for event in events] == list(range(1, len(events) + 1))
        assert [event["type"] for event in events if event["block"] == "call"].count("retry.scheduled") == 2
        assert (events[-1]["type"], events[-1]["data"]["status"]) == ("run.finished", "succeeded")
        output = client.get(f"/api/runs/{run}").json()["output"]
        assert output["body"]["body"] == {"note": "go"} and output["body"]["call"] == 3
    assert server.stop() == 0


def test_events_come_live_to_a_reader_that_waits(server: SyncServerProcess, asking: dict[str, Any]) -> None:
    with (
        httpx.Client(base_url=server.url, timeout=90) as client,
        httpx.Client(base_url=server.url, timeout=90) as other,
    ):
        run = start_run(client, asking)
        link = link_of(client, run)
        with httpx_sse.connect_sse(client, "GET", f"/api/runs/{run}/events", timeout=90) as source:
            seen = []
            for event in journal(source):
                seen.append(event)
                if seen[-1]["type"] == "run.parked":
                    assert other.post(link, json={"action": "approve", "fields": {"note": "x"}}).status_code == 200
        assert seen[-1]["type"] == "run.finished"
        assert [event["seq"] for event in seen] == list(range(1, len(seen) + 1))


def test_any_sequence_of_lost_connections_gives_the_same_transcript(
    server: SyncServerProcess, asking: dict[str, Any]
) -> None:
    with httpx.Client(base_url=server.url, timeout=90) as client:
        run = start_run(client, asking)
        client.post(link_of(client, run), json={"action": "approve", "fields": {"note": "x"}})
        whole = read_events(client, run)
        choose = random.Random(7)
        for _ in range(20):
            pieces: list[dict[str, Any]] = []
            while not pieces or pieces[-1]["type"] != "run.finished":
                after = pieces[-1]["seq"] if pieces else 0
                pieces += read_events(client, run, after, choose.randint(1, 4))
            assert pieces == whole


def test_a_resume_link_outlives_kill_9(start_server: Start, asking: dict[str, Any]) -> None:
    first = start_server()
    with httpx.Client(base_url=first.url, timeout=90) as client:
        run = start_run(client, asking)
        link = link_of(client, run)
        before = read_events(client, run, count=3)
    first.kill()
    second = start_server()
    with httpx.Client(base_url=second.url, timeout=90) as client:
        page = client.get(httpx.URL(link).path)
        assert page.status_code == 200 and "Go on?" in page.text
        assert client.post(httpx.URL(link).path, data={"action": "approve", "by": "Ada"}).status_code == 200
        late = client.post(httpx.URL(link).path, data={"action": "reject", "by": "Bob"})
        assert late.status_code == 409 and "already answered by Ada" in late.text
        events = before + read_events(client, run, after=before[-1]["seq"])
        assert [event["seq"] for event in events] == list(range(1, len(events) + 1))
        assert events[-1]["data"]["status"] == "succeeded"


def test_stopping_ends_streams_and_long_waits_at_once(start_server: Start, asking: dict[str, Any]) -> None:
    server = start_server()
    with httpx.Client(base_url=server.url, timeout=90) as client:
        run = start_run(client, asking)
        with httpx_sse.connect_sse(client, "GET", f"/api/runs/{run}/events", timeout=90) as source:
            events = journal(source)
            assert next(events)["type"] == "run.started"
            began = time.monotonic()
            server.signal_stop()
            rest = list(events)  # ends properly, not with a broken connection
            assert time.monotonic() - began < 30
            assert rest[-1]["type"] != "run.finished"
    assert server.stop() == 0
    assert time.monotonic() - began < 60


def test_streams_are_bounded_for_each_run(server: SyncServerProcess, asking: dict[str, Any]) -> None:
    limits = httpx.Limits(max_connections=200, max_keepalive_connections=200)
    with httpx.Client(base_url=server.url, limits=limits, timeout=90) as client:
        run = start_run(client, asking)
        opened = [
            client.send(client.build_request("GET", f"/api/runs/{run}/events", headers=SSE), stream=True)
            for _ in range(100)
        ]
        assert {response.status_code for response in opened} == {200}
        refused = client.get(f"/api/runs/{run}/events", headers=SSE)
        assert (refused.status_code, refused.json()["code"]) == (429, "too_many_streams")
        assert int(refused.headers["retry-after"]) > 0
        for response in opened:
            response.close()
        deadline = time.monotonic() + 60
        while True:  # the server notices closed connections a moment later
            with client.stream("GET", f"/api/runs/{run}/events", headers=SSE) as again:
                if again.status_code == 200:
                    break
            assert time.monotonic() < deadline
            time.sleep(0.05)


def test_the_token_guards_the_api_over_the_wire(start_server: Start, asking: dict[str, Any]) -> None:
    server = start_server(WEFT_TOKEN="a-long-token")
    with httpx.Client(base_url=server.url, timeout=90) as client:
        assert client.get("/api/runs").status_code == 401
        assert client.get("/healthz").status_code == 200
        assert client.get("/").status_code == 401
        assert client.post("/login", json={"token": "a-long-token"}).status_code == 200
        assert client.get("/api/runs").status_code == 200
    with httpx.Client(base_url=server.url, headers={"authorization": "Bearer a-long-token"}, timeout=90) as client:
        run = start_run(client, asking)
        assert httpx.get(link_of(client, run), timeout=90).status_code == 200
    assert httpx.get(f"{server.url}/api/runs", headers={"host": "evil.test"}, timeout=90).status_code == 421


@pytest.mark.parametrize(
    "environ",
    [{"WEFT_HOST": "0.0.0.0", "WEFT_TOKEN": "off"}, {"WEFT_PORT": "none"}, {"WEFT_HOST": "192.0.2.1"}],
    ids=["open without a token", "no port", "not our address"],
)
def test_what_cannot_start_says_why_and_ends_with_2(tmp_path: Path, environ: dict[str, str]) -> None:
    done = subprocess.run(
        [sys.executable, "-c", "import sys; from server.process import serve; sys.exit(serve())"],
        cwd=Path(__file__).parents[2],
        env={"PATH": "/usr/bin:/bin", "WEFT_DB": str(tmp_path / "weft.db"), "WEFT_PORT": "0", **environ},
        capture_output=True,
        text=True,
        timeout=90,
        check=False,
    )
    assert done.returncode == 2
    assert "WEFT_" in done.stderr or "cannot listen" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_file_that_is_no_database_is_reported_with_the_next_step(tmp_path: Path) -> None:
    (tmp_path / "notes.db").write_text("these are notes, not a database. " * 100)
    done = subprocess.run(
        [sys.executable, "-c", "import sys; from server.process import serve; sys.exit(serve())"],
        cwd=Path(__file__).parents[2],
        env={"PATH": "/usr/bin:/bin", "WEFT_DB": str(tmp_path / "notes.db"), "WEFT_PORT": "0"},
        capture_output=True,
        text=True,
        timeout=90,
        check=False,
    )
    assert done.returncode == 1
    assert "cannot open" in done.stderr and "file is not a database" in done.stderr
    assert "--db or WEFT_DB" in done.stderr and "weft restore" in done.stderr
    assert "Traceback" not in done.stderr


STOPPED_MEANWHILE = """
import os, signal, sys
from server import process, start
from server.settings import load_settings
build = start.build_engine

async def build_and_stop(settings, **how):
    # takes long when the file is copied for a new schema, or locked by another process
    engine = await build(settings, **how)
    os.kill(os.getpid(), signal.SIGTERM)
    return engine

start.build_engine = build_and_stop
sys.exit(process.serve(load_settings()))
"""


def test_a_stop_during_the_start_stops_the_server(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", STOPPED_MEANWHILE],
        cwd=Path(__file__).parents[2],
        env={"PATH": "/usr/bin:/bin", "WEFT_DB": str(tmp_path / "weft.db"), "WEFT_PORT": "0"},
        capture_output=True,
        text=True,
        timeout=90,
        check=False,
    )
    assert (done.returncode, done.stdout) == (0, ""), done.stderr
