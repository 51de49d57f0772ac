"""Every case of `cases/` and WEFT_CONFORMANCE_DIR, imported, compiled and run through the public engine on each store.

README.md describes the cases and how to compare.
"""

from __future__ import annotations

import asyncio
import json
import os
from collections import Counter
from collections.abc import AsyncIterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from compiler.imports.sim import convert
from executor.blocks.http.client import GuardedClient
from executor.blocks.sandbox.sandbox import Sandbox
from executor.blocks.services import Services
from executor.blocks.types.registry import Registry
from executor.errors import Conflict, InputInvalid, NotFound
from executor.kernel.store.run_rows import Record
from executor.kernel.store.sqlite.store import SQLiteStore
from executor.open.engine import Engine
from tests.conformance.compare import failure_matches, same
from tests.conformance.scripted import PATIENCE_S, Script, registry_for
from tests.support.clock import ManualClock
from tests.support.model_store.store import ModelStore
from tests.support.snapshots import cuts_agree, often

CASES = Path(__file__).parent / "cases"
OTHERS = os.environ.get("WEFT_CONFORMANCE_DIR")
FILES = sorted([*CASES.glob("*.json"), *(Path(OTHERS).glob("*.json") if OTHERS else ())])
STATUS = {"completed": "succeeded", "failed": "failed", "paused": "waiting", "cancelled": "cancelled"}

# Where weft differs on purpose (`verdict: quirk`): our rule, as it shows in the case.
OURS: dict[str, dict[str, Any]] = {
    "condition_quoted_reference_is_quoted_twice": {
        "executed": ["start", "C", "A"],
        "not_executed": ["B"],
        "outputs": {"A": {"result": "A"}},
        "final_output": {"result": "A"},
    },
    "loop_for_zero_iterations_becomes_1000": {
        "executed": ["start", "Z"],
        "executed_counts": None,
        "not_executed": ["A"],
        "outputs": {"L": {"results": []}, "Z": {"result": "Z"}},
    },
    "loop_stale_output_from_previous_iteration": {
        "outputs": {
            "M": {"result": {"a": None}},
            "L": {
                "results": [
                    [{"selectedOption": "yes"}, {"result": {"i": "0"}}, {"result": {"a": "0"}}],
                    [{"selectedOption": "no"}, {"result": "B"}, {"result": {"a": None}}],
                ]
            },
        },
        "final_output": None,
    },
    "multiple_terminal_blocks_final_output": {"final_output": {"A": {"result": "slow"}, "B": {"result": "fast"}}},
    "returned_error_key_takes_error_edge": {
        "executed": ["start", "A", "B"],
        "not_executed": ["ERR"],
        "block_errors": [],
        "outputs": {"A": {"result": 1, "error": "soft"}, "B": {"result": "B"}},
        "final_output": {"result": "B"},
    },
    "unlabelled_edge_fires_even_on_error": {
        "executed": ["start", "A", "ERR"],
        "not_executed": ["NEXT"],
        "outputs": {"A": {"error": "boom"}, "ERR": {"result": "ERR"}},
        "final_output": {"result": "ERR"},
    },
    "variables_block_unknown_variable": {
        "outputs": {"V": {"ghost": "boo"}, "Z": {"result": {"a": "boo", "b": "boo"}}},
        "final_output": {"result": {"a": "boo", "b": "boo"}},
    },
}


def test_each_folder_has_cases() -> None:
    assert {file.parent for file in FILES} == {CASES, Path(OTHERS or CASES)}


@pytest.fixture(params=["model", "sqlite", "postgres"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Any:
    if request.param == "postgres":
        address = request.getfixturevalue("postgres")
        from executor.kernel.store.postgres.store import PostgresStore

        return PostgresStore(address)
    return ModelStore() if request.param == "model" else SQLiteStore(tmp_path / "weft.db")


@pytest.fixture(scope="module")
def sandbox() -> Any:
    made = Sandbox()
    yield made
    made.close()


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
async def test_case(file: Path, store: Any, sandbox: Sandbox) -> None:
    case = json.loads(file.read_text())
    script = Script(case.get("handlers", {}))
    with often(every=1):
        async for world in _world(case, script, store, sandbox):
            await world.play()
            for row in await store.list_runs():
                await cuts_agree(store, row.id)


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
async def test_case_is_the_same_ahead_of_its_journal(file: Path, sandbox: Sandbox) -> None:
    """With `durability: ahead`, and blocks that say they change nothing."""
    case = json.loads(file.read_text())
    script = Script(case.get("handlers", {}), effect="read")
    async for world in _world(case, script, ModelStore(), sandbox):
        world.document.setdefault("settings", {})["durability"] = "ahead"
        await world.play()


async def _world(case: dict[str, Any], script: Script, store: Any, sandbox: Sandbox) -> AsyncIterator[_World]:
    types = {block["metadata"]["id"] for block in case["workflow"]["blocks"]}
    env = {name: str(value) for name, value in (case.get("env") or {}).items()}
    imported = convert(case["workflow"], env_names=frozenset(env), variables=case.get("variables"), name=case["name"])
    types |= {block["type"] for block in imported.document["blocks"].values()}
    base = Registry.load(sandbox=sandbox)
    clock = ManualClock()
    services = Services(sandbox=_Shared(sandbox), http=GuardedClient(), env=env)  # type: ignore[arg-type]
    engine = await Engine.open(
        store, registry=registry_for(script, types, base, sandbox), services=services, clock=clock
    )

    async def under_way(run: str) -> set[str]:
        try:
            plan = await engine.runs.plan(run)
        except NotFound:  # its first turn is what creates it: nothing else has started
            return set()
        sentinels = {node.id for node in plan.nodes if node.sentinel}
        view = await engine.runs.view(run)
        return {node.key for node in view.nodes if node.status == "running" and node.node not in sentinels}

    script.cancel, script.under_way = engine.cancel, under_way
    store.read_inbox = partial(script.read_inbox, store.read_inbox)
    try:
        yield _World(case, imported.document, engine, clock)
    finally:
        await engine.close()


class _Shared:
    """One sandbox for all cases: closing an engine must not close it."""

    def __init__(self, sandbox: Sandbox) -> None:
        self._sandbox = sandbox

    def __getattr__(self, name: str) -> Any:
        return getattr(self._sandbox, name)

    def close(self) -> None:
        """Owned by the module."""


class _World:
    def __init__(self, case: dict[str, Any], document: dict[str, Any], engine: Engine, clock: ManualClock) -> None:
        self.case = case
        self.document = document
        self.engine = engine
        self.clock = clock
        self.containers = {id for id, b in document["blocks"].items() if b["type"] in ("loop", "parallel")}
        self.seen = 0
        self.run = ""
        self.started: set[str] = set()

    async def play(self) -> None:
        case = self.case
        try:
            submitted = await self.engine.submit(
                self.document, input=case.get("input"), trigger=case.get("trigger"), stop_after=case.get("stop_after")
            )
        except InputInvalid:  # weft refuses the run instead of failing it before its first block
            assert case["expect"]["status"] == "failed" and not case["expect"]["executed"]
            return
        self.run = submitted.run
        expect = dict(case["expect"])
        should = case.get("should") or {}
        if case["verdict"] == "bug":
            kept = {
                key: expect[key]
                for key in ("status", "executed", "not_executed")
                if key in expect and "steps" in should
            }
            expect = {"status": expect["status"], **kept, **{k: v for k, v in should.items() if k != "steps"}}
        elif case["verdict"] == "quirk" and case["name"] in OURS:
            expect |= OURS[case["name"]]
        elif case["verdict"] == "quirk":
            expect = {
                "status": expect["status"]
            }  # a rule of ours that this suite has no expectation for: it must still end
        await self.check(expect)
        right = should.get("steps") or []
        for index, step in enumerate(case["expect"].get("steps") or []):
            if right:
                wanted = {key: right[index][key] for key in ("status", "executed") if key in right[index]}
                await self.step({**step, "expect": wanted})
            else:
                await self.step(step)

    async def step(self, step: dict[str, Any]) -> None:
        expect = dict(step["expect"])
        if "run_from" in step:
            try:
                submitted = await self.engine.lifecycle.run_from(self.run, step["run_from"]["block"])
            except Conflict:
                assert expect["status"] == "failed", "run from block was refused"
                return
            self.run, self.seen, self.started = submitted.run, 0, set()
        else:
            await self.resume(step["resume"])
        open_after = step.get("open_after") or []
        expect["status"] = "paused" if open_after else "completed" if expect["status"] == "paused" else expect["status"]
        if open_after:
            expect.pop("final_output", None)
        await self.check(expect)
        assert Counter(await self.open_waits()) == Counter(open_after)

    async def resume(self, resume: dict[str, Any]) -> None:
        before = (await self.engine.runs.row(self.run)).seq
        for wait in await self.engine.waits.list("pending", self.run):
            if _label(wait.key) == resume["at"]:
                if wait.kind == "timer":
                    assert wait.expires_at_ms is not None
                    self.clock.advance(wait.expires_at_ms - self.clock.now_ms())
                else:
                    assert wait.link is not None
                    action = wait.actions[0] if wait.actions else None
                    await self.engine.answer(wait.link.rpartition("/")[2], resume["input"], action, by="a tester")
                async with asyncio.timeout(PATIENCE_S):
                    while (await self.engine.runs.row(self.run)).seq == before:
                        await asyncio.sleep(0.005)
                await self._settled()
                return
        raise AssertionError(f"no wait is open at {resume['at']}; open: {await self.open_waits()}")

    async def open_waits(self) -> list[str]:
        return [_label(wait.key) for wait in await self.engine.waits.list("pending", self.run)]

    async def _settled(self) -> None:
        """Until the run has ended or waits, with everything that was in its inbox taken in."""
        async with asyncio.timeout(PATIENCE_S):
            while True:
                view = await self.engine.wait_finished(self.run, timeout_s=10)
                if not await self.engine.store.read_inbox(self.run) and view.status not in ("queued", "running"):
                    return
                await asyncio.sleep(0.005)  # an answer was stored, the worker has yet to take it

    async def records(self) -> list[Record]:
        return await self.engine.store.read_events(self.run, 0, 100_000)

    async def check(self, expect: dict[str, Any]) -> None:
        await self._settled()
        view = await self.engine.runs.view(self.run)
        records = await self.records()
        assert [record.seq for record in records] == list(range(1, len(records) + 1))
        assert view.status == STATUS[expect["status"]], view.error
        fresh = records[self.seen :]
        self.seen = len(records)
        plan = await self.engine.runs.plan(self.run)
        sentinels = {node.id for node in plan.nodes if node.sentinel}
        started = [
            _label(_key(record))
            for record in fresh
            if record.type == "node.started" and record.attempt == 1 and record.node not in sentinels
        ]
        self.started |= {label.partition("@")[0] for label in started}
        if expect.get("executed_counts"):
            assert Counter(label.partition("@")[0] for label in started) == Counter(expect["executed_counts"])
        elif "executed" in expect:
            wanted = [label for label in expect["executed"] if label.partition("@")[0] not in self.containers]
            assert Counter(started) == Counter(wanted)
            if self.case.get("ordered"):
                assert started == wanted
        for block in expect.get("not_executed", []):
            assert block not in self.started
        if "block_errors" in expect:
            failed = [_label(_key(r)) for r in fresh if r.type == "node.failed" and r.node not in sentinels]
            assert Counter(failed) == Counter(expect["block_errors"])
        if expect.get("error") and view.status == "failed":
            assert view.error is not None
            assert failure_matches(expect["error"], view.error["message"])
        open_blocks = {label.partition("@")[0] for label in await self.open_waits()}
        self._outputs(expect, records, sentinels, open_blocks)
        if expect.get("final_output") is not None and view.status == "succeeded":
            assert same(expect["final_output"], view.output if view.output is not None else {}), view.output

    def _outputs(
        self, expect: dict[str, Any], records: list[Record], sentinels: set[str], open_blocks: set[str]
    ) -> None:
        ours: dict[str, Any] = {}
        for record in records:
            if record.type in ("node.succeeded", "region.exited") and "[" not in record.path:
                ours[str(record.node).removesuffix(":end")] = json.loads(record.output or b"null")
            elif record.type == "node.failed" and record.node not in sentinels:
                ours[str(record.node)] = {"error": json.loads(record.data or b"{}")["error"]}
        cancelling = {block for block, h in self.case.get("handlers", {}).items() if h["kind"] == "cancel"}
        for block, wanted in (expect.get("outputs") or {}).items():
            if block in open_blocks:
                continue  # an open pause has no output of its own here
            if block in cancelling:
                continue  # whether the block that cancels still records its own output is each engine's timing
            if block not in ours:
                # an open pause and a block another engine gives an empty output to have none here
                assert block not in self.started or not any(value for value in (wanted or {}).values() if value), block
                continue
            assert same(wanted, ours[block]), (block, wanted, ours[block])


def _key(record: Record) -> str:
    return f"{record.node}@{record.path}" if record.path else str(record.node)


def _label(key: str) -> str:
    """`send@review#5/fan[2]` -> `send@review[5]/fan[2]`"""
    node, at, path = key.partition("@")
    parts = [f"{part.replace('#', '[')}]" if "#" in part else part for part in path.split("/")]
    return f"{node}{at}{'/'.join(parts)}"
