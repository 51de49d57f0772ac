"""Functions on a Dask cluster. The cluster is real: a scheduler and two workers in processes of their own."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from msgspec.structs import replace

from executor.blocks.runners.dask import DaskRunner, is_news
from executor.blocks.services import Runners
from executor.errors import BlockError, Lost
from executor.open.embed import open_engine
from tests.support.dask_cluster import DaskCluster
from tests.support.until import until
from tests.unit.executor.blocks.runners import work
from tests.unit.executor.blocks.runners.listener import Listener
from tests.unit.executor.blocks.runners.test_process import call
from tests.unit.executor.blocks.runners.test_runners import FUNCTIONS, code_block, document, events

NOWHERE = "tcp://127.0.0.1:9"

pytestmark = pytest.mark.timeout(600)  # on a busy machine its processes need a minute each to start


@pytest.fixture(scope="module")
def cluster() -> Iterator[DaskCluster]:
    with DaskCluster(2) as made:
        yield made


async def test_only_the_first_execution_of_a_task_is_permitted_and_by_its_client() -> None:
    from executor.blocks.runners.cluster import Claims  # distributed takes seconds to import

    told: list[Any] = []
    first, second = ("weft-f", "run:a", 1), ("weft-f", "run:a", 2)
    tasks = {first, second}
    scheduler = SimpleNamespace(
        handlers={}, tasks=tasks, log_event=lambda topic, message: told.append((topic, message))
    )
    claims = Claims()
    await claims.start(cast(Any, scheduler))
    claim, permit = scheduler.handlers["weft_begin"], scheduler.handlers["weft_permit"]
    asking = [asyncio.create_task(claim(["weft-f", "run:a", attempt], "t")) for attempt in (1, 2)]
    await asyncio.sleep(0)
    assert told == [("t", {"key": ["weft-f", "run:a", attempt], "begun": True}) for attempt in (1, 2)]
    assert not await claim(["weft-f", "run:a", 1], "t"), "it has begun before"
    permit(["weft-f", "run:a", 1])
    assert await asking[0] and not asking[1].done()
    claims.transition(first, "processing", "released", stimulus_id="")  # its worker has died
    claims.transition(("of others",), "processing", "released", stimulus_id="")
    assert told[2:] == [("t", {"key": list(first), "lost": True})]
    tasks.remove(first)
    claims.transition(first, "released", "forgotten", stimulus_id="")
    assert not await claim(["weft-f", "run:a", 1], "t")  # of a worker that has got it before it was forgotten
    claims.restart(cast(Any, scheduler))
    assert not await asking[1], "its client is gone"
    again = asyncio.create_task(claim(["weft-f", "run:a", 2], "t"))
    await asyncio.sleep(0)
    permit(["weft-f", "run:a", 2])
    permit(["weft-f", "run:a", 3])  # of a task that is forgotten
    assert await again


async def test_without_a_cluster_nothing_begins() -> None:
    with pytest.raises(BlockError) as unset:
        Runners().get("dask")
    assert (unset.value.code, unset.value.retryable) == ("runner_unavailable", False)
    runner = DaskRunner(NOWHERE, connect_s=0.05)
    with pytest.raises(BlockError, match="cannot be reached") as unreached:
        await runner.call(call(work.double, n=1), Listener())
    assert (unreached.value.code, unreached.value.deferred) == ("runner_unavailable", "not_begun")
    await runner.close()


@pytest.mark.parametrize(("error", "is_shown"), [(asyncio.CancelledError(), False), (OSError(), True), (None, True)])
def test_a_connection_that_is_given_up_leaves_no_stack_in_the_log(error: BaseException | None, is_shown: bool) -> None:
    info = None if error is None else (type(error), error, None)
    record = logging.LogRecord("distributed.client", logging.ERROR, "", 0, "", (), info)
    assert is_news(record) == is_shown


@pytest.mark.proof
async def test_values_cross_and_a_function_speaks_from_there(cluster: DaskCluster) -> None:
    runner, listener = DaskRunner(cluster.address), Listener()
    assert (await runner.call(call(work.double, n=2), listener))["twice"] == 4
    assert await runner.call(call(work.soon, n=2), listener) == 3
    with pytest.raises(BlockError) as unfit:
        await runner.call(call(work.tell, "ctx"), listener)
    assert (unfit.value.code, unfit.value.retryable) == ("runner_unfit", False)
    assert (listener.lines, listener.live) == (["line 0", "line 1", "line 2"], ["live"])
    with pytest.raises(BlockError) as failed:
        await runner.call(call(work.leave), listener)
    assert failed.value.code == "function_failed"
    assert f'File "{work.__file__}"' in failed.value.traceback and ", in leave" in failed.value.traceback
    await runner.close()


@pytest.mark.proof
async def test_programs_run_there_as_they_do_here(cluster: DaskCluster) -> None:
    programs = {
        "console.log('one', {a: [2]}); return [2 ** 60, -0.5, Date.now() > 0, '\u00e4']": "succeeded",
        "return '\\ud800'": "payload_invalid",
        "console.log('so far'); throw new TypeError('no')": "code_failed",
        "await new Promise(() => {})": "code_failed",
        "for (;;) {}": "code_timeout",
        "const a = []; for (;;) a.push(new Uint8Array(1 << 20).fill(1))": "code_memory",
    }
    async with open_engine(dask=cluster.address) as engine:
        for code, expected in programs.items():
            seen = []
            for policy in ({}, {"runner": "dask"}):
                made = code_block(code, **policy)
                made["blocks"]["code"]["params"]["timeout_s"] = 20 if expected == "code_memory" else 2
                run = await engine.run(made, timeout_s=60)
                logged = [e.data["message"] for e in await events(engine, run.id) if e.type == "node.log"]
                error = run.error and {name: run.error.get(name) for name in ("code", "message", "hint")}
                seen.append((run.status, run.output, error, logged))
            assert seen[0] == seen[1]
            assert expected in (run.status, (run.error or {}).get("code"))


@pytest.mark.proof
async def test_a_dead_worker_is_one_lost_attempt_and_the_scheduler_repeats_nothing(
    cluster: DaskCluster, tmp_path: Path
) -> None:
    seen = tmp_path / "seen"
    runner, listener = DaskRunner(cluster.address), Listener()
    outcomes = await asyncio.gather(
        runner.call(call(work.die, seen=str(seen)), listener),
        *(runner.call(attempt(work.double, n), listener) for n in range(20)),
        return_exceptions=True,
    )
    assert isinstance(outcomes[0], Lost) and not outcomes[0].together
    assert len(seen.read_text().split()) == 1
    lost = [outcome for outcome in outcomes[1:] if isinstance(outcome, Lost)]
    assert len(lost) <= 2, "only what had begun on that worker, beside it or just before"
    for n, outcome in enumerate(outcomes[1:]):
        assert outcome in lost or outcome["twice"] == 2 * n  # type: ignore[index]  # it is what the function returned
    await runner.close()


@pytest.mark.proof
async def test_a_cancelled_call_that_waits_never_begins(tmp_path: Path) -> None:
    with DaskCluster(1) as cluster:
        runner, limit = DaskRunner(cluster.address), _Limit()
        busy = attempt(work.sleep, 1, seconds=2, seen=str(tmp_path / "1"))
        first = asyncio.create_task(runner.call(busy, limit))
        await until((tmp_path / "1").exists)
        await until(lambda: limit.held == 0)  # it has begun: its time runs
        second = asyncio.create_task(runner.call(attempt(work.sleep, 2, seconds=0, seen=str(tmp_path / "2")), limit))
        await until(lambda: limit.held == 1)
        second.cancel()
        await asyncio.gather(first, second, return_exceptions=True)
        assert second.cancelled() and limit.held == 0
        assert (await runner.call(attempt(work.double, 3), limit))["twice"] == 6
        assert not (tmp_path / "2").exists()
        await runner.close()


@pytest.mark.proof
async def test_a_lost_cluster_is_a_lost_attempt(tmp_path: Path) -> None:
    seen = tmp_path / "seen"
    with DaskCluster(1) as cluster:
        async with open_engine(functions=FUNCTIONS, dask=cluster.address) as engine:
            policy = {"runner": "dask", "on_lost": "fail"}
            submitted = await engine.submit(document("sleep", policy, seconds=600, seen=str(seen)))
            await until(seen.exists)
            cluster.kill()
            run = await engine.wait_finished(submitted.run, 60)
            assert run is not None and run.error is not None and run.error["code"] == "attempt_lost"


def attempt(function: Any, n: int, **arguments: Any) -> Any:
    made = call(function, **(arguments or {"n": n}))
    return replace(made, idempotency_key=f"run:{function.__name__}@{n}")


class _Limit(Listener):
    """Counts the calls whose time limit does not run."""

    def __init__(self) -> None:
        super().__init__()
        self.held = 0
        self.waiting = self._waiting

    @contextmanager
    def _waiting(self) -> Iterator[None]:
        self.held += 1
        try:
            yield
        finally:
            self.held -= 1
