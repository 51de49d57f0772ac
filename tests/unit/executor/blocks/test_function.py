"""The function block, in the real sandbox."""

from collections.abc import Iterator
from typing import Any, cast

import pytest

from executor.blocks.base import Done
from executor.blocks.function import block
from executor.errors import BlockError
from executor.sandbox import Bound
from executor.sandbox.sandbox import Sandbox
from executor.services import Services
from tests.unit.executor.blocks.flow import context


@pytest.fixture(scope="module")
def services() -> Iterator[Services]:
    sandbox = Sandbox(threads=1)
    yield Services(sandbox=sandbox, http=cast(Any, None))
    sandbox.close()


async def _run(services: Services, code: Any, attempt: int = 1, **params: Any) -> Any:
    given = context({"code": code} | params, services=services, attempt=attempt, idempotency_key="run:f", now_ms=5)
    done = await block.run(given)
    assert isinstance(done, Done)
    return done.output


async def test_result_and_stdout(services: Services) -> None:
    code = Bound("console.log('got', __v['a.n']); return {n: __v['a.n'] + 1, at: Date.now()}", {"a.n": 1})
    assert await _run(services, code) == {"result": {"n": 2, "at": 5}, "stdout": "got 1\n"}
    assert await _run(services, "return 1") == {"result": 1, "stdout": ""}


async def test_a_repeated_attempt_draws_the_same_numbers(services: Services) -> None:
    assert await _run(services, "return Math.random()") == await _run(services, "return Math.random()", attempt=2)


async def test_a_failure_shows_what_was_printed(services: Services) -> None:
    with pytest.raises(BlockError, match="Error: no") as caught:
        await _run(services, "console.log('so far'); throw new Error('no')")
    assert (caught.value.code, caught.value.retryable) == ("code_failed", False)
    assert caught.value.hint == "printed before: so far"


async def test_the_time_limit(services: Services) -> None:
    with pytest.raises(BlockError) as caught:
        await _run(services, "for (;;) {}", timeout_s=0.1)
    assert (caught.value.code, caught.value.message) == ("code_timeout", "stopped after 100 ms")
    with pytest.raises(BlockError) as caught:
        await _run(services, "return 1", timeout_s="long")
    assert caught.value.code == "params_invalid"


@pytest.mark.parametrize("code", [None, 5, {"a": 1}])
async def test_what_is_no_program_is_refused(services: Services, code: Any) -> None:
    with pytest.raises(BlockError) as caught:
        await _run(services, code)
    assert caught.value.code == "params_invalid"
