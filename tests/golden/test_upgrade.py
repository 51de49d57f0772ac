"""A database that an earlier version of weft left behind, killed in the midst of its work: this version keeps a copy,
brings the file to its own schema, and every run continues where it was.

The files are in `tests/golden`. The clock stands where it stood then, and is moved by hand.
"""

from __future__ import annotations

import asyncio
import base64
import hashlib
import hmac
import random
import re
import shutil
import sqlite3
import sys
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager, closing
from pathlib import Path
from typing import Any

import orjson
import pytest

from executor.blocks.http.client import GuardedClient
from executor.blocks.sandbox.sandbox import Sandbox
from executor.blocks.services import Services
from executor.blocks.types.registry import Registry
from executor.kernel.store.migrate import packaged_migrations
from executor.kernel.store.sqlite.reading import open_read_only, open_reading
from executor.kernel.store.sqlite.store import SQLiteStore
from executor.open.engine import Engine
from executor.service.upkeep.backup import inspect
from executor.service.upkeep.invariants import check
from executor.service.views import WaitView
from tests.golden.play import HOUR_S, LATER, RUNS, SECRET, T0
from tests.support.clock import ManualClock
from tests.support.journal import Journal
from tests.support.recorded import SCHEMAS, contents, restore, runs
from tests.support.server import ServerProcess, free_port
from tests.support.service import Service, serve
from tests.support.size import WHOLE, size
from tests.support.until import until

ROOT = Path(__file__).parents[2]
NEWEST = packaged_migrations()[-1].number
EVERYTHING = {"double": 6, "loop": [[0], [1], [2]], "fan": [["a"], ["b"]], "seen": 1}
ENDS: dict[str, tuple[str, Any]] = {
    "done": ("succeeded", EVERYTHING),
    "large": ("succeeded", "large"),
    "failed": ("failed", None),
    "caught": ("succeeded", "mended"),
    "responded": ("succeeded", {"ok": True}),
    "cancelled": ("cancelled", None),
    "asks": ("succeeded", "approve"),
    "answered": ("succeeded", "approve"),
    "cancelling": ("cancelled", None),
    "expires": ("succeeded", "reject"),
    "sleeps": ("succeeded", "up"),
    "signalled": ("succeeded", {"eur": 12}),
    "retrying": ("succeeded", 200),
    "running": ("succeeded", 200),
    "branches": ("succeeded", "together"),
    "queued": ("succeeded", EVERYTHING),
    "drafted": ("succeeded", "approve"),
    "callback": ("succeeded", {"shipped": True}),
    "form": ("succeeded", "Ada"),
    "told": ("succeeded", "approve"),
    "parent": ("succeeded", "approve"),
    "lost": ("succeeded", 200),
    "kept": ("succeeded", 42),
}


@asynccontextmanager
async def opened(db: Path, clock: ManualClock, service: Service) -> AsyncIterator[Engine]:
    sandbox = Sandbox(threads=1)
    http = GuardedClient(allow_private=(service.place,))
    services = Services(sandbox=sandbox, http=http, env={"SERVICE": service.url})
    registry = Registry.load(sandbox=sandbox)
    engine = await Engine.open(SQLiteStore(db), registry=registry, services=services, secret=SECRET, clock=clock)
    try:
        yield engine
    finally:
        await engine.close(grace_s=2)


@pytest.mark.parametrize("schema", SCHEMAS)
async def test_every_run_continues_where_it_was(schema: int, tmp_path: Path) -> None:
    db = restore(schema, tmp_path)
    named = runs(db)
    assert named.keys() == RUNS.keys() | LATER.keys() | {"drafted"}
    clock = ManualClock(T0 + 30_000)  # what the killed process held is free
    async with AsyncExitStack() as stack:
        service = await stack.enter_async_context(serve())
        readdress(db, service)
        before = contents(db)
        engine = await stack.enter_async_context(opened(db, clock, service))
        assert_copied(db, schema, before)
        await until(lambda: nothing_under_way(engine, set(named.values())))
        await look_back(engine, named)
        await until(lambda: told_of(service, named["told"]))  # the message that could not be sent before
        for wait in await engine.waits.list("pending"):
            if wait.run != named["expires"]:
                await answer(engine, wait)
        await answer_rounds(engine, named["rounds"])
        clock.advance((HOUR_S + 1) * 1000)
        await until(lambda: all_over(engine))
        found = {name: await engine.runs.view(run) for name, run in named.items()}
        (fire,) = [fire for fire in await engine.schedules.fires("hourly") if fire.outcome == "started"]
        assert (await engine.runs.view(str(fire.run_id))).output == EVERYTHING
        calls = service.calls

    rounds = found.pop("rounds")
    assert [[one[0]["action"] for one in rounds.output]] == [["approve"] * 3]
    assert {name: (view.status, view.output) for name, view in found.items()} == {name: ENDS[name] for name in found}

    # What was under way is asked for again, under the key it had; nothing else is called.
    again = {f"{named['running']}:call", f"{named['branches']}:slow@fan[2]", f"{named['lost']}:call"}
    assert sorted(call.key for call in calls if call.path == "/holds") == sorted(again)
    assert [call.key for call in calls if call.path == "/fails" and "told" not in str(call.body)] == [
        f"{named['retrying']}:try"
    ]

    with closing(open_reading(db)) as connection:
        assert list(check(connection)) == []
    journal = Journal(db)
    journal.is_sound()
    journal.is_dense()
    assert not journal.inbox


def assert_copied(db: Path, schema: int, before: tuple[int, list[str]]) -> None:
    """The file has the schema of this code; what it was is beside it, whole, and for its owner alone."""
    kept = db.with_name(f"weft.db.schema-{schema}")
    with closing(open_read_only(db)) as connection:
        assert connection.execute("PRAGMA user_version").fetchone() == (NEWEST,)
    assert kept.exists() == (schema < NEWEST)
    if kept.exists():
        assert contents(kept) == before
        assert kept.stat().st_mode & 0o777 == 0o600
        found = sum('INTO "run_details"' in line for line in before[1])
        assert (inspect(kept).schema, inspect(kept).runs) == (schema, found)
    assert not list(db.parent.glob("*.part"))


async def look_back(engine: Engine, named: dict[str, str]) -> None:
    """What an earlier version recorded can be read as if it were of this one."""
    done = named["done"]
    assert orjson.loads((await engine.runs.node(done, "double")).output or b"")["result"] == 6
    assert {node.status for node in (await engine.runs.view(done)).nodes} == {"succeeded", "skipped"}
    assert len((await engine.runs.graph(done)).nodes) > 10
    assert orjson.loads((await engine.runs.node(named["large"], "text")).output or b"") == "x" * 300_000
    failed = await engine.runs.view(named["failed"])
    assert failed.error is not None
    (draft,) = await engine.store.list_drafts()
    assert draft.name == "everything"
    again = await engine.submit(RUNS["kept"][0], idempotency_key="kept again")
    assert (await engine.wait_finished(again.run, 60)).output == 42
    events = await engine.store.read_events(again.run)
    (done_event,) = [event for event in events if (event.node, event.type) == ("sum", "node.succeeded")]
    assert b"cached" in (done_event.data or b""), "what was cached before is found"


async def answer(engine: Engine, wait: WaitView) -> None:
    """By the link that was sent when the wait opened: derived here, as links of the past are."""
    if wait.kind == "webhook":
        await engine.callbacks.receive(token("callback", wait), {"shipped": True}, {})
    elif wait.kind == "form":
        await engine.answer(token("resume", wait), {"who": "Ada"}, by="Ada")
    elif wait.kind == "attention":
        await engine.answer(token("resume", wait), {}, action="retry", by="Ada")
    elif wait.kind == "approval":
        await engine.answer(token("resume", wait), {}, action="approve", by="Ada")


async def answer_rounds(engine: Engine, run: str) -> None:
    """The loop asks again after each answer."""
    while (await engine.runs.row(run)).finished_at_ms is None:
        for wait in await engine.waits.list("pending", run):
            await answer(engine, wait)
        await asyncio.sleep(0.02)


def token(purpose: str, wait: WaitView) -> str:
    digest = hmac.new(SECRET, f"{purpose}\0{wait.run}\0{wait.id}".encode(), hashlib.sha256).digest()
    return base64.urlsafe_b64encode(digest).rstrip(b"=").decode()


async def nothing_under_way(engine: Engine, known: set[str]) -> bool:
    """What was queued, running, answered, signalled or cancelled has gone as far as it can without people and time."""
    rows = [await engine.runs.row(run) for run in known]
    inbox = [await engine.store.read_inbox(run) for run in known]
    counted = await engine.runs.count()  # their children, too
    busy = counted["queued"] + counted["running"]
    return not busy and not any(inbox) and all(row.status not in ("queued", "running") for row in rows)


async def all_over(engine: Engine) -> bool:
    """The run of the schedule, too, which is there from one moment to the next: looked for first."""
    fired = any(fire.outcome == "started" for fire in await engine.schedules.fires("hourly"))
    counted = await engine.runs.count()
    return fired and not any(counted[status] for status in ("queued", "running", "waiting"))


async def told_of(service: Service, run: str) -> bool:
    return any(call.path == "/fails" and run in str(call.body) for call in service.calls)


def readdress(db: Path, service: Service) -> None:
    """Messages on their way to the service that was there when the file was recorded go to this one."""
    with closing(sqlite3.connect(db, isolation_level=None)) as connection:
        for number, content in connection.execute("SELECT n, content FROM notifications").fetchall():
            moved = re.sub(rb"127\.0\.0\.1:\d+", service.place.encode(), content)
            connection.execute("UPDATE notifications SET content = ? WHERE n = ?", (moved, number))


@pytest.mark.parametrize("left", ["in the log", "in one file"])
async def test_a_file_of_a_newer_version_is_refused_and_not_one_byte_of_it_changes(left: str, tmp_path: Path) -> None:
    """Killed, or copied: opening the one for writing would move its log into it, the other be given a log."""
    db = restore(SCHEMAS[-1], tmp_path)
    future = tmp_path / "future"
    future.mkdir()
    with closing(sqlite3.connect(db, isolation_level=None)) as connection:
        if left == "in one file":
            connection.execute("PRAGMA journal_mode = DELETE").fetchone()
        connection.execute(f"PRAGMA user_version = {NEWEST + 1}")
        files = [path for path in (db, db.with_name("weft.db-wal")) if path.exists()]
        for path in files:
            shutil.copy(path, future)
    assert len(files) == (2 if left == "in the log" else 1)
    kept = {path.name: path.read_bytes() for path in future.iterdir()}

    log = tmp_path / "log"
    server = await ServerProcess.start(future / "weft.db", free_port(random.Random()), log)
    try:
        with pytest.raises(AssertionError, match="did not start"):
            await server.ready()
    finally:
        await server.clean_up()
    said = log.read_text()
    assert f"the database has schema {NEWEST + 1}, but this weft supports schemas up to {NEWEST}" in said
    assert "use the weft version that wrote it, or a newer one" in said
    assert "Traceback" not in said
    assert {name: (future / name).read_bytes() for name in kept} == kept
    assert not list(future.glob("*.schema-*")) and not list(future.glob("*.part"))


@pytest.mark.proof
@pytest.mark.soak
@pytest.mark.timeout(0 if WHOLE else 180)
async def test_an_upgrade_that_is_broken_off_begins_again() -> None:
    """At every change of a file: killed, unreadable, full. The file is what it was, or what it is to become."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "tests.golden.broken", "--every", str(size(17, 1))),
        stdout=asyncio.subprocess.PIPE,
        cwd=ROOT,
    )
    out, _ = await process.communicate()
    print(out.decode())
    assert process.returncode == 0
    assert re.search(r": 0 violations$", out.decode(), re.MULTILINE)
