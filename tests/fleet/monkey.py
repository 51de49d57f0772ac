"""A fleet in trouble, from the first run to the judgement.

    python -m tests.fleet.monkey [--runs 500] [--seed N] [--seconds S] [--drops 0.01] [--workers 4] [--servers 2]
                                 [--older FOLDER]

Submits so many runs while everything is killed, frozen and cut off, evenly over `--seconds` (by default as fast as they
are taken), then lets all end. Prints what was done, what was wrong, and how long the last run took behind the last
fault. The first thing it prints is the seed.

With `--older` every other process runs from the checkout in that folder, and they start first: two versions on one
database, of which the newer one brings the schema up to date while the older one works. A checkout of the version
before: `git worktree add --detach FOLDER COMMIT`.
"""

from __future__ import annotations

import argparse
import asyncio
import random
import re
import sys
import tempfile
import time
from contextlib import suppress
from pathlib import Path

from tests.fleet.clients import Clients
from tests.fleet.judge import wrong
from tests.fleet.moments import YEARLY, Moments
from tests.fleet.processes import Fleet
from tests.fleet.workload import jobs, of_deliveries, of_moments
from tests.support.place import as_file

WITHIN_S = 60.0  # everything has ended so long after the last fault
FOLLOWED = 0.2
DELIVERED = 0.1  # beside each of so many runs a delivery of a webhook
DELIVERED_AGAIN = 0.2  # of these, at once and to any server
OPEN_MAX = 60  # submissions ahead of the fleet are no use: they would wait, and not be hit
# Sessions that a process may open within five seconds, also when all start at once, or the database is back. As many
# workers as there are may have been started again meanwhile.
SESSIONS_MAX = 25


async def play(options: argparse.Namespace, folder: Path) -> list[str]:
    choose = random.Random(options.seed)
    fleet = Fleet(folder, options.workers, options.servers, choose, options.drops, options.older)
    clients = None
    try:
        await fleet.start()
        clients = Clients(fleet.urls, random.Random(options.seed + 1))
        moments = Moments(fleet.address, random.Random(options.seed + 2))
        found, took = await _in_trouble(options, folder, fleet, clients, moments, choose)
        said = await fleet.stop()
        print(f"{len(clients.runs)} runs, of which {len(clients.transcripts)} were followed and {len(clients.winners)}")
        print(f"  questions answered twice at once; all ended {took:.1f} s after the last fault")
        print(f"  done to it: {dict(fleet.troubles)}; processes that ended: {dict(fleet.ends)}")
        print(f"  the proxy saw {said['commits']} commits, dropped the answers of {said['dropped']}")
        print(f"  {len(clients.deliveries)} deliveries; {len(moments.are_set)} moments of schedules")
        print(f"  sessions with the database: {said['sessions']}, at most {said['busiest']} within five seconds")
        print(f"  runs that had another owner when theirs came back: {_lost_leases(folder)}")
        print(f"  clients: {dict(clients.counts)}")
        with as_file(fleet.address) as db:
            found += wrong(db, clients, moments, folder / "done")
        if said["busiest"] > SESSIONS_MAX * (len(fleet.members) + options.workers):
            found.append(
                f"{said['busiest']} sessions were opened within five seconds by {len(fleet.members)} processes"
            )
        return [*found, *(name for name in clients.counts if "failed" in name), *_said(folder)]
    finally:
        if clients is not None:
            await clients.close()
        with suppress(Exception):
            await fleet.stop()
        fleet.database.remove()


async def _in_trouble(
    options: argparse.Namespace,
    folder: Path,
    fleet: Fleet,
    clients: Clients,
    moments: Moments,
    choose: random.Random,
) -> tuple[list[str], float]:
    (folder / "done").touch()
    answering = asyncio.create_task(clients.answer_for_ever(), name="answers")
    await clients.offer_webhook(of_deliveries(folder / "done"))  # a server answers
    await clients.offer_schedules(of_moments(folder / "done"), moments.ids, YEARLY)
    trouble = asyncio.create_task(fleet.trouble(), name="trouble")
    setting = asyncio.create_task(moments.set_for_ever(), name="moments")
    began = time.monotonic()
    under_way = asyncio.Semaphore(16)
    left = options.runs

    async def one() -> None:
        async with under_way:
            await clients.submit(choose.choice(work), choose.random() < FOLLOWED)
            if choose.random() < DELIVERED:
                await clients.deliver(2 if choose.random() < DELIVERED_AGAIN else 1)

    submitting: set[asyncio.Task[None]] = set()
    try:
        while left or time.monotonic() < began + options.seconds:
            fleet.check()
            _check(answering, trouble, setting, *submitting)
            submitting = {task for task in submitting if not task.done()}
            if time.monotonic() > began + options.at_most:
                print(f"  {left} runs were not submitted within {options.at_most} s")
                break
            behind = options.runs - left < options.runs * min(1.0, (time.monotonic() - began) / (options.seconds or 1))
            if left and behind and len(submitting) < 16 and len(await clients.open_runs()) < OPEN_MAX:
                work = jobs(folder / "done", choose)
                many = min(8, left)
                left -= many
                submitting |= {asyncio.create_task(one()) for _ in range(many)}
            await asyncio.sleep(0.1)
    finally:
        trouble.cancel()
        setting.cancel()
        await asyncio.gather(trouble, setting, return_exceptions=True)
    over = time.monotonic()
    await asyncio.gather(*submitting)
    found = []
    while still := [*await moments.pending(), *await clients.open_runs()]:
        _check(answering)
        if time.monotonic() > over + WITHIN_S:
            found.append(f"{len(still)} runs and schedules are open {WITHIN_S:.0f} s after the last fault: {still[:5]}")
            break
        await asyncio.sleep(0.2)
    took = time.monotonic() - over
    found += [f"{name} has not seen its end" for name in await clients.followed(WITHIN_S)]
    found += await clients.submit_all_again()
    answering.cancel()
    await asyncio.gather(answering, return_exceptions=True)
    return found, took


def _check(*tasks: asyncio.Task[None]) -> None:
    """Raise what any of them has raised so far."""
    for task in tasks:
        if task.done():
            task.result()


def _lost_leases(folder: Path) -> int:
    return sum(
        log.read_text(errors="replace").count("lost the lease to another worker") for log in folder.glob("*.log")
    )


# The version before reads the entry points of this one, and logs those whose modules it lacks.
NOT_LOADED = re.compile(r"^[^\n]* block '\w+' of weft \([^\n]*\n(?:(?!\d{4}-)[^\n]*\n)*", re.MULTILINE)


def _said(folder: Path) -> list[str]:
    """Signs of a bug in what the processes said."""
    found = []
    for log in sorted(folder.glob("*.log")):
        text = NOT_LOADED.sub("", log.read_text(errors="replace"))
        for sign in ("Traceback", "corrupt"):
            if sign in text:
                at = text.index(sign)
                found.append(f"{log.name} says {sign}: {text[max(0, at - 500) : at + 2500]}")
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description="A fleet in trouble.")
    parser.add_argument("--runs", type=int, default=500)
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(10**6))
    parser.add_argument("--seconds", type=float, default=0, help="trouble lasts at least so long")
    parser.add_argument("--at-most", type=float, default=3600, help="then no more runs are submitted")
    parser.add_argument("--drops", type=float, default=0.01, help="share of answers to a COMMIT that are lost")
    parser.add_argument("--workers", type=int, default=4)
    parser.add_argument("--servers", type=int, default=2)
    parser.add_argument("--older", type=Path, help="a checkout of an older version, for every other process")
    parser.add_argument("--keep", type=Path, help="a folder for the logs, which stay there")
    options = parser.parse_args()
    print(f"--seed {options.seed}", flush=True)
    with tempfile.TemporaryDirectory(prefix="weft-fleet-") as name:
        folder = options.keep or Path(name)
        folder.mkdir(parents=True, exist_ok=True)
        found = asyncio.run(play(options, folder))
    for each in found[:50]:
        print(f"WRONG {each}")
    print(f"{len(found)} wrong")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
