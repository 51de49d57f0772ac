"""Loss of power, and everything else that can go wrong below the store, over the standard scenario: a table of figures.

    python -m tests.faults.power [--parts power,pragmas,calls,flips] [--plays N] [--every N] [--jobs 2]

`power`: images of the disk for each operation of some plays, one of two killed on the way and played on; `pragmas`: the
same with weaker pragmas, which must lose something, or this check finds nothing; `calls`: a kill, EIO and ENOSPC at
each call; `flips`: damaged files. Exit code 1 when there is a violation, or when the weaker pragmas lose nothing.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import random
import shutil
import signal
import sqlite3
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import closing
from functools import partial
from pathlib import Path

from msgspec import Struct

from tests.faults import calls
from tests.faults.check import violations
from tests.faults.flips import run_flips
from tests.faults.images import Image, distinct, images
from tests.faults.points import run_all
from tests.support.adapter import Rewrite
from tests.support.child import KILLED, PLAYED, in_child
from tests.support.vfs import Op, read_log

PARTS = ("power", "pragmas", "calls", "flips")
PLAY_ON_EVERY = 40  # of the distinct images
DAMAGED_MAX = 5  # kept as examples


def _as_it_is(sql: str) -> str:
    return sql


# What the store says about `synchronous`, changed. The first line is the store's own.
PRAGMAS: dict[str, Rewrite] = {
    "EXTRA, WAL, FULL": _as_it_is,
    "FULL, WAL, FULL": lambda sql: sql.replace("synchronous = EXTRA", "synchronous = FULL"),
    "NORMAL": lambda sql: sql.replace("synchronous = EXTRA", "synchronous = NORMAL").replace("= FULL", "= NORMAL"),
    "OFF": lambda sql: sql.replace("synchronous = EXTRA", "synchronous = OFF").replace("= FULL", "= OFF"),
}


class Tally(Struct):
    """Images, of them killed ones, and how many differ in content; images in which something acknowledged was missing
    (`lost`; `lost_max`: lines of the client), a transaction was not whole, or SQLite found damage; how many were played
    on to the end of the scenario. `examples` say which and what."""

    images: int = 0
    killed: int = 0
    distinct: int = 0
    lost: int = 0
    lost_max: int = 0
    torn: int = 0
    corrupt: int = 0
    played_on: int = 0
    seconds: float = 0
    examples: list[str] = []

    def add(self, other: Tally) -> None:
        for name in ("images", "killed", "distinct", "lost", "torn", "corrupt", "played_on", "seconds"):
            setattr(self, name, getattr(self, name) + getattr(other, name))
        self.lost_max = max(self.lost_max, other.lost_max)
        self.examples = (self.examples + other.examples)[:DAMAGED_MAX]

    @property
    def well(self) -> bool:
        return not (self.lost or self.torn or self.corrupt)


# --- one play, and its images


def record(folder: Path, rewrite: Rewrite = _as_it_is, kill_at: int | None = None) -> Path:
    """Play twice on one file, the first time killed at its change `kill_at`. Returns the log of both."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    db, acks, log = folder / "weft.db", folder / "acks", folder / "log"
    passed = 0

    def kill(op: Op) -> None:
        nonlocal passed
        passed += 1
        if passed == kill_at:
            os.kill(os.getpid(), signal.SIGKILL)

    first = in_child(lambda: calls.play_through(db, acks, log=log, before=kill, rewrite=rewrite), folder)
    assert first == (KILLED if kill_at else PLAYED), (folder / "error").read_text()
    second = in_child(lambda: calls.play_through(db, acks, log=log, rewrite=rewrite), folder)
    assert second == PLAYED, (folder / "error").read_text()
    return log


def examine(
    log: Path, seed: int, folder: Path, part: int = 0, of: int = 1, every: int = 1, play_on: bool = True
) -> Tally:
    """All images of the log, or those of each `every`th operation; of these, the share `part` of `of`."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    entries = read_log(log)
    told = [entry.told for entry in entries if entry.op is None]
    tally, began = Tally(examples=[]), time.monotonic()
    for number, (image, times) in enumerate(distinct(images(entries, random.Random(seed), every))):
        if number % of != part:
            continue
        tally.images += times
        tally.killed += times * (image.mode == "killed")
        tally.distinct += 1
        _one(image, b"".join(told[: image.told]), folder, tally, play_on and number % PLAY_ON_EVERY < of)
    tally.seconds = time.monotonic() - began
    shutil.rmtree(folder, ignore_errors=True)
    return tally


def _one(image: Image, told: bytes, folder: Path, tally: Tally, play_on: bool) -> None:
    db, acks = folder / "weft.db", folder / "acks"
    for place in folder.iterdir():
        place.unlink()
    image.write(db)
    acks.write_bytes(told)
    try:
        with closing(sqlite3.connect(db)) as connection:
            connection.execute("PRAGMA synchronous = OFF")
            found = [f"I12 {row}" for (row,) in connection.execute("PRAGMA integrity_check") if row != "ok"]
        found = found or violations(db, acks, complete=False)
        if not found and play_on:
            tally.played_on += 1
            found = _end_of(db, acks, folder)
    except sqlite3.DatabaseError as error:
        found = [f"I12 {error}"]
    lost = [what for what in found if "was acknowledged" in what]
    tally.lost += bool(lost)
    tally.lost_max = max(tally.lost_max, len(lost))
    tally.corrupt += any(what.startswith("I12 ") for what in found)
    tally.torn += any(what not in lost and not what.startswith(("I12 ", "I1 ")) for what in found)
    if found and len(tally.examples) < DAMAGED_MAX:
        tally.examples.append(f"{image}: {'; '.join(found[:3])}")


def _end_of(db: Path, acks: Path, folder: Path) -> list[str]:
    code = in_child(lambda: calls.play_plainly(db, acks), folder)
    return violations(db, acks, complete=True) if code == PLAYED else [(folder / "error").read_text()]


# --- the table


def lose_power(
    folder: Path, rewrite: Rewrite = _as_it_is, *, plays: int, every: int = 1, jobs: int = 1, play_on: bool = True
) -> Tally:
    """Play, and examine the images. Every second play is killed at a change of its own. `seconds` are wall time."""
    began, tally = time.monotonic(), Tally(examples=[])
    with ProcessPoolExecutor(jobs, mp_context=multiprocessing.get_context("fork")) as pool:
        for play in range(plays):
            kill_at = 40 + 211 * play % 900 if play % 2 else None
            log = record(folder / f"play-{play}", rewrite, kill_at)
            shares = [
                pool.submit(examine, log, play, folder / f"share-{play}-{part}", part, jobs, every, play_on)
                for part in range(jobs)
            ]
            for share in shares:
                tally.add(share.result())
    tally.seconds = time.monotonic() - began
    return tally


def main() -> int:
    parser = argparse.ArgumentParser(description="Lose power at each operation of the scenario.")
    parser.add_argument("--parts", default=",".join(PARTS), help=f"some of {', '.join(PARTS)}")
    parser.add_argument("--plays", type=int, default=4)
    parser.add_argument("--every", type=int, default=1, help="only each Nth operation, call and damaged file")
    parser.add_argument("--jobs", type=int, default=2)
    options = parser.parse_args()
    parts = options.parts.split(",")
    if unknown := set(parts) - set(PARTS):
        parser.error(f"there is no part {', '.join(unknown)}")
    well = True
    with tempfile.TemporaryDirectory(dir=memory(), ignore_cleanup_errors=True) as name:
        folder = Path(name)
        if "power" in parts or "pragmas" in parts:
            well &= _print_power(folder, parts, options)
        if "calls" in parts:
            well &= _print_calls(folder, options)
        if "flips" in parts:
            well &= _print_flips(folder, options)
    return 0 if well else 1


def memory() -> Path | None:
    """A folder in memory, where there is one: what a sync does is played here, it need not be waited for."""
    shm = Path("/dev/shm")
    return shm if os.access(shm, os.W_OK) else None


def _print_power(folder: Path, parts: Sequence[str], options: argparse.Namespace) -> bool:
    print(
        f"{'synchronous':18}{'images':>8}{'killed':>8}{'distinct':>9}{'lost':>7}{'max':>5}{'torn':>6}{'corrupt':>9}"
        f"{'played on':>11}{'s':>6}"
    )
    well = True
    for name, rewrite in PRAGMAS.items():
        ours = rewrite is _as_it_is
        if ("power" if ours else "pragmas") not in parts:
            continue
        plays = options.plays if ours else 1
        got = lose_power(folder, rewrite, plays=plays, every=options.every, jobs=options.jobs, play_on=ours)
        print(
            f"{name:18}{got.images:8}{got.killed:8}{got.distinct:9}{got.lost:7}{got.lost_max:5}{got.torn:6}"
            f"{got.corrupt:9}{got.played_on:11}{got.seconds:6.0f}",
            flush=True,
        )
        if ours:
            print("".join(f"  {example}\n" for example in got.examples), end="")
        well &= got.well if ours else got.lost > 0
    return well


def _print_calls(folder: Path, options: argparse.Namespace) -> bool:
    wanted = list(calls.at_calls(calls.count(folder / "count"), every=options.every))
    summary = run_all(wanted, folder, options.jobs, partial(print, flush=True))
    print(
        f"{summary.cases} breaks at calls in {summary.seconds:.0f} s, they came to be in {dict(summary.reached)}: "
        f"{len(summary.failed)} violations",
        flush=True,
    )
    return not summary.failed


def _print_flips(folder: Path, options: argparse.Namespace) -> bool:
    said: Callable[[str], None] = partial(print, flush=True)
    tally = run_flips(folder / "flips", 500 // options.every, say=said)
    said(str(tally))
    return tally.well


if __name__ == "__main__":
    sys.exit(main())
