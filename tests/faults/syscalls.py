"""The scenario on the SQLite that is deployed, Python's own, broken at each system call by which its files change: the
process is killed at the entry of the call, or the call fails.

    python -m tests.faults.syscalls [--every N] [--actions kill,EIO,ENOSPC] [--jobs 2]

Two plays do not make the same number of calls: who commits together, and when a checkpoint comes, is a matter of
timing. So there is no list of calls that would have to be met: there is a case for number 1, 2, 3, ..., behind the
count of the first play as well, until plays end before they have come to the number of their case. Exit code 1 when
there is a violation, or when kills do no harm to a client that gets an answer too early; 2 where calls cannot be held.
"""

from __future__ import annotations

import argparse
import asyncio
import errno
import itertools
import shutil
import sqlite3
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from functools import partial
from pathlib import Path

from msgspec import Struct

from executor.kernel.store.run_rows import Append, Appended
from executor.kernel.store.sqlite.store import SQLiteStore
from tests.faults import calls
from tests.faults.calls import TROUBLE_LASTS
from tests.faults.check import violations
from tests.faults.points import SECOND_KILL_EVERY, Summary, run_all
from tests.faults.power import memory
from tests.faults.scenario import Acks, play
from tests.faults.seccomp import KILL, PASS, Call, Decide, forbidden, hold
from tests.support.child import KILLED, PLAYED, in_child
from tests.support.vfs import CALL_ACTIONS, CallAction

SUFFIXES = ("", "-wal", "-journal", "-shm")
WRITES = ("write", "pwrite64", "fallocate")  # what a full disk refuses
GOLDEN = 0.618  # its multiples, modulo 1, are spread evenly however many they are
TOO_EARLY_MAX = 40  # kills of a client that gets its answer before the commit; about each third is within one


class AtSyscall(Struct, frozen=True):
    """`action` at the `number`th call; an error at `lasts` calls, from this one on. `second`: kill the recovery too, at
    its call of that number."""

    number: int
    action: CallAction
    lasts: int = 1
    second: int | None = None

    def __str__(self) -> str:
        on = "" if self.lasts == 1 else f" and the {self.lasts - 1} behind it"
        again = "" if self.second is None else f", and the recovery at its call {self.second}"
        return f"{self.action} at system call {self.number}{on}{again}"

    def run(self, folder: Path) -> tuple[bool, list[str]]:
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        db, acks = folder / "weft.db", folder / "acks"
        hits = Hits(folder.parent)
        with closing(hits):
            code = _held(partial(self.play, db, acks), folder, self._fault(hits.of(self.action)))
            found = _unexpected("the process", code, folder) + _as_left(folder)
            if self.second is not None and code == KILLED:
                again = AtSyscall(self.second, "kill")._fault(hits.of("second kill"))
                code = _held(partial(calls.play_plainly, db, acks), folder, again)
                found += _unexpected("the first recovery", code, folder) + _as_left(folder)
        code = in_child(partial(calls.play_plainly, db, acks), folder)
        if code != PLAYED:
            found += [f"the recovery ended with {code}", (folder / "error").read_text()]
        else:
            found += violations(db, acks, complete=True)
        return hits.any, found

    def play(self, db: Path, acks: Path) -> None:
        calls.play_plainly(db, acks)

    def _fault(self, hit: Callable[[Call], None]) -> Decide:
        passed = itertools.count(1)

        def decide(call: Call) -> int:
            if not self.number <= next(passed) < self.number + self.lasts or (
                self.action == "ENOSPC" and call.name not in WRITES
            ):
                return PASS
            hit(call)
            return KILL if self.action == "kill" else getattr(errno, self.action)

        return decide


class ToldTooEarly(AtSyscall, frozen=True):
    """The client gets events before they are committed. A check that finds nothing here is none."""

    def play(self, db: Path, acks: Path) -> None:
        async def main() -> None:
            with closing(Acks(acks)) as told:
                await play(EarlyStore(db, told), told)

        asyncio.run(main())


class EarlyStore(SQLiteStore):
    def __init__(self, path: Path, acks: Acks) -> None:
        super().__init__(path)
        self._acks = acks

    async def append(self, append: Append) -> Appended:
        self._acks.write("events", [append.run_id, append.expected_seq + len(append.records)])
        return await super().append(append)


class Hits:
    """A file beside the cases of what was done at which call, a line each: action, call, file."""

    def __init__(self, folder: Path) -> None:
        self._file = (folder / "hits").open("a", buffering=1)  # whole lines, from many processes
        self.any = False

    def of(self, action: str) -> Callable[[Call], None]:
        def hit(call: Call) -> None:
            self.any = True
            self._file.write(f"{action}\t{call.name}\t{call.file}\n")

        return hit

    def close(self) -> None:
        self._file.close()

    @staticmethod
    def read(folder: Path) -> Counter[tuple[str, Call]]:
        lines = (line.split("\t") for line in (folder / "hits").read_text().splitlines())
        return Counter((action, Call(name, file)) for action, name, file in lines)


def _held(work: Callable[[], None], folder: Path, decide: Decide) -> int:
    """As `in_child`. The folder is one of the files: that names in it are lasting is synced as well."""
    files = {str(folder / f"weft.db{suffix}"): suffix or "database" for suffix in SUFFIXES}
    return hold(work, folder, {str(folder): "folder", **files}, decide)


def _unexpected(who: str, code: int, folder: Path) -> list[str]:
    return [] if code in (PLAYED, KILLED) else [f"{who} ended with {code}", (folder / "error").read_text()]


def _as_left(folder: Path) -> list[str]:
    """What is wrong with the files as the process left them. Looks at a copy: the next process must find what this one
    left, and not what a reader made of it."""
    copy = folder / "copy"
    copy.mkdir()
    for suffix in ("", "-wal", "-journal"):
        if (file := folder / f"weft.db{suffix}").exists():
            shutil.copyfile(file, copy / file.name)
    there = (copy / "weft.db").exists()
    found = violations(copy / "weft.db", folder / "acks", complete=False) if there else []
    shutil.rmtree(copy)
    return found


# --- all cases


def count(folder: Path) -> Counter[Call]:
    """The calls of a play in which nothing fails."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    seen: Counter[Call] = Counter()

    def counting(call: Call) -> int:
        seen[call] += 1
        return PASS

    code = _held(partial(calls.play_plainly, folder / "weft.db", folder / "acks"), folder, counting)
    assert code == PLAYED, (folder / "error").read_text()
    return seen


def at_syscalls(numbers: range, action: CallAction) -> Iterator[AtSyscall]:
    """A second kill at every tenth; an error that lasts at every second."""
    for number in numbers:
        place = number // numbers.step
        if action == "kill":
            yield AtSyscall(number, action, second=number % 97 + 1 if place % SECOND_KILL_EVERY == 0 else None)
        else:
            yield AtSyscall(number, action, lasts=TROUBLE_LASTS if place % 2 else 1)


def break_all(
    folder: Path, first: int, actions: Sequence[CallAction], every: int, jobs: int, say: Callable[[str], None]
) -> Summary:
    """`first`: how many calls the first play made."""
    whole, numbers = Summary(reached=Counter(), failed=[]), range(1, first + 1, every)
    for action in actions:
        _add(whole, run_all(list(at_syscalls(numbers, action)), folder, jobs, say))
        longer = action == "kill"
        while longer:
            behind = range(numbers[-1] + every, numbers[-1] + every * jobs + 1, every)
            summary = run_all(list(at_syscalls(behind, action)), folder, jobs, say)
            _add(whole, summary)
            longer = summary.reached[action] == len(behind)
            numbers = range(1, behind[-1] + 1, every)
    return whole


def _add(whole: Summary, part: Summary) -> None:
    whole.cases += part.cases
    whole.reached += part.reached
    whole.failed += part.failed
    whole.seconds += part.seconds


def told_too_early(folder: Path, first: int) -> int | None:
    """How many kills it takes until something is lost, all over the play; None when no kill finds it."""
    for kills in range(1, TOO_EARLY_MAX + 1):
        number = int(kills * GOLDEN * first) % first + 1
        _, found = ToldTooEarly(number, "kill").run(folder / "early")
        if any("was acknowledged" in what for what in found):
            return kills
    return None


def main() -> int:
    parser = argparse.ArgumentParser(description="Break the scenario at each of its system calls.")
    parser.add_argument("--every", type=int, default=1, help="only each Nth call")
    parser.add_argument("--actions", default=",".join(CALL_ACTIONS))
    parser.add_argument("--jobs", type=int, default=2)
    options = parser.parse_args()
    actions = [action for action in CALL_ACTIONS if action in options.actions.split(",")]
    if reason := forbidden():
        print(reason)
        return 2
    with tempfile.TemporaryDirectory(dir=memory(), ignore_cleanup_errors=True) as name:
        folder = Path(name).resolve()
        calls_made = count(folder / "count")
        print(f"SQLite {sqlite3.sqlite_version} makes {calls_made.total()} system calls in a play", flush=True)
        said: Callable[[str], None] = partial(print, flush=True)
        summary = break_all(folder, calls_made.total(), actions, options.every, options.jobs, said)
        _print_table(calls_made, Hits.read(folder))
        early = told_too_early(folder, calls_made.total())
    after = f"after {early} kills" if early else f"nothing in {TOO_EARLY_MAX} kills, so this check finds nothing"
    print(f"what a client gets too early is lost: {after}")
    print(f"{summary.cases} cases in {summary.seconds:.0f} s, the fault came to be in {dict(summary.reached)}")
    print(f"{len(summary.failed)} violations")
    return 1 if summary.failed or early is None else 0


def _print_table(first: Counter[Call], hits: Counter[tuple[str, Call]]) -> None:
    """By call and file: how many in the first play, and how many were broken in which way."""
    ways = [way for way in (*CALL_ACTIONS, "second kill") if any(way == action for action, _ in hits)]
    print(f"{'call':12}{'file':10}{'in a play':>10}" + "".join(f"{way:>13}" for way in ways))
    for call in sorted({*first, *(call for _, call in hits)}, key=lambda call: (call.file, call.name)):
        broken = "".join(f"{hits[way, call]:13}" for way in ways)
        print(f"{call.name:12}{call.file:10}{first[call]:10}{broken}")


if __name__ == "__main__":
    sys.exit(main())
