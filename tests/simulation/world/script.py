"""Block types that do what the table of a random workflow says, whatever dies around them, and the documents for them.

A handler knows little but the database: how often its block has failed so far is what the journal says, and what the
turn it is called in has not written yet, so an attempt that was lost counts as little here as it does there.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from itertools import pairwise
from random import Random
from typing import Any

import orjson

from compiler.catalog import BlockSpec
from compiler.keys import CLEANUP_SUFFIX
from executor.blocks.types.registry import Registry
from executor.errors import BlockError
from executor.kernel.handler.base import Block as BlockType
from executor.kernel.handler.base import ChildRequest, Done, Outcome, Sized, StepContext, Suspend, Tested
from executor.kernel.values.payload import Bound
from tests.simulation.document import Blocks, document_of
from tests.simulation.reference import Verdict, judge
from tests.simulation.world.disk import Disk
from tests.simulation.world.ledger import Ledger
from tests.simulation.world.loop import PROCESS
from tests.simulation.world.steps import Handler, Stepping
from tests.support.core.generator import ACTIONS, Behaviour, Block, Place, Table, Workflow, every, generate

LABELS = range(6, 46)  # a world has several runs, and each of their steps is a commit
FAR_S = 40 * 86_400  # no wait of a world lasts so long
DAY_S = 86_400
UNWIRED = "later"  # an action that no edge leaves by
CHILD = "child"
SCRIPTED = ("scripted", "child_failed")
AT_MOST = {"b one": 1, "b two": 2}  # keys of limits of blocks, and how many may be at work, of all workflows of a world

_SKIP, _LABEL = "skip()", "label()"
_PLACE = re.compile(r"(.+?)(?:#(\d+)|\[(\d+)\])")


Attempt = tuple[str, str, str, int]  # run, node, path, number


@dataclass
class Case:
    """One random workflow and what a run of it must come to. `documents`: the same with different output schemas.
    `ahead`: their durability. `continues`: a run that a response would end continues as new instead, once."""

    workflow: Workflow
    table: Table
    verdict: Verdict
    documents: list[dict[str, Any]]
    ahead: bool = False
    continues: bool = False

    @classmethod
    def draw(cls, seed: int, rng: Random) -> Case:
        """The first of the seed's workflows that is neither small nor large."""
        chance = Random(f"{seed} durability")
        ahead = chance.random() < 0.5
        for number in range(1000 * seed, 1000 * seed + 1000):
            workflow = generate(number)
            if ahead:
                _change_less(workflow, chance)
            table = Table(workflow)
            verdict = judge(workflow, table)
            if len(verdict.decided) in LABELS:
                break
        documents = [_document(workflow, Random(f"{seed} document {n}"), n, ahead) for n in range(2)]
        return cls(workflow, table, verdict, documents, ahead, Random(f"{seed} continues").random() < 0.8)

    def share(self, limits: dict[str, int], rng: Random) -> None:
        """Its runs take turns with others, some of them for places of these limits."""
        settings: dict[str, Any] = {"fair": rng.choice("abc"), "priority": rng.choice((-1, 0, 0, 1))}
        keys = rng.sample(sorted(limits), rng.choice((0, 0, 1, 1, len(limits))))
        settings["limits"] = [{"key": key, "at_most": limits[key]} for key in keys]
        for document in self.documents:
            document["settings"] |= settings

    @property
    def name(self) -> str:
        return f"seed-{self.workflow.seed}"

    def block(self, node: str) -> Block:
        return self.workflow.by_id[node.removesuffix(":start").removesuffix(":end")]

    def limit(self, node: str) -> str | None:
        """The key of which the block needs a place."""
        limit = self.documents[0]["blocks"][self.block(node).id].get("policy", {}).get("limit")
        return None if limit is None else str(limit["key"])

    def may_run_ahead(self, node: str) -> bool:
        """Whether an attempt of this node may begin before its start is on disk."""
        policy = self.documents[0]["blocks"][self.block(node).id].get("policy", {})
        changes_nothing = self.block(node).kind != "plain" or self.block(node).effect != "write"
        return self.ahead and changes_nothing and policy.get("on_lost") == "retry" and "cache" not in policy

    def act(self, node: str, path: str) -> Behaviour:
        return self.table.of(self.block(node), place_of(path))

    def kind(self, node: str, path: str) -> str:
        """How the wait of this block is kept that the table wants answered."""
        rng = Random(f"{self.workflow.seed}|{node}|{path}|kind")
        return rng.choice(("approval", "approval", "form", "signal", "signal", "webhook"))

    def action(self, node: str, path: str) -> str:
        """What an approval has to be answered with so that its block takes the route of the table."""
        act = self.act(node, path)
        if act.wait == "expired":
            return act.on_expire
        return act.route if act.route in ACTIONS else UNWIRED


@dataclass
class Script:
    """`handle_s`: how long a handler may take, at most."""

    cases: dict[str, Case]
    disk: Disk
    ledger: Ledger
    rng: Random
    stepping: Stepping
    long: bool = False
    stubborn: float = 0.0  # how often a handler does not stop when it is cancelled
    failed: set[tuple[str, int, str, str, int]] = field(default_factory=set)  # run, epoch, node, path, attempt
    at_work: dict[str, dict[Attempt, tuple[str, int]]] = field(default_factory=dict)  # by key: process and epoch

    def registry(self) -> Registry:
        catalog = Blocks()
        specs = [spec for type in catalog.types() if (spec := catalog.get(type)) is not None]
        return Registry([_Scripted(spec, self.perform) for spec in [*specs, _STEP]])

    async def perform(self, ctx: StepContext, inline: bool) -> Outcome:
        node, _, path = ctx.key.partition("@")
        if not inline:
            attempt = (ctx.run_id, node, path, ctx.attempt)
            process = PROCESS.get()
            self.ledger.effect_begins(process.name if process else "", *attempt)
            with self._place(ctx, process.name if process else "", attempt):
                await self._show(ctx)
                if await self._take_time(attempt) and process is not None:
                    self.ledger.effect_ends(process.name, *attempt)
        if ctx.type == "step":
            return await self._step(ctx)
        if ctx.workflow == CHILD:
            return Done(ctx.input)
        return await self._by_table(ctx, self.cases[ctx.workflow], node, path)

    @contextmanager
    def _place(self, ctx: StepContext, process: str, attempt: Attempt) -> Iterator[None]:
        """Of those at work with the same key no more than the limit says are of processes that live, and of the lease
        of their run."""
        case = self.cases.get(ctx.workflow)
        key = None if case is None else case.limit(attempt[1])
        if key is None:
            yield
            return
        at_work = self.at_work.setdefault(key, {})
        at_work[attempt] = mine = process, self.ledger.epoch(ctx.run_id)
        counted = [
            each
            for each, (of, epoch) in at_work.items()
            if of not in self.ledger.dead and epoch == self.ledger.epoch(each[0])
        ]
        if len(counted) > AT_MOST[key]:
            self.ledger.complain(f"the limit {key!r} allows {AT_MOST[key]}, and these are at work: {counted}")
        try:
            yield
        finally:
            if at_work.get(attempt) == mine:
                del at_work[attempt]

    async def _show(self, ctx: StepContext) -> None:
        """Live text and a checkpoint, of a run that may be ahead of its journal."""
        if ctx.workflow not in self.cases or not self.cases[ctx.workflow].ahead:
            return
        chance = Random(f"{ctx.workflow} {ctx.key} {ctx.attempt} shown").random()
        if chance < 0.4:
            ctx.emit(str(ctx.attempt))
        if chance < 0.2:
            with suppress(BlockError):  # the disk may be sick
                await ctx.checkpoint(ctx.attempt)

    async def _take_time(self, attempt: Attempt) -> bool:
        """False: it was told to stop, and did not."""
        chance = self.rng.random()
        seconds = 0.0 if chance < 0.3 else self.rng.random() * (0.3 if chance < 0.8 else 4)
        if self.long and chance > 0.88:
            seconds = 17 + self.rng.random() * 15  # longer than a lease
        try:
            await asyncio.sleep(seconds)
        except asyncio.CancelledError:
            if self.rng.random() >= self.stubborn:
                raise
            for at_work in self.at_work.values():  # it may be left behind
                at_work.pop(attempt, None)
            await asyncio.sleep(self.rng.random() * 9)
            return False
        return True

    async def _by_table(self, ctx: StepContext, case: Case, node: str, path: str) -> Outcome:
        block, act = case.block(node), case.act(node, path)
        if node.endswith(":end"):
            if act.test_fails_after and act.test_fails_after == ctx.turn:
                raise BlockError("the test raised", code="test_failed", retryable=True)
            return Tested(ctx.turn < act.count) if block.kind == "loop" else Done()
        handler = self._steps_of(ctx, block)
        if handler is not None:
            await handler.work()
        fails = self.raised(ctx.run_id, node, path, ctx.attempt) < act.fails
        if act.wait == "child" and (act.retryable or not fails):
            return await self._child(ctx, fails)
        if fails:
            self.failed.add((ctx.run_id, self.ledger.epoch(ctx.run_id), node, path, ctx.attempt))
            error = BlockError("as the table says", code="scripted", retryable=act.retryable)
            if handler is not None:
                await handler.end(error)
            raise error
        if handler is not None and act.fails:
            await handler.end(None)
        if node.endswith(":start"):
            return Sized(min(act.count, 1) if act.lazy and block.kind == "loop" else act.count)
        if act.wait is not None:
            return self._suspend(ctx, case, act, node, path)
        output = {"label": ctx.key, "attempt": ctx.attempt, "pad": "x" * self.rng.choice((0, 0, 0, 500))}
        if "variant" in ctx.params:
            output["variant"] = ctx.params["variant"]
        if handler is not None:
            output["steps"] = handler.outcomes
        if block.kind == "response":
            if case.continues and not ctx.input:
                return await self._as_new(ctx, output)
            return Done(output, response={"status": 200, "headers": {}, "body": output})
        return Done(output, act.route)

    async def _as_new(self, ctx: StepContext, output: dict[str, Any]) -> Done:
        """The next run does the same, and then responds."""
        assert ctx.prepare_next is not None
        new = await ctx.prepare_next({"last": True})
        return Done({**output, "input": orjson.loads(new.input), "version": new.version}, next=new)

    def _steps_of(self, ctx: StepContext, block: Block) -> Handler | None:
        if block.kind != "plain" or block.inline:
            return None
        return self.stepping.begin(ctx, (UNWIRED,))

    def _suspend(self, ctx: StepContext, case: Case, act: Behaviour, node: str, path: str) -> Suspend:
        rng, now_ms = self.rng, ctx.now_ms
        actions = (*ACTIONS, UNWIRED)
        if act.wait == "timer":
            return Suspend("timer", due_ms=now_ms + rng.randrange(20_000))
        if act.wait == "expired":
            return Suspend("approval", actions=actions, due_ms=now_ms + rng.randrange(9_000), on_expire=act.on_expire)
        kind = case.kind(node, path)
        due_ms = now_ms + FAR_S * 1000 if rng.random() < 0.3 else None
        if act.route != "out" or kind == "approval":
            action = case.action(node, path)
            if rng.random() < 0.3:  # the result is the same whether it is answered in time or not
                return Suspend("approval", actions=actions, due_ms=now_ms + rng.randrange(9_000), on_expire=action)
            return Suspend("approval", actions=actions, due_ms=due_ms)
        if kind == "signal":
            return Suspend("signal", {"title": ctx.key}, due_ms=due_ms, name="go", correlation=ctx.key)
        return Suspend("webhook" if kind == "webhook" else "form", due_ms=due_ms)

    async def _child(self, ctx: StepContext, fails: bool) -> Suspend:
        assert ctx.prepare_child is not None
        document = child_document(Random(f"{ctx.key} {self.rng.randrange(4)}"), fails)
        child = await ctx.prepare_child(ChildRequest(definition=document, input={}))
        return Suspend("child", child=child)

    async def _step(self, ctx: StepContext) -> Outcome:
        """A block of a child run."""
        match ctx.params["do"]:
            case "fail":
                raise BlockError("as the parent wants it", code="scripted", retryable=False)
            case "timer":
                return Suspend("timer", due_ms=ctx.now_ms + self.rng.randrange(5_000))
            case "ask":
                return Suspend("approval", actions=(UNWIRED,))
            case "child":
                assert ctx.prepare_child is not None
                document = child_document(Random(ctx.key), False, deeper=False)
                return Suspend("child", child=await ctx.prepare_child(ChildRequest(definition=document, input={})))
            case _:
                return Done({"run": ctx.run_id, "attempt": ctx.attempt, "pad": "x" * self.rng.choice((0, 0, 500))})

    def raised(self, run: str, node: str, path: str, attempt: int) -> int:
        """How often the block has failed before this attempt."""
        query = (
            "SELECT attempt, data FROM events WHERE run_id = ? AND node = ? AND path = ? AND type = 'retry.scheduled'"
        )
        rows = self.disk.db.execute(query, (run, node, path)).fetchall()
        written = {number: orjson.loads(data)["error"]["code"] in SCRIPTED for number, data in rows}
        epoch = self.ledger.epoch(run)
        unwritten = [n for n in range(1, attempt) if n not in written and (run, epoch, node, path, n) in self.failed]
        return sum(written.values()) + len(unwritten)


class Expressions:
    """Stands where the sandbox is. Two expressions are all there is: `skip()` and `label()`."""

    def __init__(self, script: Script) -> None:
        self._script = script

    async def evaluate(self, calls: Sequence[Bound], *, now_ms: int, seed: str, owner: str = "") -> list[Any]:
        if (chance := self._script.rng.random()) < 0.2:
            await asyncio.sleep(5 * chance * self._script.disk.faults.sandbox_s)
        run, _, rest = seed.partition(":")
        key, _, attempt = rest.rpartition(":")
        return [key if call.source.strip() == _LABEL else self._skip(run, key, int(attempt)) for call in calls]

    def _skip(self, run: str, key: str, attempt: int) -> bool:
        node, _, path = key.partition("@")
        ((name,),) = self._script.disk.db.execute("SELECT workflow FROM runs WHERE id = ?", (run,)).fetchall()
        act = self._script.cases[name].act(node, path)
        return act.skip and self._script.raised(run, node, path, attempt) >= act.fails

    def matches(self, pattern: str, texts: Sequence[str]) -> list[bool]:
        return [re.search(pattern, text) is not None for text in texts]

    def close(self) -> None:
        pass


class _Scripted:
    def __init__(self, spec: BlockSpec, perform: Callable[[StepContext, bool], Any]) -> None:
        self.spec = spec
        self._perform = perform

    async def run(self, ctx: StepContext) -> Outcome:
        outcome: Outcome = await self._perform(ctx, self.spec.inline)
        return outcome


_STEP = BlockSpec(type="step", title="step", description="", category="flow", params={"type": "object"})
_: type[BlockType] = _Scripted


def place_of(path: str) -> Place:
    """The containers of `review#2/fan[0]`, and the cleanups of `review:finally`, as the table names them."""
    parts = path.split("/") if path else []
    found = ((part, None if part.endswith(CLEANUP_SUFFIX) else _PLACE.fullmatch(part)) for part in parts)
    return tuple((match[1], int(match[2] or match[3])) if match else (part, 0) for part, match in found)


def child_document(rng: Random, fails: bool, deeper: bool = True) -> dict[str, Any]:
    """A chain of some steps. Its output names the run it was made in."""
    steps = rng.choices(("work", "timer", "ask", *(("child",) if deeper else ())), k=rng.randint(0, 2))
    steps.append("fail" if fails else "work")
    names = ["start", *(f"s{n}" for n in range(len(steps)))]
    blocks: dict[str, Any] = {"start": {"type": "trigger"}}
    blocks |= {f"s{n}": {"type": "step", "params": {"do": do}} for n, do in enumerate(steps)}
    edges = [{"source": a, "target": b} for a, b in pairwise(names)]
    settings = {"timeout_s": FAR_S}
    return {"format": "weft/1", "name": CHILD, "settings": settings, "blocks": blocks, "edges": edges}


def _change_less(workflow: Workflow, chance: Random) -> None:
    """Most blocks may run ahead of the journal: else what may not is in the way nearly everywhere."""
    for block in every(workflow.blocks):
        if chance.random() < 0.8:
            block.on_lost = "retry"
        if chance.random() < 0.6:
            block.effect = chance.choice(("none", "read"))


def _document(workflow: Workflow, rng: Random, variant: int, ahead: bool) -> dict[str, Any]:
    document = document_of(workflow, rng)
    document["settings"]["timeout_s"] = FAR_S
    if ahead:
        document["settings"]["durability"] = "ahead"
    schema = {"type": "object", "required": ["label"], "description": f"variant {variant}"}
    for block in every(workflow.blocks):
        if block.body:
            continue
        made = document["blocks"][block.id]
        if workflow.rates.skip:
            made.setdefault("policy", {})["skip_if"] = _SKIP
        limited = Random(f"{workflow.seed} {block.id} limited")
        if not block.inline and block.kind in ("plain", "wait", "response") and limited.random() < 0.3:
            key = limited.choice(list(AT_MOST))
            made.setdefault("policy", {})["limit"] = {"key": key, "at_most": AT_MOST[key]}
        cached = block.kind == "plain" and not block.inline and block.effect != "write"
        if cached and not (ahead and Random(f"{workflow.seed} {block.id} cached").random() < 0.7):
            made["policy"]["cache"] = {"key": _LABEL, "ttl_s": FAR_S}
            made["params"] = {"variant": variant}
            made["output_schema"] = schema
    return document
