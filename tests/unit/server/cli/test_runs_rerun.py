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
    asked = ("rerun", "--failed", "--workflow", "orders", "--last", "2", "--version", "2")
    listed = weft(server, *asked, "--preview")
    assert f"run {failed}" in listed.stdout and "b                    runs again" in listed.stdout
    ran = weft(server, *asked, "--key", "once", "--json")
    many = json.loads(ran.stdout)
    assert failed in {each["source"] for each in many} and len(many) <= 2
    assert f"run {failed}" in ran.stderr and "runs again" in ran.stderr, "what is repeated is listed first"
    again = json.loads(weft(server, *asked, "--key", "once", "--json").stdout)
    known = {each["source"]: each["run"] for each in many}
    assert all(each["run"] == known[each["source"]] and not each["created"] for each in again)
    assert weft(server, "rerun", "--failed", "--workflow", "nothing").stderr == "No runs match.\n"
    assert isinstance(weft(server, "rerun", "--failed").exception, Refused)
    assert isinstance(weft(server, "rerun", failed, "--preview").exception, Refused)


def test_a_step_of_a_draft_runs_on_what_a_run_put_out_and_pins_are_listed(
    server: SyncServerProcess, failed: str
) -> None:
    document = flow("return <a> + '!'")
    document["blocks"]["a"]["pin"] = {"output": "pinned"}
    with httpx.Client(base_url=server.url, timeout=30) as client:
        client.post("/api/drafts", json={"document": document, "name": "stock"}).raise_for_status()
    assert weft(server, "step", "stock").stdout.split() == ["a", '"pinned"']
    ran = weft(server, "step", "stock", "b", "--of", failed)
    assert json.loads(ran.stdout.splitlines()[1])["result"] == "A!", ran.output
    given = weft(server, "step", "stock", "b", "--of", failed, "--given", '{"a": "B"}', "--json")
    assert json.loads(given.stdout)["output"]["result"] == "B!"
    assert "step stock/b" in weft(server, "runs").stdout
    wrong = weft(server, "step", "stock", "nothing")
    assert isinstance(wrong.exception, Refused) and "nothing" in str(wrong.exception)


def test_a_workflow_is_renamed(server: SyncServerProcess, failed: str) -> None:
    assert weft(server, "rename", "orders", "Orders of the shop").stdout == "orders is shown as Orders of the shop\n"
    for name in ("orders", "Orders of the shop"):
        assert json.loads(weft(server, "get", name).stdout)["name"] == "orders"
    assert weft(server, "rename", "orders", "").stdout == "orders is shown as orders\n"


def test_a_retry_points_to_the_version_that_was_repaired(server: SyncServerProcess, failed: str) -> None:
    retried = weft(server, "retry", failed, "b")
    assert retried.exit_code == 0, retried.output
    assert f"weft rerun {failed} --version" in retried.stderr
