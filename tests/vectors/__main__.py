"""`python -m tests.vectors record`: plays the runs and writes `runs.json` and `lanes.json`."""

from __future__ import annotations

import asyncio
import re
import sys
import tempfile
from collections.abc import Awaitable, Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import orjson

from executor.blocks.types.python import Python
from executor.errors import BlockError
from executor.kernel.handler.base import StepContext, Stepped, Suspend
from executor.open.engine import Engine
from server.http.response import encode_record
from tests.support.blocks import Step
from tests.support.documents import ASKING, Json, caller, document, value
from tests.support.runs import ended, engine_on, settled, until_event
from tests.vectors import lanes
from tests.vectors.leaving import Leaving
from tests.vectors.streams import FILE, expected

T0 = 1_700_000_000_000
PREVIEW = 65_536  # what the editor asks for
STEP: Json = {"type": "step"}
TWICE: Json = {"retry": {"max_attempts": 2, "initial_ms": 20, "jitter": 0}}
ASK: Json = {"type": "approval", "params": {"title": "Pay?", "actions": ["yes"]}}
_ID = re.compile(r"\b[0-9a-f]{32}\b")
_TIME = re.compile(r"\b1[789]\d{11}\b")


def routes() -> Json:
    """Both branches of a condition, a pruned node, one that is passed over, variables."""
    blocks = {
        "if": {"type": "condition", "params": {"cases": [{"id": "yes", "when": "1 < 2"}, {"id": "no"}]}},
        "a": STEP,
        "b": STEP,
        "over": {"type": "step", "policy": {"skip_if": "true"}},
        "set": {"type": "variables", "params": {"assign": [{"name": "n", "op": "set", "value": 2}]}},
        "join": value("<a>"),
    }
    edges = ("start if", "if yes a", "if no b", "a over", "over set", "set join", "b join")
    return document("routes", *edges, blocks=blocks, variables={"n": 1})


def failures() -> Json:
    """A second attempt, an error edge, a failure that is continued over, one that ends the run."""
    blocks = {
        "flaky": {"type": "step", "policy": TWICE},
        "broken": {"type": "step", "policy": TWICE},
        "handler": STEP,
        "passed": {"type": "step", "policy": {"on_error": "continue"}},
        "last": STEP,
    }
    edges = ("start flaky", "flaky broken", "broken error handler", "handler passed", "passed last")
    return document("failures", *edges, blocks=blocks)


def loops() -> Json:
    """Iterations by count and by condition, and a loop that has nothing to do."""
    blocks = {
        "three": {"type": "loop", "params": {"mode": "for", "count": 3}},
        "body": {"type": "step", "parent": "three"},
        "more": {"type": "loop", "params": {"mode": "do_while", "condition": "<loop.index> < 1"}},
        "again": {"type": "step", "parent": "more"},
        "none": {"type": "loop", "params": {"mode": "each", "items": []}},
        "never": {"type": "step", "parent": "none"},
        "end": value(1),
    }
    edges = (
        "start three",
        "three body body",
        "three more",
        "more body again",
        "more none",
        "none body never",
        "none end",
    )
    return document("loops", *edges, blocks=blocks)


def branches() -> Json:
    """Branches of which one fails: first collected, then giving up the others."""
    fan = {"type": "parallel", "params": {"mode": "count", "count": 3, "on_branch_error": "collect"}}
    blocks = {
        "fan": fan,
        "work": {"type": "step", "parent": "fan"},
        "all": {"type": "parallel", "params": {"mode": "count", "count": 2}},
        "ask": {**ASK, "parent": "all"},
        "fails": {"type": "step", "parent": "all"},
        "caught": value(1),
    }
    edges = ("start fan", "fan body work", "fan all", "all body ask", "all body fails", "all error caught")
    return document("branches", *edges, blocks=blocks)


def cancelled() -> Json:
    """What is open when a run is cancelled: an attempt, a wait, a retry."""
    later: Json = {"retry": {"max_attempts": 2, "initial_ms": 86_400_000, "max_ms": 86_400_000, "jitter": 0}}
    blocks = {"ask": ASK, "hold": STEP, "retry": {"type": "step", "policy": later}, "after": value(1)}
    return document("cancelled", "start ask", "start hold", "start retry", "ask yes after", blocks=blocks)


def cleaned() -> Json:
    """A cleanup after a failure that is caught, one inside what is given up, and that of the run."""
    blocks = {
        "three": {"type": "loop", "params": {"mode": "for", "count": 3}},
        "work": {"type": "step", "parent": "three"},
        "close": {"type": "step", "parent": "three"},
        "all": {"type": "parallel", "params": {"mode": "count", "count": 2}},
        "hold": {"type": "step", "parent": "all"},
        "free": {"type": "step", "parent": "all"},
        "last": STEP,
    }
    edges = (
        "start three",
        "three body work",
        "three finally close",
        "three error all",
        "all body hold",
        "all finally free",
        "start finally last",
    )
    return document("cleaned", *edges, blocks=blocks)


class Play:
    """Engines on one file, with block types that do what a play says: `step`, and `mail`, which must not run twice."""

    def __init__(self, folder: Path) -> None:
        self._file = folder / "weft.db"
        self.step = Step()
        self.mail = Step("mail", careful=True)

    async def with_engine(self, play: Callable[[Engine], Awaitable[str]]) -> list[Json]:
        async with engine_on(self._file, self.step, self.mail, Python({"works": self.works})) as engine:
            return await events_of(engine, await play(engine))

    async def to_its_end(self, engine: Engine, workflow: Json) -> str:
        return (await ended(engine, (await engine.submit(workflow)).run)).id

    async def routes(self) -> list[Json]:
        return await self.with_engine(lambda engine: self.to_its_end(engine, routes()))

    async def failures(self) -> list[Json]:
        self.step.failing |= {"broken", "passed", "last"}
        return await self.with_engine(lambda engine: self.to_its_end(engine, failures()))

    async def loops(self) -> list[Json]:
        return await self.with_engine(lambda engine: self.to_its_end(engine, loops()))

    async def branches(self) -> list[Json]:
        self.step.failing |= {"work@fan[1]", "fails@all[1]"}
        return await self.with_engine(lambda engine: self.to_its_end(engine, branches()))

    async def answered(self) -> list[Json]:
        async def play(engine: Engine) -> str:
            run = (await engine.submit(ASKING)).run
            (wait,) = (await settled(engine, run)).waits
            assert wait.link is not None
            await engine.answer(wait.link, {}, "yes", "Ada")
            return (await ended(engine, run)).id

        return await self.with_engine(play)

    async def cancelled(self) -> list[Json]:
        async def play(engine: Engine) -> str:
            self.step.holding["hold"] = asyncio.Event()
            self.step.failing.add("retry")
            run = (await engine.submit(cancelled())).run
            await until_event(engine, run, "wait.opened")
            await until_event(engine, run, "retry.scheduled")
            await engine.cancel(run, "enough")
            return (await ended(engine, run)).id

        return await self.with_engine(play)

    async def cleaned(self) -> list[Json]:
        """Its last container is given up by a cancel."""

        async def play(engine: Engine) -> str:
            self.step.failing.add("work@three#1")
            self.step.holding["hold"] = asyncio.Event()
            run = (await engine.submit(cleaned())).run
            await self.step.until_ran("hold@all[0]")
            await engine.cancel(run, "enough")
            return (await ended(engine, run)).id

        return await self.with_engine(play)

    async def lost(self) -> list[Json]:
        """Two losses: one that is repeated, and one that a person is asked about."""
        run = ""
        for block, type in (("again", "step"), ("mail", "mail")):
            step = self.step if type == "step" else self.mail
            step.holding[block] = asyncio.Event()
            async with engine_on(self._file, self.step, self.mail) as engine:
                run = run or (await engine.submit(_lost())).run
                await until_event(engine, run, "node.started", block)
                await step.until_ran(block)
                await engine.stop_working(grace_s=0)
            step.holding.clear()

        async def play(engine: Engine) -> str:
            await until_event(engine, run, "wait.opened", "mail")
            (wait,) = await engine.waits.list(run=run)
            assert wait.link is not None
            await engine.answer(wait.link, {}, "retry", "Ada")
            return (await ended(engine, run)).id

        return await self.with_engine(play)

    async def works(self, ctx: StepContext) -> Any:
        """A step, one that fails, a question, one that cost something, and an error of its own at the second entry."""

        async def fails() -> None:
            raise BlockError("no such place", code="not_found", retryable=False)

        async def asks() -> Stepped:
            return Stepped("hello", {"input_tokens": 7}, 0.25, "2026-11-01")

        async def looks() -> dict[str, int]:
            return {"found": 3}

        await ctx.step("tool", "look", 1, looks, effect="read")
        with suppress(BlockError):
            await ctx.step("tool", "fail", 2, fails)
        await ctx.wait(Suspend("approval", {"title": "Go on?"}, None, ("yes",)), name="sure?")
        said = await ctx.step("model", "ask", 3, asks, effect="none")
        if ctx.attempt == 2:
            raise BlockError("too busy")
        return said

    async def steps(self) -> list[Json]:
        works = {"type": "python", "params": {"function": "works"}, "policy": {**TWICE, "on_lost": "retry"}}

        async def play(engine: Engine) -> str:
            run = (await engine.submit(document("steps", "start a", blocks={"a": works}))).run
            (wait,) = (await settled(engine, run)).waits
            assert wait.link is not None
            await engine.answer(wait.link, {}, "yes", "Ada")
            return (await ended(engine, run)).id

        return await self.with_engine(play)

    async def left(self) -> list[Json]:
        leaving = Leaving(T0)
        leaving.play()
        return leaving.events

    async def child(self) -> list[Json]:
        async def play(engine: Engine) -> str:
            await engine.workflows.save(document("child", "start a", blocks={"a": STEP}))
            return await self.to_its_end(engine, caller(workflow="child"))

        return await self.with_engine(play)

    async def again(self) -> list[Json]:
        """A run from a block: what it takes over, and what it does."""

        async def play(engine: Engine) -> str:
            run = await self.to_its_end(engine, loops())
            return (await ended(engine, (await engine.lifecycle.run_from(run, "none")).run)).id

        return await self.with_engine(play)

    async def forked(self) -> list[Json]:
        async def play(engine: Engine) -> str:
            self.step.holding["a"] = asyncio.Event()
            run = (await engine.submit(document("forked", "start a", "start b", blocks={"a": STEP, "b": STEP}))).run
            seq = await until_event(engine, run, "node.succeeded", "b")
            self.step.holding.clear()
            fork = (await engine.lifecycle.fork(run, seq)).run
            return (await ended(engine, fork)).id

        return await self.with_engine(play)

    async def cached(self) -> list[Json]:
        cache = {"type": "step", "params": {"value": 1}, "policy": {"cache": {"scope": "workflow"}}}

        async def play(engine: Engine) -> str:
            workflow = document("cached", "start a", blocks={"a": cache})
            await self.to_its_end(engine, workflow)
            return await self.to_its_end(engine, workflow)

        return await self.with_engine(play)


def _lost() -> Json:
    return document("lost", "start again", "again mail", blocks={"again": STEP, "mail": {"type": "mail"}})


NAMES = (
    "routes", "failures", "loops", "branches", "answered", "cancelled", "lost", "child", "again", "forked", "cached",
    "steps", "cleaned", "left",
)  # fmt: skip
CONTAINERS = {"three": "loop", "more": "loop", "none": "loop", "fan": "parallel", "all": "parallel"}


async def events_of(engine: Engine, run: str) -> list[Json]:
    """As the editor receives them, with ids and times that are the same at each recording."""
    data = b"[" + b",".join([encode_record(run, r, PREVIEW) for r in await engine.store.read_events(run)]) + b"]"
    ids: dict[str, str] = {}
    text = _ID.sub(lambda found: ids.setdefault(found[0], f"run-{len(ids) + 1}"), data.decode())
    events: list[Json] = orjson.loads(text)
    return [_at(event, T0 + 1000 * event["seq"]) for event in events]


def _at(event: Json, at: int) -> Json:
    """Each event a second after the one before it; a time in its data is a minute later."""
    data: Any = orjson.loads(_TIME.sub(str(at + 60_000), orjson.dumps(event["data"]).decode()))
    return {**event, "at_ms": at, "data": data}


async def record() -> None:
    streams = []
    for name in NAMES:
        with tempfile.TemporaryDirectory() as folder:
            events = await getattr(Play(Path(folder)), name)()
        kinds = {block: kind for block, kind in CONTAINERS.items() if any(e["block"] == block for e in events)}
        streams.append({"name": name, "containers": kinds, "events": events, "expected": expected(events)})
        print(f"{name}: {len(events)} events, {events[-1]['data'].get('status', 'open')}")
    lines = [_stream(stream) for stream in streams]
    FILE.write_bytes(b"[\n" + b",\n".join(lines) + b"\n]\n")


def _stream(stream: Json) -> bytes:
    """One event a line, so that a change can be read."""

    def rows(name: str) -> bytes:
        return b'"%s":[\n' % name.encode() + b",\n".join(orjson.dumps(row) for row in stream[name]) + b"\n]"

    head = orjson.dumps({"name": stream["name"], "containers": stream["containers"]})[:-1]
    return head + b",\n" + rows("events") + b",\n" + rows("expected") + b"}"


if __name__ == "__main__":
    if sys.argv[1:] != ["record"]:
        sys.exit(__doc__)
    asyncio.run(record())
    lanes.FILE.write_bytes(orjson.dumps(asyncio.run(lanes.record()), option=orjson.OPT_INDENT_2) + b"\n")
