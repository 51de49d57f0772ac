"""The standard scenario: everything weft stores, done once. Played again on the same file it continues from there.

Each step is asked for under a key, as a careful client does, and its answer is written down (`Acks`) only when it is
there. So after a crash: what was acknowledged must be in the database, and playing on must end as if nothing had been.
"""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import os
from collections.abc import Awaitable, Callable
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import orjson

from executor.blocks.http.client import GuardedClient
from executor.blocks.sandbox.sandbox import Sandbox
from executor.blocks.services import Services
from executor.blocks.types.python import Python
from executor.blocks.types.registry import Registry
from executor.errors import AlreadyAnswered, Conflict, NotFound, StoreError
from executor.kernel.handler.base import StepContext
from executor.kernel.store.topics.store import Store
from executor.open.engine import Engine
from executor.service.triggers.declared import ScheduleSpec, WebhookSpec
from executor.service.triggers.requests import Received
from tests.support.snapshots import often

T = TypeVar("T")
SECRET = b"a secret of 32 bytes for tests.."
LEASE_MS = 400  # what a killed process holds is free after this
PATIENCE_S = 60.0
STEPS = 3

CHILD: dict[str, Any] = {
    "format": "weft/1",
    "name": "child",
    "blocks": {
        "start": {"type": "start"},
        "nap": {"type": "wait", "params": {"seconds": 0.01}},
        "twice": {"type": "set", "params": {"value": {"of": "<start.n>"}}},
    },
    "edges": [{"source": "start", "target": "nap"}, {"source": "nap", "target": "twice"}],
}
MAIN: dict[str, Any] = {
    "format": "weft/1",
    "name": "main",
    "variables": {"seen": 0},
    "blocks": {
        "start": {"type": "start"},
        "hook": {"type": "webhook", "params": {}},
        "yearly": {"type": "schedule", "params": {"cron": "0 0 1 1 *"}},
        "first": {"type": "set", "params": {"value": {"n": 3}}},
        "steps": {
            "type": "python",
            "params": {"function": "steps"},
            "policy": {"on_lost": "retry", "retry": {"max_attempts": 10, "initial_ms": 10}},
        },
        "double": {
            "type": "function",
            "params": {"code": "return <first.n> * 2"},
            "policy": {"cache": {"ttl_s": 3600, "scope": "workflow"}},
        },
        "check": {
            "type": "condition",
            "params": {"cases": [{"id": "big", "when": "<double.result> > 5"}, {"id": "small", "title": "else"}]},
        },
        "count": {"type": "variables", "params": {"assign": [{"name": "seen", "op": "increment", "value": 1}]}},
        "never": {"type": "set", "params": {"value": "pruned"}},
        "again": {"type": "loop", "params": {"mode": "for", "count": 3}},
        "step": {"type": "set", "parent": "again", "params": {"value": "<loop.index>"}},
        "fan": {"type": "parallel", "params": {"mode": "count", "count": 3}},
        "branch": {"type": "set", "parent": "fan", "params": {"value": "<parallel.index>"}},
        "ask": {"type": "approval", "params": {"title": "Go on?", "notify": {"email": ["ada@example.com"]}}},
        "paid": {"type": "signal", "params": {"name": "paid"}},
        "call": {"type": "run_workflow", "params": {"workflow": "child", "input": {"n": "<double.result>"}}},
        "end": {
            "type": "set",
            "params": {
                "value": {
                    "double": "<double.result>",
                    "loop": "<again.results>",
                    "fan": "<fan.results>",
                    "paid": "<paid.payload>",
                    "child": "<call.of>",
                    "action": "<ask.action>",
                    "seen": "<workflow.seen>",
                }
            },
        },
    },
    "edges": [
        {"source": "start", "target": "first"},
        {"source": "hook", "target": "first"},
        {"source": "yearly", "target": "first"},
        {"source": "first", "target": "steps"},
        {"source": "steps", "target": "double"},
        {"source": "double", "target": "check"},
        {"source": "check", "handle": "big", "target": "count"},
        {"source": "check", "handle": "small", "target": "never"},
        {"source": "count", "target": "again"},
        {"source": "again", "handle": "body", "target": "step"},
        {"source": "count", "target": "fan"},
        {"source": "fan", "handle": "body", "target": "branch"},
        {"source": "again", "target": "ask"},
        {"source": "fan", "target": "ask"},
        {"source": "ask", "target": "paid"},
        {"source": "paid", "target": "call"},
        {"source": "call", "target": "end"},
    ],
}
# Runs ahead of its journal, and tells what a second try would not find again.
QUICK: dict[str, Any] = {
    "format": "weft/1",
    "name": "quick",
    "settings": {"durability": "ahead"},
    "blocks": {
        "start": {"type": "start"},
        "first": {"type": "function", "params": {"code": "return Date.now() + ':' + Math.random()"}},
        "second": {"type": "function", "params": {"code": "return <first.result>"}},
        "tell": {
            "type": "python",
            "params": {"function": "tell", "arguments": {"what": "<second.result>"}},
            "policy": {"on_lost": "retry"},
        },
        "third": {"type": "function", "params": {"code": "return <second.result>"}},
        "fourth": {"type": "function", "params": {"code": "return <third.result>"}},
    },
    "edges": [
        {"source": "start", "target": "first"},
        {"source": "first", "target": "second"},
        {"source": "second", "target": "tell"},
        {"source": "tell", "target": "third"},
        {"source": "third", "target": "fourth"},
    ],
}
OUTPUT = {
    "double": 6,
    "loop": [[0], [1], [2]],
    "fan": [[0], [1], [2]],
    "paid": {"eur": 12},
    "child": 6,
    "action": "approve",
    "seen": 1,
}


class Acks:
    """A file of what the client was told, a JSON line each; written at once, so that a kill loses nothing of it."""

    def __init__(self, path: Path) -> None:
        self._file = os.open(path, os.O_CREAT | os.O_WRONLY | os.O_APPEND, 0o600)

    def write(self, what: str, value: Any = None) -> None:
        os.write(self._file, self.line(what, value))

    @staticmethod
    def line(what: str, value: Any = None) -> bytes:
        return orjson.dumps([what, value]) + b"\n"

    def close(self) -> None:
        os.close(self._file)


async def play(store: Store, acks: Acks) -> None:
    """From the beginning, or from wherever it stopped. Raises when an answer is not what it must be. Its runs are
    short, and have a snapshot after each event all the same."""
    sandbox = Sandbox(threads=1)
    services = Services(sandbox=sandbox, http=GuardedClient())
    functions = Python({"steps": partial(_steps, acks), "tell": partial(_tell, acks)})
    registry = Registry.load([functions], sandbox=sandbox)
    with often(every=1):
        engine = await _sure(
            lambda: Engine.open(store, registry=registry, services=services, secret=SECRET, lease_ms=LEASE_MS)
        )
        try:
            async with asyncio.timeout(PATIENCE_S):
                await _Client(engine, acks).play()
        finally:
            await engine.close(grace_s=1)


async def _steps(acks: Acks, ctx: StepContext) -> int:
    """Stands for long work: each attempt continues where the last one stopped."""
    for done in range((ctx.last_checkpoint or 0) + 1, STEPS + 1):
        await ctx.checkpoint(done)
        acks.write("checkpoint", [ctx.run_id, ctx.key, done])
    return STEPS


async def _tell(acks: Acks, ctx: StepContext, what: str) -> None:
    """An effect: what it says is on disk."""
    acks.write("effect", [ctx.run_id, what])


class _Client:
    def __init__(self, engine: Engine, acks: Acks) -> None:
        self._engine = engine
        self._acks = acks

    async def _do(
        self, what: str, ask: Callable[[], Awaitable[T]], told: Callable[[T], Any] = lambda answer: None
    ) -> T:
        answer = await _sure(ask)
        self._acks.write(what, told(answer))
        return answer

    async def play(self) -> None:
        engine = self._engine
        await self._do("workflow", lambda: engine.workflows.save(CHILD), lambda saved: [saved.name, saved.version])
        await self._do("workflow", lambda: engine.workflows.save(MAIN), lambda saved: [saved.name, saved.version])
        await self._do("workflow", lambda: engine.workflows.save(QUICK), lambda saved: [saved.name, saved.version])
        main = await self._start("main")
        gone = await self._start("gone")
        quick = await self._start("quick", "quick")
        await self._do("signal", lambda: self._signal(main), lambda _: main)
        await self._answer(main)
        await self._wait_for(gone)
        await self._do("cancel", lambda: engine.cancel(gone, "not needed"), lambda _: gone)
        await self._ended(main, OUTPUT)
        await self._ended(quick, None)
        await self._lives_on(main)
        await self._draft()
        await self._triggers()
        await self._ended(gone, None, "cancelled")

    async def _start(self, key: str, workflow: str = "main") -> str:
        started = await self._do(
            "run",
            lambda: self._engine.submit(workflow, idempotency_key=key, trigger="start"),
            lambda run: [key, run.run],
        )
        return started.run

    async def _signal(self, run: str) -> None:
        with suppress(Conflict):  # the run has ended: it had the signal
            await self._engine.signals.send(run, "paid", {"eur": 12}, dedupe_key="invoice-1")

    async def _wait_for(self, run: str) -> str | None:
        """The token of its open question; None when the run is past it."""
        while True:
            view = await _sure(lambda: self._engine.runs.view(run))
            for wait in view.waits:
                if wait.kind == "approval" and wait.link is not None:
                    return wait.link.rpartition("/")[2]
            if view.status in ("succeeded", "failed", "cancelled") or any(node.block == "paid" for node in view.nodes):
                return None
            await asyncio.sleep(0.005)

    async def _answer(self, run: str) -> None:
        token = await self._wait_for(run)
        if token is not None:

            async def answer() -> None:
                with suppress(AlreadyAnswered):
                    await self._engine.waits.answer(token, {}, action="approve", by="Ada")

            await self._do("answer", answer, lambda _: run)

    async def _ended(self, run: str, output: Any, status: str = "succeeded") -> None:
        while True:
            view = await _sure(lambda: self._engine.runs.view(run))
            if view.status in ("succeeded", "failed", "cancelled"):
                break
            await asyncio.sleep(0.005)
        assert view.status == status, (run, view.status, view.error)
        assert output is None or view.output == output, (run, view.output)
        self._acks.write("ended", [run, status])

    async def _lives_on(self, main: str) -> None:
        """Runs made from the run: a fork before its question, and its last block again."""
        engine = self._engine
        events = await _sure(lambda: engine.store.read_events(main))
        opened = next(event.seq for event in events if event.type == "wait.opened" and event.node == "ask")
        fork = await self._do(
            "run", lambda: engine.lifecycle.fork(main, opened, idempotency_key="fork"), lambda new: ["fork", new.run]
        )
        await self._do("signal", lambda: self._signal(fork.run), lambda _: fork.run)
        await self._answer(fork.run)
        again = await self._do(
            "run", lambda: engine.lifecycle.retry(main, "end", idempotency_key="again"), lambda new: ["again", new.run]
        )
        await self._ended(again.run, OUTPUT)
        await self._ended(fork.run, OUTPUT)

    async def _draft(self) -> None:
        engine = self._engine
        drafts = await _sure(engine.store.list_drafts)
        draft = drafts[0].id if drafts else (await self._do("draft", lambda: engine.drafts.create(MAIN))).id
        for _ in range(2):
            row = await _sure(lambda: engine.store.get_draft(draft))
            assert row is not None, "an acknowledged draft is gone"
            if row.rev < 3:
                revise = partial(
                    engine.store.put_draft, draft, row.rev, "main", orjson.dumps(MAIN), engine.parts.clock.now_ms()
                )
                await self._do("revised", revise, partial(_revision, draft, row.rev + 1))

    async def _triggers(self) -> None:
        engine = self._engine
        spec = ScheduleSpec(workflow="child", cron="0 0 1 1 *", input={"n": 1})
        await self._do("schedule", lambda: engine.schedules.put("nightly", spec), lambda _: "nightly")
        await self._do("switched", lambda: engine.schedules.switch("nightly", False), lambda _: "nightly")
        await self._do("webhook", lambda: engine.webhooks.put("orders", WebhookSpec("child", trigger="start")))
        secret = await _sure(lambda: engine.webhooks.secret("orders"))
        assert secret is not None
        body, now_s = b'{"n": 1}', str(engine.parts.clock.now_ms() // 1000)
        signature = hmac.new(secret.encode(), now_s.encode() + b"." + body, hashlib.sha256).hexdigest()
        headers = {
            "content-type": "application/json",
            "x-weft-timestamp": now_s,
            "x-weft-signature": f"v1={signature}",
            "x-weft-delivery": "order-1",
        }

        async def deliver() -> None:
            with suppress(Conflict):  # delivered before: refused, as it should be
                await engine.webhooks.receive("orders", Received("POST", headers, (), body))

        await self._do("delivered", deliver, lambda _: "order-1")
        all_known = await _sure(lambda: engine.webhooks.deliveries("orders"))
        (delivery,) = [one for one in all_known if one.outcome == "started"]
        assert delivery.run is not None
        await self._ended(delivery.run, {"of": 1})
        with suppress(NotFound):
            await self._do("deleted", lambda: engine.schedules.delete("nightly"), lambda _: "nightly")


def _revision(draft: str, rev: int, answer: object) -> list[Any]:
    return [draft, rev]


async def _sure(ask: Callable[[], Awaitable[T]]) -> T:
    """Ask until the database answers."""
    last: StoreError | None = None
    for _ in range(200):
        try:
            return await ask()
        except StoreError as error:
            last = error
        except asyncio.CancelledError:
            task = asyncio.current_task()
            if task is None or task.cancelling():
                raise
            continue  # the answer was given up, as by a client that hangs up: it asks again
        await asyncio.sleep(0.02)
    assert last is not None
    raise last
