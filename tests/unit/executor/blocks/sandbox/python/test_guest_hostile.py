"""Programs that mean harm, as `hostile.py` lists them: each is stopped in time, reaches nothing, and leaves nothing."""

import asyncio
import contextlib
import time
from functools import partial
from pathlib import Path

import pytest

from executor.blocks.sandbox.sandbox import Sandbox
from executor.errors import SandboxError
from tests.support.size import one_in
from tests.unit.executor.blocks.sandbox.python.hostile import BOMBS, ESCAPES, SPOILERS, STAINS
from tests.unit.executor.blocks.sandbox.python.run import program
from tests.unit.executor.blocks.sandbox.timed import assert_stopped_in_time

_LIMIT_MS = 300
# Computing time of this process. The clock of the deadlines is a thread: a busy machine makes it late, never early.
_STOPPED_CPU_S = 10.0
_SECRET = "correct horse battery staple"


async def _spoiled(sandbox: Sandbox, source: str) -> None:
    """It ends: with a result, or with an error of the kinds that programs have."""
    try:
        await program(sandbox, source, timeout_ms=_LIMIT_MS)
    except SandboxError as error:
        assert error.code in ("code_failed", "code_timeout", "code_memory"), error


@pytest.mark.parametrize("source", one_in(4, BOMBS))
async def test_a_bomb_is_stopped_and_the_sandbox_lives_on(sandbox: Sandbox, source: str) -> None:
    began = time.process_time()
    await _spoiled(sandbox, source)
    assert time.process_time() - began < _STOPPED_CPU_S
    assert await program(sandbox, "return __v['a'] + 1", a=1) == (2, "")


@pytest.mark.parametrize("source", one_in(4, ESCAPES))
async def test_there_is_no_way_out(
    sandbox: Sandbox, source: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    canary = tmp_path / "canary"
    canary.write_text(_SECRET)
    monkeypatch.setenv("CANARY", _SECRET)
    told = ""
    reads_environment = "environ" in source or "getenv" in source
    try:
        found = await program(sandbox, source if reads_environment else source.replace("CANARY", str(canary)))
    except SandboxError as error:
        assert error.code in ("code_failed", "code_memory"), error
        told = f"{error} {error.hint} {error.extra}"
    else:
        assert found[0] is None or "posix" in source  # the constants of the stubs: no byte of them is the host's
        told = repr(found)
    assert _SECRET not in told
    assert canary.read_text() == _SECRET


@pytest.mark.parametrize(("stain", "look"), STAINS)
async def test_nothing_survives_from_one_program_to_the_next(sandbox: Sandbox, stain: str, look: str) -> None:
    with contextlib.suppress(SandboxError):
        await program(sandbox, stain)
    assert await program(sandbox, look) in ((None, ""), (None, "\n"))


@pytest.mark.parametrize("source", SPOILERS)
async def test_spoiling_the_answer_hurts_only_oneself(sandbox: Sandbox, source: str) -> None:
    await _spoiled(sandbox, source)
    assert await program(sandbox, "return [1, {'a': 2}]") == ([1, {"a": 2}], "")


async def test_a_program_is_stopped_when_its_caller_has_gone(sandbox: Sandbox) -> None:
    task = asyncio.ensure_future(program(sandbox, "while True: pass", timeout_ms=60_000))
    await asyncio.sleep(0.2)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    began = time.process_time()
    assert await program(sandbox, "return 1") == (1, "")  # there is one thread
    assert time.process_time() - began < _STOPPED_CPU_S


@pytest.mark.proof
async def test_no_bomb_is_late_and_none_holds_up_the_loop(sandbox: Sandbox) -> None:
    for source in (*BOMBS, *ESCAPES, *SPOILERS):
        await assert_stopped_in_time(partial(_spoiled, sandbox, source), _LIMIT_MS, source)


def test_there_are_as_many_as_were_tried_before() -> None:
    assert len(BOMBS) + len(ESCAPES) + len(SPOILERS) + len(STAINS) >= 87
