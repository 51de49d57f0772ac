"""Functions in child processes: what crosses, what is lost with a child, and what ends it."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from msgspec import Raw, json

from executor.blocks.runners.call import Call, place_of
from executor.blocks.runners.process import ProcessRunner
from executor.errors import BlockError, Lost
from tests.support.until import until
from tests.unit.executor.blocks.runners import work
from tests.unit.executor.blocks.runners.listener import Listener


def call(function: Any, context: str | None = None, last_checkpoint: Any = None, **arguments: Any) -> Call:
    return Call(
        place_of(function), function.__name__, Raw(json.encode(arguments)), "run:key", 2, context, "run",
        last_checkpoint=last_checkpoint,
    )  # fmt: skip


@pytest.fixture
async def runner() -> AsyncIterator[ProcessRunner]:
    made = ProcessRunner(2)
    yield made
    await made.close()


def is_alive(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return False
    return state != "Z"


async def test_values_cross_as_json_and_a_child_is_used_again(runner: ProcessRunner) -> None:
    first, second = [await runner.call(call(work.double, n=n), Listener()) for n in (1, 2)]
    assert (first["twice"], second["twice"]) == (2, 4)
    assert first["pid"] == second["pid"] != os.getpid()
    assert await runner.call(call(work.soon, n=1), Listener()) == 2


async def test_a_function_speaks_from_there(runner: ProcessRunner) -> None:
    listener = Listener()
    result = await runner.call(call(work.tell, "ctx", {"at": 1}), listener)
    assert result == [{"at": 1}, "run:key", 2, "run"]
    assert (listener.lines, listener.live, listener.kept) == (["line 0", "line 1", "line 2"], ["live"], [{"at": 3}])
    assert await runner.call(call(work.tell_by_context), listener) == ["run:key", 2]
    assert listener.lines[3:] == ["line"]
    with pytest.raises(BlockError) as refused:
        await runner.call(call(work.checkpoint_too_large, "ctx"), listener)
    assert refused.value.code == "checkpoint_too_large"
    with pytest.raises(BlockError, match=r"ctx\.evaluate is not available in another process"):
        await runner.call(call(work.evaluate, "ctx"), listener)


async def test_a_thread_that_outlives_its_call_has_no_part_in_the_next(runner: ProcessRunner) -> None:
    listener = Listener()
    await runner.call(call(work.leave_a_thread, "ctx"), listener)
    assert await runner.call(call(work.release), listener) == ["attempt_over"]
    assert (listener.lines, listener.kept) == ([], [])


async def test_what_a_function_raises_comes_back(runner: ProcessRunner) -> None:
    for function, code, retryable in ((work.leave, "function_failed", True), (work.not_json, "payload_invalid", False)):
        with pytest.raises(BlockError) as failed:
            await runner.call(call(function), Listener())
        assert (failed.value.code, failed.value.retryable) == (code, retryable)
    with pytest.raises(BlockError) as large:
        await runner.call(call(work.large, size=17 * 1024 * 1024), Listener())
    assert large.value.code == "payload_too_large"


async def test_a_child_that_dies_before_the_function_is_called_is_no_attempt(runner: ProcessRunner) -> None:
    pid = (await runner.call(call(work.double, n=1), Listener()))["pid"]
    os.kill(pid, signal.SIGSTOP)
    second = asyncio.create_task(runner.call(call(work.double, n=1), Listener()))
    await asyncio.sleep(0.1)
    os.kill(pid, signal.SIGKILL)
    with pytest.raises(BlockError, match="before the function was called") as error:
        await second
    assert (error.value.code, error.value.deferred) == ("runner_unavailable", "not_begun")


async def test_a_child_that_dies_is_one_lost_attempt(runner: ProcessRunner) -> None:
    listener = Listener()
    outcomes = await asyncio.gather(
        runner.call(call(work.die), listener),
        *(runner.call(call(work.double, n=n), listener) for n in range(20)),
        return_exceptions=True,
    )
    assert isinstance(outcomes[0], Lost) and not outcomes[0].together
    assert "SIGKILL" in str(outcomes[0]) and "SIGKILL" in listener.lines[0]
    assert [outcome["twice"] for outcome in outcomes[1:]] == [2 * n for n in range(20)]  # type: ignore[index] # none failed


async def test_a_cancelled_call_ends_its_child(runner: ProcessRunner, tmp_path: Path) -> None:
    seen = tmp_path / "pid"
    calling = asyncio.create_task(runner.call(call(work.sleep, seconds=600, seen=str(seen)), Listener()))
    await until(lambda: seen.exists() and bool(seen.read_text()))
    pid = int(seen.read_text())
    calling.cancel()
    with pytest.raises(asyncio.CancelledError):
        await calling
    await until(lambda: not is_alive(pid))
    assert (await runner.call(call(work.double, n=3), Listener()))["twice"] == 6


async def test_children_without_work_end() -> None:
    runner = ProcessRunner(1, idle_s=0.01)
    pid = (await runner.call(call(work.double, n=1), Listener()))["pid"]
    await until(lambda: not is_alive(pid))
    assert (await runner.call(call(work.double, n=1), Listener()))["pid"] != pid
    await runner.close()


def test_a_function_without_a_name_cannot_cross() -> None:
    for function in (lambda: 1, Listener().log):
        with pytest.raises(BlockError) as unfit:
            place_of(function)
        assert unfit.value.code == "runner_unfit"


PROGRAM = """
import asyncio, os, sys
from msgspec import Raw
from executor.blocks.runners.call import Call, place_of
from executor.blocks.runners.process import ProcessRunner
from tests.unit.executor.blocks.runners.listener import Listener

def printing() -> int:
    print("printed by the function")
    print(sys.stdin.read(), end="")
    if not os.fork():  # it keeps no pipe open
        os.closerange(1, 3)
        import time
        time.sleep(90)
    os.kill(os.getpid(), 9)
    return os.getpid()

def double(n: int) -> int:
    print("printed by the function")
    return 2 * n

async def main() -> None:
    runner = ProcessRunner(1)
    for function, given in ((double, b'{"n": 4}'), (printing, b"{}")):
        call = Call(place_of(function), "function", Raw(given), "run:key", 1)
        try:
            print(await runner.call(call, Listener()))
        except Exception as error:
            print(error, getattr(error, "hint", ""))
    await runner.close()

"""


@pytest.mark.parametrize("is_guarded", [True, False])
def test_functions_of_the_main_module(tmp_path: Path, is_guarded: bool) -> None:
    """They may print and read, and a fork of one keeps no pipe open. A program without the guard is refused."""
    guard = 'if __name__ == "__main__":' if is_guarded else "if True:"
    file = tmp_path / "program.py"
    file.write_text(f"{PROGRAM}{guard}\n    asyncio.run(main())\n")
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run([sys.executable, str(file)], env=env, capture_output=True, text=True, check=False, timeout=60)
    lines = done.stdout.splitlines()
    if is_guarded:
        assert lines == ["8", "the child process of the attempt ended: SIGKILL "]
        assert done.stderr.count("printed by the function") == 2
    else:
        assert [line.partition(":")[0] for line in lines] == ["the child process did not start"] * 2
        assert all("below `if __name__" in line for line in lines)
        assert "imports it" in done.stderr
