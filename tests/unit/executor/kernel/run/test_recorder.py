"""From results to appends, without an engine."""

from __future__ import annotations

import orjson

from executor.kernel.core import events as e
from executor.kernel.core import facts as f
from executor.kernel.core import messages as m
from executor.kernel.handler.base import Suspend
from executor.kernel.run.results import Payload, StepNote
from executor.kernel.store.batches import has_only_events
from executor.kernel.store.run_rows import NewRun
from executor.kernel.values.payload import INLINE_MAX_BYTES
from tests.support.snapshots import encode
from tests.unit.executor.kernel.run.one_run import OneRun


def child(id: str) -> NewRun:
    return NewRun(id, "w", 1, "hash", b"{}", b"{}", (), 0)


async def test_a_completion_and_the_starts_that_follow_are_one_append() -> None:
    one = await OneRun.of("start a", "a b")
    one.begin()
    append = await one.append()
    assert append.expected_seq == 1
    assert [record.type for record in append.records] == ["node.started", "node.succeeded", "node.started"]
    one.decide(f.NodeDone(one.clock.now_ms(), one.key("a"), 1), Payload(b'{"n":1}'))
    append = await one.append()
    assert [(r.type, r.node, r.output) for r in append.records] == [
        ("node.succeeded", "a", b'{"n":1}'),
        ("node.started", "b", None),
    ]
    assert append.expected_seq == 4
    assert one.recorder.appended_seq == 6
    assert one.recorder.pop_append(()) is None


async def test_an_append_names_the_format_that_those_before_it_need() -> None:
    one = await OneRun.of("start a", "a b")
    one.begin()
    await one.append()
    for n in (1, 2):
        one.recorder.step(one.key("a"), 1, StepNote(e.StepStarted(one.key("a"), 1, n, "step", "s", "", "none")))
    first = await one.append()
    one.recorder.step(one.key("a"), 1, StepNote(e.StepFinished(one.key("a"), 1, 1), b"1"))
    second = await one.append()
    assert (first.needed, has_only_events(first)) == (0, False), "its run has to be marked"
    assert (second.needed, has_only_events(second)) == (1, True)


async def test_consumed_messages_are_deleted_even_when_nothing_follows_from_them() -> None:
    one = await OneRun.of("start a")
    append = one.recorder.pop_append((3, 4))
    assert append is not None
    assert (append.records, append.consumed_inbox) == ((), (3, 4))


async def test_a_large_output_is_a_blob() -> None:
    one = await OneRun.of("start a", "a b")
    one.begin()
    output = orjson.dumps("x" * INLINE_MAX_BYTES)
    one.decide(f.NodeDone(one.clock.now_ms(), one.key("a"), 1), Payload(output))
    append = await one.append()
    [record] = [r for r in append.records if r.node == "a" and r.type == "node.succeeded"]
    [(hash, data)] = append.blobs
    assert record.output is None
    assert orjson.loads(record.data or b"")["blob"] == hash
    assert data == output


async def test_what_is_read_back_is_what_was_made() -> None:
    one = await OneRun.of("start a", "a b", variables={"n": 0})
    one.begin()
    one.decide(f.NodeDone(one.clock.now_ms(), one.key("a"), 1), Payload(b"1", [["set", "$.n", 5]]))
    one.ask("b", Suspend("signal", {}, None, (), name="go", correlation="c"))
    await one.append()
    row = await one.store.get_run(one.run.id)
    assert row is not None
    run, recorder = await one.loaded(row)
    assert encode(run.state) == encode(one.run.state)
    assert run.fold.values.variables == one.run.fold.values.variables == {"n": 5}
    assert run.fold.bytes == one.run.fold.bytes
    assert recorder.signal_waits() == one.recorder.signal_waits() == [((one.key("b"), 1), "go", "c")]
    assert recorder.appended_seq == one.recorder.appended_seq == row.seq


async def test_a_patch_that_does_not_fit_fails_the_block() -> None:
    one = await OneRun.of("start a", variables={"n": 0})
    one.begin()
    one.decide(f.NodeDone(one.clock.now_ms(), one.key("a"), 1), Payload(b"1", [["append", "$.n", 5]]))
    append = await one.append()
    [failed] = [r for r in append.records if r.type == "node.failed"]
    assert failed.node == "a"
    assert one.run.fold.values.variables == {"n": 0}
    assert append.status == "failed"


async def test_a_stale_result_changes_nothing_and_uses_no_signal_up() -> None:
    one = await OneRun.of("start a")
    one.begin()
    await one.append()
    stale = f.WaitAnswered(one.clock.now_ms(), one.key("a"), 1)
    assert one.decide(stale, Payload(b"1", [["set", "$.n", 5]], signal=(1, "a!1"))) == []
    assert one.recorder.pop_append(()) is None


async def test_a_log_is_recorded_while_its_attempt_runs() -> None:
    one = await OneRun.of("start a")
    one.begin()
    one.recorder.log(one.key("a"), 1, "hello", "log")
    one.recorder.log(one.key("a"), 2, "of another attempt", "log")
    append = await one.append()
    [record] = [r for r in append.records if r.type == "node.log"]
    assert b"hello" in (record.data or b"")


async def test_a_wait_has_a_row_that_is_closed_with_it() -> None:
    one = await OneRun.of("start a")
    one.begin()
    due_ms = one.clock.now_ms() + 1
    id = one.ask("a", due_ms=due_ms)
    append = await one.append()
    [wait] = append.waits
    assert (wait.id, wait.node, wait.kind, wait.expires_at_ms) == (id, "a", "approval", due_ms)
    assert wait.token_hash == one.parts.links.hash_of(one.run.id, id, "approval")
    one.decide(f.CancelRequested(one.clock.now_ms(), "enough"))
    append = await one.append()
    [closed] = append.closed_waits
    assert (closed.id, closed.status) == (id, "cancelled")


async def test_a_child_is_made_in_the_append_of_its_wait_and_cancelled_in_that_which_closes_it() -> None:
    one = await OneRun.of("start a")
    one.begin()
    id = one.ask("a", Suspend("child", {}, None, (), child=child("c" * 32)))
    append = one.recorder.pop_append(())
    assert append is not None
    [made] = append.children
    assert (made.id, made.parent_run_id, made.parent_key) == ("c" * 32, one.run.id, id)
    assert append.root == one.run.id
    assert append.output_bytes == one.run.fold.bytes == len(b"{}")  # all that there was before it had a family
    one.decide(f.CancelRequested(one.clock.now_ms(), "enough"))
    append = one.recorder.pop_append(())
    assert append is not None
    [(run, message)] = append.cancels
    assert run == "c" * 32
    assert isinstance(m.decode(message), m.Cancel)


async def test_a_child_that_has_ended_is_not_cancelled() -> None:
    one = await OneRun.of("start a")
    one.begin()
    one.ask("a", Suspend("child", {}, None, (), child=child("c" * 32)))
    one.decide(f.WaitAnswered(one.clock.now_ms(), one.key("a"), 1), Payload(b"1", child="c" * 32))
    append = one.recorder.pop_append(())
    assert append is not None
    assert append.cancels == ()
    assert [closed.response for closed in append.closed_waits] == [None]  # it is in the run of the child


async def test_the_last_append_has_the_output_of_the_run() -> None:
    one = await OneRun.of("start a")
    one.begin()
    events = one.decide(f.NodeDone(one.clock.now_ms(), one.key("a"), 1), Payload(b'{"n":1}'))
    assert isinstance(events[-1], e.RunFinished)
    append = await one.append()
    assert (append.finished, append.status) == (True, "succeeded")
    assert orjson.loads(append.output or b"") == {"n": 1}
    assert append.posts == ()
