"""A program with very many awaits runs to its end or to its time limit; it is not said to wait for nothing."""

from __future__ import annotations

import pytest

from executor.blocks.sandbox.sandbox import Sandbox
from executor.errors import SandboxError
from executor.kernel.values.payload import Bound


async def _run(anywhere: Sandbox, source: str, timeout_ms: int = 60_000) -> object:
    result, _ = await anywhere.run_code(Bound(source, {}), now_ms=0, seed="s", timeout_ms=timeout_ms)
    return result


async def test_200_000_awaits_come_to_an_end(anywhere: Sandbox) -> None:
    assert await _run(anywhere, "let n = 0; while (n < 200000) { await 0; n++ } return n") == 200_000


async def test_endless_awaits_are_out_of_time(anywhere: Sandbox) -> None:
    with pytest.raises(SandboxError) as caught:
        await _run(anywhere, "while (true) await 0", timeout_ms=1_500)
    assert (caught.value.code, caught.value.message) == ("code_timeout", "stopped after 1500 ms")


async def test_a_promise_that_nothing_resolves_is_still_called_so(anywhere: Sandbox) -> None:
    with pytest.raises(SandboxError) as caught:
        await _run(
            anywhere, "console.log('here'); let n = 0; while (n++ < 150000) await 0; await new Promise(() => {})"
        )
    assert caught.value.code == "code_failed" and "nothing will resolve" in caught.value.message
    assert caught.value.extra["stdout"] == "here\n"
