"""The state that durable functions publish, their queries and updates, and runs that continue as new."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

import weft
from compiler.builder.errors import DefinitionError
from executor.blocks.http.client import GuardedClient
from executor.blocks.sandbox.sandbox import Sandbox
from executor.blocks.services import Services
from executor.blocks.types.registry import Registry
from executor.kernel.journal.codec import data_of
from executor.kernel.journal.reader import output_of
from executor.kernel.store.run_rows import EventFilter
from executor.kernel.store.sqlite.store import SQLiteStore
from executor.open.engine import Engine
from executor.open.testing.engines import SECRET, ManualClock, engine
from executor.open.testing.play import finish
from executor.open.testing.replay import journal_of, replay
from executor.service.replay.journals import write


@dataclass
class Cart:
    items: list[str] = field(default_factory=list)
    total: float = 0


going: list[asyncio.Event] = []  # of the test that runs: an event belongs to its event loop


@weft.step(effect="none")
async def price(item: str) -> float:
    return float(len(item))


@weft.step(effect="none")
async def slow() -> str:
    await going[-1].wait()
    return "slow"


@weft.durable(state=Cart)
async def cart(owner: str, rounds: int = 0) -> float:
    shown = Cart()
    weft.state(shown)
    while True:
        match await weft.first(add.next(), close.next()):
            case weft.FirstCompleted(0, asked):
                if not asked.value:
                    await asked.refuse("an item has a name")
                    continue
                shown.total += await price(asked.value)
                shown.items.append(asked.value)
                weft.state(shown)
                await asked.answer(len(shown.items))
                if asked.value == "again":
                    await cart.continue_as_new(owner, rounds=rounds + 1)
            case weft.FirstCompleted(_, asked):
                await asked.answer(shown.total)  # type: ignore[arg-type]  # the index of `First` narrows no type
                return shown.total


@cart.query
def total(state: Cart, tax: float = 0) -> float:
    return state.total * (1 + tax)


@cart.query
def broken(state: Cart) -> float:
    raise LookupError(state.items[0])


@cart.update
def add(item: str) -> int: ...  # type: ignore[empty-body]  # an update has a signature alone


@cart.update
def close() -> float: ...  # type: ignore[empty-body]  # as above


async def published(engine: Engine, run: str) -> list[Any]:
    records, _ = await engine.store.find_events(run, EventFilter(types=("node.state",)))
    return [await output_of(engine.store, record) for record in records]


async def answered(engine: Engine, run: str) -> list[str]:
    records, _ = await engine.store.find_events(run, EventFilter(types=("update.answered",)))
    return [data_of(record)["update"] for record in records]


async def test_updates_are_answered_in_order_and_the_state_is_seen_by_queries() -> None:
    async with engine(workflows=[cart]) as opened:
        run = (await opened.submit(cart, owner="ada")).run
        assert [await opened.update(run, add, item) for item in ("a", "bb")] == [1, 2]
        with pytest.raises(weft.Refused, match="an item has a name") as refused:
            await opened.update(run, cart.add, "")
        assert refused.value.code == "update_refused"
        assert await opened.query(total, run) == 3.0
        assert await opened.query(cart.total, run, tax=1) == await opened.query("total", run, tax=1) == 6.0
        assert (await opened.runs.view(run)).state == {"items": ["a", "bb"], "total": 3.0}
        assert (await opened.history.state(run, 5)).state == {"items": [], "total": 0}
        assert await opened.update(run, close) == 3.0
        view = await opened.wait_finished(run, 10)
        assert (view.status, view.output, view.state) == ("succeeded", 3.0, {"items": ["a", "bb"], "total": 3.0})
        assert await opened.query(total, run) == 3.0, "also after its end"
        assert len(await published(opened, run)) == 3, "each once, though the code was entered again for each update"
        with pytest.raises(weft.Conflict) as over:
            await opened.update(run, add, "c")
        assert over.value.code == "run_ended"


async def test_an_id_makes_an_update_happen_once() -> None:
    async with engine(workflows=[cart]) as opened:
        run = (await opened.submit(cart, owner="ada")).run
        assert await asyncio.gather(*[opened.update(run, add, "a", id="1") for _ in range(3)]) == [1, 1, 1]
        with pytest.raises(weft.Conflict) as reused:
            await opened.update(run, add, "b", id="1")
        assert reused.value.code == "update_id_reused"
        assert await opened.update(run, close, id="2") == 1.0
        assert await opened.update(run, add, "a", id="1") == 1, "also after the end of the run"
        assert await answered(opened, run) == ["1", "2"]


@asynccontextmanager
async def front(path: Path, clock: ManualClock) -> AsyncIterator[Engine]:
    """An engine on the same database that has no functions, and executes no runs."""
    sandbox = Sandbox(threads=1)
    services = Services(sandbox=sandbox, http=GuardedClient())
    store, registry = SQLiteStore(path), Registry.load(sandbox=sandbox)
    opened = await Engine.open(store, registry=registry, services=services, secret=SECRET, clock=clock, work=False)
    try:
        yield opened
    finally:
        await opened.close(grace_s=0)


@pytest.mark.proof  # another process is looked for by a poll
async def test_a_value_that_does_not_fit_is_refused_by_the_caller_or_by_the_run(tmp_path: Path) -> None:
    path, clock = tmp_path / "weft.db", ManualClock()
    async with engine(workflows=[cart], database=path, clock=clock) as opened, front(path, clock) as other:
        run = (await opened.submit(cart, owner="ada")).run
        with pytest.raises(weft.BadRequest, match="Expected `str`, got `int`") as unfit:
            await opened.update(run, "add", 5)
        assert (unfit.value.code, unfit.value.pointer) == ("update_invalid", "/value")
        asked = asyncio.create_task(other.update(run, "add", 5, seconds=30))  # it has no code to check it with
        with pytest.raises(weft.Refused, match="the value does not fit its type: Expected `str`, got `int`"):
            await asked
        assert await other.update(run, "add", "a") == 1


async def test_what_there_is_not_is_named_with_what_there_is(tmp_path: Path) -> None:
    path, clock = tmp_path / "weft.db", ManualClock()
    async with engine(workflows=[cart, quiet], database=path, clock=clock) as opened, front(path, clock) as other:
        run, silent = (await opened.submit(cart, owner="ada")).run, (await opened.submit(quiet)).run
        plain = {"format": "weft/1", "name": "plain", "blocks": {"start": {"type": "start"}}}
        drawn = (await opened.submit(plain)).run
        for call, code, text in (
            (opened.query("eta", run), "query_not_found", "has no query 'eta'; it has: total, broken"),
            (opened.update(run, "eta"), "update_not_found", "has no update 'eta'; it has: add, close"),
            (opened.query(total, drawn), "not_durable", "which is no durable function"),
            (opened.update(silent, add, "a"), "update_not_found", "belongs to"),
            (other.query("total", run), "function_lacking", "it has: none"),
            (opened.query("total", "nope"), "run_not_found", "nope"),
        ):
            with pytest.raises(weft.NotFound, match=text) as lacking:
                await call
            assert lacking.value.code == code
        assert await other.query(total, run) == 0.0, "it has the query at hand"
        for call, error, code in (
            (opened.query("total", run, taxes=1), weft.BadRequest, "arguments_invalid"),
            (opened.query("total", run, tax="x"), weft.BadRequest, "arguments_invalid"),
            (opened.query("seen", silent), weft.Conflict, "state_missing"),
            (opened.query("broken", run), weft.BlockError, "function_failed"),
            (opened.signal(run, "weft:update:add", "a"), weft.BadRequest, "signal_name_reserved"),
        ):
            with pytest.raises(error) as wrong:
                await call
            assert wrong.value.code == code
        await opened.cancel(silent)


@weft.durable
async def quiet() -> None:
    await weft.signal("never")


@quiet.query
def seen(state: int) -> int:
    return state


async def test_nobody_answers_and_the_caller_stops_waiting() -> None:
    async with engine(workflows=[early]) as opened:
        run = (await opened.submit(early)).run
        with pytest.raises(TimeoutError, match="id='1' asks for its answer again"):
            await opened.update(run, "ping", id="1", seconds=0.05)
        await opened.signal(run, "go")
        assert await opened.update(run, "ping", id="1") == "pong", "it was kept"


@weft.durable
async def early() -> None:
    await weft.signal("go")
    await (await early.ping.next()).answer("pong")


@early.update
def ping() -> str: ...  # type: ignore[empty-body]  # an update has a signature alone


async def test_an_update_is_answered_while_a_step_is_under_way() -> None:
    going.append(asyncio.Event())
    async with engine(workflows=[beside]) as opened:
        run = (await opened.submit(beside)).run
        asked = asyncio.create_task(opened.update(run, "ask", "x"))
        await recorded(opened, run, "step.started", 1)
        await asyncio.sleep(0.05)
        going[-1].set()
        assert await asked == "x answered"
        assert (await finish(opened, run)).output == ["slow", "x answered"]


@weft.durable
async def beside() -> list[str]:
    return list(await weft.gather(slow(), one()))


async def one() -> str:
    asked = await beside.ask.next()
    await asked.answer(f"{asked.value} answered")
    return f"{asked.value} answered"


@beside.update
def ask(text: str) -> str: ...  # type: ignore[empty-body]  # an update has a signature alone


@weft.durable
async def dropping() -> list[str]:
    match await weft.first(weft.signal("go"), put.next()):
        case weft.FirstCompleted(1):
            return ["the update came first"]
    taken: list[str] = []
    for _ in range(2):
        asked = await put.next()
        taken.append(asked.value)
        await asked.answer(len(taken))
    return taken


@dropping.update
def put(text: str) -> int: ...  # type: ignore[empty-body]  # an update has a signature alone


async def test_an_update_to_a_wait_that_is_dropped_before_it_is_seen_comes_to_the_next(tmp_path: Path) -> None:
    """Both of what the function waits for come while it is in no memory, so both waits end before it is entered."""
    path, clock = tmp_path / "weft.db", ManualClock()
    async with engine(workflows=[dropping], database=path, clock=clock) as opened:
        run = (await opened.submit(dropping)).run
        await recorded(opened, run, "node.left", 1)
    async with front(path, clock) as other:
        await other.signal(run, "go")
        assert await other.functions.ask(run, put, "a", "1", None, 0) is None
    async with engine(workflows=[dropping], database=path, clock=clock) as opened:
        assert await opened.update(run, put, "a", id="1") == 1
        assert await opened.update(run, put, "b") == 2
        assert (await finish(opened, run)).output == ["a", "b"]


async def recorded(engine: Engine, run: str, type: str, count: int) -> None:
    async with asyncio.timeout(10):
        while (await engine.store.find_events(run, EventFilter(types=(type,))))[1] < count:
            await asyncio.sleep(0.01)


async def test_a_run_continues_as_new_and_its_updates_go_on() -> None:
    async with engine(workflows=[cart]) as opened:
        run = (await opened.submit(cart, owner="ada")).run
        assert await opened.update(run, add, "again", id="1") == 1
        view = await opened.wait_finished(run, 10)
        assert view.status == "succeeded" and view.continued_as is not None
        following = view.continued_as
        assert (await opened.runs.view(following)).input == {"owner": "ada", "rounds": 1}
        clock = opened.parts.clock
        assert isinstance(clock, ManualClock)
        await clock.advance(5)
        assert await opened.update(following, add, "b") == 1
        assert await opened.query(total, following) == 1.0
        assert await opened.update(run, add, "again", id="1") == 1


async def test_an_update_that_the_next_run_answers() -> None:
    async with engine(workflows=[handing]) as opened:
        run = (await opened.submit(handing)).run
        asked = asyncio.create_task(opened.update(run, "who", id="1"))
        await asyncio.sleep(0.05)
        await opened.signal(run, "go")
        await opened.wait_finished(run, 10)
        clock = opened.parts.clock
        assert isinstance(clock, ManualClock)
        await clock.advance(5)
        assert await asked == "the second"
        assert await opened.update(run, "who", id="1") == "the second"


@weft.durable
async def handing(second: bool = False) -> None:
    if not second:
        try:
            await weft.signal("go")
            await weft.continue_as_new({"second": True})
        finally:
            await price("nothing begins here")
    await (await handing.who.next()).answer("the second")


@handing.update
def who() -> str: ...  # type: ignore[empty-body]  # an update has a signature alone


@weft.durable
async def telling() -> list[Any]:
    before = weft.info()
    await weft.sleep(days=1)
    return [before.run == weft.info().run, before.workflow, before.by, weft.info().replaying]


async def test_info_and_the_rules_of_a_published_state() -> None:
    async with engine(workflows=[telling, wrong], env={"KEY": "s3cr3t-value"}, secrets=["KEY"]) as opened:
        run = (await opened.submit(telling)).run
        assert (await finish(opened, run)).output == [True, "telling", None, False]
        run = (await opened.submit(wrong, text="a s3cr3t-value here")).run
        view = await finish(opened, run)
        assert "weft.state: the value does not fit the type of" in view.output
        assert view.state == {"items": ["a [redacted] here"], "total": 0}


@weft.durable(state=Cart)
async def wrong(text: str) -> str:
    weft.state(Cart([text]))
    try:
        weft.state(5)
    except TypeError as error:
        return str(error)
    return ""


async def test_only_the_last_state_before_a_commit_is_recorded_and_none_twice() -> None:
    async with engine(workflows=[counting]) as opened:
        clock = opened.parts.clock
        assert isinstance(clock, ManualClock)
        run = (await opened.submit(counting)).run
        assert (await finish(opened, run)).status == "succeeded"
        assert await published(opened, run) == [b"2", b"5", b"6"]


@weft.durable
async def counting() -> None:
    weft.state(1)
    weft.state(2)
    await weft.sleep(hours=1)
    for n in range(6):
        weft.state(n)
    await weft.sleep(hours=1)
    weft.state(5)
    await weft.sleep(hours=1)
    weft.state(6)


async def test_journals_with_updates_fit_their_code(tmp_path: Path) -> None:
    path, clock = tmp_path / "weft.db", ManualClock()
    async with engine(workflows=[cart, dropping], database=path, clock=clock) as opened:
        run = (await opened.submit(cart, owner="ada")).run
        with pytest.raises(weft.Refused):
            await opened.update(run, add, "")
        await opened.update(run, add, "again")
        await opened.wait_finished(run, 10)
        dropped = (await opened.submit(dropping)).run
        await recorded(opened, dropped, "node.left", 1)
    async with front(path, clock) as other:
        await other.signal(dropped, "go")
        await other.functions.ask(dropped, put, "a", "1", None, 0)
    async with engine(workflows=[cart, dropping], database=path, clock=clock) as opened:
        assert await opened.update(dropped, put, "a", id="1") == 1
        journals = [await journal_of(opened, one) for one in (run, dropped)]
    [continued] = replay(cart, write([journals[0]]))
    assert continued.output == {"input": {"owner": "ada", "rounds": 1}, "version": None}
    [open_] = replay(dropping, write([journals[1]]))
    assert (open_.status, open_.output) == ("waiting", None)


def test_functions_that_can_be_no_query_or_update() -> None:
    def two(a: int, b: int) -> int:
        return a + b

    async def later(state: int) -> int:
        return state

    for function, made, text in (
        (two, quiet.update, "at most one"),
        (later, quiet.query, "a plain `def`"),
        (seen.function, quiet.query, "has 'seen' already"),
    ):
        of: Any = made
        with pytest.raises(DefinitionError, match=text):
            of(function)
    with pytest.raises(RuntimeError, match="works in its durable function"):
        asyncio.run(add.next())
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = quiet.nothing
