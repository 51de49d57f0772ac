"""Why is this block not running? Answers for people, from the counters that decide readiness."""

from __future__ import annotations

from tests.unit.executor.kernel.core.story import T0, Story, block, parallel


def test_a_pending_block_names_the_sources_it_waits_for() -> None:
    s = Story({"a": "b c", "b": "join", "c": "join", "join": ""})
    s.start()
    s.done("a")
    s.done("b")
    assert s.why("join") == ("pending", ("waits for 'c' (running)",))


def test_a_ready_block_names_the_limit_that_holds_it_back() -> None:
    s = Story({"a": "b c", "b": block(group=1), "c": block(group=1)}, groups=(1,))
    s.start()
    s.done("a")
    assert s.why("c") == ("ready", ("group 'g1' is full (1 running)",))
    full = Story({"a": "b c", "b": "", "c": ""}, max_concurrency=1)
    full.start()
    full.done("a")
    assert full.why("c") == ("ready", ("max_concurrency is reached (1 running)",))


def test_running_waiting_and_retrying_blocks_say_so() -> None:
    s = Story({"a": block(max_attempts=2)})
    s.start()
    assert s.why("a") == ("running", ("attempt 1 is running",))
    s.erred("a", retryable=True, retry_at_ms=T0 + 5000)
    assert s.why("a") == ("retrying", (f"attempt 2 starts at {T0 + 5000} ms",))
    s.timer("a", T0 + 5000)
    s.suspended("a", "approval")
    assert s.why("a") == ("waiting", ("waits for a decision",))


def test_a_container_counts_its_scopes() -> None:
    s = Story({"fan": parallel({"a": ""}, limit=2)})
    s.start()
    s.sized("fan:start", 3)
    s.done("a@fan[0]")
    assert s.why("fan:end") == ("pending", ("1 of 3 branches done, 2 open",))
    assert s.why("a@fan[0]") == ("closed", ("its iteration or branch has ended",))


def test_a_branch_that_is_not_open_yet_says_how_many_are() -> None:
    s = Story({"fan": parallel({"a": ""}, limit=1)})
    s.start()
    assert s.why("a@fan[0]") == ("not opened", ("'fan:start' has not started or has ended",))
    s.sized("fan:start", 3)
    assert s.why("a@fan[2]") == ("not opened", ("branch 2 of 'fan' is not open yet (1 opened so far)",))


def test_a_run_that_drains_says_that_nothing_starts() -> None:
    s = Story({"a": "b c d", "b": "", "c": "", "d": ""}, max_concurrency=2)
    s.start()
    s.done("a")
    s.erred("b")
    assert s.why("d") == ("ready", ("the run is failing: no new blocks start",))


def test_decided_blocks_need_no_reason() -> None:
    s = Story({"if": "yes:b no:c", "b": "", "c": ""})
    s.start()
    s.done("if", "yes")
    assert s.why("if") == ("succeeded", ())
    assert s.why("c") == ("skipped", ())


def test_what_a_failed_run_did_not_come_to_waits_for_nothing_more() -> None:
    s = Story({"a": "b", "b": "c", "c": ""})
    s.start()
    s.erred("a")
    assert s.why("a") == ("failed", ())
    assert s.why("c") == ("pending", ("the run has ended",))
