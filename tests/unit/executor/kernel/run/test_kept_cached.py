"""Results taken over from earlier runs, through the engine on a real file."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import orjson
import pytest

from executor.errors import BlockError
from executor.kernel.run.kept import OUTPUT_MAX_BYTES
from tests.support.blocks import Probe
from tests.support.clock import ManualClock
from tests.support.documents import document
from tests.support.model_store.store import ModelStore
from tests.support.runs import engine_on, events_of, ran


def asking(value: Any = "<input.q>", name: str = "rates", block: str = "rate", **policy: Any) -> dict[str, Any]:
    more = {field: policy.pop(field) for field in ("assign", "output_schema") if field in policy}
    return document(
        name,
        f"start {block}",
        blocks={block: {"type": "probe", "params": {"value": value}, "policy": {"cache": policy}, **more}},
        variables={"seen": None},
    )


async def test_an_equal_block_of_a_later_run_does_not_run_again(tmp_path: Path) -> None:
    probe = Probe()
    probe.outputs = [{"rate": 1}, {"rate": 2}, {"rate": 3}]
    async with engine_on(tmp_path / "weft.db", probe) as engine:
        first = await ran(engine, asking(), input={"q": "EUR"})
        again = await ran(engine, asking(), input={"q": "EUR"})
        other = await ran(engine, asking(), input={"q": "USD"})
        assert [view.output for view in (first, again, other)] == [{"rate": 1}, {"rate": 1}, {"rate": 2}]
        assert len(probe.seen) == 2
        cached = [node.cached for view in (first, again) for node in view.nodes if node.key == "rate"]
        assert cached == [False, True]
        (record,) = [r for r in await engine.store.read_events(again.id) if r.node == "rate" and "succ" in r.type]
        assert orjson.loads(record.data or b"{}") == {"cached": True}
        assert record.output == b'{"rate":1}'


async def test_it_outlives_the_process(tmp_path: Path) -> None:
    probe = Probe()
    for _ in range(2):
        async with engine_on(tmp_path / "weft.db", probe) as engine:
            assert (await ran(engine, asking(), input={"q": 5})).output == 5
    assert len(probe.seen) == 1


async def test_scopes(tmp_path: Path) -> None:
    probe = Probe()

    async def count(engine: Any, *workflows: Any) -> int:
        before = len(probe.seen)
        for workflow in workflows:
            assert (await ran(engine, workflow)).status == "succeeded"
        return len(probe.seen) - before

    async with engine_on(tmp_path / "weft.db", probe) as engine:
        own = asking(1, "a")
        assert await count(engine, own, own, asking(1, "b"), asking(1, "a", "other")) == 3
        shared = asking(2, "a", scope="global")
        assert await count(engine, shared, asking(2, "b", "other", scope="global")) == 1
        in_loop = document(
            "l",
            "start l",
            "l body rate",
            blocks={
                "l": {"type": "loop", "params": {"mode": "for", "count": 4}},
                "rate": {
                    "type": "probe",
                    "parent": "l",
                    "params": {"value": "same"},
                    "policy": {"cache": {"scope": "run"}},
                },
            },
        )
        assert await count(engine, in_loop) == 1
        assert await count(engine, in_loop) == 1  # another run


async def test_a_key_expression_stands_for_the_params(tmp_path: Path) -> None:
    probe = Probe()
    asked = asking({"id": "<input.id>", "at": "<input.at>"}, key="<input.id> % 10")
    async with engine_on(tmp_path / "weft.db", probe) as engine:
        for number, at in ((1, "mon"), (11, "tue"), (2, "wed")):
            await ran(engine, asked, input={"id": number, "at": at})
        assert [seen["value"]["at"] for seen in probe.seen] == ["mon", "wed"]
        failing = await ran(engine, asking(key="nothing.such"), input={"q": 1})
        assert failing.error is not None and failing.error["block"] == "rate"


async def test_another_version_or_another_schema_is_another_key(tmp_path: Path) -> None:
    probe = Probe()
    probe.outputs = [{"n": 1}]
    number = {"type": "object", "properties": {"n": {"type": "number"}}}
    variants: list[dict[str, Any]] = [
        {},
        {"version": "2"},
        {"version": 3},
        {"output_schema": number},
        {"output_schema": {"type": "object"}},
    ]
    async with engine_on(tmp_path / "weft.db", probe) as engine:
        for _ in range(2):
            for variant in variants:
                assert (await ran(engine, asking(1, **variant))).output == {"n": 1}
        assert len(probe.seen) == len(variants)


async def test_an_output_that_does_not_fit_any_more_is_passed_over(tmp_path: Path) -> None:
    db, probe = tmp_path / "weft.db", Probe()
    asked = asking(1, output_schema={"type": "integer"})
    async with engine_on(db, probe) as engine:
        assert (await ran(engine, asked)).output == 1
    with closing(sqlite3.connect(db)) as raw, raw:
        raw.execute("UPDATE cache SET output = CAST('\"damaged\"' AS BLOB)")
    async with engine_on(db, probe) as engine:
        assert (await ran(engine, asked)).output == 1
    assert len(probe.seen) == 2
    with closing(sqlite3.connect(db)) as raw, raw:
        raw.execute("UPDATE cache SET schema_sig = 'stale'")
    async with engine_on(db, probe) as engine:
        assert (await ran(engine, asked)).output == 1
    assert len(probe.seen) == 3


async def test_it_expires(tmp_path: Path) -> None:
    probe, clock = Probe(), ManualClock()
    async with engine_on(tmp_path / "weft.db", probe, clock=clock) as engine:
        await ran(engine, asking(1, ttl_s=60))
        clock.advance(59_999)
        await ran(engine, asking(1, ttl_s=60))
        assert len(probe.seen) == 1
        clock.advance(1)
        await ran(engine, asking(1, ttl_s=60))
        assert len(probe.seen) == 2


async def test_failures_are_not_kept(tmp_path: Path) -> None:
    probe = Probe()
    probe.outputs = [BlockError("no", retryable=False), "yes"]
    async with engine_on(tmp_path / "weft.db", probe) as engine:
        assert (await ran(engine, asking(1))).status == "failed"
        assert (await ran(engine, asking(1))).output == "yes"


async def test_what_is_taken_over_is_assigned_too(tmp_path: Path) -> None:
    probe = Probe()
    async with engine_on(tmp_path / "weft.db", probe) as engine:
        for _ in range(2):
            view = await ran(engine, asking(7, assign="$.seen"))
            assert view.variables == {"seen": 7}
            assert "variables.patched" in await events_of(engine, view.id)
        assert len(probe.seen) == 1


async def test_names_of_secrets_are_in_the_key_their_values_are_not() -> None:
    probe = Probe()
    asked = asking({"key": "${KEY}", "q": 1}, scope="global")
    other = asking({"key": "${OTHER}", "q": 1}, scope="global")
    store = ModelStore()
    probe.outputs = ["one", "two"]
    async with engine_on(store, probe, env={"KEY": "secret number one", "OTHER": "secret number two"}) as engine:
        assert (await ran(engine, asked)).output == "one"
        assert (await ran(engine, asked)).output == "one"
        assert (await ran(engine, other)).output == "two"
    probe.outputs = ["three"]
    async with engine_on(store, probe, env={"KEY": "secret after its rotation", "OTHER": "x" * 9}) as engine:
        assert (await ran(engine, asked)).output == "one"


async def test_values_that_are_secrets_are_told_apart() -> None:
    """Whatever else of a run is equal to a value of the environment: one is not taken for the other."""
    probe = Probe()
    probe.outputs = ["of alice", "of bob", "of neither", "of both"]
    env = {"ADMIN": "alice@example.com", "SUPPORT": "bob@example.com"}
    async with engine_on(ModelStore(), probe, env=env) as engine:
        asked = asking({"who": "<input.q>"})
        for _ in range(2):
            assert (await ran(engine, asked, input={"q": "alice@example.com"})).output == "of alice"
            assert (await ran(engine, asked, input={"q": "bob@example.com"})).output == "of bob"
            assert (await ran(engine, asked, input={"q": "[ADMIN/0]"})).output == "of neither"
            assert (await ran(engine, asked, input={"q": {"bob@example.com": 1}})).output == "of both"
        probe.outputs = ["for the admin", "for support"]
        chosen = asking(1, block="chosen", key="<input.admin> ? ${ADMIN} : ${SUPPORT}")
        for _ in range(2):
            assert (await ran(engine, chosen, input={"admin": True})).output == "for the admin"
            assert (await ran(engine, chosen, input={"admin": False})).output == "for support"


async def test_programs_are_part_of_the_key(tmp_path: Path) -> None:
    def code(text: str) -> dict[str, Any]:
        return document(
            "f",
            "start f",
            blocks={"f": {"type": "function", "params": {"code": text}, "policy": {"cache": {}}}},
        )

    async with engine_on(tmp_path / "weft.db") as engine:
        outputs = [
            (await ran(engine, code(text), input={"n": n})).nodes[1]
            for text, n in (("return <input.n> + 1", 1), ("return <input.n> + 1", 1), ("return <input.n> + 1", 2))
        ]
        assert [node.cached for node in outputs] == [False, True, False]
        assert (await ran(engine, code("return <input.n> + 2"), input={"n": 1})).nodes[1].cached is False


async def test_large_outputs_are_not_kept(tmp_path: Path) -> None:
    probe = Probe()
    probe.outputs = ["x" * (OUTPUT_MAX_BYTES - 2), "y" * (OUTPUT_MAX_BYTES - 1)]
    async with engine_on(tmp_path / "weft.db", probe) as engine:
        assert [len((await ran(engine, asking(1))).output) for _ in range(2)] == [OUTPUT_MAX_BYTES - 2] * 2
        assert len(probe.seen) == 1
        for _ in range(2):
            assert (await ran(engine, asking(2))).output[0] == "y"
        assert len(probe.seen) == 3


@pytest.mark.parametrize("workflow", [None, "rates"])
async def test_it_can_be_cleared(tmp_path: Path, workflow: str | None) -> None:
    probe = Probe()
    async with engine_on(tmp_path / "weft.db", probe) as engine:
        await ran(engine, asking(1))
        assert await engine.store.clear_cache("another") == 0
        assert await engine.store.clear_cache(workflow) == 1
        await ran(engine, asking(1))
        assert len(probe.seen) == 2


async def test_equal_blocks_at_the_same_time_may_both_run(tmp_path: Path) -> None:
    probe = Probe()
    twins = document(
        "twins",
        "start a",
        "start b",
        blocks={
            name: {"type": "probe", "params": {"value": 1}, "policy": {"cache": {"scope": "global"}}}
            for name in ("a", "b")
        },
    )
    async with engine_on(tmp_path / "weft.db", probe) as engine:
        assert (await ran(engine, twins)).output == {"a": 1, "b": 1}
        assert len(probe.seen) in (1, 2)
        assert (await ran(engine, twins)).output == {"a": 1, "b": 1}
        assert len(probe.seen) in (1, 2)
