"""A step needs at most 5 % more instructions than `counts.json` records. No time is measured, so that other programs
do not change the result."""

from __future__ import annotations

import subprocess
import sys
from copy import deepcopy
from pathlib import Path

import msgspec
import pytest

from tests.performance import counts
from tests.performance.counts import Cost, Costs, Counter, Recorded, recorded, worse

ROOT = Path(__file__).parents[2]
RECORDED = recorded()
MORE_MAX = 1.3  # the end of a run of 1,000 is read from its journal, that of a small one is in memory


@pytest.fixture(scope="module")
def found() -> Recorded:
    command = [sys.executable, "-m", "tests.performance", "--json"]
    ended = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, check=True, timeout=300)
    return msgspec.json.decode(ended.stdout, type=Recorded)


@pytest.mark.parametrize("workload", list(RECORDED.workloads))
def test_a_step_needs_no_more_than_was_recorded(workload: str, found: Recorded) -> None:
    if found.python != RECORDED.python:
        pytest.skip(f"counts.json is of Python {RECORDED.python}: other versions have other instructions")
    message = worse(workload, RECORDED.workloads[workload], found.workloads[workload])
    assert not message, message


@pytest.mark.parametrize("workload", ["W1", "W2", "W3", "W4"])
def test_a_step_needs_no_more_where_there_are_more(workload: str, found: Recorded) -> None:
    small, large = (costs.total for name, costs in found.workloads.items() if name.startswith(workload))
    assert large.instructions < small.instructions * MORE_MAX, "in instructions"
    assert large.calls < small.calls * MORE_MAX, "in calls of C"


def test_the_message_names_what_has_grown() -> None:
    [name, before], *_ = RECORDED.workloads.items()
    now = deepcopy(before)
    function = next(iter(now.functions))
    now.functions[function].instructions += before.total.instructions * 0.04
    now.functions["executor/new.py:work"] = Cost(before.total.instructions * 0.02, 0)
    now.total.instructions *= 1.06
    first, *rest = worse(name, before, now).splitlines()
    assert first.startswith(f"{name}: ") and "+6.0%" in first
    assert [line.split()[-1] for line in rest[:2]] == [function, "executor/new.py:work"]
    assert counts.RECORD in rest[-1]
    now.total.instructions = before.total.instructions * 1.04
    assert worse(name, before, now) == ""


def test_instructions_and_calls_are_counted_where_they_are(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(counts, "HERE", "nowhere")  # what is here is no part of a step, and not counted
    small, large = _costs_of(10), _costs_of(30)
    [name] = [name for name in small.functions if name.endswith(":_work")]
    more = large.functions[name].instructions - small.functions[name].instructions
    assert more / 20 == more // 20 > 3
    assert large.functions[name].calls - small.functions[name].calls == 20


def _work(times: int) -> None:
    for _ in range(times):
        len("")


def _costs_of(times: int) -> Costs:
    counter, trace, profile = Counter(), sys.gettrace(), sys.getprofile()
    try:
        with counter.counting():
            _work(times)
    finally:
        sys.settrace(trace)
        sys.setprofile(profile)
    return counter.costs(1)
