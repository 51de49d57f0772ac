"""Races between two processes on one database, tried many times: what both ask for, and what must be true of the
replies.

    python -m tests.conformance.store.races DATABASE LINE RACE SIDE TRIES     one of the two; prints a reply a line

Both wait for one another before each try, so that the calls begin within microseconds.
"""

from __future__ import annotations

import asyncio
import json
import mmap
import sys
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, NamedTuple

from msgspec.structs import replace

from executor.errors import WeftError
from executor.kernel.store.topics.outbox import NotificationRow
from executor.kernel.store.topics.schedules import Fire, Poll
from executor.kernel.store.topics.store import Store
from executor.kernel.store.topics.webhooks import DeliveryRow
from tests.conformance.store.changes import SCHEDULE, WEBHOOK
from tests.support.place import place_of, store_at
from tests.support.rows import T0, change, new_run, owned_run, record, wait

PATIENCE_S = 60.0
LONG_AGO = T0 - 86_400_000

Reply = dict[str, Any]


class Race(NamedTuple):
    """`prepare` makes what so many tries need; `ask(store, side, n)` is the call of one side, 0 or 1; `broken` says
    what is wrong with the two replies to try `n`, or with the database behind them."""

    prepare: Callable[[Store, int], Awaitable[None]]
    ask: Callable[[Store, int, int], Awaitable[Reply]]
    broken: Callable[[Store, int, Reply, Reply], Awaitable[str | None]]


# --- answers


async def _open_waits(store: Store, tries: int) -> None:
    run = await owned_run(store, "run")
    waits = tuple(wait("run", f"ask!{n}") for n in range(tries))
    notifications = tuple(
        NotificationRow("run", f"ask!{n}", 1, "email", b"[]", "pending", 0, T0, T0 + n) for n in range(tries)
    )
    await store.append(change(run, record(), waits=waits, notifications=notifications))


async def _answer(store: Store, side: int, n: int) -> Reply:
    answered = await store.answer_wait(wait("run", f"ask!{n}").token_hash, b"%d" % side, f"p{side}", b"m", T0)
    assert answered is not None
    return {"won": answered.won, "by": answered.wait.answered_by}


async def _one_answer(store: Store, n: int, a: Reply, b: Reply) -> str | None:
    if a["won"] == b["won"]:
        return f"{int(a['won']) * 2} winners"
    return None if a["by"] == b["by"] == ("p0" if a["won"] else "p1") else "they were told of different winners"


# --- drafts


async def _drafts(store: Store, tries: int) -> None:
    for n in range(tries):
        await store.put_draft(f"d{n}", 0, "w", b"old", T0)


async def _revise(store: Store, side: int, n: int) -> Reply:
    draft, written = await store.put_draft(f"d{n}", 1, "w", b"%d" % side, T0)
    assert draft is not None
    return {"written": written, "rev": draft.rev, "document": draft.document.decode()}


async def _one_revision(store: Store, n: int, a: Reply, b: Reply) -> str | None:
    if a["written"] == b["written"]:
        return "a lost update" if a["written"] else "neither was written"
    same = (a["rev"], a["document"]) == (b["rev"], b["document"]) == (2, "0" if a["written"] else "1")
    return None if same else "they were told of different drafts"


# --- notifications


async def _claim_notifications(store: Store, side: int, n: int) -> Reply:
    return {"claimed": [row.wait_id for row in await store.claim_notifications(T0 + n, 10**9, 10)]}


async def _sent_once(store: Store, n: int, a: Reply, b: Reply) -> str | None:
    both = a["claimed"] + b["claimed"]
    return None if both == [f"ask!{n}"] else f"claimed: {both}"


# --- plans that nothing refers to


async def _orphans(store: Store, tries: int) -> None:
    for n in range(tries):
        await store.put_plan(f"plan-{n}", b"plan", LONG_AGO)


async def _use_or_delete(store: Store, side: int, n: int) -> Reply:
    if side:
        return {"deleted": (await store.delete_orphans(T0, 1)).plans}
    await store.create_run(new_run(f"run-{n}", T0, plan_hash=f"plan-{n}", plan=b"plan"))
    return {}


async def _has_its_plan(store: Store, n: int, a: Reply, b: Reply) -> str | None:
    return None if await store.get_plan(f"plan-{n}") == b"plan" else "a run without its plan"


# --- keys that come twice


async def _nothing(store: Store, tries: int) -> None:
    pass


async def _create(store: Store, side: int, n: int) -> Reply:
    run, created = await store.create_run(new_run(f"run-{n}-{side}", T0, idempotency_key=f"key-{n}"))
    return {"id": run.id, "created": created}


async def _created_once(store: Store, n: int, a: Reply, b: Reply) -> str | None:
    if a["created"] == b["created"]:
        return "both created" if a["created"] else "none created"
    return None if a["id"] == b["id"] else "they were told of different runs"


async def _store_version(store: Store, side: int, n: int) -> Reply:
    """Of every second workflow both store the same."""
    document = 0 if n % 2 else side
    stored = await store.put_workflow(f"w{n}", b"%d" % document, f"h{document}", T0)
    return {"version": stored.row.version, "created": stored.created}


async def _numbered(store: Store, n: int, a: Reply, b: Reply) -> str | None:
    versions, created = sorted((a["version"], b["version"])), a["created"] + b["created"]
    return None if (versions, created) == (([1, 1], 1) if n % 2 else ([1, 2], 2)) else f"versions {versions}"


async def _one_run(store: Store, tries: int) -> None:
    await store.create_run(new_run("run"))


async def _signal(store: Store, side: int, n: int) -> Reply:
    """Every second time both send the same."""
    key = f"key-{n}" if n % 2 else None
    posted = await store.post_signal("run", "go", None, b"%d" % side, key, None, b"m", T0)
    assert posted is not None
    return {"seq": posted[0].seq, "new": posted[1]}


async def _counted(store: Store, n: int, a: Reply, b: Reply) -> str | None:
    distinct, new = len({a["seq"], b["seq"]}), a["new"] + b["new"]
    return None if (distinct, new) == ((1, 1) if n % 2 else (2, 2)) else f"{distinct} numbers, {new} new"


async def _webhook(store: Store, tries: int) -> None:
    await store.put_webhook(WEBHOOK)


async def _deliver(store: Store, side: int, n: int) -> Reply:
    """The same request under two names, or under one."""
    delivery = DeliveryRow("h", f"d{n}-{side if n % 2 else 0}", f"digest-{n}", T0, "")
    first, run = await store.deliver(WEBHOOK, delivery, new_run(f"run-{n}-{side}", T0, "idle"))
    return {"first": first.run_id, "run": run and run.id}


async def _delivered_once(store: Store, n: int, a: Reply, b: Reply) -> str | None:
    runs = [reply["run"] for reply in (a, b) if reply["run"] is not None]
    return None if [a["first"], b["first"]] == runs * 2 and len(runs) == 1 else f"{runs} for one delivery"


async def _schedule(store: Store, tries: int) -> None:
    await store.put_schedule(replace(SCHEDULE, overlap="allow"))


async def _fire(store: Store, side: int, n: int) -> Reply:
    run = new_run(f"run-{n}-{side}", T0, "idle")
    fired = await store.fire(Fire("s", "due", T0 + n, T0 + n + 1, T0 + n, T0, "allow", run))
    return {"outcome": fired and fired.outcome}


async def _fired_once(store: Store, n: int, a: Reply, b: Reply) -> str | None:
    outcomes = [a["outcome"], b["outcome"]]
    return None if sorted(outcomes, key=repr) == ["started", None] else f"{outcomes} of one time"


async def _polling(store: Store, tries: int) -> None:
    await store.put_schedule(replace(SCHEDULE, poll=b"null"))


async def _record_poll(store: Store, side: int, n: int) -> Reply:
    run = new_run(f"run-{n}-{side}", T0, "idle")
    started = await store.record_poll(Poll("s", T0 + n, T0 + n + 1, T0, (run,), b"%d" % n))
    return {"outcome": started and len(started)}


async def _recorded_once(store: Store, n: int, a: Reply, b: Reply) -> str | None:
    outcomes = [a["outcome"], b["outcome"]]
    return None if sorted(outcomes, key=repr) == [1, None] else f"{outcomes} of one poll"


RACES: dict[str, Race] = {
    "answer_wait": Race(_open_waits, _answer, _one_answer),
    "put_draft": Race(_drafts, _revise, _one_revision),
    "claim_notifications": Race(_open_waits, _claim_notifications, _sent_once),
    "delete_orphans": Race(_orphans, _use_or_delete, _has_its_plan),
    "create_run": Race(_nothing, _create, _created_once),
    "put_workflow": Race(_nothing, _store_version, _numbered),
    "post_signal": Race(_one_run, _signal, _counted),
    "deliver": Race(_webhook, _deliver, _delivered_once),
    "fire": Race(_schedule, _fire, _fired_once),
    "record_poll": Race(_polling, _record_poll, _recorded_once),
}


class Line:
    """Where both wait for one another: a byte each in a file that both have mapped."""

    def __init__(self, path: Path, side: int) -> None:
        with path.open("r+b") as file:
            self._seen = mmap.mmap(file.fileno(), 2)
        self._side = side

    def meet(self, n: int) -> None:
        mark = n % 250 + 1
        self._seen[self._side] = mark
        until = time.monotonic() + PATIENCE_S
        while self._seen[1 - self._side] not in (mark, (n + 1) % 250 + 1):
            time.sleep(0)
            assert time.monotonic() < until, "the other process has ended"


async def _run(database: str, line_path: Path, name: str, side: int, tries: int) -> None:
    ask = RACES[name].ask
    store = store_at(place_of(database))
    await store.open()
    line = Line(line_path, side)
    for n in range(tries):
        line.meet(n)
        try:
            reply = await ask(store, side, n)
        except (WeftError, AssertionError) as error:
            reply = {"error": f"{type(error).__name__}: {error}"}
        print(json.dumps(reply), flush=True)
    await store.close()


async def race(database: str, line: Path, name: str, tries: int) -> list[str]:
    """What went wrong, a line for each try that did. `line`: a file for both to wait in."""
    prepare, _, broken = RACES[name]
    store = store_at(place_of(database))
    await store.open()
    await prepare(store, tries)
    await store.close()
    line.write_bytes(bytes(2))
    command = [sys.executable, "-m", "tests.conformance.store.races", database, str(line), name]
    sides = [
        await asyncio.create_subprocess_exec(*command, str(side), str(tries), stdout=asyncio.subprocess.PIPE)
        for side in (0, 1)
    ]
    outputs = [output for output, _ in await asyncio.gather(*(side.communicate() for side in sides))]
    replies = [[json.loads(line) for line in output.splitlines()] for output in outputs]
    assert [len(of_side) for of_side in replies] == [tries, tries]
    wrong = []
    await store.open()
    for n, both in enumerate(zip(*replies, strict=True)):
        errors = [reply["error"] for reply in both if "error" in reply]
        if said := "; ".join(errors) if errors else await broken(store, n, *both):
            wrong.append(f"try {n}: {said}")
    await store.close()
    return wrong


if __name__ == "__main__":
    where, line_name, race_name, which, how_often = sys.argv[1:]
    asyncio.run(_run(where, Path(line_name), race_name, int(which), int(how_often)))
