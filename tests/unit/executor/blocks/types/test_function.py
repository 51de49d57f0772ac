"""The function block, in the real sandbox."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any, cast

import pytest

from executor.blocks.sandbox.python.component import component
from executor.blocks.sandbox.sandbox import Sandbox
from executor.blocks.services import Runners, Services
from executor.blocks.types.function import block
from executor.errors import BlockError
from executor.kernel.handler.base import Done
from executor.kernel.values.payload import Bound
from tests.support.python_guest import built_python
from tests.unit.executor.blocks.types.flow import context


@pytest.fixture(params=["inline", "process"])
async def services(request: pytest.FixtureRequest) -> AsyncIterator[Services]:
    sandbox = Sandbox(threads=1)
    runners = Runners(processes=1)
    yield Services(sandbox=sandbox, http=cast(Any, None), runners=runners, env={"RUNNER": request.param})
    await runners.close()
    sandbox.close()


async def _run(services: Services, code: Any, attempt: int = 1, **more: Any) -> Any:
    """`env["RUNNER"]` says where, for the tests."""
    params = {"code": code} | {name: more.pop(name) for name in ("timeout_s", "language") if name in more}
    given = context(
        params, services=services, attempt=attempt, idempotency_key="run:f", now_ms=5,
        runner=services.env["RUNNER"], **more,
    )  # fmt: skip
    done = await block.run(given)
    assert isinstance(done, Done)
    return done.output


async def test_result_and_stdout(services: Services) -> None:
    code = Bound("console.log('got', __v['a.n']); return {n: __v['a.n'] + 1, at: Date.now()}", {"a.n": 1})
    assert await _run(services, code) == {"result": {"n": 2, "at": 5}, "stdout": "got 1\n"}
    assert await _run(services, "return 1") == {"result": 1, "stdout": ""}


async def test_what_it_prints_is_logged(services: Services) -> None:
    lines: list[str] = []
    assert await _run(services, "console.log('one'); console.log('two')", log=lines.append) == {
        "result": None,
        "stdout": "one\ntwo\n",
    }
    assert lines == ["one\ntwo\n"]


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


async def test_python(services: Services) -> None:
    built_python()
    lines: list[str] = []
    code = Bound("print('got', __v['a.n'])\nreturn {'n': __v['a.n'] + 1}", {"a.n": 1})
    found = await _run(services, code, language="python", log=lines.append)
    assert found == {"result": {"n": 2}, "stdout": "got 1\n"}
    assert lines == ["got 1\n"]
    with pytest.raises(BlockError, match=r"ValueError: no \(line 2\)") as caught:
        await _run(services, "ctx.log('so far')\nraise ValueError('no')", language="python")
    assert (caught.value.code, caught.value.hint) == ("code_failed", "printed before: so far")


async def test_python_that_is_not_built(services: Services, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    if services.env["RUNNER"] == "process":
        return  # it has read it before
    monkeypatch.setattr("executor.blocks.sandbox.python.guest.component", component.__wrapped__)  # type: ignore[attr-defined]  # of functools.wraps
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert services.sandbox.check_syntax("return 1 +", "python") is None
    assert block.spec.check is not None
    assert [found.code for found in block.spec.check({"language": "python"})] == ["python_missing"]
    assert block.spec.check({"language": "javascript"}) == ()
    with pytest.raises(BlockError) as caught:
        await _run(services, "return 1", language="python")
    assert (caught.value.code, caught.value.retryable) == ("python_missing", False)
    assert "weft python build" in caught.value.hint


@pytest.mark.parametrize("code", [None, 5, {"a": 1}])
async def test_what_is_no_program_is_refused(services: Services, code: Any) -> None:
    with pytest.raises(BlockError) as caught:
        await _run(services, code)
    assert caught.value.code == "params_invalid"
