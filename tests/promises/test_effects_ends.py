"""Ends: a block that ran and led nowhere is a result, whatever other handles of it are connected."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import orjson
import pytest

from compiler import plan as plans
from compiler.compile import compile_document
from compiler.plan import Plan
from executor.blocks.types.registry import Registry
from executor.kernel.core.evolve import fold
from executor.kernel.run.compiler import plan_of
from tests.support.documents import Json, document, value
from tests.support.runs import engine_on, settled, token_of

THROWS = {"type": "function", "params": {"code": "throw new Error('no')"}}
ASK = {"type": "approval", "params": {"actions": ["approve", "reject"]}}
CHOICE = {"type": "condition", "params": {"cases": [{"id": "yes", "when": "<start.n> > 1"}, {"id": "no"}]}}
SAYS = {"type": "guardrail", "params": {"input": "{}", "check": "json"}}


async def output(path: Path, *edges: str, input: Any = None, **blocks: Json) -> Any:
    async with engine_on(path / "weft.db") as engine:
        run = await engine.run(document("ends", *edges, blocks=blocks), input or {}, timeout_s=30)
        assert run.status == "succeeded", run.error
        return run.output


async def test_an_error_handle_leaves_the_result_where_it_was(tmp_path: Path) -> None:
    assert await output(tmp_path, "start f", "f error h", f=value(1), h=value(2)) == 1


async def test_the_result_of_the_error_path_takes_its_place(tmp_path: Path) -> None:
    assert await output(tmp_path, "start f", "f error h", f=THROWS, h=value(2)) == 2


async def test_blocks_that_end_beside_it_are_named_as_before(tmp_path: Path) -> None:
    found = await output(tmp_path, "start f", "start g", "f error h", f=value(1), g=value(3), h=value(2))
    assert found == {"f": 1, "g": 3}


async def test_a_block_in_the_middle_is_no_end(tmp_path: Path) -> None:
    found = await output(tmp_path, "start f", "f g", "f error h", "g error h", f=value(1), g=value(3), h=value(2))
    assert found == 3


async def test_null_of_a_block_that_failed_and_continues(tmp_path: Path) -> None:
    continues = THROWS | {"policy": {"on_error": "continue"}}
    assert await output(tmp_path, "start f", "f error h", f=continues, h=value(2)) == 2, "the handle comes first"
    assert await output(tmp_path, "start f", f=continues) is None


async def test_a_choice_that_leads_nowhere_is_no_result(tmp_path: Path) -> None:
    assert await output(tmp_path, "start c", "c yes a", c=CHOICE, a=value(1), input={"n": 1}) == {}
    assert await output(tmp_path, "start c", "c yes a", c=CHOICE, a=value(1), input={"n": 2}) == 1
    passed = await output(tmp_path, "start g", "g fail a", g=SAYS, a=value(1))
    assert passed["passed"] is True, "what a check says is"


async def test_a_cleanup_changes_nothing(tmp_path: Path) -> None:
    blocks = {"f": value(1), "h": value(2), "c": value(3)}
    assert await output(tmp_path, "start f", "f error h", "start finally c", **blocks) == 1


@pytest.mark.parametrize(("action", "expected"), [("approve", {"approved": True}), ("reject", "reject")])
async def test_an_answer_whose_action_is_not_connected_is_the_result(
    tmp_path: Path, action: str, expected: Any
) -> None:
    async with engine_on(tmp_path / "weft.db") as engine:
        made = document("ask", "start ask", "ask approve yes", blocks={"ask": ASK, "yes": value({"approved": True})})
        run = (await engine.submit(made)).run
        await settled(engine, run)
        (wait,) = await engine.waits.list(run=run)
        await engine.waits.answer(token_of(wait.link), {}, action)
        found = (await engine.wait_finished(run, 30)).output
        assert (found if action == "approve" else found["action"]) == expected


LOOP = {"type": "loop", "params": {"mode": "for", "count": 3}}
FAN = {"type": "parallel", "params": {"mode": "count", "count": 3}}
SOME = {"type": "function", "parent": "l", "params": {"code": "if (<l.index> === 1) throw new Error('no'); return 7"}}


@pytest.mark.parametrize("container", [LOOP, FAN], ids=["loop", "parallel"])
async def test_each_iteration_and_branch_has_its_result(tmp_path: Path, container: Json) -> None:
    h = value("h") | {"parent": "l"}
    found = await output(tmp_path, "start l", "l body f", "f error h", l=container, f=SOME, h=h)
    assert [entry if entry == ["h"] else entry[0]["result"] for entry in found["results"]] == [7, ["h"], 7]


async def test_a_skipped_block_counts_as_one_without_edges(tmp_path: Path) -> None:
    skipped = value(1) | {"parent": "l", "policy": {"skip_if": "true"}}
    h = value("h") | {"parent": "l"}
    plain = await output(tmp_path, "start l", "l body f", l=LOOP, f=skipped)
    assert plain["results"] == [[None]] * 3
    wired = await output(tmp_path, "start l", "l body f", "f error h", l=LOOP, f=skipped, h=h)
    assert wired["results"] == plain["results"]


async def test_a_container_with_an_error_handle_is_an_end(tmp_path: Path) -> None:
    f, h = value(1) | {"parent": "l"}, value("h")
    found = await output(tmp_path, "start l", "l body f", "l error h", l=LOOP, f=f, h=h)
    assert found["results"] == [[1]] * 3
    fails = THROWS | {"parent": "l"}
    assert await output(tmp_path, "start l", "l body f", "l error h", l=LOOP, f=fails, h=h) == "h"
    no_items = LOOP | {"params": {"mode": "each", "items": 5}}
    assert await output(tmp_path, "start l", "l body f", "l error h", l=no_items, f=f, h=h) == "h"


async def test_results_of_every_block_stay_those_of_every_block(tmp_path: Path) -> None:
    every = LOOP | {"params": {"mode": "for", "count": 1, "results": "all"}}
    f, h = THROWS | {"parent": "l"}, value("h") | {"parent": "l"}
    found = await output(tmp_path, "start l", "l body f", "f error h", l=every, f=f, h=h)
    assert [list(entry) if isinstance(entry, dict) else entry for entry in found["results"][0]] == [["error"], "h"]


def _plan() -> Plan:
    blocks = {"f": value(1), "h": value(2)}
    return plan_of(compile_document(document("ends", "start f", "f error h", blocks=blocks), Registry.load()))


def test_a_stored_plan_without_the_rule_is_read_as_before() -> None:
    now = orjson.loads(plans.encode(_plan()))
    assert now["regions"][0].pop("may_end") == [1]
    before = plans.decode(orjson.dumps(now))
    assert before.root_ends == {2} and plans.decode(plans.encode(before)).hash == before.hash
    assert fold(before, []).seq == 0


def test_a_plan_that_the_rule_does_not_concern_keeps_its_hash() -> None:
    blocks = {"f": value(1), "g": value(2)}
    plan = plan_of(compile_document(document("ends", "start f", "f g", "f error g", blocks=blocks), Registry.load()))
    assert b"may_end" not in plan.encoded
