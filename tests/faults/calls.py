"""The scenario on files whose every change is seen (`vfs.py`), and broken at each of them: the process is killed there,
or the operating system says no.

What `tests.faults.points` does at named points of the store, this does at the calls below SQLite. The recovery runs on
Python's own SQLite.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from msgspec import Struct

from executor.kernel.store.run_rows import Append, Appended
from executor.kernel.store.sqlite.connection import Connect, plain_connect
from executor.kernel.store.sqlite.readers import plain_read_only
from executor.kernel.store.sqlite.store import SQLiteStore
from tests.faults.check import violations
from tests.faults.points import SECOND_KILL_EVERY
from tests.faults.scenario import Acks, play
from tests.support.adapter import Rewrite, connects
from tests.support.child import KILLED, PLAYED, in_child
from tests.support.vfs import CALL_ACTIONS, CallAction, Log, Op, See, Vfs, read_log, trouble

TROUBLE_LASTS = 12  # operations, at every second point; else one
VFS = "weft-faults"


class AtCall(Struct, frozen=True):
    """`action` at the `number`th change of a file. `second`: kill the recovery too, at its change of that number."""

    number: int
    action: CallAction
    second: int | None = None

    def __str__(self) -> str:
        again = "" if self.second is None else f", and the recovery at call {self.second}"
        return f"{self.action} at call {self.number}{again}"

    def run(self, folder: Path) -> tuple[bool, list[str]]:
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        db, acks, mark = folder / "weft.db", folder / "acks", folder / "mark"
        code = in_child(lambda: play_through(db, acks, before=self._fault(mark)), folder)
        found = [] if code in (PLAYED, KILLED) else [f"the process ended with {code}", (folder / "error").read_text()]
        if self.second is not None and code == KILLED:
            again = AtCall(self.second, "kill")._fault(mark)
            code = in_child(lambda: play_through(db, acks, before=again), folder)
            if code not in (PLAYED, KILLED):
                found += [f"the first recovery ended with {code}", (folder / "error").read_text()]
        if db.exists():
            found += violations(db, acks, complete=False)
        code = in_child(lambda: play_plainly(db, acks), folder)
        if code != PLAYED:
            found += [f"the recovery ended with {code}", (folder / "error").read_text()]
        else:
            found += violations(db, acks, complete=True)
        return mark.exists(), found

    def _fault(self, mark: Path) -> See:
        passed = 0
        last = self.number + (TROUBLE_LASTS if self.number % 2 == 0 and self.action != "kill" else 1)

        def fault(op: Op) -> None:
            nonlocal passed
            passed += 1
            if not self.number <= passed < last or (self.action == "ENOSPC" and op.kind != "write"):
                return
            mark.touch()
            if self.action == "kill":
                os.kill(os.getpid(), signal.SIGKILL)
                threading.Event().wait()  # for the signal: no other thread may see this operation done
            else:
                raise trouble(self.action, op)

        return fault


def at_calls(number: int, actions: Sequence[CallAction] = CALL_ACTIONS, every: int = 1) -> Iterator[AtCall]:
    """Each of `number` calls, of them each `every`th; a second kill at every tenth of those."""
    for action in actions:
        for count, call in enumerate(range(1, number + 1, every), 1):
            twice = action == "kill" and count % SECOND_KILL_EVERY == 0
            yield AtCall(call, action, call % 97 + 1 if twice else None)


# --- plays


class Told(Acks):
    """Writes what the client was told into the log as well, between the operations."""

    def __init__(self, path: Path, log: Log | None) -> None:
        super().__init__(path)
        self._log = log

    def write(self, what: str, value: Any = None) -> None:
        super().write(what, value)
        if self._log is not None:
            self._log.told(self.line(what, value))


class TellingStore(SQLiteStore):
    """The run loop is a client as well: what the store acknowledges to it is written down."""

    def __init__(self, path: Path, acks: Acks, connect: Connect, connect_reader: Connect) -> None:
        super().__init__(path, connect=connect, connect_reader=connect_reader)
        self._acks = acks

    async def append(self, append: Append) -> Appended:
        appended = await super().append(append)
        self._acks.write("events", [append.run_id, appended.seq])
        return appended


def play_through(
    db: Path, acks: Path, *, log: Path | None = None, before: See | None = None, rewrite: Rewrite = lambda sql: sql
) -> None:
    """Play on files that are watched. `log` gets the operations, and what the client was told; `before` may break."""
    logged = Log(log) if log is not None else None
    vfs = Vfs(VFS, before=before or _let_pass, after=logged.done if logged is not None else _let_pass)
    _play(db, acks, logged, *connects(VFS, rewrite))
    vfs.unregister()


def play_plainly(db: Path, acks: Path) -> None:
    """Play with Python's own SQLite."""
    _play(db, acks, None, plain_connect, plain_read_only)


def count(folder: Path) -> int:
    """How many changes of files a play makes when nothing fails. Timing decides about some: checkpoints."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    code = in_child(lambda: play_through(folder / "weft.db", folder / "acks", log=folder / "log"), folder)
    assert code == PLAYED, (folder / "error").read_text()
    return sum(entry.op is not None for entry in read_log(folder / "log"))


def _play(db: Path, acks: Path, log: Log | None, connect: Connect, connect_reader: Connect) -> None:
    async def main() -> None:
        told = Told(acks, log)
        try:
            await play(TellingStore(db, told, connect, connect_reader), told)
        finally:
            told.close()

    asyncio.run(main())


def _let_pass(op: Op) -> None:
    pass
