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
EVERY = size(120, 1)
# Changes the scenario has no use for, and where they are broken instead.
ELSEWHERE = {
    "put_upkeep_note": "one statement: tests/promises/test_operation_gc.py kills a server between two",
    "add_usage": "one transaction: tests/conformance/store/test_contract_usage.py",
    "keep_run": "one statement, of one row",
    "drop_kept_run": "one statement, of one row",
    "add_alerts": "with the cause in one transaction, or one row: tests/e2e/test_alerts.py kills it",
    "group_alerts": "one transaction: tests/e2e/test_alerts.py kills it",
    "claim_alert_messages": "one statement: tests/e2e/test_alerts.py kills it",
    "keep_notification": "one row: tests/promises/test_outages_claims.py kills its process",
    "keep_alert_message": "one row: tests/promises/test_outages_claims.py kills its process",
    "record_alert_message": "one transaction: tests/e2e/test_alerts.py kills it",
    "delete_old_alerts": "is done again at the next upkeep",
    "answer_wait": "as answer_and_continue, for a run that is in memory, or a process without room",
    "answer_and_continue": "as answer_wait, with the claim and the append that otherwise follow it",
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
    "put_secret": "one row: tests/conformance/store/test_contract_secrets.py",
    "use_secrets": "one statement",
    "put_parts": "one transaction: tests/conformance/store/test_contract_files.py",
    "hold_files": "one transaction: tests/conformance/store/test_contract_files.py",
    "reseal_secrets": "one statement for each secret: tests/conformance/store/test_contract_secrets.py",
    "delete_secret": "one row",
    "claim_key": "one row: tests/conformance/store/test_contract_keys.py",
    "change_key": "one transaction: tests/conformance/store/test_contract_keys.py",
    "relink": "one transaction, and the rest again: tests/promises/test_secrets_rotation.py",
    "remember": "one transaction: tests/conformance/store/test_contract_memory.py",
    "forget": "one statement",
    "delete_old_memory": "one transaction: tests/conformance/store/test_contract_memory.py",
    "put_collection": "one row",
    "delete_collection": "one transaction, the rest swept: tests/promises/test_knowledge_kills.py kills it",
    "add_knowledge": "one transaction: tests/promises/test_knowledge_kills.py kills it",
    "delete_knowledge": "one statement, the rest swept: tests/promises/test_knowledge_kills.py kills it",
    "put_vectors": "one transaction: tests/promises/test_knowledge_kills.py kills it",
    "publish_knowledge": "one transaction: tests/promises/test_knowledge_kills.py kills it",
    "sweep_chunks": "done again until nothing is left: tests/promises/test_knowledge_kills.py kills it",
    "put_connector": "one row",
    "delete_connector": "one row",
    "put_user": "one row",
    "identify": "one row",
    "set_role": "one row",
    "delete_user": "one transaction: tests/conformance/store/test_contract_people.py",
    "put_code": "one transaction: tests/conformance/store/test_contract_people.py",
    "redeem_code": "one statement",
    "put_token": "one row",
    "use_token": "one row",
    "delete_token": "one row",
    "record_act": "as each row of the audit: tests/conformance/store/test_sqlite_audit.py",
    "fire": "tests/unit/executor/service/triggers: two engines, restarts",
    "claim_poll": "one row: tests/promises/test_polls.py kills it",
    "record_poll": "one transaction: tests/promises/test_polls.py kills it",
    "add_hook": "one row: tests/promises/test_hooks.py kills it",
    "claim_hook": "one row: tests/promises/test_hooks.py kills it",
    "record_hook": "one row: tests/promises/test_hooks.py kills it",
    "keep_hook_secret": "one row: tests/promises/test_hooks.py kills it",
    "push_hook": "one transaction: tests/promises/test_hooks.py kills it",
    "poll_pushed": "one statement: tests/promises/test_hooks.py kills it",
    "put_plan": "tests/unit/executor/kernel/run/test_move.py: runs that move to another version",
    "clear_cache": "cached results may go at any time",
    "delete_snapshots": "snapshots may go at any time",
    "delete_expired_cache": "cached results may go at any time",
    "delete_runs": "tests/unit/executor/service/upkeep: old runs, deleted while the process is killed",
    "delete_orphans": "tests/unit/executor/service/upkeep: old runs, deleted while the process is killed",
    "add_refusals": "a killed process takes with it what it has counted since it wrote last",
    "post_message": "of retries and migrations, one transaction as of a cancel: tests/unit/executor/service/topics",
    "activate_workflow": "one transaction, the same as that of put_workflow, which the scenario has",
    "put_in_folder": "one row",
    "put_draft_in_folder": "one row",
    "put_title": "one row",
    "delete_workflow": "one transaction: tests/conformance/store/test_contract_workflows.py",
    "ask_places": "limits of blocks, beside kills: tests/e2e/test_block_limits.py",
    "assign_places": "limits of blocks, beside kills: tests/e2e/test_block_limits.py",
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


@pytest.fixture(params=["sqlite", "postgres"])
def database(request: pytest.FixtureRequest) -> str:
    if request.param == "postgres":
        pytest.importorskip("psycopg")
    return str(request.param)


async def test_the_scenario_passes_every_point_there_is(database: str) -> None:
    passed = set(re.findall(r"write\.(\w+)", await run("--database", database, "--count")))
    declared = submitted()
    assert passed <= declared
    assert declared - passed <= set(ELSEWHERE), "a change that no fault test knows"
    assert set(ELSEWHERE) <= declared, "names of changes that are not there any more"


@pytest.mark.soak
@pytest.mark.timeout(0 if WHOLE else 300)
async def test_nothing_acknowledged_is_lost_wherever_it_breaks(database: str) -> None:
    text = await run("--database", database, "--every", str(EVERY))
    print(text)
    assert text.endswith("\n0 violations\n")
    reached = re.search(r"'kill': (\d+)", text)
    assert reached is not None and int(reached[1]) > 0


@pytest.mark.soak
@pytest.mark.timeout(1800)
async def test_every_commit_is_killed_and_every_answer_to_one_is_lost() -> None:
    """On PostgreSQL, where the process that commits and the one that asks for it may each end alone."""
    pytest.importorskip("psycopg")
    every = str(size(8, 1))
    text = await run("--database", "postgres", "--at", "before_commit", "--actions", "kill,drop", "--every", every)
    print(text)
    assert text.endswith("\n0 violations\n")
    for action in ("kill", "drop"):
        reached = re.search(rf"'{action}': (\d+)", text)
        assert reached is not None and int(reached[1]) > 0
