"""All runs of a workflow in one picture: for each of its last runs what each block did; `engine.loom`."""

from __future__ import annotations

import time
from collections import Counter, OrderedDict
from typing import Any, Final

import orjson
from msgspec import Struct, field

from executor.errors import CorruptJournal
from executor.kernel.journal.codec import data_of
from executor.kernel.store.run_rows import Record
from executor.kernel.store.statements import TERMINAL
from executor.kernel.store.topics.run_lists import RunOutline
from executor.service.parts import Parts, Topic
from executor.service.views import view_of

RUNS_MAX: Final = 1_000
EVENTS_MAX: Final = 5_000  # read of one run
CELLS_MAX: Final = 20_000  # of one answer
BUDGET_S: Final = 1.5  # for reading journals; what was read is kept, so the next request reads the rest
KEPT_MAX: Final = 5_000  # runs that are kept
OK, FAILED, OPEN = 0, 1, 2


class LoomRun(Struct, frozen=True, omit_defaults=True):
    """One run. Blocks are numbers in `Loom.blocks`. `uses`: [block, executions, failed, open, milliseconds in all] of
    each block that began. `exits`: [block, handle, times], the handle as a number in `Loom.handles`. `cells`: for
    iterations and branches [container, state, milliseconds], the state 0 (succeeded), 1 (failed) or 2 (open), in the
    order in which they began. `cut`: there are more events than were read."""

    id: str
    status: str
    created_at_ms: int
    version: int | None = None
    finished_at_ms: int | None = None
    key: str | None = None
    error: str | None = None
    uses: list[list[int]] = []
    exits: list[list[int]] = []
    cells: list[list[int]] = []
    cut: bool = False


class Loom(Struct, frozen=True):
    """The runs, oldest first. `complete`: False if the time for one request did not suffice: ask again for all."""

    blocks: list[str]
    handles: list[str]
    runs: list[LoomRun]
    complete: bool


class _Tally(Struct):
    """One run, by the names of blocks and handles. `cells`: by scope, [container, state, first and last time]."""

    uses: dict[str, list[int]] = field(default_factory=dict)
    exits: Counter[tuple[str, str]] = field(default_factory=Counter)
    cells: dict[str, tuple[str, int, int, int]] = field(default_factory=dict)
    cut: bool = False


class Looms(Topic):
    def __init__(self, parts: Parts) -> None:
        super().__init__(parts)
        self._kept: OrderedDict[tuple[str, int], _Tally] = OrderedDict()  # by run and its last event

    async def of(
        self, workflow: str, since_ms: int | None = None, until_ms: int | None = None, limit: int = RUNS_MAX
    ) -> Loom:
        """Return the last runs of the workflow that were created between these times."""
        rows = await self._store.list_outlines(workflow, min(limit, RUNS_MAX), since=since_ms, until=until_ms)
        until_s = time.monotonic() + BUDGET_S
        found: list[tuple[RunOutline, _Tally]] = []
        for row in rows:
            kept = self._kept.get((row.id, row.seq))
            if kept is None:
                if time.monotonic() > until_s:
                    return _loom(found, complete=False)
                kept = await self._tally(row)
            found.append((row, kept))
        return _loom(found, complete=True)

    async def _tally(self, row: RunOutline) -> _Tally:
        try:
            records = await self._store.read_events(row.id, 0, EVENTS_MAX)
        except CorruptJournal:  # its picture is empty, and `weft doctor` reports it
            records = []
        tally = tally_of(records, row.status not in TERMINAL)
        self._kept[row.id, row.seq] = tally
        if len(self._kept) > KEPT_MAX:
            self._kept.popitem(last=False)
        return tally


def tally_of(records: list[Record], is_open: bool) -> _Tally:
    """Count what the blocks of a run did. Times include retries and waits."""
    tally = _Tally(cut=len(records) >= EVENTS_MAX)
    begun: dict[tuple[str, str], int] = {}
    for record in records:
        if record.node is None:
            continue
        block, _, sentinel = record.node.partition(":")
        if record.type == "node.started" and sentinel != "end":
            begun.setdefault((block, record.path), record.at_ms)
            _cell(tally, record, OK)
        elif record.type in ("node.failed", "region.exited") or (record.type == "node.succeeded" and not sentinel):
            route = "out" if record.type == "region.exited" else data_of(record).get("route", "out")
            failed = record.type == "node.failed"
            use = tally.uses.setdefault(block, [0, 0, 0, 0])
            use[0] += 1
            use[1] += failed
            use[3] += record.at_ms - begun.pop((block, record.path), record.at_ms)
            if route is not None and not (failed and "route" not in data_of(record)):
                tally.exits[block, route] += 1
            _cell(tally, record, FAILED if failed else OK)
    for block, path in begun if is_open else ():
        tally.uses.setdefault(block, [0, 0, 0, 0])[2] += 1
        if path in tally.cells:
            container, _, first, last = tally.cells[path]
            tally.cells[path] = (container, OPEN, first, last)
    return tally


def _cell(tally: _Tally, record: Record, state: int) -> None:
    """Note the event in the innermost iteration or branch that it is in."""
    if not record.path:
        return
    container, before, first, _ = tally.cells.get(record.path, (_innermost(record.path), OK, record.at_ms, 0))
    tally.cells[record.path] = (container, max(before, state), first, record.at_ms)


def _innermost(path: str) -> str:
    """`review#2/fan[1]` -> `fan`."""
    last = path.rpartition("/")[2]
    return last.partition("[" if last.endswith("]") else "#")[0]


def _loom(found: list[tuple[RunOutline, _Tally]], complete: bool) -> Loom:
    """`found` is newest first, so the newest runs keep their cells."""
    blocks: dict[str, int] = {}
    handles: dict[str, int] = {}
    room = CELLS_MAX
    runs = []
    for row, tally in found:
        cells = [
            [blocks.setdefault(container, len(blocks)), state, last - first]
            for container, state, first, last in list(tally.cells.values())[:room]
        ]
        room -= len(cells)
        runs.append(
            view_of(
                LoomRun,
                row,
                key=row.idempotency_key,
                error=_message(row.error),
                uses=[[blocks.setdefault(block, len(blocks)), *use] for block, use in tally.uses.items()],
                exits=[
                    [blocks.setdefault(block, len(blocks)), handles.setdefault(handle, len(handles)), times]
                    for (block, handle), times in tally.exits.items()
                ],
                cells=cells,
                cut=tally.cut,
            )
        )
    return Loom(list(blocks), list(handles), runs[::-1], complete)


def _message(error: bytes | None) -> str | None:
    said: Any = orjson.loads(error) if error else None
    message = said.get("message") if isinstance(said, dict) else None
    return message.partition("\n")[0][:200] if isinstance(message, str) else None
