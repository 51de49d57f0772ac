"""A workflow that another one calls is there when the run comes to it, wherever the outer one is run or stored."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import weft
from executor.open.engine import Engine
from executor.open.testing.crashes import crash_everywhere
from executor.open.testing.engines import engine
from executor.open.testing.play import finish
from tests.support.server import ROOT, SyncServerProcess


@weft.step(effect="none")
def double(n: int) -> int:
    return 2 * n


@weft.workflow(name="called-deep")
async def deep(n: int) -> Any:
    return await double(n)


@weft.workflow(name="called-inner")
async def inner(n: int) -> Any:
    return await weft.call(deep, {"n": n})


@weft.workflow
async def by_function(n: int) -> Any:
    return await inner(n)


@weft.workflow
async def by_call(n: int) -> Any:
    return await weft.call(inner, {"n": n})


@weft.workflow
async def by_name(n: int) -> Any:
    return await weft.call("called-inner", {"n": n})


async def stored(opened: Engine) -> list[str]:
    return sorted(row.name for row in await opened.store.list_workflows())


@pytest.mark.parametrize(
    ("outer", "given"),
    [(by_function, [by_function]), (by_call, [by_call]), (by_name, [by_name, inner]), (by_name, [inner])],
)
async def test_a_called_workflow_is_stored_with_the_program(outer: Any, given: list[Any]) -> None:
    async with weft.open(workflows=given) as opened:
        run = await opened.run(outer, {"n": 4}, timeout_s=60)
        assert (run.status, run.output, run.error) == ("succeeded", 8, None)
        assert await stored(opened) == ["called-deep", "called-inner"]


async def test_a_workflow_that_only_the_run_names_brings_what_it_calls() -> None:
    async with weft.open(functions={double.name: double.function}) as opened:
        assert (await opened.run(by_function, {"n": 4}, timeout_s=60)).output == 8
        again = await opened.workflows.save(inner)
        assert (again.version, again.created) == (1, False)


async def test_a_stored_workflow_brings_what_it_calls() -> None:
    async with engine(workflows=[by_call]) as opened:
        await opened.workflows.save(by_call)
        assert await stored(opened) == ["by-call", "called-deep", "called-inner"]
        run = await finish(opened, (await opened.submit("by-call", input={"n": 4})).run)
    assert (run.status, run.output) == ("succeeded", 8)


async def test_a_workflow_that_is_named_and_not_there_says_what_to_do() -> None:
    async with weft.open() as opened:
        run = await opened.run(by_name, {"n": 4}, timeout_s=60)
    assert run.error is not None
    assert (run.error["code"], run.error["message"]) == (
        "workflow_not_found",
        "there is no workflow 'called-inner'",
    )
    assert "weft deploy" in run.error["hint"]


async def test_crash_tests_have_it() -> None:
    report = await crash_everywhere(by_function, {"n": 4})
    assert (report.status, report.output) == ("succeeded", 8)


def test_two_called_workflows_with_one_name_are_refused() -> None:
    @weft.workflow(name="called-inner")
    async def other(n: int) -> Any:
        return await double(n)

    @weft.workflow
    async def both(n: int) -> Any:
        return [await inner(n), await other(n)]

    with pytest.raises(weft.DefinitionError, match=r"line \d+: two workflows have the name 'called-inner'"):
        both.document()


FLOWS = """
import weft
from called_parts import inner

@weft.workflow
async def outer(n: int):
    return await weft.call(inner, {"n": n})
"""
PARTS = """
import weft

@weft.step(effect="none")
def double(n: int) -> int:
    return 2 * n

@weft.workflow(name="parts-inner")
async def inner(n: int):
    return await double(n)
"""


def test_commands_store_what_a_file_calls(tmp_path: Path) -> None:
    (tmp_path / "called_parts.py").write_text(PARTS)
    file = tmp_path / "called_flows.py"
    file.write_text(FLOWS)
    server = SyncServerProcess(tmp_path, {"WEFT_FUNCTIONS": str(file)})

    def run(*arguments: str) -> str:
        environ = {**os.environ, "WEFT_URL": server.url, "PYTHONPATH": f"{ROOT}"}
        command = [sys.executable, "-m", "server", *arguments]
        done = subprocess.run(
            command, cwd=tmp_path, env=environ, capture_output=True, text=True, timeout=60, check=False
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    try:
        followed = run("run", f"{file}:outer", "--input", '{"n": 4}', "--follow", "--json")
        assert json.loads(followed.splitlines()[-1])["data"]["status"] == "succeeded"
        lines = run("deploy", f"{file}:outer").splitlines()
        assert [line.partition(" (")[0] for line in lines] == ["parts-inner version 1", "outer version 1"]
        assert "unchanged" in lines[0]
        assert "unchanged" not in lines[1]
    finally:
        server.kill()


def test_weft_dev_finds_what_a_file_calls_elsewhere(tmp_path: Path) -> None:
    (tmp_path / "called_parts.py").write_text(PARTS)
    file = tmp_path / "called_flows.py"
    file.write_text(
        FLOWS.replace("from called_parts import inner", "import called_parts").replace("(inner", "(called_parts.inner")
    )
    command = [sys.executable, "-m", "server.dev.check", str(file)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=60, check=True)
    assert sorted(json.loads(done.stdout)["documents"]) == ["outer", "parts-inner"]
