"""What the servers have to do: the example workflows, each with an input and a check of the output it must end with."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

EXAMPLES = Path(__file__).parents[3] / "examples"
CITIES = ["Berlin", "Lima", "Osaka", "Accra", "Perth"]
NOTE = "shorter, please"
# Runs of runs are killed in test_children.py, agents in test_agents.py, files in test_files.py, runs that continue as
# new in tests/unit/executor/kernel/run/test_children_continuation_crashes.py. The others are started
# by a clock, by a person in a chat or by another system.
ELSEWHERE = {
    "agent",
    "chat",
    "child-run",
    "daily-report",
    "poll",
    "oauth-orders",  # needs a sign-in; see test_connection_renewal.py
    "receipt-summary",
    "signed-orders",
    "spreadsheet-summary",
    "sql-report",
    "support-triage",
}


@dataclass(frozen=True)
class Job:
    """`actions`: what to answer to its waits, by wait key. `check` gets the output of the finished run."""

    name: str
    document: dict[str, Any]
    input: dict[str, Any]
    check: Callable[[Any], None]
    actions: dict[str, str]


def jobs() -> list[Job]:
    """One of each kind; every example is there, the one with both ways through it several times."""
    listed = [
        Job("durable-demo", _short_sleep(_example("durable-demo")), {"to": "ada@example.com"}, _mail_sent, {}),
        Job("error-handling", _patient(_example("error-handling")), {}, _reported, {}),
        Job("nested", _example("nested"), {}, _is(winner, "green", 30), {}),
        Job("nested", _example("nested"), {"teams": ["a", "bbb"], "rounds": 2}, _is(winner, "bbb", 9), {}),
        Job("python-code", _example("python-code"), {}, _total, {}),
        Job("cleanup", _example("cleanup"), {}, _sessions, {}),
        Job("parallel-fanout", _example("parallel-fanout"), {}, _all_cities, {}),
        Job("expense-approval", _example("expense-approval"), {"amount": 12}, _is(decision, 12, "automatic"), {}),
        _expense(420, "approve"),
        _expense(900, "reject"),
        Job(
            "review-loop",
            _example("review-loop"),
            {},
            _mail_sent,
            {"ask@review#0": "revise", "ask@review#1": "revise", "ask@review#2": "pass"},
        ),
    ]
    missing = {path.stem for path in EXAMPLES.glob("*.json")} - {job.name for job in listed}
    assert missing == ELSEWHERE, "an example is missing here"
    return listed


def _example(name: str) -> dict[str, Any]:
    document: dict[str, Any] = json.loads((EXAMPLES / f"{name}.json").read_text())
    return document


def _short_sleep(document: dict[str, Any]) -> dict[str, Any]:
    assert document["blocks"]["sleep"]["params"] == {"seconds": 30}
    document["blocks"]["sleep"]["params"] = {"seconds": 1.5}
    return document


def _patient(document: dict[str, Any]) -> dict[str, Any]:
    """The endpoint fails twice and counts in memory: a killed server begins to count anew, while the failures that the
    run has on record stay there. With four attempts it would be right to give up."""
    assert document["blocks"]["flaky"]["policy"]["retry"]["max_attempts"] == 4
    document["blocks"]["flaky"]["policy"]["retry"]["max_attempts"] = 100
    return document


def _expense(amount: int, action: str) -> Job:
    check = _is(decision, amount, action)
    return Job("expense-approval", _example("expense-approval"), {"amount": amount}, check, {"ask": action})


def _is(pick: Callable[[Any], tuple[Any, ...]], *expected: Any) -> Callable[[Any], None]:
    def check(output: Any) -> None:
        assert pick(output) == expected, output

    return check


def winner(output: Any) -> tuple[Any, ...]:
    return output["result"]["team"], output["result"]["points"]


def decision(output: Any) -> tuple[Any, ...]:
    return output["amount"], output["decision"]


def _total(output: Any) -> None:
    assert output["text"] == "The total is 50.00.", output


def _all_cities(output: Any) -> None:
    assert output["result"] == {"count": 5, "all_good": True, "cities": CITIES}, output


def _sessions(output: Any) -> None:
    failed, results = [], output["orders"]
    for index, result in enumerate(results):
        if isinstance(result, dict):
            failed.append(index)
    assert failed == [1], output


def _mail_sent(output: Any) -> None:
    assert (output["transport"], len(output["to"]), output["refused"]) == ("log", 1, []), output


def _reported(output: Any) -> None:
    assert (output["flaky"], output["attempts"], output["broken"]["used"]) == (200, 3, "yesterday's answer"), output
    assert "503" in output["broken"]["because"], output
