"""Durable functions in an engine, by a clock that is set by hand: what they await, and what they return and raise."""

from __future__ import annotations

import asyncio
import logging
import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import msgspec
import pytest

import weft
from compiler.diagnostics import CompileError
from executor.kernel.journal.codec import data_of
from executor.open.engine import Engine
from executor.open.testing.engines import BEGIN_MS, ManualClock, engine
from executor.open.testing.play import Stuck, finish
from executor.service.views import RunView
from tests.support.durable_functions import after, again, branches, do, outside, queue, saga, signup

Made = weft.DurableFunction[..., Any]


async def played(flow: Made, answers: Any = None, **arguments: Any) -> RunView:
    outside.clear()
    async with engine(workflows=[flow]) as opened:
        run = (await opened.submit(flow, **arguments)).run
        return await finish(opened, run, answers)


async def output_of(flow: Made, answers: Any = None, **arguments: Any) -> Any:
    view = await played(flow, answers, **arguments)
    assert view.status == "succeeded", view.error
    return view.output


def effects() -> list[Any]:
    return [effect.what for effect in outside.effects]


async def test_a_saga_undoes_what_it_did() -> None:
    assert await output_of(saga, {"Did the courier take it?": "reject"}, order="7", amount=3) == "undone: no courier"
    assert effects() == ["reserve 7-0", "reserve 7-1", "charge 7", "refund p-7", "release 7-1", "release 7-0"]


async def test_the_first_that_ends_cancels_the_others_and_their_waits_close() -> None:
    async with engine(workflows=[signup]) as opened:
        clock = opened.parts.clock
        assert isinstance(clock, ManualClock)
        late = (await opened.submit(signup, name="ada")).run
        quick = (await opened.submit(signup, name="bo")).run
        await clock.advance(3600)
        await opened.signal(quick, "confirmed", "bo@example.org")
        assert (await finish(opened, quick)).output == "hello bo@example.org"
        await clock.advance(3 * 24 * 3600)
        assert (await finish(opened, late)).output == "goodbye ada"
        for run in (late, quick):
            assert await opened.waits.list(run=run) == []


async def test_branches_get_their_own_results_whichever_is_faster() -> None:
    assert await output_of(branches) == ["slow again", "quick again"]


async def test_workers_share_a_queue_and_a_list() -> None:
    assert await output_of(queue) == [
        f"worker {w} did {n} as number {at}" for at, (w, n) in enumerate([(0, 0), (0, 3), (0, 4), (1, 1), (2, 2)])
    ]


@weft.durable
async def timed() -> list[str]:
    seen = []
    try:
        async with weft.timeout(hours=1):
            try:
                async with weft.timeout(minutes=10):
                    await weft.signal("never")
            except TimeoutError:
                seen.append(f"inner {weft.now():%H:%M}")
            await weft.signal("never")
    except TimeoutError:
        seen.append(f"outer {weft.now():%H:%M}")
    try:
        await weft.signal("never", minutes=5)
    except TimeoutError as error:
        seen.append(str(error))
    async with weft.timeout(timedelta(days=1)):
        await weft.until(weft.now() + timedelta(hours=1))
    await weft.sleep(timedelta(minutes=1))
    return [*seen, f"{weft.now():%H:%M}"]


async def test_timeouts_and_sleeps_follow_the_clock() -> None:
    assert await output_of(timed) == ["inner 08:10", "outer 09:00", "no signal arrived in time", "10:06"]


@weft.durable
async def late_step() -> str:
    try:
        async with weft.timeout(seconds=0.1):
            return await after(30, "done")
    except TimeoutError:
        await weft.sleep(minutes=1)
        return "late"


async def test_a_timeout_ends_a_step_that_is_under_way() -> None:
    async with engine(workflows=[late_step], clock=_Real()) as opened:
        run = (await opened.submit(late_step)).run
        async with asyncio.timeout(10):
            while (view := await opened.runs.view(run)).status != "waiting":
                await asyncio.sleep(0.02)
        records = await opened.store.read_events(run)
        steps = [(r.type, data_of(r).get("name")) for r in records if r.type.startswith("step.")]
        ends = [data_of(r).get("error", {}).get("code") for r in records if r.type == "step.finished"]
        assert ("step.started", "timer") in steps and ends == [None, "cancelled"]
        assert len(view.waits) == 1


class _Real:
    """A clock that runs."""

    def __init__(self) -> None:
        self._began_s = asyncio.get_event_loop().time()

    def now_ms(self) -> int:
        return BEGIN_MS + round((asyncio.get_event_loop().time() - self._began_s) * 1000)

    def on_jump(self, callback: Callable[[], None]) -> None: ...


class Refused(Exception):
    pass


@weft.step(effect="none")
async def refuse(why: str) -> str:
    raise Refused(why)


@weft.step(effect="none", retries={"max_attempts": 3, "initial_ms": 1, "jitter": 0})
async def third_time(text: str) -> str:
    outside.record(text)
    if len(outside.effects) < 3:
        raise ConnectionError("not yet")
    return f"{text} after {len(outside.effects)}"


@weft.durable
async def cancelled_at(place: int) -> list[str]:
    seen: list[str] = []

    async def branch(n: int) -> str:
        try:
            if n == place:
                await weft.sleep(minutes=1)
                await refuse(f"branch {n}")
            await weft.sleep(days=9)
        except asyncio.CancelledError:
            seen.append(f"{n} is cancelled")
            await do(f"undo {n}")
            raise
        return "done"

    try:
        await weft.gather(branch(0), branch(1), branch(2))
    except weft.StepFailed as error:
        seen.append(error.message.partition(": ")[2])
    await weft.sleep(minutes=1)
    return seen


@pytest.mark.parametrize("place", [0, 1, 2])
async def test_an_error_cancels_the_other_branches_which_may_undo_what_they_did(place: int) -> None:
    others = [n for n in range(3) if n != place]
    assert await output_of(cancelled_at, place=place) == [
        *(f"{n} is cancelled" for n in others),
        f"Refused: branch {place}",
    ]
    assert effects() == [f"undo {n}" for n in others]


@weft.durable
async def many(items: list[int]) -> list[str]:
    return await weft.gather(items, one, at_most=2)


async def one(n: int) -> str:
    await weft.sleep(minutes=n)
    return await again(f"{n}")


async def test_a_function_is_called_with_each_item_so_many_at_a_time() -> None:
    assert await output_of(many, items=[3, 1, 2]) == ["3 again", "1 again", "2 again"]


@weft.durable
async def retried() -> str:
    return await third_time("tried")


async def test_a_step_is_tried_again_as_its_policy_says() -> None:
    assert await output_of(retried) == "tried after 3"


@weft.durable
async def failing() -> str:
    return await again(await refuse("of the bank"))


async def test_an_error_that_is_not_caught_ends_the_run_with_the_line_of_the_step() -> None:
    view = await played(failing)
    assert view.status == "failed" and view.error is not None
    assert view.error["code"] == "function_failed" and "Refused: of the bank" in view.error["message"]
    node = next(node for node in view.nodes if node.key == "body")
    assert node.error is not None and "raise Refused(why)" in node.error["traceback"]


@weft.durable
async def wrong_argument() -> Any:
    return await again(text=7)  # type: ignore[arg-type]  # a wrong argument is tested


async def test_arguments_of_steps_are_checked() -> None:
    view = await played(wrong_argument)
    assert view.error is not None and "Expected `str`, got `int`" in view.error["message"]


class Address(msgspec.Struct):
    street: str
    zip: int = 0


@weft.durable
async def asking() -> Any:
    home = await weft.form("Where do you live?", type=Address)
    answer = await weft.approve("Is that right?", fields=Address, actions=["yes", "no"])
    assert isinstance(home, Address) and isinstance(answer.fields, Address)
    return [home, answer.action, answer.fields.street, answer.by]


async def test_answers_of_people_have_their_types() -> None:
    answers = {
        "Where do you live?": {"street": "Here", "zip": 7},
        "Is that right?": {"action": "yes", "fields": {"street": "There"}},
    }
    assert await output_of(asking, answers) == [{"street": "Here", "zip": 7}, "yes", "There", "weft.testing"]


@weft.durable
async def values() -> list[str]:
    before = [str(weft.uuid()), str(weft.random().random()), weft.now().isoformat()]
    await again("a")
    await weft.sleep(minutes=1)
    kept.append(before)
    return before


kept: list[list[str]] = []


async def test_times_random_numbers_and_ids_are_the_same_in_each_entry() -> None:
    kept.clear()
    first, second = await output_of(values), await output_of(values)
    assert len(kept) == 2 and kept == [first, second]
    assert first[0] != second[0] and first[1] != second[1]
    assert datetime.fromisoformat(first[2]).tzinfo == UTC


@weft.step
def in_thread(text: str) -> str:
    return f"{text} by {weft.context().idempotency_key.rpartition(':')[2]}"


@weft.workflow
async def drawn(text: str) -> Any:
    return await again(text)


@weft.durable
async def parent(name: str) -> list[Any]:
    child = await signup(name)
    by_call = await weft.call(drawn, {"text": child})
    first, second = in_thread("a"), in_thread("b")
    return [child, by_call, await first, await second]


async def test_child_runs_of_durable_and_drawn_workflows_and_plain_functions() -> None:
    assert await output_of(parent, name="ada") == ["goodbye ada", "goodbye ada again", "a by body#3", "b by body#4"]


@weft.workflow
async def calls_durable(name: str) -> Any:
    return await signup(name)


async def test_a_drawn_workflow_calls_a_durable_function() -> None:
    outside.clear()
    async with engine(workflows=[calls_durable]) as opened:
        run = (await opened.submit(calls_durable, name="ada")).run
        assert (await finish(opened, run)).output == "goodbye ada"


changing = {"first": True}


@weft.durable
async def changed() -> str:
    try:
        text = await again("a" if changing["first"] else "b")
    except Exception:
        return "caught"
    await weft.sleep(minutes=1)
    return text


async def unfit(opened: Engine, run: str) -> str:
    """Return the question of a run whose code does not fit it."""
    with pytest.raises(Stuck) as stuck:
        await finish(opened, run)
    view = await opened.runs.view(run)
    (wait,) = [wait for wait in view.waits if wait.kind == "attention"]
    assert (view.status, view.error, wait.request["reason"]) == ("waiting", None, "code")
    return str(stuck.value)


async def test_other_calls_than_before_hold_the_run_up_and_cannot_be_caught() -> None:
    changing["first"] = True
    async with engine(workflows=[changed]) as opened:
        run = (await opened.submit(changed)).run
        while (await opened.runs.view(run)).status != "waiting":
            await asyncio.sleep(0.01)
        changing["first"] = False
        message = await unfit(opened, run)
        line = changed.function.__code__.co_firstlineno + 3
        assert re.match(
            rf'test_durable\.py:{line}: call 1 is `([\w.]+)\(text="b"\)` now, and was `\1\(text="a"\)` when this run '
            rf"first came here \(run {run}, event \d+, 2027-01-15 08:00:\d\d UTC\)\. It is the first call\.",
            message,
        )
        assert "is not the same each time" in message
        changing["first"] = True
        assert (await finish(opened, run, {"body": "retry"})).output == "a again"


@weft.durable
async def shorter(removes: str) -> str:
    if changing["first"] or removes != "the step":
        await again("a")
    if changing["first"] or removes != "the wait":
        await weft.sleep(minutes=1)
    return "done"


@pytest.mark.parametrize("removes", ["the step", "the wait"])
async def test_a_call_that_is_not_made_any_more_is_found(removes: str) -> None:
    changing["first"] = True
    async with engine(workflows=[shorter]) as opened:
        run = (await opened.submit(shorter, removes=removes)).run
        while (await opened.runs.view(run)).status != "waiting":
            await asyncio.sleep(0.01)
        changing["first"] = False
        message = await unfit(opened, run)
        n, what = (
            (1, '`tests.support.durable_functions.again(text="a")`')
            if removes == "the step"
            else (2, "the wait `sleep`")
        )
        line = shorter.function.__code__.co_firstlineno + 1 + 2 * n
        if removes == "the step":
            made = f"test_durable.py:{line + 2}: call 1 is the wait `sleep` now, and was {what} when"
        else:
            made = f"test_durable.py:{line}: call 2 was {what} when this run first came here, and is not made now (run"
        assert message.startswith(made)
        assert ("It is the first call." if n == 1 else "durable_functions.again (1).") in message
        changing["first"] = True
        assert (await finish(opened, run, {"body": "retry"})).output == "done"


@weft.durable
async def stuck() -> None:
    await asyncio.get_running_loop().create_future()


@weft.durable
async def reads() -> Any:
    await again("a")
    return await asyncio.to_thread(open, "/etc/hostname")


@pytest.mark.parametrize(("flow", "code"), [(stuck, "durable_stuck"), (reads, "not_deterministic")])
async def test_what_cannot_be_durable_fails_with_the_reason(flow: Made, code: str) -> None:
    view = await played(flow)
    assert view.error is not None and view.error["code"] == code


@weft.durable
async def cleaning() -> str:
    seen = []
    try:
        await weft.sleep(minutes=1)
        seen.append("slept")
    finally:
        seen.append("cleaned")
        await do("clean")
    return ", ".join(seen)


async def test_a_finally_does_its_steps_once_when_the_block_ends_and_not_when_the_function_leaves() -> None:
    assert await output_of(cleaning) == "slept, cleaned"
    assert effects() == ["clean"]


@weft.durable
async def unfinished() -> str:
    async def beside() -> None:
        await do("beside")
        await weft.sleep(days=1)

    asyncio.create_task(beside())  # noqa: RUF006  # that nothing awaits it is the point
    await weft.sleep(minutes=1)
    return "done"


async def test_tasks_that_nothing_awaits_end_with_the_function(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        assert await output_of(unfinished) == "done"
    assert effects() == ["beside"] and not caplog.records


@pytest.mark.parametrize("call", [weft.now, weft.uuid, weft.random])
def test_outside_of_a_durable_function_they_say_where_they_belong(call: Callable[[], Any]) -> None:
    with pytest.raises(RuntimeError, match=r"@weft\.durable"):
        call()


async def test_waits_outside_of_a_durable_function_say_where_they_belong() -> None:
    with pytest.raises(RuntimeError, match=r"weft\.signal\(\) works in a durable function"):
        await weft.signal("x")
    with pytest.raises(weft.DefinitionError, match="which runs in an engine"):
        await signup("ada")


async def test_a_step_of_a_durable_function_is_a_plain_function_in_a_unit_test() -> None:
    assert await again("a") == "a again"


async def test_an_input_and_arguments_do_not_go_together() -> None:
    async with engine(workflows=[signup]) as opened:
        with pytest.raises(TypeError, match="missing a required argument"):
            await opened.submit(signup, nmae="ada")
        with pytest.raises(TypeError, match="pass one of them"):
            await opened.submit(signup, input={"name": "ada"}, name="ada")
        with pytest.raises(TypeError, match="unexpected argument 'name'"):
            await opened.submit("signup", name="ada")


async def test_a_durable_function_that_the_engine_was_not_given_is_refused() -> None:
    async with engine(workflows=[branches]) as opened:
        with pytest.raises(CompileError, match="Function must be one of"):
            await opened.submit(signup, name="ada")


@weft.durable
async def undoing() -> str:
    try:
        await after(30, "done")
        return "done"
    finally:
        seen_by_finally.append("seen")
        await do("never")


seen_by_finally: list[str] = []


@pytest.mark.parametrize("at", ["a step", "a wait"])
async def test_a_cancel_ends_the_function_of_a_document_that_an_older_version_has_stored(at: str) -> None:
    outside.clear()
    flow: Made = undoing if at == "a step" else signup
    document = flow.document()
    document = {**document, "blocks": dict(document["blocks"]), "edges": document["edges"][:1]}
    del document["blocks"]["undo"]
    async with engine(workflows=[flow]) as opened:
        run = (await opened.submit(document, input={} if at == "a step" else {"name": "ada"})).run
        wanted = "step.started" if at == "a step" else "node.left"
        while not [one for one in await opened.store.read_events(run) if one.type == wanted]:
            await asyncio.sleep(0.01)
        outside.clear()
        await opened.cancel(run)
        view = await finish(opened, run)
        assert view.status == "cancelled" and effects() == []
        assert await opened.waits.list(run=run) == []
    assert seen_by_finally or at == "a wait"


@weft.step(effect="none")
async def works_once_repaired(text: str) -> str:
    if not repaired:
        raise ConnectionError("the bank is down")
    return text


repaired: list[bool] = []


@weft.durable
async def repairable() -> list[str]:
    first = await do("first")
    await weft.sleep(minutes=1)
    return [first, await works_once_repaired("second")]


async def test_a_fork_continues_from_before_the_step_that_failed() -> None:
    outside.clear()
    repaired.clear()
    async with engine(workflows=[repairable]) as opened:
        run = (await opened.submit(repairable)).run
        assert (await finish(opened, run)).status == "failed"
        repaired.append(True)
        failed = [one.seq for one in await opened.store.read_events(run) if one.type == "step.finished"][-1]
        forked = await opened.lifecycle.fork(run, failed - 1)
        assert (await finish(opened, forked.run)).output == ["first", "second"]
    assert effects() == ["first"]


@weft.durable
async def childless() -> str:
    try:
        return str(await weft.call("not-stored", {}))
    except weft.StepFailed as error:
        return f"{error.code}"


async def test_a_child_that_cannot_be_made_is_an_error_of_the_call() -> None:
    assert await output_of(childless) == "workflow_not_found"


async def test_a_run_waits_for_a_process_that_has_its_function(tmp_path: Path) -> None:
    file = tmp_path / "weft.db"
    clock = ManualClock()
    async with engine(workflows=[signup], database=file, clock=clock) as opened:
        run = (await opened.submit(signup, name="ada")).run
        while (await opened.runs.view(run)).status != "waiting":
            await asyncio.sleep(0.01)
    async with engine(database=file, clock=clock) as opened:
        await clock.advance(4 * 24 * 3600)
        assert (await opened.runs.view(run)).status == "waiting"
        assert "signup" in next(iter(opened.parts.owned.missing.values()))
    async with engine(workflows=[signup], database=file, clock=clock) as opened:
        await clock.advance(3600)
        assert (await finish(opened, run)).output == "goodbye ada"


@weft.step(effect="none")
async def counts(words: list[str]) -> int:
    return words[0]  # type: ignore[return-value]  # it is wrong


@weft.durable
async def mistaken(what: str) -> Any:
    if what == "argument":
        return await counts()  # type: ignore[call-arg]  # it is missing
    return await counts(["a"])


@pytest.mark.parametrize(
    ("what", "said"),
    [
        ("argument", r"counts: missing a required argument: 'words'\. It is counts\(words: .*\) -> .*int.*\."),
        ("result", r"test_durable\.counts: the result does not fit its type: Expected `int`, got `str`"),
    ],
)
async def test_a_wrong_argument_or_result_names_the_step(what: str, said: str) -> None:
    view = await played(mistaken, what=what)
    assert view.error is not None and re.search(said, view.error["message"])
