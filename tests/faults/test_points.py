"""The scenario, broken at its points. `python -m tests.faults.points` runs all of them; so does `make soak`."""

from __future__ import annotations

import asyncio
import re
import sys
from pathlib import Path

import pytest

from tests.support.changes import submitted
from tests.support.size import WHOLE, size

pytestmark = pytest.mark.proof

ROOT = Path(__file__).parents[2]
EVERY = size(60, 1)
# Changes the scenario has no use for, and where they are broken instead.
ELSEWHERE = {
    "ping": "it changes nothing: tests/conformance/store",
    "answer_wait": "as answer_and_claim, for a run that is in memory, or a process without room",
    "answer_and_claim": "as answer_wait, with the claim that otherwise follows it",
    "create_run": "as begin_run, in a process without room",
    "begin_run": "as create_run, with the claim and the append that otherwise follow it",
    "cancel_wait": "as answer_wait, from which it differs in a status",
    "expire_wait": "tests/e2e/crash/test_waits_later.py",
    "delete_draft": "one row",
    "rebase_draft": "one row",
    "delete_webhook": "one row",
    "switch_webhook": "one row",
    "rotate_webhook": "one transaction: tests/conformance/store/test_contract_triggers.py",
    "put_session": "one transaction: tests/conformance/store/test_contract_sessions.py",
    "see_session": "one row",
    "delete_session": "one row",
    "delete_sessions": "one statement",
    "fire": "tests/unit/executor/triggers: two engines, restarts",
    "put_plan": "tests/unit/executor/lifecycle: runs that move to another version",
    "clear_cache": "cached results may go at any time",
    "delete_expired_cache": "cached results may go at any time",
    "delete_runs": "tests/unit/executor/upkeep: old runs, deleted while the process is killed",
    "delete_orphans": "tests/unit/executor/upkeep: old runs, deleted while the process is killed",
    "add_refusals": "a killed process takes with it what it has counted since it wrote last",
    "post_message": "of retries and migrations, one transaction as that of a cancel: tests/unit/executor/lifecycle",
    "activate_workflow": "one transaction, the same as that of put_workflow, which the scenario has",
    "delete_workflow": "one transaction: tests/conformance/store/test_contract_workflows.py",
    "renew": "a lease that is not renewed lapses: tests/e2e/crash/test_lease.py",
}


async def run(*arguments: str) -> str:
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "tests.faults.points", *arguments, stdout=asyncio.subprocess.PIPE, cwd=ROOT
    )
    out, _ = await process.communicate()
    text = out.decode()
    assert process.returncode == 0, text
    return text


async def test_the_scenario_passes_every_point_there_is() -> None:
    passed = set(re.findall(r"write\.(\w+)", await run("--count")))
    declared = submitted()
    assert passed <= declared
    assert declared - passed <= set(ELSEWHERE), "a change that no fault test knows"
    assert set(ELSEWHERE) <= declared, "names of changes that are not there any more"


@pytest.mark.soak
@pytest.mark.timeout(0 if WHOLE else 300)
async def test_nothing_acknowledged_is_lost_wherever_it_breaks() -> None:
    text = await run("--every", str(EVERY))
    print(text)
    assert text.endswith("\n0 violations\n")
    reached = re.search(r"'kill': (\d+)", text)
    assert reached is not None and int(reached[1]) > 0
