"""Effects that are undone: a cancel lets the compensation run, also while the run waits."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import httpx
import pytest

import weft
from compiler.builder.errors import DefinitionError
from executor.blocks.types.python import load_module
from executor.open.engine import Engine
from tests.support.runs import events_of, settled
from tests.support.server import SyncServerProcess
from tests.support.until import until

DID: list[str] = []


@pytest.fixture(autouse=True)
def nothing_done() -> None:
    DID.clear()


@weft.step
def reserve(item: str) -> dict[str, str]:
    DID.append("reserve")
    return {"id": f"r-{item}"}


@weft.step
def charge(item: str) -> dict[str, str]:
    DID.append("charge")
    return {"id": f"c-{item}"}


@weft.step
def ship(item: str, note: str) -> str:
    DID.append("ship")
    if item == "broken":
        raise ValueError("it is broken")
    return f"shipped {item}"


@weft.step
def release(id: str | None) -> None:
    DID.append(f"release {id}")


@weft.step
def refund(id: str | None) -> None:
    DID.append(f"refund {id}")


@weft.step
def tell(reserved: Any, shipped: Any) -> None:
    DID.append(f"tell {reserved} {shipped}")


async def undo(done: Any) -> None:
    await weft.when(done.charge, lambda: refund(done.charge.id))
    await weft.when(done.reserve, lambda: release(done.reserve.id))


@weft.workflow
async def order(item: str):  # type: ignore[no-untyped-def]  # as users write them
    async def do() -> Any:
        await reserve(item)
        asked = await weft.approve("Charge?")
        await charge(item)
        await weft.sleep(300)
        return await ship(item, asked.action)

    return await weft.attempt(do, cancelled=undo)


async def cancelled(engine: Engine, run: str) -> Any:
    await engine.runs.cancel(run)
    return await engine.wait_finished(run, 30)


async def answer(engine: Engine, run: str) -> None:
    await settled(engine, run)
    (wait,) = await engine.waits.list(run=run)
    assert wait.link is not None
    await engine.waits.answer(wait.link.rpartition("/")[2], {}, "approve")


async def test_a_run_that_waits_for_a_person_undoes_what_it_did(tmp_path: Path) -> None:
    async with weft.open(tmp_path / "weft.db", workflows=[order]) as engine:
        run = (await engine.submit(order, input={"item": "tea"})).run
        await settled(engine, run)
        view = await cancelled(engine, run)
        assert (view.status, DID) == ("cancelled", ["reserve", "release r-tea"])


async def test_what_was_done_since_is_undone_too(tmp_path: Path) -> None:
    async with weft.open(tmp_path / "weft.db", workflows=[order]) as engine:
        run = (await engine.submit(order, input={"item": "tea"})).run
        await answer(engine, run)
        await until(lambda: _opened(engine, run))
    async with weft.open(tmp_path / "weft.db", workflows=[order]) as engine:  # the handler is in no memory
        view = await cancelled(engine, run)
        assert (view.status, DID) == ("cancelled", ["reserve", "charge", "refund c-tea", "release r-tea"])


async def _opened(engine: Engine, run: str) -> bool:
    return (await events_of(engine, run, "wait.opened")).count("wait.opened") == 2


def simply(item: str, *, cancelled: Any = None, failed: Any = None, finally_: Any = None) -> Any:
    async def do() -> Any:
        reserved: Any = await reserve(item)
        return await ship(item, reserved.id)

    return weft.attempt(do, failed, cancelled=cancelled, finally_=finally_)


@weft.workflow
async def plain(item: str):  # type: ignore[no-untyped-def]  # as users write them
    return await simply(item, cancelled=lambda done: release(done.reserve.id))


async def test_nothing_is_undone_after_a_success_or_a_failure(tmp_path: Path) -> None:
    async with weft.open(tmp_path / "weft.db", workflows=[plain]) as engine:
        view = await engine.run(plain, {"item": "tea"}, timeout_s=30)
        assert (view.status, view.output, DID) == ("succeeded", "shipped tea", ["reserve", "ship"])
        DID.clear()
        view = await engine.run(plain, {"item": "broken"}, timeout_s=30)
        assert (view.status, DID) == ("failed", ["reserve", "ship"])


@weft.workflow
async def everything(item: str):  # type: ignore[no-untyped-def]  # as users write them
    return await simply(
        item,
        failed=lambda error: tell(error.code, None),
        cancelled=lambda: release("x"),
        finally_=lambda done: tell(done.reserve.id, done.ship),
    )


async def test_a_cleanup_sees_what_was_done_however_it_ended(tmp_path: Path) -> None:
    async with weft.open(tmp_path / "weft.db", workflows=[everything]) as engine:
        view = await engine.run(everything, {"item": "tea"}, timeout_s=30)
        assert (view.status, DID) == ("succeeded", ["reserve", "ship", "tell r-tea shipped tea"])
        DID.clear()
        view = await engine.run(everything, {"item": "broken"}, timeout_s=30)
        assert view.status == "succeeded"
        assert DID == ["reserve", "ship", "tell r-broken None", "tell function_failed None"]


@weft.workflow
async def both(item: str):  # type: ignore[no-untyped-def]  # as users write them
    async def do() -> Any:
        await reserve(item)
        await weft.sleep(300)

    return await weft.attempt(do, cancelled=undo_and_fail, finally_=lambda done: tell(done.reserve.id, None))


async def undo_and_fail(done: Any) -> None:
    await release(done.reserve.id)
    await ship("broken", "in the compensation")


async def test_finally_comes_after_the_compensation_also_if_that_fails(tmp_path: Path) -> None:
    async with weft.open(tmp_path / "weft.db", workflows=[both]) as engine:
        run = (await engine.submit(both, input={"item": "tea"})).run
        await settled_in_sleep(engine, run)
        view = await cancelled(engine, run)
        assert (view.status, DID) == ("cancelled", ["reserve", "release r-tea", "ship", "tell r-tea None"])


async def settled_in_sleep(engine: Engine, run: str) -> None:
    async def waits() -> bool:
        return "wait.opened" in await events_of(engine, run, "wait.opened")

    await until(waits)


@weft.workflow(settings={"cleanup_timeout_s": 1})
async def stuck(item: str):  # type: ignore[no-untyped-def]  # as users write them
    async def do() -> Any:
        await reserve(item)
        await weft.sleep(300)

    return await weft.attempt(do, cancelled=lambda: weft.sleep(200))


async def test_a_compensation_is_bounded(tmp_path: Path) -> None:
    async with weft.open(tmp_path / "weft.db", workflows=[stuck]) as engine:
        run = (await engine.submit(stuck, input={"item": "tea"})).run
        await settled_in_sleep(engine, run)
        async with asyncio.timeout(20):
            view = await cancelled(engine, run)
        assert view.status == "cancelled" and await events_of(engine, run, "cleanup.stopped")


def test_a_call_that_is_not_there_is_refused_with_those_that_are() -> None:
    @weft.workflow
    async def wrong(item: str):  # type: ignore[no-untyped-def]  # as users write them
        return await weft.attempt(lambda: ship(item, "x"), cancelled=lambda done: release(done.shipp))

    with pytest.raises(DefinitionError, match=r"no call 'shipp'\. Its calls: ship"):
        wrong.document()


def test_a_value_from_within_is_read_by_the_argument() -> None:
    @weft.workflow
    async def wrong(item: str):  # type: ignore[no-untyped-def]  # as users write them
        made: list[Any] = []

        async def do() -> Any:
            made.append(await reserve(item))
            return made[0]

        return await weft.attempt(do, cancelled=lambda: release(made[0].id))

    with pytest.raises(DefinitionError, match="A cleanup gets its calls as an argument"):
        wrong.document()


SAGA = """
import time
from pathlib import Path

import weft

HERE = Path(__file__).parent


def mark(name: str) -> int:
    file = HERE / name
    calls = len(file.read_text()) + 1 if file.exists() else 1
    file.write_text("x" * calls)
    return calls


@weft.step
def reserve(item: str) -> str:
    mark("reserve")
    return f"r-{item}"


@weft.step(effect="read")
def release(id: str) -> str:
    if mark("release") == 1:
        time.sleep(600)
    return id


@weft.step
def refund(id: str | None) -> None:
    mark("refund")


@weft.workflow(name="saga")
async def saga(item: str):
    async def do():
        await reserve(item)
        answer = await weft.approve("Charge?")
        return await refund(answer.action)

    async def undo(done):
        await release(done.reserve)
        await weft.when(done.refund, lambda: refund(None))

    return await weft.attempt(do, cancelled=undo)
"""


async def test_a_compensation_survives_a_kill(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "weft_test_saga.py"
    file.write_text(SAGA)
    monkeypatch.syspath_prepend(tmp_path)
    document = load_module(str(file)).saga.document()

    def server() -> SyncServerProcess:
        return SyncServerProcess(tmp_path, {"WEFT_FUNCTIONS": str(file), "WEFT_LEASE_MS": "1000"})

    def calls(name: str) -> int:
        return len((tmp_path / name).read_text()) if (tmp_path / name).exists() else 0

    first = server()
    async with httpx.AsyncClient(base_url=first.url, timeout=60) as client:
        run = (await client.post("/api/runs", json={"document": document, "input": {"item": "tea"}})).json()["run"]
        await _until_status(client, run, "waiting")
        first.kill()
    second = server()
    async with httpx.AsyncClient(base_url=second.url, timeout=60) as client:
        assert (await client.post(f"/api/runs/{run}/cancel")).status_code == 202
        await until(lambda: calls("release") == 1)
        second.kill()
    third = server()
    async with httpx.AsyncClient(base_url=third.url, timeout=60) as client:
        await _until_status(client, run, "cancelled")
        assert (calls("reserve"), calls("release"), calls("refund")) == (1, 2, 0)
        events = (await client.get(f"/api/runs/{run}/events", headers={"accept": "application/json"})).text
        assert "r-tea" in events and "given_up" in events
    third.stop()


async def _until_status(client: httpx.AsyncClient, run: str, status: str) -> None:
    async with asyncio.timeout(60):
        while (await client.get(f"/api/runs/{run}")).json()["status"] != status:
            await asyncio.sleep(0.05)
