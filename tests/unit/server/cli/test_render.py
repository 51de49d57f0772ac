"""What the command line prints of events, runs and waits."""

from __future__ import annotations

import time
from typing import Any

import click
import pytest

from server.cli.follow import Progress
from server.cli.render import (
    age,
    diagnostic_lines,
    event_detail,
    event_line,
    inbox_lines,
    left,
    run_lines,
    short,
    signal_lines,
    with_clock,
)
from server.cli.triggers import _local_time as schedule_moment
from server.client import Event


def event(type: str, key: str | None = "a", at: int = 0, attempt: int = 1, **data: Any) -> Event:
    return Event("r", 7, at, type, key, key, "", key, attempt, data)


@pytest.mark.parametrize(
    ("given", "detail"),
    [
        (event("run.started", None), ""),
        (event("run.started", None, by="user:ada"), "by user:ada"),
        (event("run.started", None, by="user:ada", continues="r0"), "by user:ada, continues run r0"),
        (event("node.started"), ""),
        (event("node.started", attempt=2), "attempt 2"),
        (event("node.succeeded", route="out", output={"x": 1}), '{"x": 1}'),
        (event("node.succeeded", output=None), "null"),
        (event("node.succeeded", route="large"), "-> large"),
        (event("node.succeeded", route=None), "-> none"),
        (event("node.failed", error={"code": "http_500", "message": "broken"}), "http_500: broken"),
        (event("node.skipped", reason="pruned"), "pruned"),
        (event("node.skipped", reason="pruned", because="check"), "pruned because of check"),
        (event("wait.opened", kind="approval"), "approval"),
        (event("wait.closed", outcome="answered", by="Ada"), "answered by Ada"),
        (event("scope.opened", first=0, count=3), "count 3"),
        (event("run.finished", None, status="failed", error={"code": "c", "message": "m"}), "failed c: m"),
        (event("run.finished", None, status="succeeded", continued_as="r2"), "succeeded continued as run r2"),
        (event("node.log", message="red\x1b[31m\nline"), "red [31m"),
        (event("node.log", message="Hello", stream="text"), "text: Hello"),
        (event("something.new"), ""),
    ],
)
def test_detail_of_an_event(given: Event, detail: str) -> None:
    assert event_detail(given) == detail


def test_a_log_has_its_further_lines_below() -> None:
    lines = click.unstyle(event_line(event("node.log", "send", message="one\ntwo\x1b[31m\nthree"))).split("\n")
    assert lines[0].endswith("node.log           send  one")
    assert [line.strip() for line in lines[1:]] == ["two [31m", "three"]
    assert all(line.startswith(" " * 40) for line in lines[1:])


def test_an_event_is_one_line_whatever_its_output_holds() -> None:
    line = click.unstyle(event_line(event("node.succeeded", "send@fan[2]", output="a\nb\x1b[31m")))
    assert "\n" not in line
    assert "\x1b" not in line
    assert "    7  " in line
    assert "send@fan[2]" in line


def test_long_values_are_cut() -> None:
    assert short("x" * 118) == '"' + "x" * 118 + '"'
    assert len(short("x" * 119)) == 120
    assert short("x" * 119).endswith("…")


def test_findings_with_hints() -> None:
    found = [{"code": "c", "severity": "error", "pointer": "", "message": "is wrong", "hint": "fix it"}]
    assert [click.unstyle(line) for line in diagnostic_lines(found)] == ["error /: is wrong [c]", "    fix it"]


def test_runs_in_columns() -> None:
    runs: list[dict[str, Any]] = [
        {"id": "r1", "workflow": "expenses", "version": 3, "status": "waiting", "created_at_ms": 0},
        {"id": "r2", "workflow": "x", "version": None, "status": "succeeded", "created_at_ms": 58_000},
        {"id": "r3", "workflow": "x", "version": None, "status": "waiting", "created_at_ms": 0, "lacks": "F 'f'"},
        {"id": "r4", "workflow": "x", "version": None, "status": "running", "created_at_ms": 0, "stale": True}
        | {"stale_since_ms": 48_000},
    ]
    assert [click.unstyle(line) for line in run_lines(runs, now_ms=60_000)] == [
        "r1  waiting    expenses@3  1 min ago",
        "r2  succeeded  x           2 s ago",
        "r3  waiting    x           1 min ago  waits for F 'f'",
        "r4  running    x           1 min ago  stale: its worker stopped responding 12 s ago",
    ]


def test_inbox_shows_how_to_answer() -> None:
    wait = {
        "label": "Boss",
        "request": {"title": "OK?"},
        "actions": ["yes", "no"],
        "workflow": "w",
        "key": "ask@review#1",
        "age_s": 7200.0,
        "run": "r",
    }
    failed = {"channel": "email", "to": "ada@example.org", "status": "failed", "error": "no such host\x1b[2J"}
    pending = {"channel": "email", "to": "ada@example.org", "status": "pending", "reminder": True}
    pending["due_at_ms"] = 7_201_000 + 60_000
    approval = wait | {"kind": "approval", "link": "http://h/resume/t", "notifications": [failed, pending]}
    approval |= {"opened_at_ms": 1_000, "expires_at_ms": 7_201_000 + 120_000}
    lost = wait | {"kind": "attention", "link": "http://h/resume/u"}
    lost |= {"request": {"title": "Lost", "text": "Pay it.\nSo?"}}
    signal = wait | {"kind": "signal", "actions": [], "name": "paid", "correlation": "o-1", "age_s": 5, "key": "go"}
    assert [click.unstyle(line) for line in inbox_lines([approval, lost, signal])] == [
        "AGE      KIND       WORKFLOW  NODE          QUESTION",
        "2 h ago  approval   w         ask@review#1  Boss: OK?  [yes, no]  expires in 2 min",
        "    http://h/resume/t",
        "    email to ada@example.org: no such host [2J",
        "    reminder by email to ada@example.org in 60 s",
        "2 h ago  attention  w         ask@review#1  Boss: Lost  [yes, no]",
        "    http://h/resume/u",
        "    Pay it.",
        "    So?",
        "5 s ago  signal     w         go            Boss: OK?",
        "    weft signal r paid --correlation o-1",
    ]
    assert inbox_lines([]) == []


def test_signals_say_what_took_them() -> None:
    signal = {"seq": 1, "name": "paid", "correlation": "o-1", "payload": {"eur": 5}, "taken_by": "go!1"}
    kept = signal | {"seq": 12, "correlation": None, "taken_by": None, "payload": None}
    assert signal_lines([signal, kept]) == [
        '   1  paid of o-1  received by go!1  {"eur": 5}',
        "  12  paid  kept  null",
    ]


def test_what_is_left_is_rounded() -> None:
    week = 7 * 86_400
    assert [left(each) for each in (week, week - 5, 7_300, 185, 85, 0.2, -3)] == [
        "7 d",
        "7 d",
        "2 h",
        "3 min",
        "85 s",
        "0 s",
        "0 s",
    ]


def test_age_in_the_largest_unit() -> None:
    assert [age(s) for s in (-1, 0.4, 59, 60, 3599, 3600, 86_400)] == [
        "0 s ago", "0 s ago", "59 s ago", "1 min ago", "59 min ago", "1 h ago", "1 d ago",
    ]  # fmt: skip


def test_progress_keeps_the_newest_state_of_each_node() -> None:
    progress = Progress()
    for given in (
        event("run.started", None),
        event("node.started", "a", at=0),
        event("node.started", "b", at=500),
        event("retry.scheduled", "a", at=900, error={"code": "http_503", "message": "busy"}),
        event("node.started", "a", at=2000, attempt=2),
        event("node.skipped", "c", reason="pruned"),
        event("node.succeeded", "b", at=2500, output=1),
    ):
        progress.apply(given)
    table = progress.table(now_ms=3000)
    cells = [[str(cell) for cell in column.cells] for column in table.columns]
    assert cells == [["running", "succeeded"], ["a", "b"], ["3.0 s", "2.0 s"], ["attempt 2", "1"]]


def test_progress_of_many_nodes_shows_the_latest() -> None:
    progress = Progress()
    for number in range(30):
        progress.apply(event("node.started", f"n{number}"))
    keys = [str(cell) for cell in list(progress.table(0).columns)[1].cells]
    assert keys[-1] == "n29"
    assert len(keys) == 21


def test_the_moments_of_a_schedule_are_shown_though_its_zone_is_not_known_here() -> None:
    at_ms = 1_700_000_005_000
    assert schedule_moment(at_ms, "Mars/Olympus") == schedule_moment(at_ms)
    assert schedule_moment(at_ms, "UTC") == "2023-11-14 22:13"


def test_moments_of_the_engine_are_shown_on_a_clock(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TZ", "UTC")
    time.tzset()
    try:
        assert with_clock("attempt 2 starts at 1700000005000 ms") == "attempt 2 starts at 2023-11-14 22:13:25"
        assert with_clock("it took 250 ms") == "it took 250 ms"
    finally:
        monkeypatch.undo()
        time.tzset()
