"""What each event means for people, told as streams of entries and compared with what the projection says."""

from __future__ import annotations

from random import Random
from typing import Any, get_args

import pytest

from executor.kernel.core.events import Event
from executor.kernel.journal import steps
from executor.kernel.journal.projection import ASIDE, Entry, Meaning, NodeState, Projection, decision, meaning
from executor.kernel.store.run_rows import Record

LOST = {"code": "attempt_lost", "message": "the process that ran this attempt has ended"}
BUSY = {"code": "http_503", "message": "busy"}
STOPPED = {"code": "cancelled", "message": "the run was cancelled"}


class Stream:
    """Events of one run, a second apart; `tell` adds one and gives the state of its node."""

    def __init__(self, variables: dict[str, Any] | None = None) -> None:
        self.projection = Projection(variables)
        self.seq = 0

    def tell(self, type: str, node: str | None = None, attempt: int = 0, path: str = "", **data: Any) -> NodeState:
        self.seq += 1
        state = self.projection.apply(Entry(self.seq, self.seq * 1000, type, node, path, attempt, data))
        return state or NodeState("", "")

    def status(self, node: str, path: str = "") -> str:
        return self.projection.nodes[node, path].status


# --- one event ---

DATA: dict[str, Any] = {
    "error": BUSY, "reason": "pruned", "kind": "approval", "outcome": "answered", "count": 2, "ops": [],
}  # fmt: skip


def test_every_type_of_event_means_something_or_only_tells() -> None:
    """A type that is in neither list was forgotten: add it to `meaning`, to `events.TELLS_ONLY`, or here."""
    types = {str(cls.__struct_config__.tag) for cls in get_args(Event)}
    changes_a_node = {type for type in types if meaning(type, DATA) is not None}
    about_the_course = {"run.started", "run.cancelling", "run.finished", "scope.opened", "variables.patched"}
    about_the_course |= {"cleanup.opened", "cleanup.stopped"}
    assert changes_a_node | steps.OF_STEPS | ASIDE | about_the_course == types
    assert not changes_a_node & (ASIDE | about_the_course)
    assert {type for type in types if decision(type, DATA) is not None} <= changes_a_node


@pytest.mark.parametrize(
    ("type", "data", "expected"),
    [
        ("node.succeeded", {}, Meaning("succeeded", True, "out")),
        ("node.succeeded", {"route": "yes"}, Meaning("succeeded", True, "yes")),
        ("node.succeeded", {"route": None}, Meaning("succeeded", True, None)),
        ("region.sized", {"count": 0}, Meaning("succeeded", True, "out")),
        ("region.exited", {"count": 3}, Meaning("succeeded", True, "out")),
        ("node.failed", {"error": BUSY}, Meaning("failed", True, None)),
        ("node.failed", {"error": BUSY, "route": "error"}, Meaning("failed", True, "error")),
        ("node.failed", {"error": STOPPED}, Meaning("cancelled", True, None)),
        ("node.failed", {"error": STOPPED, "route": "error"}, Meaning("failed", True, "error")),
        ("node.skipped", {"reason": "pruned"}, Meaning("skipped", True, None)),
        ("node.skipped", {"reason": "skip_if"}, Meaning("skipped", True, "out")),
        ("node.skipped", {"reason": "expired"}, Meaning("skipped", True, "out")),
        ("node.started", {}, None),
        ("wait.closed", {"outcome": "cancelled"}, None),
        ("retry.scheduled", {"error": BUSY}, None),
    ],
)
def test_what_decides_a_node_and_by_which_handle_it_is_left(
    type: str, data: dict[str, Any], expected: Meaning | None
) -> None:
    assert decision(type, data) == expected


def test_a_decision_leads_on_if_something_was_done_or_may_follow() -> None:
    assert Meaning("succeeded", True, None).leads_on and Meaning("failed", True, "error").leads_on
    assert Meaning("skipped", True, "out").leads_on
    assert not Meaning("skipped", True, None).leads_on and not Meaning("failed", True, None).leads_on


# --- one node key ---


def test_a_node_that_succeeds_at_its_second_attempt() -> None:
    run = Stream()
    run.tell("node.started", "a", 1)
    assert run.tell("retry.scheduled", "a", 1, due_ms=9, error=BUSY).status == "retrying"
    run.tell("node.started", "a", 2)
    state = run.tell("node.succeeded", "a", 2, route="yes")
    assert (state.status, state.attempt, state.route, state.left_by) == ("succeeded", 2, "yes", "yes")
    assert (state.started_at_ms, state.finished_at_ms) == (1000, 4000), "from its first start to its end"
    assert (state.decided_seq, state.output_seq) == (4, 4)
    first, second = state.attempts[1], state.attempts[2]
    assert (first.status, first.started_seq, first.finished_seq, first.error) == ("retrying", 1, 2, BUSY)
    assert (second.status, second.started_at_ms, second.finished_at_ms, second.error) == ("succeeded", 3000, 4000, None)


def test_iterations_are_nodes_of_their_own() -> None:
    run = Stream()
    run.tell("node.started", "a", 1, "loop#0")
    run.tell("node.succeeded", "a", 1, "loop#0")
    run.tell("node.started", "a", 1, "loop#1")
    assert [run.status("a", path) for path in ("loop#0", "loop#1")] == ["succeeded", "running"]


def test_a_wait_is_open_until_it_is_answered() -> None:
    run = Stream()
    run.tell("node.started", "ask", 1)
    assert run.tell("wait.opened", "ask", 1, kind="child", child="r2").status == "waiting"
    assert run.tell("wait.closed", "ask", 1, outcome="answered").status == "running"
    state = run.tell("node.succeeded", "ask", 1)
    assert (state.status, state.child) == ("succeeded", "r2")


def test_a_wait_that_is_taken_back_ends_its_node_without_deciding_it() -> None:
    run = Stream()
    run.tell("node.started", "ask", 1)
    run.tell("wait.opened", "ask", 1, kind="approval")
    state = run.tell("wait.closed", "ask", 1, outcome="cancelled")
    assert (state.status, state.finished_at_ms, state.decided_seq) == ("cancelled", 3000, None)
    assert state.attempts[1].status == "cancelled"


def test_a_loss_is_counted_once_though_a_person_is_asked_about_it() -> None:
    run = Stream()
    run.tell("node.started", "a", 1)
    assert run.tell("retry.scheduled", "a", 1, error=LOST).lost == 1
    run.tell("node.started", "a", 2)
    assert run.tell("wait.opened", "a", 2, kind="attention").status == "needs_attention"
    run.tell("wait.closed", "a", 2, outcome="answered")
    assert run.tell("retry.scheduled", "a", 2, error=LOST).lost == 2, "the question was about this one"
    run.tell("node.started", "a", 3)
    assert run.tell("node.failed", "a", 3, error=LOST).lost == 3


def test_a_node_that_was_passed_over_is_not_left_by_a_handle_though_its_edges_are_live() -> None:
    run = Stream()
    state = run.tell("node.skipped", "a", reason="skip_if")
    assert (state.status, state.route, state.left_by, state.reason) == ("skipped", "out", None, "skip_if")
    pruned = run.tell("node.skipped", "b", reason="pruned", because="a")
    assert (pruned.route, pruned.because, pruned.output_seq) == (None, "a", None)


def test_the_start_of_a_container_has_the_number_of_its_scopes_and_no_output() -> None:
    run = Stream()
    run.tell("node.started", "fan:start", 1)
    state = run.tell("region.sized", "fan:start", 1, count=3)
    assert (state.status, state.scopes, state.output_seq) == ("succeeded", 3, None)


def container(*events: tuple[str, str, int, dict[str, Any]]) -> NodeState:
    state = NodeState("fan:end", "", container=True)
    for seq, (type, node, attempt, data) in enumerate(events, 1):
        state.apply(Entry(seq, seq * 1000, type, node, "", attempt, data))
    return state


def test_a_container_is_done_when_its_end_is() -> None:
    begins = [("node.started", "fan:start", 1, {}), ("region.sized", "fan:start", 1, {"count": 2})]
    running = container(*begins)
    assert (running.status, running.scopes, running.decided_seq) == ("running", 2, None)
    done = container(*begins, ("region.exited", "fan:end", 0, {"count": 2}))
    assert (done.status, done.output_seq, done.started_at_ms, done.finished_at_ms) == ("succeeded", 3, 1000, 3000)
    assert done.attempts[1].finished_seq == 3, "its end has no attempt of its own"


def test_a_container_whose_start_failed_stays_failed_when_its_end_is_pruned() -> None:
    failed = container(
        ("node.started", "fan:start", 1, {}),
        ("node.failed", "fan:start", 1, {"error": BUSY, "route": "error"}),
        ("node.skipped", "fan:end", 0, {"reason": "pruned"}),
    )
    assert (failed.status, failed.route) == ("failed", "error")


# --- a run ---


def test_the_status_of_a_run_follows_its_events() -> None:
    run = Stream()
    statuses = []
    for type, node in (("run.started", None), ("node.started", "a"), ("wait.opened", "a"), ("run.parked", None)):
        run.tell(type, node, int(node is not None), kind="timer")
        statuses.append(run.projection.status)
    assert statuses == ["queued", "running", "running", "waiting"]
    run.tell("run.cancelling")
    assert run.projection.status == "running"


def test_what_has_no_end_of_its_own_is_cancelled_with_the_run() -> None:
    run = Stream()
    run.tell("node.started", "done", 1)
    run.tell("node.succeeded", "done", 1)
    for node in ("runs", "retries"):
        run.tell("node.started", node, 1)
    run.tell("retry.scheduled", "retries", 1, error=BUSY)
    run.tell("run.finished", status="failed", error=BUSY)
    assert run.projection.status == "failed"
    assert [run.status(node) for node in ("done", "runs", "retries")] == ["succeeded", "cancelled", "cancelled"]
    attempts = [run.projection.nodes[node, ""].attempts[1].status for node in ("runs", "retries")]
    assert attempts == ["cancelled", "retrying"], "an attempt that ended before keeps its end"


def test_variables_follow_the_patches_only_if_they_are_asked_for() -> None:
    started: dict[str, Any] = {"n": 1}
    run = Stream(started)
    run.tell("variables.patched", "a", ops=[["increment", "$.n", 2], ["set", "$.done", True]])
    assert run.projection.variables == {"n": 3, "done": True}
    assert started == {"n": 1}, "those of the plan stay as they are"
    assert not run.projection.nodes, "a node that has only changed variables has not started"
    assert Stream().projection.variables is None


def test_the_response_of_a_run_is_in_its_last_event() -> None:
    run = Stream()
    run.tell("run.finished", status="succeeded", response={"status": 201, "headers": {}, "body": 1})
    assert run.projection.response == {"status": 201, "headers": {}, "body": 1}


@pytest.mark.parametrize("seed", range(200))
def test_records_without_data_mean_the_same_as_entries(seed: int) -> None:
    chance = Random(seed)
    of_entries, of_records = Projection(), Projection()
    for seq in range(1, 30):
        type = chance.choice(["node.started", "node.started", "node.succeeded", "node.succeeded", "region.exited"])
        record = Record(seq, seq * 1000, type, chance.choice("ab"), chance.choice(["", "l#1"]), chance.randrange(4))
        state, other = of_entries.apply(Entry.of(record)), of_records.apply_record(record)
        assert other == state and of_records.status == of_entries.status, record
    assert of_records.nodes == of_entries.nodes


def test_a_node_with_several_open_waits_waits_until_the_last_is_over() -> None:
    """They have numbers of their own, and belong to the one attempt that opened them."""
    s = Stream()
    s.tell("node.started", "a", 1)
    for n in (1, 2, 3):
        s.tell("step.started", "a", 1, n=n, kind="wait", name="ask", input_hash="h", effect="none")
    s.tell("wait.opened", "a", 1, kind="child", step=1, child="c1")
    s.tell("wait.opened", "a", 2, kind="child", step=2, child="c2", beside=True)
    s.tell("wait.opened", "a", 3, kind="approval", step=3, beside=True)
    for number, left in ((2, 2), (3, 1)):
        state = s.tell("wait.closed", "a", number, outcome="answered", left=left)
        assert (state.status, state.attempt) == ("waiting", 1)
        state = s.tell("step.finished", "a", number, n=number)
        assert (state.status, list(state.attempts), state.attempts[1].status) == ("waiting", [1], "waiting")
    s.tell("wait.closed", "a", 1, outcome="answered")
    state = s.tell("step.finished", "a", 1, n=1)
    assert (state.status, state.attempts[1].status, state.attempts[1].finished_seq) == ("running", "succeeded", s.seq)
    state = s.tell("node.started", "a", 4)
    assert (state.attempt, list(state.attempts)) == (4, [1, 4])
