"""Every point at which a commit can fail, and what is done there.

A first play counts how often each point is passed; then each (point, time) is a case of its own: a child process plays
the scenario with the fault in it, another one plays it to its end, and the file is checked. Processes are forked from
this one, which has everything imported and runs no thread.

    python -m tests.faults.points [--database postgres] [--every N] [--actions kill,raise,cancel,delay]
                                  [--at before_commit] [--jobs 2] [--count]

With PostgreSQL each case has a database of its own, and there are two more actions: `drop`, the answer to the COMMIT is
lost and the session with it, and `cut`, the session is lost before it.
"""

from __future__ import annotations

import argparse
import asyncio
import math
import os
import shutil
import signal
import sqlite3
import sys
import tempfile
import threading
import time
import traceback
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from importlib.metadata import entry_points
from pathlib import Path
from typing import TYPE_CHECKING, Literal, Protocol
from uuid import uuid4

from msgspec import Struct

from executor.kernel.store.sqlite.connection import FaultPoint
from executor.kernel.store.sqlite.store import SQLiteStore
from tests.faults.check import violations
from tests.faults.scenario import Acks, play
from tests.support.child import BROKEN, KILLED, PLAYED, in_child
from tests.support.place import Place

if TYPE_CHECKING:
    from executor.kernel.store.postgres.store import PostgresStore

Action = Literal["kill", "raise", "cancel", "delay", "drop", "cut"]
ACTIONS: tuple[Action, ...] = ("kill", "raise", "cancel", "delay")
OF_SESSIONS: tuple[Action, ...] = ("drop", "cut")
DELAY_S = 0.6  # longer than a lease of the scenario
SECOND_KILL_EVERY = 10
# Asked for by the worker's own tasks, which are cancelled only when the process stops, and by a block's attempt, which
# is cancelled as a whole.
NEVER_CANCELLED = (
    "write.claim",
    "write.claim_notifications",
    "write.keep_notification",
    "write.renew",
    "write.repair_clock_skew",
    "write.put_checkpoint",
)
for _block in entry_points(group="weft.blocks"):
    _block.load()  # which each child would do again


class Breaks(Protocol):
    """One way to break the scenario. `run` makes `folder` anew and tells whether the fault happened, and violations."""

    @property
    def action(self) -> str: ...

    def run(self, folder: Path) -> tuple[bool, list[str]]: ...


class Case(Struct, frozen=True):
    """`action` at the `number`th passing of `point`. `second`: kill the recovery too, at its commit of that number.
    `server`: where the database is made; None: a file."""

    point: str
    number: int
    action: Action
    second: int | None = None
    server: str | None = None

    def run(self, folder: Path) -> tuple[bool, list[str]]:
        return run_case(self, folder)

    def __str__(self) -> str:
        again = "" if self.second is None else f", and the recovery at its commit {self.second}"
        return f"{self.action} at {self.point} no. {self.number}{again}"


class Failed(Struct, frozen=True):
    case: Breaks
    what: list[str]


class Summary(Struct):
    """`reached` counts by action: timing decides how often some points are passed, so not every case comes to be."""

    cases: int = 0
    reached: Counter[str] = Counter()
    failed: list[Failed] = []
    seconds: float = 0


# --- one case


def run_case(case: Case, folder: Path) -> tuple[bool, list[str]]:
    """(whether the fault happened, violations). `folder` is made anew."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    with _empty_place(case.server, folder) as place:
        return _run_at(place, case, folder)


@contextmanager
def _empty_place(server: str | None, folder: Path) -> Iterator[Place]:
    if server is None:
        yield folder / "weft.db"
        return
    from tests.support.postgres import database

    with database(server, f"case-{uuid4().hex}") as address:
        yield address


def _run_at(place: Place, case: Case, folder: Path) -> tuple[bool, list[str]]:
    acks, mark = folder / "acks", folder / "mark"
    code = in_child(lambda: _play_broken(place, acks, case, mark), folder)
    found = [] if code in (PLAYED, KILLED) else [f"the process ended with {code}", (folder / "error").read_text()]
    if case.second is not None and code == KILLED:
        second = in_child(lambda: _play(place, acks, nth_commit(case.second or 1)), folder)
        if second not in (PLAYED, KILLED):
            found += [f"the first recovery ended with {second}", (folder / "error").read_text()]
    if not isinstance(place, Path) or place.exists():
        found += violations(place, acks, complete=False)
    code = in_child(lambda: _play(place, acks, lambda point: None), folder)
    if code != PLAYED:
        found += [f"the recovery ended with {code}", (folder / "error").read_text()]
    else:
        found += violations(place, acks, complete=True)
    return mark.exists() or code == KILLED, found


def _play_broken(place: Place, acks: Path, case: Case, mark: Path) -> None:
    if case.action not in OF_SESSIONS:
        _play(place, acks, fault_of(case, mark), case)
        return
    from tests.support.postgres import as_url, socket_of
    from tests.support.postgres_proxy import proxy_in_a_thread

    assert isinstance(place, str)
    armed = threading.Event()

    def drops() -> bool:
        """Only the first answer after that, so that what is tried again gets one."""
        was = armed.is_set()
        armed.clear()
        return was

    with proxy_in_a_thread(socket_of(place), drops) as proxy:

        def lose() -> None:
            if case.action == "drop":
                armed.set()
            else:
                proxy.cut_now()

        _play(as_url(place, host="127.0.0.1", port=str(proxy.port)), acks, fault_of(case, mark, lose), case)


def fault_of(case: Case, mark: Path, lose: Callable[[], None] = lambda: None) -> FaultPoint:
    """`mark` is made when it happens."""
    passed = 0

    def fault(name: str) -> None:
        nonlocal passed
        if name != case.point:
            return
        passed += 1
        if passed != case.number:
            return
        mark.touch()
        match case.action:
            case "kill":
                os.kill(os.getpid(), signal.SIGKILL)
            case "raise" if not name.endswith("after_commit"):
                raise _error(case)
            case "delay":
                time.sleep(DELAY_S)
            case "drop" | "cut":
                lose()

    return fault


def _error(case: Case) -> Exception:
    """Of one half of all cases the disk is full, of the other half it has an error."""
    if case.server is not None:
        import psycopg

        return psycopg.errors.DiskFull() if case.number % 2 else psycopg.errors.IoError()
    error = sqlite3.OperationalError("database or disk is full" if case.number % 2 else "disk I/O error")
    error.sqlite_errorcode = sqlite3.SQLITE_FULL if case.number % 2 else sqlite3.SQLITE_IOERR
    return error


def nth_commit(number: int) -> FaultPoint:
    """Kill at the commit of that number, whatever it is of."""
    passed = 0

    def fault(name: str) -> None:
        nonlocal passed
        passed += name.endswith("before_commit")
        if passed == number:
            os.kill(os.getpid(), signal.SIGKILL)

    return fault


def _play(place: Place, acks: Path, fault: FaultPoint, case: Case | None = None) -> None:
    async def main() -> None:
        store = _store(place, fault, case)
        if case is not None and case.action == "cancel":
            _cancel_waiter(store, case)
        told = Acks(acks)
        try:
            await play(store, told)
        finally:
            told.close()

    asyncio.run(main())


def _store(place: Place, fault: FaultPoint, case: Case | None) -> SQLiteStore | PostgresStore:
    if isinstance(place, Path):
        # Every other case commits what comes alone in the thread of the event loop.
        here = math.inf if case is not None and case.number % 2 else 0.0
        return SQLiteStore(place, fault=fault, commit_here_below_s=here)
    from executor.kernel.store.postgres.store import PostgresStore

    return PostgresStore(place, readers=2, fault=fault)


def _cancel_waiter(store: SQLiteStore | PostgresStore, case: Case) -> None:
    """Who asked for the change of this name and number stops waiting for it, `number % 4` turns of the loop later."""
    submit, passed = store._writer.submit, 0

    def cancelling(write: Callable[..., object], /, *args: object) -> asyncio.Future[object]:
        nonlocal passed
        future = submit(write, *args)
        if f"write.{write.__name__.lstrip('_')}" == case.point:
            passed += 1
            if passed == case.number:
                turns = case.number % 4

                def later() -> None:
                    nonlocal turns
                    turns -= 1
                    if turns < 0:
                        future.cancel()
                    else:
                        asyncio.get_running_loop().call_soon(later)

                later()
        return future

    store._writer.submit = cancelling  # type: ignore[assignment]


# --- all cases


def count(folder: Path, server: str | None = None) -> Counter[str]:
    """How often each point is passed when nothing fails."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    counted = folder / "points"

    def counting(place: Place) -> None:
        passed: Counter[str] = Counter()

        def fault(name: str) -> None:
            passed[name] += 1

        _play(place, folder / "acks", fault)
        counted.write_text("".join(f"{name} {times}\n" for name, times in passed.items()))

    with _empty_place(server, folder) as place:
        assert in_child(lambda: counting(place), folder) == PLAYED, (folder / "error").read_text()
    return Counter({name: int(times) for name, times in (line.split() for line in counted.read_text().splitlines())})


def cases(points: Counter[str], actions: Sequence[Action] = ACTIONS, server: str | None = None) -> Iterator[Case]:
    """Each passing of each point. A second kill at every tenth. What can be cancelled is who waits for a change, and
    sessions are lost in a COMMIT."""
    for action in actions:
        for point, times in sorted(points.items()):
            if action == "raise" and point.endswith("after_commit"):
                continue  # it is on disk: nothing can fail any more
            if action == "cancel" and (not point.startswith("write.") or point in NEVER_CANCELLED):
                continue
            if action in OF_SESSIONS and not point.endswith("before_commit"):
                continue
            for number in range(1, times + 1):
                second = number % 7 + 1 if action == "kill" and number % SECOND_KILL_EVERY == 0 else None
                yield Case(point, number, action, second, server)


def run_all(
    wanted: Sequence[Breaks], folder: Path, jobs: int, say: Callable[[str], None] = lambda text: None
) -> Summary:
    """In `jobs` processes side by side."""
    summary, began = Summary(cases=len(wanted), reached=Counter(), failed=[]), time.monotonic()
    running: dict[int, Breaks] = {}
    waiting = list(reversed(wanted))
    while waiting or running:
        while waiting and len(running) < jobs:
            case = waiting.pop()
            running[_fork_case(case, folder / f"case-{len(waiting)}")] = case
        child, status = os.wait()
        case = running.pop(child)
        code = os.waitstatus_to_exitcode(status)
        place = folder / f"result-{child}"
        reached, *what = place.read_text().split("\n\0") if place.exists() else ["", f"the case ended with {code}"]
        place.unlink(missing_ok=True)
        summary.reached[case.action] += reached == "reached"
        if what:
            summary.failed.append(Failed(case, what))
            say(f"FAILED {case}\n  " + "\n  ".join(what))
    summary.seconds = time.monotonic() - began
    return summary


def _fork_case(case: Breaks, folder: Path) -> int:
    child = os.fork()
    if child == 0:
        code = BROKEN
        try:
            reached, what = case.run(folder)
            (folder.parent / f"result-{os.getpid()}").write_text("\n\0".join(["reached" if reached else "", *what]))
            if not what:
                shutil.rmtree(folder, ignore_errors=True)
            code = PLAYED
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(code)
    return child


def main() -> int:
    parser = argparse.ArgumentParser(description="Break the scenario at each of its points.")
    parser.add_argument("--database", choices=("sqlite", "postgres"), default="sqlite")
    parser.add_argument("--every", type=int, default=1, help="only each Nth case")
    parser.add_argument("--actions", help="only these")
    parser.add_argument("--at", default="", help="only at points whose name ends so")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--count", action="store_true", help="only say which points there are, and how often passed")
    options = parser.parse_args()
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(ignore_cleanup_errors=True)))
        server = None
        if options.database == "postgres":
            from tests.support.postgres import server as started

            server = stack.enter_context(started())
        points = count(folder / "count", server)
        if options.count:
            print("".join(f"{point} {times}\n" for point, times in sorted(points.items())))
            return 0
        known = ACTIONS if server is None else ACTIONS + OF_SESSIONS
        actions = [action for action in known if options.actions is None or action in options.actions.split(",")]
        points = Counter({point: times for point, times in points.items() if point.endswith(options.at)})
        wanted = list(cases(points, actions, server))[:: options.every]
        print(f"{len(points)} points, passed {points.total()} times; {len(wanted)} cases", flush=True)
        summary = run_all(wanted, folder, options.jobs, lambda text: print(text, flush=True))
    print(f"{summary.cases} cases in {summary.seconds:.0f} s, the fault came to be in {dict(summary.reached)}")
    print(f"{len(summary.failed)} violations")
    return 1 if summary.failed else 0


if __name__ == "__main__":
    sys.exit(main())
