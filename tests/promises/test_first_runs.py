"""The first run of an example is quick and right."""

from __future__ import annotations

import asyncio
import json
import shutil
import time
from pathlib import Path
from typing import Any

import httpx
import pytest

from executor.blocks.http.client import GuardedClient
from executor.blocks.llm.client import ModelClient
from executor.blocks.llm.endpoints import Endpoints
from executor.blocks.sandbox.engine import once
from executor.blocks.sandbox.python import component
from executor.kernel.journal.codec import data_of
from executor.kernel.store.run_rows import EventFilter
from tests.support.documents import document
from tests.support.python_guest import built_python
from tests.support.runs import engine_on
from tests.support.server import SyncServerProcess
from tests.support.until import until

LIBRARY = "pydantic_core"  # the machine code that the library for models brings


def has_loaded(server: SyncServerProcess) -> bool:
    return LIBRARY in Path(f"/proc/{server.pid}/maps").read_text()


@pytest.mark.parametrize(
    "environ", [{"WEFT_MODEL_DEV": "http://127.0.0.1:9/v1"}, {"WEFT_SECRET_OPENAI_API_KEY": "k-1"}]
)
def test_the_library_for_models_is_loaded_before_the_first_call(tmp_path: Path, environ: dict[str, str]) -> None:
    pytest.importorskip(LIBRARY)
    server = SyncServerProcess(tmp_path, {"WEFT_TOKEN": "off", **environ})
    try:
        until = time.monotonic() + 60
        while not has_loaded(server):
            assert time.monotonic() < until, "no call has been made, and it waits for one"
            time.sleep(0.1)
    finally:
        assert server.stop() == 0


def test_without_a_model_it_takes_no_memory(tmp_path: Path) -> None:
    server = SyncServerProcess(tmp_path, {"WEFT_TOKEN": "off"})
    try:
        time.sleep(5)
        assert not has_loaded(server)
    finally:
        assert server.stop() == 0


async def test_the_event_loop_does_not_wait_for_a_library_that_is_being_loaded(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip(LIBRARY)
    models = ModelClient(GuardedClient(), Endpoints({"DEV": "http://127.0.0.1:9/v1"}), {})

    def slowly(name: str) -> None:
        time.sleep(0.5)

    monkeypatch.setattr("executor.blocks.llm.client.import_module", slowly)
    beginning = asyncio.create_task(models._begin())
    turns = 0
    while not beginning.done():
        await asyncio.sleep(0.01)
        turns += 1
    assert turns > 10
    await beginning
    await models.close()


ROOT = Path(__file__).parents[2]


def test_make_installs_and_builds_python_by_a_lock_with_hashes() -> None:
    makefile = (ROOT / "Makefile").read_text()
    assert "weft serve --dev-model --build-python" in makefile and "-r requirements-python.lock" in makefile
    lock = (ROOT / "requirements-python.lock").read_text()
    assert lock.startswith("componentize-py==") and lock.count("--hash=sha256:") > 3
    assert lock in (ROOT / "requirements-dev.lock").read_text()


async def test_a_block_waits_for_a_build_that_has_begun(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    built_python()
    built = component.compiled_file()
    assert built is not None
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    unread: Any = component.component  # this process has read it
    monkeypatch.setattr(component, "component", once(unread.__wrapped__))
    monkeypatch.setattr("executor.blocks.sandbox.python.guest.component", component.component)
    sums = {"type": "function", "params": {"language": "python", "code": "return 1 + 1"}}
    flow = document("sums", "start sum", blocks={"sum": sums})
    async with engine_on(tmp_path / "weft.db") as engine:
        with component.building() as is_ours:
            assert is_ours and component.is_being_built()
            with component.building() as again:
                assert not again, "one at a time"
            assert (await engine.workflows.compile(flow)).diagnostics == []
            run = (await engine.submit(flow)).run

            async def told() -> list[str]:
                records, _ = await engine.events.find(run, EventFilter(limit=50))
                return [str(data_of(record)["message"]) for record in records if record.type == "node.log"]

            assert "Python is being built on this machine" in (await until(told))[0]
            assert (await engine.runs.view(run)).status == "running"
            target = component.compiled_file()
            assert target is not None and target != built
            shutil.copy2(built, target.with_suffix(".part"))
            target.with_suffix(".part").rename(target)
        assert not component.is_being_built()
        ended = await engine.runs.wait_finished(run, 60)
    assert ended.status == "succeeded", ended.error
    assert ended.output["result"] == 2


def test_a_server_builds_python_in_the_background_and_stops_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cache, work = tmp_path / "cache", tmp_path / "work"
    work.mkdir()
    environ = {"WEFT_TOKEN": "off", "XDG_CACHE_HOME": str(cache), "TMPDIR": str(work)}
    server = SyncServerProcess(tmp_path, environ, options=("--build-python",))
    monkeypatch.setenv("XDG_CACHE_HOME", str(cache))
    try:
        ends = time.monotonic() + 60
        while not component.is_being_built() or not list(work.glob("weft-python-*")):
            assert time.monotonic() < ends
            time.sleep(0.05)
        assert httpx.get(f"{server.url}/healthz").status_code == 200
    finally:
        assert server.stop() == 0
    ends = time.monotonic() + 30
    while component.is_being_built() or list(work.glob("weft-python-*")):
        assert time.monotonic() < ends, "what was begun is left"
        time.sleep(0.05)
    assert not component.is_built()


# Those that do not end by themselves: a person or another program is asked, or a time has to come.
WAITING = {"agent", "child-run", "durable-demo", "expense-approval", "review-loop"}
UNCONNECTED = "oauth-orders"  # its page tells which connection to create first
# What a request and a visitor send.
SENT = {"signed-orders": {"body": {"item": "paper", "amount": 12}}, "chat": {"message": "Which tea has no caffeine?"}}
FILES = {"sheet": "sales.csv", "receipt": "receipt.png"}


def test_every_example_runs_green_at_the_first_try_on_a_fresh_database(tmp_path: Path) -> None:
    """All at once, on a server as `make serve` starts it, with the values that its forms begin with."""
    built_python()
    pytest.importorskip(LIBRARY)
    server = SyncServerProcess(tmp_path, {"WEFT_TOKEN": "off"}, options=("--dev-model", "--build-python"))
    try:
        with httpx.Client(base_url=server.url, timeout=60, trust_env=False) as client:
            examples = {path.stem: json.loads(path.read_text()) for path in (ROOT / "examples").glob("*.json")}
            for name, flow in examples.items():  # some run others
                assert client.post("/api/workflows", json=flow).status_code == 201, name
            runs = {}
            for name, flow in examples.items():
                asked = {"input": SENT.get(name) or first_input(client, flow)}
                started = client.post(f"/api/workflows/{name}/runs", json=asked)
                assert started.status_code == 202, (name, started.text)
                runs[name] = started.json()["run"]
            ends = time.monotonic() + 120
            found: dict[str, Any] = {}
            while len(found) < len(runs):
                assert time.monotonic() < ends, runs.keys() - found.keys()
                for name, run in runs.items():
                    view = client.get(f"/api/runs/{run}").json()
                    if view["status"] in ("succeeded", "failed", "cancelled") or (
                        view["status"] == "waiting" and name in WAITING
                    ):
                        found[name] = view
                time.sleep(0.5)
    finally:
        server.stop()
    unconnected = found.pop(UNCONNECTED)["error"]
    assert unconnected["code"] == "connection_unknown" and "Settings" in unconnected["hint"]
    assert {name: view["error"] for name, view in found.items() if view["error"] is not None} == {}


def first_input(client: httpx.Client, flow: dict[str, Any]) -> dict[str, Any]:
    """What the form of a run begins with; files are uploaded."""
    found: dict[str, Any] = {}
    for name, field in ((flow.get("input") or {}).get("properties") or {}).items():
        if field.get("format") == "file":
            content = (ROOT / "examples" / "files" / FILES[name]).read_bytes()
            headers = {"content-type": "application/octet-stream"}
            found[name] = client.post(
                "/api/files", params={"name": FILES[name]}, content=content, headers=headers
            ).json()
        elif "default" in field or field.get("examples"):
            found[name] = field.get("default", (field.get("examples") or [None])[0])
    return found
