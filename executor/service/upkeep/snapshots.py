"""Checks that the snapshot of a run agrees with its journal. The journal is folded up to its event, by the code that
recovery uses, and made into a snapshot: it must have the same bytes.
"""

from __future__ import annotations

from collections.abc import Coroutine, Iterator
from functools import partial
from typing import Any, TypeVar

import msgspec

from compiler.plan import Plan
from executor.kernel.run.loaded import LoadedRun, replay
from executor.kernel.run.snapshots import checksum_of, differs, unfit
from executor.kernel.store.reading import Reading
from executor.kernel.store.topics import contents, journal, runs, snapshots
from executor.service.upkeep.findings import Finding

T = TypeVar("T")

DELETE_IT = "nothing is lost with it: stop the server and delete it with `weft gc --db FILE --snapshots`"


class _Rows:
    """`executor.kernel.store.tx.Readers` of one session, in the transaction of the caller. Nothing is waited for."""

    def __init__(self, db: Reading) -> None:
        self._db = db

    async def all(self, sql: str, parameters: Any = ()) -> list[tuple[Any, ...]]:
        return self._db.rows(sql, parameters)

    async def one(self, sql: str, parameters: Any = ()) -> tuple[Any, ...] | None:
        rows = await self.all(sql, parameters)
        return rows[0] if rows else None


class _Journals:
    """`executor.kernel.journal.reader.Journals` on it."""

    def __init__(self, rows: _Rows) -> None:
        self.read_events = partial(journal.read_events, rows)
        self.find_events = partial(journal.find_events, rows)
        self.get_blob = partial(contents.get_blob, rows)
        self.get_plan = partial(contents.get_plan, rows)


def check_snapshot(db: Reading, run: str, plan: Plan) -> Iterator[Finding]:
    """Check an open run whose journal folds. A snapshot that this version cannot use is not a finding."""
    rows = _Rows(db)
    found = _at_once(snapshots.get_snapshot(rows, run))
    row = _at_once(runs.get_run(rows, run))
    if found is None or row is None:
        return
    if found.checksum != checksum_of(run, found):
        yield Finding("I12", "its snapshot does not match its checksum, and is not used", DELETE_IT, run)
    elif found.seq > row.seq:
        what = f"its snapshot is of event {found.seq}, the journal ends with event {row.seq}"
        yield Finding("I4", what, DELETE_IT, run)
    elif unfit(row, found) is None:
        folded = LoadedRun.empty(msgspec.structs.replace(row, seq=found.seq), plan, {})
        _at_once(replay(_Journals(rows), folded, found.seq))
        kind = differs(folded, found.data)
        if kind is not None:
            what = f"its snapshot is not what the journal says after event {found.seq} (first difference: {kind})"
            yield Finding("I4", what, DELETE_IT, run)


def _at_once(reading: Coroutine[Any, Any, T]) -> T:
    """Return the result of a coroutine that waits for nothing."""
    try:
        reading.send(None)
    except StopIteration as done:
        result: T = done.value
        return result
    raise AssertionError("it waits")
