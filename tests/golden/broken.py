"""Recorded databases, brought to a schema after this one and broken off at every change of a file on the way: the
process is killed there, or the operating system says no. The next schema is made up: it changes tables that have rows.

Whenever that is, the file is what it was or what it is to become, nothing between; the copy of before, once it has its
name, is whole; and the next start finishes.

    python -m tests.golden.broken [--every N] [--schemas 1,2,...] [--actions kill,EIO,ENOSPC]
"""

from __future__ import annotations

import argparse
import os
import shutil
import signal
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

from executor.errors import WeftError
from executor.kernel.store.migrate import Migration, migrate, packaged_migrations
from executor.kernel.store.sqlite.connection import Connect, Database, plain_connect
from executor.kernel.store.sqlite.errors import as_weft_error
from tests.support.adapter import connects
from tests.support.child import KILLED, PLAYED, in_child
from tests.support.recorded import SCHEMAS, contents, restore
from tests.support.vfs import CALL_ACTIONS, CallAction, Op, Vfs, trouble

VFS = "weft-upgrade"
_MADE_UP = """
ALTER TABLE workflows ADD COLUMN colour TEXT NOT NULL DEFAULT 'grey';
DROP VIEW outputs;
CREATE TABLE batches_new (n INTEGER NOT NULL, seq INTEGER NOT NULL, batch BLOB NOT NULL, PRIMARY KEY (n, seq)) STRICT;
INSERT INTO batches_new SELECT n, seq, CAST(head || payload AS BLOB) FROM batches;
"""
PACKAGED = packaged_migrations()
MIGRATIONS = [*PACKAGED, Migration(PACKAGED[-1].number + 1, "made_up", _MADE_UP)]
NEWEST = MIGRATIONS[-1].number


def upgrade(db: Path, connect: Connect = plain_connect) -> None:
    """What a start does with the file, up to the first write of its own."""
    database = Database(str(db), 5_000, connect, lambda point: None)
    try:
        migrate(database, MIGRATIONS)
    finally:
        database.drop()


class Upgrade:
    """Of one schema: what it is, and what it becomes when nothing fails, in how many changes of files."""

    def __init__(self, schema: int, folder: Path) -> None:
        self.schema = schema
        self.folder = folder
        db = restore(schema, folder / "whole")
        self.before = contents(db)
        counted = folder / "counted"
        code = in_child(lambda: self._watched(db, _count(counted)), folder)
        assert code == PLAYED, (folder / "error").read_text()
        self.calls = counted.stat().st_size
        self.after = contents(db)
        assert self.after[0] == NEWEST

    def broken_at(self, number: int, action: CallAction) -> list[str]:
        """Violations of one case. The file is taken from its folder each time."""
        folder = self.folder / f"{action}-{number}"
        db = restore(self.schema, folder)
        code = in_child(lambda: self._watched(db, _fault(number, action)), folder)
        found = [] if code in (PLAYED, KILLED) else [f"the process ended with {code}", (folder / "error").read_text()]
        found += self._looked_at(db)
        upgrade(db)
        if contents(db) != self.after:
            found.append("the next start ends with another database")
        found += self._looked_at(db)
        left = sorted(path.name for path in folder.iterdir() if path.name.endswith(".part"))
        if left:
            found.append(f"left behind: {left}")
        shutil.rmtree(folder)
        return found

    def _looked_at(self, db: Path) -> list[str]:
        found = []
        if contents(db) not in (self.before, self.after):
            found.append("the file is neither what it was nor what it is to become")
        kept = db.with_name(f"{db.name}.schema-{self.schema}")
        if kept.exists():
            if contents(kept) != self.before:
                found.append("the copy is not what was there before")
        elif contents(db) == self.after:
            found.append("the file was changed, and there is no copy of what it was")
        return found

    def _watched(self, db: Path, before: Callable[[Op], None]) -> None:
        vfs = Vfs(VFS, before=before)
        connect, _ = connects(VFS)
        try:
            upgrade(db, connect)
        except Exception as error:
            assert isinstance(as_weft_error(error), WeftError), f"not an error of weft: {error!r}"
        vfs.unregister()


def _count(path: Path) -> Callable[[Op], None]:
    """A byte in the file for each change."""

    def count(op: Op) -> None:
        with path.open("ab") as file:
            file.write(b".")

    return count


def _fault(number: int, action: CallAction) -> Callable[[Op], None]:
    passed = 0

    def fault(op: Op) -> None:
        nonlocal passed
        passed += 1
        if passed < number or (action == "ENOSPC" and op.kind != "write"):
            return  # a full disk stays full, a broken one broken
        if action != "kill":
            raise trouble(action, op)
        os.kill(os.getpid(), signal.SIGKILL)
        threading.Event().wait()  # for the signal: no other thread may see this operation done

    return fault


def main() -> int:
    parser = argparse.ArgumentParser(description="Break the way to this schema off at every change of a file.")
    parser.add_argument("--every", type=int, default=1, help="only each Nth change")
    parser.add_argument("--schemas", default=",".join(map(str, SCHEMAS)))
    parser.add_argument("--actions", default=",".join(CALL_ACTIONS))
    options = parser.parse_args()
    violations, began, done = 0, time.monotonic(), Counter[str]()
    for schema in map(int, options.schemas.split(",")):
        with tempfile.TemporaryDirectory() as name:
            way = Upgrade(schema, Path(name))
            for action in CALL_ACTIONS:
                if action not in options.actions.split(","):
                    continue
                for number in range(1, way.calls + 1, options.every):
                    done[action] += 1
                    for what in way.broken_at(number, action):
                        violations += 1
                        print(f"FAILED schema {schema}, {action} at call {number}: {what}", flush=True)
            print(f"schema {schema} to {NEWEST}: {way.calls} changes of files", flush=True)
    print(f"{dict(done)} in {time.monotonic() - began:.0f} s: {violations} violations")
    return 1 if violations or not done else 0


if __name__ == "__main__":
    sys.exit(main())
