"""`policy.runner` in whole runs: a lost process is a lost attempt, and the policy of the plan decides what follows."""

from __future__ import annotations

import os
import signal
from pathlib import Path
from typing import Any

from compiler.compile import compile_document
from executor.blocks.types.python import Python
from executor.blocks.types.registry import Registry
from executor.open.embed import open_engine
from executor.open.engine import Engine
from executor.service.views import RunView
from tests.support.dask_cluster import computed_s
from tests.support.until import until
from tests.unit.executor.blocks.runners import work

FUNCTIONS: dict[str, Any] = {"double": work.double, "die": work.die, "sleep": work.sleep, "tell": work.tell}


def document(function: str, policy: dict[str, Any], **arguments: Any) -> dict[str, Any]:
    return {
        "format": "weft/1",
        "name": function,
        "blocks": {
            "start": {"type": "start"},
            "work": {
                "type": "python",
                "params": {"function": function, "arguments": arguments},
                "policy": {"runner": "process", **policy},
            },
        },
        "edges": [{"source": "start", "target": "work"}],
    }


async def events(engine: Engine, run: str) -> list[Any]:
    return [event async for event in engine.stream(run)]


def code_of(run: RunView) -> str:
    assert run.error is not None
    return str(run.error["code"])


async def test_a_lost_process_is_a_lost_attempt_of_the_plan(tmp_path: Path) -> None:
    seen = str(tmp_path / "seen")
    async with open_engine(functions=FUNCTIONS, processes=1) as engine:
        run = await engine.run(document("die", {"on_lost": "retry"}, times=1, seen=seen), timeout_s=60)
        assert (run.status, run.output) == ("succeeded", "alive")
        found = await events(engine, run.id)
        assert [e.attempt for e in found if e.type == "node.started" and e.key == "work"] == [1, 2]
        (lost,) = [e for e in found if e.type == "retry.scheduled"]
        assert lost.data["error"]["code"] == "attempt_lost"
        logged = [e.data["message"] for e in found if e.type == "node.log"]
        assert "attempt 1" in logged[0] and any("SIGKILL" in text for text in logged), logged

        failed = await engine.run(document("die", {"on_lost": "fail"}), timeout_s=60)
        assert failed.status == "failed" and code_of(failed) == "attempt_lost"

        asked = await engine.submit(document("die", {}))
        (wait,) = await until(lambda: engine.waits.list(run=asked.run))
        assert wait.kind == "attention"


async def test_the_time_limit_ends_the_process(tmp_path: Path) -> None:
    seen = tmp_path / "seen"
    async with open_engine(functions=FUNCTIONS, processes=1) as engine:
        late = document("sleep", {"timeout_s": 0.2}, seconds=600, seen=str(seen))
        run = await engine.run(late, timeout_s=60)
        assert run.status == "failed" and code_of(run) == "timeout"
        assert (await engine.run(document("double", {}, n=2), timeout_s=60)).output["twice"] == 4


async def test_what_cannot_cross_is_refused_at_its_start() -> None:
    async with open_engine(functions={"nameless": lambda: 1}) as engine:
        run = await engine.run(document("nameless", {}), timeout_s=60)
        assert code_of(run) == "runner_unfit"


def test_a_block_that_cannot_run_there_is_a_finding() -> None:
    catalog = Registry.load([Python(FUNCTIONS)])
    sound = document("double", {}, n=1)
    compiled = compile_document(sound, catalog)
    assert compiled.plan is not None and compiled.plan.nodes[1].policy.runner == "process"
    by_type = {entry["type"]: entry["runners"] for entry in catalog.catalogue()}
    assert by_type["python"] == by_type["function"] == ["inline", "process", "dask"] and by_type["http"] == ["inline"]
    for block in ({"type": "set"}, {"type": "parallel", "params": {"count": 1}}):
        sound["blocks"]["work"] = {**block, "policy": {"runner": "process"}}
        findings = compile_document(sound, catalog).diagnostics
        assert [f.pointer for f in findings if f.code == "runner_unfit"] == ["/blocks/work/policy/runner"]
    sound["blocks"]["work"]["policy"] = {"runner": "elsewhere"}
    assert any(f.code == "field_invalid" for f in compile_document(sound, catalog).diagnostics)


def code_block(code: str, **policy: Any) -> dict[str, Any]:
    return {
        "format": "weft/1",
        "name": "code",
        "blocks": {
            "start": {"type": "start"},
            "code": {"type": "function", "params": {"code": code, "timeout_s": 60}, "policy": policy},
        },
        "edges": [{"source": "start", "target": "code"}],
    }


async def test_a_program_whose_child_is_killed_has_lost_one_attempt() -> None:
    async with open_engine(functions=FUNCTIONS, processes=1) as engine:
        pid = (await engine.run(document("double", {}, n=1), timeout_s=60)).output["pid"]
        before_s = computed_s(pid)
        endless = await engine.submit(code_block("for (;;) {}", runner="process", on_lost="fail"))
        await until(lambda: computed_s(pid) > before_s + 0.05)  # the program runs in that child
        os.kill(pid, signal.SIGKILL)
        run = await engine.wait_finished(endless.run, 60)
        assert run is not None and code_of(run) == "attempt_lost"
        said = code_block("console.log('in', 'a child'); return 6 * 7", runner="process")
        again = await engine.run(said, timeout_s=60)
        assert again.output == {"result": 42, "stdout": "in a child\n"}
        assert [e.data["message"] for e in await events(engine, again.id) if e.type == "node.log"] == ["in a child"]
