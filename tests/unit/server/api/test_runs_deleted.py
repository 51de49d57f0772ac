"""A run that upkeep deletes while a client reads it, or makes another one of it, is not there: no answer is made of
what was left of it between two reads."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable
from contextvars import ContextVar
from typing import Any

import httpx
import pytest

from executor.kernel.journal import codec
from executor.kernel.store.topics.store import Store
from executor.open.engine import Engine
from executor.service.topics.waits import WaitFilter
from tests.support.documents import document
from tests.unit.executor.service.upkeep.conftest import block

Json = dict[str, Any]
LOOPED = document(
    "looped",
    "start l",
    "l body x",
    "l end",
    blocks={
        "l": block("loop", mode="for", count=2),
        "x": {**block("set", value="y" * 40_000), "parent": "l"},  # its output is a blob
        "end": block("set", value=2),
    },
)
RUN = "/api/runs/{id}"
AT_ONCE = ("check_identity", "deleting", "note_opened", "stop_retrying")  # methods that read and write nothing
# Set where a request is answered: what the engine does by itself meanwhile does not count.
ASKING: ContextVar[bool] = ContextVar("asking", default=False)


@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("GET", "", None),
        ("GET", "/graph", None),
        ("GET", "/why", None),
        ("GET", "/why?node=x", None),
        ("GET", "/state", None),
        ("GET", "/plan", None),
        ("GET", "/document", None),
        ("GET", "/nodes/x%40l%231", None),
        ("GET", "/nodes/l?only=output", None),
        ("GET", "/events", None),
        ("GET", "/signals", None),
        ("GET", "/rerun?from=end", None),
        ("GET", "/diff/{id}", None),
        ("POST", "/rerun", {"from": "end"}),
        ("POST", "/fork", {"seq": 4}),
        ("POST", "/fork", {"seq": 8, "outputs": {"x@l#0": {"value": 3}}}),
        ("POST", "/nodes/x%40l%231/retry", {}),
        ("POST", "/nodes/end/retry", {}),
    ],
)
async def test_a_run_is_there_as_a_whole_or_not_at_all(
    client: httpx.AsyncClient,
    engine: Engine,
    monkeypatch: pytest.MonkeyPatch,
    method: str,
    path: str,
    body: Json | None,
) -> None:
    """Deleted before the second thing that is read or written for the answer, before the third, and so on."""

    async def asked(run: str) -> httpx.Response:
        codec.plans_at_hand.clear()  # as in a process that has not seen the run
        token = ASKING.set(True)
        try:
            address = (RUN + path).replace("{id}", run)
            return await client.request(method, address, json=body, headers={"accept": "application/json"})
        finally:
            ASKING.reset(token)

    calls = _Calls(engine, monkeypatch)
    assert (await asked(await _ended(engine))).status_code in (200, 202)
    assert calls.made > 1
    for number in range(2, calls.made + 1):
        run = await _ended(engine)
        calls.made, calls.deleting, calls.at = 0, run, number
        answer = await asked(run)
        assert calls.made >= number
        assert (answer.status_code, answer.json()["code"]) == (404, "run_not_found"), f"before call {number}"


async def test_the_inbox_does_not_need_the_plan_of_a_run_that_went(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    gone, stays = [
        (await engine.submit(document(name, "start ask", blocks={"ask": block("approval", title=name)}))).run
        for name in ("gone", "stays")
    ]
    for run in (gone, stays):
        await engine.wait_finished(run, 30)
    await engine.cancel(gone)
    async for _ in engine.follow(gone):
        pass
    get_run = engine.store.get_run

    async def found(run: str) -> Any:
        row = await get_run(run)
        if run == gone and row is not None:
            await _delete(engine, gone)
        return row

    codec.plans_at_hand.clear()
    monkeypatch.setattr(engine.store, "get_run", found)
    page = await engine.waits.page(WaitFilter(status=None))
    assert [wait.run for wait in page.waits] == [stays]


async def _ended(engine: Engine) -> str:
    run = (await engine.submit(LOOPED)).run
    async for _ in engine.follow(run):
        pass
    return run


async def _delete(engine: Engine, run: str) -> None:
    """And what only it referred to: the plan, the document, the blobs."""
    token = ASKING.set(False)
    try:
        # The run itself, and those that were made of it so far.
        for row in await engine.runs.list():
            await engine.store.delete_runs([row.id])
        while (await engine.store.delete_orphans(2**53)).total:
            pass
        assert await engine.store.get_run(run) is None
    finally:
        ASKING.reset(token)
    codec.plans_at_hand.clear()


class _Calls:
    """Counts what a request reads and writes; before call `at` run `deleting` goes."""

    def __init__(self, engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
        self.made, self.at, self.deleting = 0, 0, ""
        self._engine = engine
        for name, _ in inspect.getmembers(Store, inspect.isfunction):
            if not name.startswith("_") and name not in AT_ONCE:
                monkeypatch.setattr(engine.store, name, self._counted(getattr(engine.store, name)))

    def _counted(self, call: Callable[..., Awaitable[Any]]) -> Callable[..., Awaitable[Any]]:
        async def counted(*args: Any, **kwargs: Any) -> Any:
            if ASKING.get():
                self.made += 1
                if self.made == self.at:
                    await _delete(self._engine, self.deleting)
            return await call(*args, **kwargs)

        return counted
