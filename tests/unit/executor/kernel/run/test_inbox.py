"""Messages become facts, without an engine."""

from __future__ import annotations

from typing import Any

import orjson
import pytest
from msgspec import Raw

from executor.kernel.core import facts as f
from executor.kernel.core import messages as m
from executor.kernel.core.events import ErrorInfo
from executor.kernel.handler.base import Suspend
from executor.kernel.run.inbox import Inbox
from tests.unit.executor.kernel.run.one_run import APPROVAL, OneRun

SIGNAL = Suspend("signal", {}, None, (), name="go", correlation="c")


async def asking(asked: Suspend = APPROVAL, **more: Any) -> tuple[OneRun, Inbox]:
    one = await OneRun.of("start a", **more)
    one.begin()
    one.ask("a", asked, due_ms=one.clock.now_ms() + 1, on_expire="no")
    await one.append()
    return one, Inbox(one.run, one.parts, one.recorder, one.border(), one.arrivals)


async def read(one: OneRun, inbox: Inbox, *messages: m.Known) -> list[f.Fact]:
    for message in messages:
        await one.post(message)
    inbox.changed()
    await inbox.read_if_changed()
    return one.facts()


async def test_an_answer_is_the_output_of_its_block() -> None:
    one, inbox = await asking()
    facts = await read(one, inbox, m.Answer("a!1", 5, {"n": 1}, "yes", by="ada"))
    assert facts == [f.WaitAnswered(one.clock.now_ms(), one.key("a"), 1, "out", "ada")]
    [result] = one.arrivals.results
    output = {"n": 1, "answered_by": "ada", "answered_at": 5, "action": "yes"}
    assert orjson.loads(result.payload.output or b"") == output
    assert inbox.pop_consumed() == (1,)
    assert one.arrivals.changed.is_set()


async def test_an_answer_that_the_block_fails_on_is_a_failure() -> None:
    one, inbox = await asking()
    [fact] = await read(one, inbox, m.Answer("a!1", 5, {}, "no", by="ada", refused=True))
    assert isinstance(fact, f.WaitFailed)
    assert (fact.error.code, fact.by) == ("refused", "ada")


@pytest.mark.parametrize(
    "message",
    [
        m.Answer("a!2", 5, {}, "yes"),
        m.Answer("gone!1", 5, {}, "yes"),
        m.Answer("nothing", 5, {}, "yes"),
        m.Withdrawn("a!2", 5),
        m.Expired("a!2", 5),
        m.ChildEnded("a!2", "c", "succeeded"),
        m.Retry("a"),
    ],
    ids=lambda message: type(message).__name__,
)
async def test_what_is_about_a_wait_that_is_not_open_is_consumed_and_nothing_else(message: m.Known) -> None:
    one, inbox = await asking()
    assert await read(one, inbox, message) == []
    assert inbox.pop_consumed() == (1,)


async def test_a_cancel_comes_before_everything_that_is_here() -> None:
    one, inbox = await asking()
    first, second = await read(one, inbox, m.Answer("a!1", 5, {}, "yes"), m.Cancel("enough"))
    assert first == f.CancelRequested(one.clock.now_ms(), "enough")
    assert isinstance(second, f.WaitAnswered)


async def test_a_withdrawn_question_fails_its_block() -> None:
    one, inbox = await asking()
    [fact] = await read(one, inbox, m.Withdrawn("a!1", 5, "bob", "not needed"))
    assert isinstance(fact, f.WaitFailed)
    assert fact.error == ErrorInfo("wait_cancelled", "the wait was cancelled by bob: not needed")


async def test_an_expired_wait_ends_with_its_action_not_before_it_was_due() -> None:
    one, inbox = await asking()
    due_ms = one.clock.now_ms() + 1
    assert await read(one, inbox, m.Expired("a!1", 5)) == [f.TimerFired(due_ms, one.key("a"), 1)]
    [result] = one.arrivals.results
    assert orjson.loads(result.payload.output or b"")["action"] == "no"


async def test_the_end_of_a_child_ends_the_wait() -> None:
    one, inbox = await asking(Suspend("child", {}, None, ()))
    [fact] = await read(one, inbox, m.ChildEnded("a!1", "c", "succeeded", Raw(b'{"n":[1,2]}')))
    assert isinstance(fact, f.WaitAnswered)
    [result] = one.arrivals.results
    assert (result.payload.output, result.payload.child) == (b'{"n":[1,2]}', "c")


async def test_a_child_that_failed_fails_its_block() -> None:
    one, inbox = await asking(Suspend("child", {}, None, ()))
    [fact] = await read(one, inbox, m.ChildEnded("a!1", "c", "failed", error=ErrorInfo("bad", "it broke", block="x")))
    assert isinstance(fact, f.WaitFailed)
    assert (fact.error.code, fact.error.message) == ("child_failed", "child run c failed at block 'x': bad: it broke")


@pytest.mark.parametrize(
    ("action", "kind"), [("retry", f.WaitRetried), ("done", f.WaitAnswered), ("fail", f.WaitFailed)]
)
async def test_a_person_decides_about_a_lost_attempt(action: str, kind: type) -> None:
    one, inbox = await asking(Suspend("attention", {}, None, ("retry", "done", "fail")))
    [fact] = await read(one, inbox, m.Answer("a!1", 5, {"output": 7}, action))
    assert isinstance(fact, kind)
    [result] = one.arrivals.results
    assert result.payload.output == (b"7" if action == "done" else None)


async def test_a_signal_goes_to_the_wait_of_its_name_and_correlation() -> None:
    one, inbox = await asking(SIGNAL)
    for correlation, payload in (("other", b"1"), ("c", b"2"), ("c", b"3")):
        sent = m.encode(m.SignalSent("go"))
        await one.store.post_signal(one.run.id, "go", correlation, payload, None, "eve", sent, one.clock.now_ms())
    inbox.changed()
    await inbox.read_if_changed()
    [result] = one.arrivals.results
    assert result.payload.signal == (2, "a!1")
    assert orjson.loads(result.payload.output or b"")["payload"] == 2
    await inbox.match_signals()  # the wait has its signal, though that is not decided yet
    assert len(one.facts()) == 1


async def test_a_migration_waits_until_everything_else_is_done() -> None:
    one, inbox = await asking()
    migrate = m.Migrate(2, "hash", "request")
    await read(one, inbox, migrate, m.Withdrawn("a!1", 5))
    assert inbox.migration == (1, migrate)
    assert inbox.pop_consumed() == (2,)
    inbox.changed()
    await inbox.read_if_changed()
    assert inbox.consumed == [2], "the migration is not read twice"


async def test_a_message_of_a_later_version_is_consumed(caplog: pytest.LogCaptureFixture) -> None:
    one, inbox = await asking()
    assert await one.store.post_message(one.run.id, b'{"type":"teleport"}', 0)
    await inbox.read_if_changed()
    assert inbox.pop_consumed() == (1,)
    assert "'teleport'" in caplog.text


async def test_the_store_is_read_only_when_there_may_be_messages() -> None:
    one, inbox = await asking()
    await inbox.read_if_changed()
    await one.post(m.Cancel())
    await inbox.read_if_changed()
    assert one.facts() == []
    await inbox.read_upto(0)
    assert one.facts() == []
    await inbox.read_upto(1)
    assert len(one.facts()) == 1
    await inbox.read_upto(1)
    assert len(one.facts()) == 1
