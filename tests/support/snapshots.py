"""Snapshots of short runs, and states that have been one."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from types import GenericAlias
from typing import Any

import msgspec

from compiler.plan import Plan
from executor.kernel.core.state import STATE_ROWS, State, add_state_rows, rows_of_state
from executor.kernel.journal.reader import load_plan
from executor.kernel.run import loaded, owned, snapshots
from executor.kernel.run.loaded import LoadedRun, Saved, replay
from executor.kernel.store.topics import snapshots as stored
from executor.kernel.store.topics.store import Store


@contextmanager
def often(every: int, leaving_every: int | None = None) -> Iterator[None]:
    """A run has one after so many events, however short it is. After each: and none is resumed without a look at it."""
    leaving = every if leaving_every is None else leaving_every
    bounds = [(loaded, "EVERY", every), (loaded, "LEAVING_EVERY", leaving)]
    bounds += [(loaded, "BYTES_PER_EVENT", 1 << 40)]
    bounds += [(module, "SNAPSHOT_SEQ_MIN", 1) for module in (loaded, snapshots, stored)]
    bounds += [(owned, "PARKED_BYTES", 0)] if every == 1 else []
    before = [getattr(module, name) for module, name, _ in bounds]
    for module, name, bound in bounds:
        setattr(module, name, bound)
    try:
        yield
    finally:
        for (module, name, _), bound in zip(bounds, before, strict=True):
            setattr(module, name, bound)


def restored(plan: Plan, state: State) -> State:
    """As bytes, and back."""
    again = State.new(plan)
    for kind, rows in rows_of_state(state):
        data = msgspec.msgpack.encode(list(rows))
        add_state_rows(plan, again, kind, msgspec.msgpack.decode(data, type=GenericAlias(list, (STATE_ROWS[kind],))))
    return again


def encode(state: State) -> bytes:
    """Canonical bytes: two states are equal when these are. The order of rows counts only in the ready queues."""
    in_order = ("plain", "ready")
    rows = {kind: list(rows) for kind, rows in rows_of_state(state)}
    return msgspec.msgpack.encode({kind: of if kind in in_order else sorted(of, key=_key) for kind, of in rows.items()})


def _key(row: tuple[Any, ...]) -> Any:
    return row[0]


def content(state: State) -> dict[str, list[Any]]:
    """All of it, in its order."""
    return {kind: list(rows) for kind, rows in rows_of_state(state)}


def bytes_of(run: LoadedRun) -> bytes:
    """Of a run with a snapshot of any size."""
    return b"".join(map(snapshots._encoded, snapshots.parts_of(run)))


async def cuts_agree(store: Store, run: str, cuts_max: int = 50) -> None:
    """Wherever a journal is cut: a snapshot of its beginning and the rest come to what the whole comes to, in every
    byte. Of a long one at so many places."""
    row = await store.get_run(run)
    assert row is not None
    plan = await load_plan(store, row.plan_hash)
    whole = LoadedRun.empty(row, plan, {})
    at_ms = await replay(store, whole)
    for cut in range(1, row.seq + 1, 1 + row.seq // cuts_max):
        before = LoadedRun.empty(msgspec.structs.replace(row, seq=cut), plan, {})
        await replay(store, before, cut)
        data = bytes_of(before)
        after = LoadedRun.empty(row, plan, {}, Saved(cut, len(data)))
        for _ in snapshots.restore(after, data):
            pass
        assert bytes_of(after) == data, f"a snapshot of event {cut} of run {run} is not what it was made of"
        assert await replay(store, after) == at_ms
        difference = snapshots.differs(after, bytes_of(whole))
        assert difference is None, f"with a snapshot of event {cut} of run {run} another {difference} comes of it"
