"""`weft rerun`: from a block, and with a repaired version; and `weft retry`, which points to that."""

from __future__ import annotations

import json
from collections.abc import Iterator

import httpx
import pytest
from click.testing import CliRunner, Result

from server import cli
from server.cli.common import Refused
from tests.support.documents import Json, in_a_row, value
from tests.support.server import SyncServerProcess


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SyncServerProcess]:
    process = SyncServerProcess(tmp_path_factory.mktemp("server"), {})
    try:
        yield process
    finally:
        process.kill()


def flow(code: str) -> Json:
    work = {"type": "function", "params": {"code": code}}
    return in_a_row(
        "orders", {"a": value("A"), "b": {**work, "policy": {"retry": {"max_attempts": 1}}}, "c": value("<b>")}
    )


def weft(server: SyncServerProcess, *arguments: str) -> Result:
    return CliRunner(env={"WEFT_URL": server.url}).invoke(cli.weft, arguments, prog_name="weft", standalone_mode=False)


@pytest.fixture
def failed(server: SyncServerProcess, tmp_path: object) -> str:
    """A run of version 1, which fails in `b`; a later version is right, and active."""
    with httpx.Client(base_url=server.url, timeout=30) as client:
        client.post("/api/workflows", json={"document": flow("throw new Error('no')")}).raise_for_status()
        run = client.post("/api/workflows/orders/runs?wait=20", json={}).json()
        client.post("/api/workflows", json={"document": flow("return 1")}).raise_for_status()
        assert run["status"] == "failed"
        return str(run["run"])


def test_it_continues_with_the_version_that_is_named(server: SyncServerProcess, failed: str) -> None:
    shown = weft(server, "rerun", failed, "--version", "active", "--preview")
    assert shown.exit_code == 0, shown.output
    lines = [line.split(maxsplit=1) for line in shown.stdout.splitlines()[1:]]
    assert lines == [["start", "kept"], ["a", "kept"], ["b", "runs again"], ["c", "runs, is new"]]
    made = json.loads(weft(server, "rerun", failed, "--version", "2", "--json").stdout)
    with httpx.Client(base_url=server.url, timeout=30) as client:
        run = client.get(f"/api/runs/{made['run']}?wait=20").json()
    assert (run["status"], run["version"], made["source"]) == ("succeeded", 2, failed)


def test_many_failed_runs_continue_at_once(server: SyncServerProcess, failed: str) -> None:
    many = json.loads(
        weft(server, "rerun", "--failed", "--workflow", "orders", "--last", "2", "--version", "2", "--json").stdout
    )
    assert failed in {each["source"] for each in many} and len(many) <= 2
    assert isinstance(weft(server, "rerun", "--failed").exception, Refused)
    assert isinstance(weft(server, "rerun", failed, "--preview").exception, Refused)


def test_a_retry_points_to_the_version_that_was_repaired(server: SyncServerProcess, failed: str) -> None:
    retried = weft(server, "retry", failed, "b")
    assert retried.exit_code == 0, retried.output
    assert f"weft rerun {failed} --version" in retried.stderr
