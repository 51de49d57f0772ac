"""Outputs that do not fit a block's own schema are errors, and nothing of them is recorded."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tests.support.blocks import Probe
from tests.support.documents import ASKING, call, document
from tests.support.runs import ended, engine_on, ran, token_of

NUMBER: dict[str, Any] = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}


def checked(block: dict[str, Any], *edges: str, schema: Any = NUMBER, **blocks: Any) -> dict[str, Any]:
    return document("checked", "start b", *edges, blocks={"b": {**block, "output_schema": schema}, **blocks})


async def test_what_fits_passes(tmp_path: Path) -> None:
    async with engine_on(tmp_path / "weft.db", Probe()) as engine:
        view = await ran(engine, checked({"type": "probe", "params": {"value": {"n": 3, "more": True}}}))
        assert (view.status, view.output) == ("succeeded", {"n": 3, "more": True})


async def test_a_block_that_asks_the_world_is_tried_again(tmp_path: Path) -> None:
    probe = Probe()
    probe.outputs = [{"n": "not a number"}, {"n": 5}]
    block = {"type": "probe", "policy": {"retry": {"initial_ms": 1}}}
    async with engine_on(tmp_path / "weft.db", probe) as engine:
        view = await ran(engine, checked(block))
        assert (view.output, len(probe.seen)) == ({"n": 5}, 2)
        records = await engine.store.read_events(view.id)
        (retry,) = [record for record in records if record.type == "retry.scheduled"]
        assert b"output_invalid" in (retry.data or b"") and b"/n" in (retry.data or b"")
        assert all(b"not a number" not in (record.output or b"") for record in records)


async def test_a_pure_block_fails_at_once(tmp_path: Path) -> None:
    block = {"type": "function", "params": {"code": "return {n: 'x'}"}}
    caught = {"type": "set", "params": {"value": "<b.error>"}}
    schema = {"type": "object", "properties": {"result": NUMBER}}
    async with engine_on(tmp_path / "weft.db") as engine:
        view = await ran(engine, checked(block, "b error caught", schema=schema, caught=caught))
        assert view.output["code"] == "output_invalid"
        assert "/result/n" in view.output["message"] and "output_schema" in view.output["message"]
        failed = next(node for node in view.nodes if node.key == "b")
        assert (failed.attempt, failed.output) == (1, None)


async def test_outputs_of_inline_blocks_are_checked_as_well(tmp_path: Path) -> None:
    async with engine_on(tmp_path / "weft.db") as engine:
        view = await ran(engine, checked({"type": "set", "params": {"value": {"n": "<input.n>"}}}), input={"n": "x"})
        assert view.error is not None and view.error["code"] == "output_invalid"


async def test_a_large_output_is_checked_beside_the_event_loop(tmp_path: Path) -> None:
    probe = Probe()
    probe.outputs = [{"n": 1, "texts": ["x" * 2000] * 10}]
    schema = {**NUMBER, "properties": {**NUMBER["properties"], "texts": {"items": {"pattern": "^(x)+$"}}}}
    async with engine_on(tmp_path / "weft.db", probe) as engine:
        assert (await ran(engine, checked({"type": "probe"}, schema=schema))).status == "succeeded"


async def test_a_check_that_takes_too_long_fails_the_block(tmp_path: Path) -> None:
    probe = Probe()
    probe.outputs = [{"n": 1, "text": "a" * 40 + "!"}]
    schema = {"properties": {"text": {"pattern": "^(a+)+$"}}}
    async with engine_on(tmp_path / "weft.db", probe) as engine:
        view = await ran(engine, checked({"type": "probe"}, schema=schema))
        assert view.error is not None and view.error["code"] == "output_invalid"
        assert len(probe.seen) == 1


async def test_what_a_child_puts_out_is_checked_and_may_be_asked_for_again(tmp_path: Path) -> None:
    probe = Probe()
    probe.outputs = ["text", {"n": 2}]
    below = document("below", "start p", blocks={"p": {"type": "probe"}})
    block = call("below", policy={"retry": {"max_attempts": 2, "initial_ms": 1}})
    async with engine_on(tmp_path / "weft.db", probe) as engine:
        await engine.workflows.save(below)
        view = await ran(engine, checked(block, "b end", end={"type": "set", "params": {"value": "<b.n>"}}))
        assert (view.output, len(view.children)) == (2, 2)
        assert {child.status for child in view.children} == {"succeeded"}


async def test_an_answer_that_does_not_fit_fails_the_block(tmp_path: Path) -> None:
    asking = {**ASKING, "blocks": {**ASKING["blocks"]}}
    asking["blocks"]["ask"] = {**asking["blocks"]["ask"], "output_schema": NUMBER}
    async with engine_on(tmp_path / "weft.db") as engine:
        run = (await engine.submit(asking)).run
        (wait,) = (await engine.wait_finished(run, 30)).waits
        await engine.answer(token_of(wait.link), {"n": "many"}, action="yes")
        view = await ended(engine, run)
        assert view.error is not None and view.error["code"] == "output_invalid"
