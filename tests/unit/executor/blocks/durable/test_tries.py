"""Policies of the steps of durable functions: tries, time limits, exceptions as themselves, cached results, losses."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import msgspec
import pytest

import weft
from compiler.builder.errors import DefinitionError
from executor.errors import AnswerInvalid
from executor.kernel.journal.codec import data_of
from executor.open.engine import Engine
from executor.open.testing.engines import BEGIN_MS, ManualClock, engine, settled
from executor.open.testing.play import finish
from executor.service.views import WaitView
from tests.support.crashes import ends_at
from tests.support.durable_functions import after, do, outside

DAY = 24 * 3600


async def output_of(flow: weft.DurableFunction[..., Any], answers: Any = None, **arguments: Any) -> Any:
    outside.clear()
    async with engine(workflows=[flow]) as opened:
        run = (await opened.submit(flow, **arguments)).run
        view = await finish(opened, run, answers)
        assert view.status == "succeeded", view.error
        return view.output


async def events(opened: Engine, run: str) -> list[tuple[str, dict[str, Any]]]:
    return [(record.type, data_of(record)) for record in await opened.store.read_events(run)]


def tries() -> list[Any]:
    return [effect.what for effect in outside.effects]


class Busy(Exception):
    pass


class Refused(Exception):
    def __init__(self, why: str, code: int) -> None:
        super().__init__(why, code)
        self.code = code


class Expired(Refused):
    pass


def clock_of(opened: Engine) -> ManualClock:
    assert isinstance(opened.parts.clock, ManualClock)
    return opened.parts.clock


# --- tries ---


@weft.step(effect="none", retries=weft.Retry(3, first=3600, factor=24, at_most=DAY, never=(LookupError,)))
async def slow_to_come(after_tries: int) -> int:
    outside.record(weft.context().now.isoformat())
    if len(outside.effects) <= after_tries:
        raise Busy("not yet")
    return len(outside.effects)


@weft.durable
async def patient(after_tries: int) -> Any:
    try:
        return await slow_to_come(after_tries)
    except weft.StepFailed as error:
        return [error.message, error.type, f"{weft.now():%d %H}"]


async def test_a_step_is_tried_again_after_days_and_holds_no_memory_meanwhile() -> None:
    outside.clear()
    async with engine(workflows=[patient]) as opened:
        run = (await opened.submit(patient, after_tries=2)).run
        await settled(opened)
        assert (await opened.runs.view(run)).status == "waiting" and opened.figures.runs == 0
        detail = await opened.runs.node(run, "body")
        assert detail.steps is not None
        (step,) = detail.steps
        assert (step.status, step.times, step.error and step.error["type"]) == ("retrying", 1, f"{__name__}.Busy")
        assert step.due_ms is not None and abs(step.due_ms - clock_of(opened).now_ms() - 3_600_000) <= 900_000
        assert (await finish(opened, run)).output == 3
        found = await events(opened, run)
        assert [data["times"] for type, data in found if type == "step.retrying"] == [1, 2]
        begun = [data["n"] for type, data in found if type == "step.started"]
        counted = opened.parts.meters.steps.by
        assert (counted["step", "retried"], counted["step", "succeeded"]) == (2, 1)
        assert begun == [1, 1, 1] and [type for type, _ in found].count("node.left") == 2


async def test_the_code_sees_the_error_after_the_last_try() -> None:
    name = f"{slow_to_come.name}: Busy: not yet"
    output = await output_of(patient, after_tries=9)
    assert output[:2] == [name, f"{__name__}.Busy"] and len(tries()) == 4


async def test_a_person_can_hasten_a_try() -> None:
    outside.clear()
    async with engine(workflows=[patient]) as opened:
        run = (await opened.submit(patient, after_tries=1)).run
        await settled(opened)
        await opened.lifecycle.retry(run, "body")
        await settled(opened)
        assert (await opened.runs.view(run)).output == 2


@weft.step(effect="none", retries=weft.Retry(5, first=0.001, only=(Busy, TimeoutError), never=(Expired,)))
def picky(kind: str) -> str:
    outside.record(kind)
    raise {"busy": Busy("x"), "value": ValueError("x"), "expired": Expired("x", 1)}[kind]


@weft.durable
async def choosing(kind: str) -> str:
    try:
        return str(await picky(kind))
    except weft.StepFailed as error:
        return error.type.rpartition(".")[2]


@weft.workflow
async def drawn(kind: str) -> str:
    return await weft.attempt(lambda: picky(kind), lambda error: error.code)


@pytest.mark.parametrize(("kind", "times"), [("busy", 6), ("value", 1), ("expired", 1)])
async def test_exceptions_decide_whether_it_is_tried_again(kind: str, times: int) -> None:
    assert (await output_of(choosing, kind=kind)).lower() in (kind, f"{kind}error")
    assert len(tries()) == times
    outside.clear()
    async with engine(workflows=[drawn]) as opened:
        run = (await opened.submit(drawn, kind=kind)).run
        assert (await finish(opened, run)).output == "function_failed"
    assert len(tries()) == times, "in a drawn workflow as well"


@weft.step(retries=weft.Retry(5, first=DAY, at_most=DAY))
async def never_again(what: str) -> str:
    outside.record(what)
    raise Busy(what)


@weft.durable
async def dropping() -> str:
    match await weft.first(never_again("a"), weft.sleep(hours=2)):
        case weft.FirstCompleted(1):
            await weft.sleep(days=30)
            return f"{weft.now():%m-%d %H}"
    return "?"


async def test_a_step_that_pauses_is_given_up_when_it_is_not_needed() -> None:
    outside.clear()
    async with engine(workflows=[dropping]) as opened:
        run = (await opened.submit(dropping)).run
        view = await finish(opened, run)
        assert view.output == "02-14 10" and tries() == ["a"]
        ends = [data for type, data in await events(opened, run) if type == "step.finished" and data["n"] == 1]
        assert [end["error"]["code"] for end in ends] == ["cancelled"]


@weft.durable
async def beside() -> list[Any]:
    return list(await weft.gather(slow_to_come(1), after(0.2, "done")))


async def test_a_pause_beside_a_step_that_is_under_way() -> None:
    assert await output_of(beside) == [2, "done"]


@weft.durable
async def unawaited() -> str:
    task = asyncio.ensure_future(never_again("left behind"))
    await weft.sleep(minutes=1)
    assert not task.done()
    return "ended"


async def test_a_function_ends_without_a_step_that_pauses() -> None:
    assert await output_of(unawaited) == "ended"
    assert tries() == ["left behind"]


@weft.durable
async def undoing() -> None:
    try:
        await never_again("tried")
    except weft.Cancelled:
        await do("undone")
        raise


async def test_a_cancel_ends_the_pause() -> None:
    outside.clear()
    async with engine(workflows=[undoing]) as opened:
        run = (await opened.submit(undoing)).run
        await settled(opened)
        await opened.cancel(run)
        assert (await finish(opened, run)).status == "cancelled"
        assert tries() == ["tried", "undone"]


@weft.durable
async def with_signal() -> list[Any]:
    return list(await weft.gather(slow_to_come(1), weft.signal("go")))


async def test_the_end_of_a_wait_does_not_end_the_pause() -> None:
    outside.clear()
    async with engine(workflows=[with_signal]) as opened:
        run = (await opened.submit(with_signal)).run
        await settled(opened)
        before = (await opened.runs.node(run, "body")).steps
        await opened.signal(run, "go", "yes")
        await settled(opened)
        after = (await opened.runs.node(run, "body")).steps
        assert before and after and (after[0].status, after[0].due_ms) == ("retrying", before[0].due_ms)
        assert len(tries()) == 1
        assert (await finish(opened, run)).output == [2, "yes"]


# --- the time of one try ---


@weft.step(effect="none", timeout=0.02, retries=weft.Retry(1, first=0.001))
async def hangs(text: str) -> None:
    outside.record(text)
    await asyncio.sleep(30)


@weft.durable
async def waiting(as_failed: bool) -> list[str]:
    seen: list[str] = []
    kind = weft.StepFailed if as_failed else TimeoutError
    try:
        await hangs("a")
    except kind as error:
        seen.append(f"{type(error).__name__} {error}")
    await weft.sleep(days=1)
    return seen


@pytest.mark.parametrize("as_failed", [True, False])
async def test_a_try_has_a_time_and_its_error_is_the_same_when_it_is_read_again(as_failed: bool) -> None:
    assert await output_of(waiting, as_failed=as_failed) == [f"StepTimeout {hangs.name} took longer than 0.02 s"]
    assert tries() == ["a", "a"]


# --- exceptions as themselves ---


class Odd(Exception):
    def __init__(self, *, why: str) -> None:
        super().__init__(why)


@weft.step(effect="none", raises=(Refused, Odd, KeyError))
async def card(kind: str) -> None:
    raise {
        "refused": Refused("no money", 51),
        "expired": Expired("old", 54),
        "key": KeyError("k"),
        "odd": Odd(why="odd"),
        "plain": KeyError(object),
        "value": ValueError("not declared"),
    }[kind]


@weft.durable
async def paying(kind: str) -> list[Any]:
    try:
        await card(kind)
    except Refused as error:
        await weft.sleep(days=1)
        return [type(error).__name__, str(error.args), error.code]
    except KeyError as error:
        await weft.sleep(days=1)
        return ["KeyError", error.args[0]]
    except weft.StepFailed as error:
        await weft.sleep(days=1)
        return [error.message.partition(": ")[2], error.type]
    return []


@pytest.mark.parametrize(
    ("kind", "output"),
    [
        ("refused", ["Refused", "('no money', 51)", 51]),
        ("expired", ["Expired", "('old', 54)", 54]),
        ("key", ["KeyError", "k"]),
        ("value", ["ValueError: not declared", "ValueError"]),
    ],
)
async def test_declared_exceptions_are_raised_as_themselves(kind: str, output: list[Any]) -> None:
    assert await output_of(paying, kind=kind) == output


async def test_one_that_cannot_be_made_again_is_a_failed_step_that_says_why() -> None:
    message, type = await output_of(paying, kind="odd")
    assert message.startswith("Odd: odd (it cannot be raised as Odd: Odd(*args) raised TypeError")
    assert type == f"{__name__}.Odd"
    message, _ = await output_of(paying, kind="plain")
    assert message.endswith("(it cannot be raised as KeyError: its args are not JSON of at most 16 KiB)")


# --- cached results ---


@weft.step(effect="read", cache={"scope": "global", "ttl_s": 3600})
async def rate(of: str) -> float:
    outside.record(of)
    return 1.5


@weft.durable
async def converting(of: str) -> float:
    first = await rate(of)
    await weft.sleep(minutes=1)
    return first * await rate(of)


@weft.workflow
async def drawn_rate(of: str) -> float:
    return await rate(of)


async def test_equal_calls_return_the_stored_result_also_that_of_a_drawn_workflow() -> None:
    outside.clear()
    async with engine(workflows=[converting, drawn_rate]) as opened:
        run = (await opened.submit(converting, of="EUR")).run
        assert (await finish(opened, run)).output == 2.25 and tries() == ["EUR"]
        finished = [data for type, data in await events(opened, run) if type == "step.finished"]
        assert [data.get("cached", False) for data in finished if data["n"] != 2] == [False, True]
        other = (await opened.submit(drawn_rate, of="EUR")).run
        assert (await finish(opened, other)).output == 1.5 and tries() == ["EUR"]
        again = (await opened.submit(converting, of="USD")).run
        await finish(opened, again)
        assert tries() == ["EUR", "USD"]
        await clock_of(opened).advance(3600)
        await finish(opened, (await opened.submit(drawn_rate, of="USD")).run)
        assert tries() == ["EUR", "USD", "USD"], "its time is over"


@weft.step(effect="read", cache={"key": "<start.of>"})
async def keyed(of: str) -> str:
    return of


@weft.durable
async def with_key() -> str:
    return await keyed("a")


async def test_a_key_of_the_cache_is_refused() -> None:
    async with engine(workflows=[with_key]) as opened:
        view = await finish(opened, (await opened.submit(with_key)).run)
        assert view.error is not None and "`key` of cache is an expression" in view.error["message"]


# --- losses ---


async def _lose(text: str) -> str:
    outside.record(text)
    if len(outside.effects) == 1:
        await asyncio.Event().wait()
    return text


@weft.step(on_lost="retry")
async def lost_retry(text: str) -> str:
    return await _lose(text)


@weft.step(effect="read", on_lost="ask")
async def lost_ask(text: str) -> str:
    return await _lose(text)


@weft.step(effect="read", on_lost="fail")
async def lost_fail(text: str) -> str:
    return await _lose(text)


@weft.durable
async def losing(on_lost: str) -> str:
    step = {"retry": lost_retry, "ask": lost_ask, "fail": lost_fail}[on_lost]
    try:
        return await step(on_lost)
    except weft.StepFailed as error:
        await weft.sleep(days=1)
        return error.code


@pytest.mark.parametrize(
    ("on_lost", "output", "times"), [("retry", "retry", 2), ("ask", "ask", 2), ("fail", "step_lost", 1)]
)
async def test_a_step_says_what_follows_when_its_process_ended(
    tmp_path: Path, on_lost: str, output: str, times: int
) -> None:
    outside.clear()
    async with engine(workflows=[losing], database=tmp_path / "weft.db") as opened:
        run = (await opened.submit(losing, on_lost=on_lost)).run
        while not tries():
            await asyncio.sleep(0.01)
        ends_at(opened, 1, after=False)
    async with engine(workflows=[losing], database=tmp_path / "weft.db") as opened:
        clock_of(opened).set(BEGIN_MS + 3_600_000)  # its lease is over
        seen: list[str] = []

        def answer(wait: WaitView) -> str:
            seen.append(wait.kind)
            return "retry"

        view = await finish(opened, run, {"Step 1 of body was lost": answer})
        assert (view.output, len(tries())) == (output, times), view.error
        assert seen == (["attention"] if on_lost == "ask" else [])


class Receipt(msgspec.Struct):
    id: str


@weft.step
async def lost_pay(text: str) -> Receipt:
    return Receipt(await _lose(text))


@weft.durable
async def receipt() -> str:
    return (await lost_pay("p")).id


async def test_done_is_answered_with_what_the_step_returns(tmp_path: Path) -> None:
    outside.clear()
    async with engine(workflows=[receipt], database=tmp_path / "weft.db") as opened:
        run = (await opened.submit(receipt)).run
        while not tries():
            await asyncio.sleep(0.01)
        ends_at(opened, 1, after=False)
    async with engine(workflows=[receipt], database=tmp_path / "weft.db") as opened:
        clock_of(opened).set(BEGIN_MS + 3_600_000)  # its lease is over
        while not (waits := await opened.waits.list(run=run)):
            await asyncio.sleep(0.01)
        wrong: list[dict[str, Any]] = [{}, {"output": {"no": 1}}]
        for fields in wrong:
            with pytest.raises(AnswerInvalid) as refused:
                await opened.waits.answer_wait(run, waits[0].id, fields, "done")
            assert (refused.value.pointer or "").startswith("/fields/output")
        await opened.waits.answer_wait(run, waits[0].id, {"output": {"id": "p-17"}}, "done")
        view = await finish(opened, run, {})
        assert (view.output, len(tries())) == ("p-17", 1), view.error


def test_options_that_cannot_be_meant_are_refused_where_they_are_written() -> None:
    def one() -> None: ...

    with pytest.raises(
        DefinitionError, match=r"only takes classes of exceptions, such as only=\(ValueError,\), not 'busy'"
    ):
        weft.step(retries=weft.Retry(2, only=("busy",)))(one)  # type: ignore[arg-type]  # tested
    with pytest.raises(DefinitionError, match="raises takes classes of exceptions"):
        weft.step(raises=(KeyboardInterrupt,))(one)  # type: ignore[arg-type]  # tested
    with pytest.raises(
        DefinitionError, match="one may change something, which its cache would prevent: set effect='read'"
    ):
        weft.step(cache=True)(one)
    with pytest.raises(DefinitionError, match=r"write them in @weft.step\(retries"):
        lost_ask.with_options(retries=weft.Retry(2, never=(ValueError,)))
    with pytest.raises(ValueError, match="first at most at_most"):
        weft.Retry(3, first=400)
