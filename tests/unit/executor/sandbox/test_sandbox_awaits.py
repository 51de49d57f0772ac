"""A program with very many awaits runs to its end or to its time limit; it is not said to wait for nothing."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from executor.errors import SandboxError
from executor.sandbox import Bound
from executor.sandbox.sandbox import Sandbox


@pytest.fixture(scope="module")
def sandbox() -> Iterator[Sandbox]:
    sandbox = Sandbox(threads=1)
    yield sandbox
    sandbox.close()


async def _run(sandbox: Sandbox, source: str, timeout_ms: int = 60_000) -> object:
    result, _ = await sandbox.run_code(Bound(source, {}), now_ms=0, seed="s", timeout_ms=timeout_ms)
    return result


async def test_200_000_awaits_come_to_an_end(sandbox: Sandbox) -> None:
    assert await _run(sandbox, "let n = 0; while (n < 200000) { await 0; n++ } return n") == 200_000


async def test_endless_awaits_are_out_of_time(sandbox: Sandbox) -> None:
    with pytest.raises(SandboxError) as caught:
        await _run(sandbox, "while (true) await 0", timeout_ms=1_500)
    assert (caught.value.code, caught.value.message) == ("code_timeout", "stopped after 1500 ms")


async def test_a_promise_that_nothing_resolves_is_still_called_so(sandbox: Sandbox) -> None:
    with pytest.raises(SandboxError) as caught:
        await _run(sandbox, "console.log('here'); let n = 0; while (n++ < 150000) await 0; await new Promise(() => {})")
    assert caught.value.code == "code_failed" and "nothing will resolve" in caught.value.message
    assert caught.value.extra["stdout"] == "here\n"
