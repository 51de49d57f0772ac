"""Makes a database with a run in every state, and stops in the midst of it as a killed process does.

`record.py` runs this file with the code of a release, so it uses nothing that the first release lacks. The facts that
the core decides on are written down.

    python play.py DATABASE COPY FACTS
"""

from __future__ import annotations

import asyncio
import json
import os
import sqlite3
import sys
from collections.abc import Awaitable, Callable
from contextlib import closing
from itertools import pairwise
from typing import Any

import msgspec

from executor.kernel.core import decide as core

SECRET = b"a secret of more than sixteen bytes"
T0 = 1_790_000_000_000  # what the clock says, from beginning to end
HOUR_S = 3_600
PATIENCE_S = 30


WAYS = ["quick", "person", "slow"]


def chain(name: str, blocks: dict[str, Any], **more: Any) -> dict[str, Any]:
    """start, then the blocks in this order; those with a parent are wired by whoever gives `edges`."""
    ids = ["start", *(id for id, block in blocks.items() if "parent" not in block)]
    edges = [{"source": a, "target": b} for a, b in pairwise(ids)] + more.pop("edges", [])
    return {"format": "weft/1", "name": name, "blocks": {"start": {"type": "start"}, **blocks}, "edges": edges, **more}


def set_to(value: Any, **more: Any) -> dict[str, Any]:
    return {"type": "set", "params": {"value": value}, **more}


def call(path: str, **policy: Any) -> dict[str, Any]:
    return {"type": "http", "params": {"method": "POST", "url": "${SERVICE}" + path, "body": {}}, "policy": policy}


def asks(name: str = "asks") -> dict[str, Any]:
    return chain(name, {"ask": {"type": "approval", "params": {"title": "Go on?"}}, "end": set_to("<ask.action>")})


def body(container: str, first: str) -> dict[str, str]:
    return {"source": container, "handle": "body", "target": first}


EVERYTHING = chain(
    "everything",
    {
        "n": set_to({"n": 3}),
        "double": {"type": "function", "params": {"code": "return <n.n> * 2"}},
        "count": {"type": "variables", "params": {"assign": [{"name": "seen", "op": "increment", "value": 1}]}},
        "again": {"type": "loop", "params": {"mode": "for", "count": 3}},
        "step": set_to("<loop.index>", parent="again"),
        "fan": {"type": "parallel", "params": {"mode": "each", "items": ["a", "b"]}},
        "branch": set_to("<parallel.item>", parent="fan"),
        "big": {
            "type": "condition",
            "params": {"cases": [{"id": "yes", "when": "<double.result> > 5"}, {"id": "no", "title": "else"}]},
        },
    },
    variables={"seen": 0},
    edges=[body("again", "step"), body("fan", "branch")],
)
EVERYTHING["blocks"] |= {
    "never": set_to("pruned"),
    "end": set_to(
        {"double": "<double.result>", "loop": "<again.results>", "fan": "<fan.results>", "seen": "<workflow.seen>"}
    ),
}
EVERYTHING["edges"] += [
    {"source": "big", "handle": "yes", "target": "end"},
    {"source": "big", "handle": "no", "target": "never"},
]

WHO = {"type": "object", "properties": {"who": {"type": "string"}}}
CHILD = chain("child", {"ask": {"type": "approval", "params": {"title": "Child?"}}, "end": set_to("<ask.action>")})
# By name, which is the run's idempotency key as well: the document, and the state in which it is left.
RUNS: dict[str, tuple[dict[str, Any], str]] = {
    "done": (EVERYTHING, "succeeded"),
    "large": (chain("large", {"text": set_to("x" * 300_000), "end": set_to("large")}), "succeeded"),
    "failed": (chain("failed", {"bad": {"type": "function", "params": {"code": "throw new Error('no')"}}}), "failed"),
    "caught": (
        {
            **chain("caught", {"bad": {"type": "function", "params": {"code": "throw new Error('no')"}}}),
            "blocks": {
                "start": {"type": "start"},
                "bad": {"type": "function", "params": {"code": "throw new Error('no')"}},
                "mend": set_to("mended"),
            },
            "edges": [
                {"source": "start", "target": "bad"},
                {"source": "bad", "handle": "error", "target": "mend"},
            ],
        },
        "succeeded",
    ),
    "responded": (chain("responded", {"say": {"type": "response", "params": {"body": {"ok": True}}}}), "succeeded"),
    "cancelled": (asks("cancelled"), "cancelled"),
    "asks": (asks(), "waiting"),
    "answered": (asks("answered"), "waiting"),
    "cancelling": (asks("cancelling"), "waiting"),
    "expires": (
        chain(
            "expires",
            {
                "ask": {
                    "type": "approval",
                    "params": {"title": "Soon?", "expires_in_s": HOUR_S, "on_expire": "reject"},
                },
                "end": set_to("<ask.action>"),
            },
        ),
        "waiting",
    ),
    "sleeps": (
        chain("sleeps", {"nap": {"type": "wait", "params": {"seconds": HOUR_S}}, "end": set_to("up")}),
        "waiting",
    ),
    "signalled": (
        chain("signalled", {"paid": {"type": "signal", "params": {"name": "paid"}}, "end": set_to("<paid.payload>")}),
        "waiting",
    ),
    "retrying": (
        chain(
            "retrying",
            {
                "try": call("/fails", retry={"max_attempts": 3, "initial_ms": 60_000, "max_ms": 60_000}),
                "end": set_to("<try.status>"),
            },
        ),
        "waiting",
    ),
    "running": (
        chain("running", {"one": set_to(1), "call": call("/holds"), "end": set_to("<call.status>")}),
        "running",
    ),
    "rounds": (
        chain(
            "rounds",
            {
                "again": {"type": "loop", "params": {"mode": "for", "count": 3}},
                "ask": {"type": "approval", "parent": "again", "params": {"title": "Round <loop.index>?"}},
                "end": set_to("<again.results>"),
            },
            edges=[body("again", "ask")],
        ),
        "waiting",
    ),
    "branches": (
        chain(
            "branches",
            {
                "fan": {"type": "parallel", "params": {"mode": "each", "items": WAYS}},
                "which": {
                    "type": "router",
                    "parent": "fan",
                    "params": {"value": "<parallel.item>", "routes": [{"id": id, "equals": id} for id in WAYS]},
                },
                "quick": set_to("q", parent="fan"),
                "person": {"type": "approval", "parent": "fan", "params": {"title": "You?"}},
                "slow": {**call("/holds"), "parent": "fan"},
                "end": set_to("together"),
            },
            edges=[
                body("fan", "which"),
                *({"source": "which", "handle": id, "target": id} for id in WAYS),
            ],
        ),
        "running",
    ),
    "callback": (
        chain(
            "callback", {"call": {"type": "callback", "params": {"title": "the shipper"}}, "end": set_to("<call.body>")}
        ),
        "waiting",
    ),
    "form": (
        chain(
            "form",
            {"fill": {"type": "form", "params": {"title": "Who?", "fields": WHO}}, "end": set_to("<fill.who>")},
        ),
        "waiting",
    ),
    "told": (
        chain(
            "told",
            {
                "ask": {"type": "approval", "params": {"title": "Go on?", "notify": {"webhook": "${SERVICE}/fails"}}},
                "end": set_to("<ask.action>"),
            },
        ),
        "waiting",
    ),
    "parent": (
        chain("parent", {"sub": {"type": "run_workflow", "params": {"workflow": "child"}}, "end": set_to("<sub>")}),
        "waiting",
    ),
    "lost": (
        chain("lost", {"call": call("/holds", on_lost="ask"), "end": set_to("<call.status>")}),
        "running",
    ),
    "kept": (
        chain(
            "kept",
            {
                "sum": {
                    "type": "function",
                    "params": {"code": "return 40 + 2"},
                    "policy": {"cache": {"ttl_s": 864_000, "scope": "workflow"}},
                },
                "end": set_to("<sum.result>"),
            },
        ),
        "succeeded",
    ),
}
LATER = {"queued": (EVERYTHING, "queued")}


class Facts:
    """What the core was told: by run, the number of events before, the fact, and how many events it led to."""

    def __init__(self, path: str) -> None:
        self._file = os.open(path, os.O_CREAT | os.O_WRONLY | os.O_TRUNC, 0o600)
        decide = core.decide

        def told(plan: Any, state: Any, fact: Any) -> Any:
            seq = state.seq
            events = decide(plan, state, fact)
            line = [state.run, seq, type(fact).__name__, msgspec.to_builtins(fact, str_keys=True), len(events)]
            os.write(self._file, msgspec.json.encode(line) + b"\n")
            return events

        core.decide = told  # before another module has imported it

    def close(self) -> None:
        os.close(self._file)


class _Stopped:
    """A clock that stands still."""

    def now_ms(self) -> int:
        return T0

    def on_jump(self, callback: Callable[[], None]) -> None:
        """It never does."""


async def main(db: str, copy: str, facts: Facts) -> None:
    from executor.blocks.http.client import GuardedClient
    from executor.blocks.sandbox.sandbox import Sandbox
    from executor.blocks.services import Services
    from executor.blocks.types.registry import Registry  # after the core, which Facts has changed
    from executor.kernel.store.sqlite.store import SQLiteStore
    from executor.open.engine import Engine

    sandbox, store = Sandbox(threads=1), SQLiteStore(db)
    server = await asyncio.start_server(_serve, "127.0.0.1", 0)
    place = f"127.0.0.1:{server.sockets[0].getsockname()[1]}"
    services = Services(sandbox=sandbox, http=GuardedClient(allow_private=(place,)), env={"SERVICE": f"http://{place}"})
    registry = Registry.load(sandbox=sandbox)
    engine = await Engine.open(store, registry=registry, services=services, secret=SECRET, clock=_Stopped())
    await engine.workflows.save(CHILD)
    await engine.workflows.save(EVERYTHING)

    ids = {}
    for name, (document, _) in RUNS.items():
        ids[name] = (await engine.submit(document, idempotency_key=name)).run
    await _reached(engine, ids["cancelled"], "waiting")
    await engine.cancel(ids["cancelled"], "not needed")
    await _reached(engine, ids["rounds"], "waiting")
    await _answer(engine, ids["rounds"])
    for name, (_, status) in RUNS.items():
        await _reached(engine, ids[name], status)
    await _until(lambda: _at_work(engine, ids))

    async def claims_nothing(*_: Any, **__: Any) -> list[Any]:
        return []

    store.claim = claims_nothing  # from here on facts and runs stay where they are put
    await asyncio.sleep(0.3)
    for name, (document, _) in LATER.items():
        await engine.submit(document, idempotency_key=name)
    await _answer(engine, ids["answered"])
    await engine.signal(ids["signalled"], "paid", {"eur": 12}, dedupe_key="invoice-1")
    await engine.cancel(ids["cancelling"], "too late")
    await _other_tables(engine)
    with closing(sqlite3.connect(f"file:{db}?mode=ro", uri=True)) as here, closing(sqlite3.connect(copy)) as there:
        here.backup(there)
    facts.close()
    os._exit(0)  # as if killed: nothing is let go


async def _other_tables(engine: Any) -> None:
    from executor.service.triggers.declared import ScheduleSpec, WebhookSpec

    draft = await engine.drafts.create(EVERYTHING)
    await engine.submit(asks("drafted"), idempotency_key="drafted", draft=draft)
    await engine.schedules.put("hourly", ScheduleSpec(workflow="everything", cron="0 * * * *", trigger="start"))
    await engine.webhooks.put("orders", WebhookSpec("everything", trigger="start", auth="none"))


async def _at_work(engine: Any, ids: dict[str, str]) -> bool:
    """The calls that are held have begun, and the branch that is quick is over."""
    for name in ids.keys() & {"running", "lost", "branches"}:
        events = await engine.store.read_events(ids[name])
        if not any(event.type == "node.started" and event.node in ("call", "slow") for event in events):
            return False
    events = await engine.store.read_events(ids["branches"])
    seen = {(event.node, event.type) for event in events}
    return seen >= {("quick", "node.succeeded"), ("person", "wait.opened")}


async def _reached(engine: Any, run: str, status: str) -> None:
    async def there() -> bool:
        return bool((await engine.runs.row(run)).status == status)

    await _until(there, f"{run} never was {status}")


async def _until(condition: Callable[[], Awaitable[bool]], what: str = "it never happened") -> None:
    for _ in range(PATIENCE_S * 50):
        if await condition():
            return
        await asyncio.sleep(0.02)
    raise TimeoutError(what)


async def _answer(engine: Any, run: str) -> None:
    (wait,) = await engine.waits.list("pending", run)
    await engine.answer(wait.link.rpartition("/")[2], {}, action="approve", by="Ada")


async def _serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    line = await reader.readline()
    if b"/holds" in line:
        await asyncio.Event().wait()
    status = b"503 Busy" if b"/fails" in line else b"202 Accepted"
    writer.write(b"HTTP/1.1 " + status + b"\r\ncontent-length: 2\r\ncontent-type: application/json\r\n\r\n{}")
    await writer.drain()
    writer.close()


if __name__ == "__main__":
    database, copy_to, facts_to = sys.argv[1:]
    print(json.dumps(asyncio.run(main(database, copy_to, Facts(facts_to)))))
