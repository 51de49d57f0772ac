"""RunState: a run as it stood after an event, from the fold that also runs it."""

from __future__ import annotations

from typing import Any

import msgspec
from msgspec import Struct

from compiler.keys import NodeKey
from compiler.plan import Plan
from executor.core.evolve import evolve
from executor.core.state import State
from executor.journal.codec import Codec
from executor.journal.projection import Entry
from executor.journal.reader import read
from executor.store.contract import Store
from executor.store.rows import RunRow
from executor.views import NodeView
from executor.views.run import node_view
from executor.views.slices import SlicedProjection, Slices


class OpenWait(Struct, frozen=True, omit_defaults=True):
    """`due_ms`: when it ends (timer) or expires; null: it does not expire."""

    key: str
    attempt: int
    kind: str
    due_ms: int | None
    on_expire: str


class DueRetry(Struct, frozen=True):
    """Attempt `attempt` can start at `due_ms`."""

    key: str
    attempt: int
    due_ms: int


class OpenScope(Struct, frozen=True):
    """An open iteration or branch; "" is the whole run. `undecided` nodes have no result yet; `dead`: it was stopped,
    and only running blocks finish."""

    path: str
    undecided: int
    dead: bool


class OpenContainer(Struct, frozen=True):
    """A loop or parallel that has started and not ended. Of `count` iterations or branches (for a loop: known so far)
    `opened` have started and `closed` have ended."""

    key: str
    kind: str
    count: int
    opened: int
    closed: int


class RunState(Struct, frozen=True):
    """`seq`, `at_ms`: of the event; the journal continues to `last_seq`. `status` as in RunView; `phase`: running,
    stopping, failing, cancelling or finished. `nodes` have no outputs; `ready` nodes start next, in this order;
    `due_ms` is the earliest timer."""

    run: str
    workflow: str
    version: int | None
    seq: int
    last_seq: int
    at_ms: int
    status: str
    phase: str
    error: dict[str, Any] | None
    nodes: tuple[NodeView, ...]
    waits: tuple[OpenWait, ...]
    retries: tuple[DueRetry, ...]
    ready: tuple[str, ...]
    scopes: tuple[OpenScope, ...]
    containers: tuple[OpenContainer, ...]
    variables: dict[str, Any]
    due_ms: int | None


async def build(store: Store, plan: Plan, row: RunRow, seq: int | None) -> RunState:
    """As it stood after event `seq`, at most the last one; None: now. Raises CorruptJournal, AssertionError."""
    upto = row.seq if seq is None else min(seq, row.seq)
    codec = Codec(plan)
    state = State.new(plan)
    projection = SlicedProjection(plan.variables)
    at_ms = row.created_at_ms
    slices = Slices()
    async for record in read(store, row.id, upto=upto):
        await slices.rest()
        evolve(plan, state, codec.to_event(record))
        projection.apply(Entry.of(record))
        at_ms = record.at_ms
    nodes: list[NodeView] = []
    for node in projection.taken_out():
        await slices.rest()
        nodes.append(node_view(plan, node))
    return RunState(
        run=row.id,
        workflow=row.workflow,
        version=row.version,
        seq=state.seq,
        last_seq=row.seq,
        at_ms=at_ms,
        status=row.status if state.seq == row.seq else projection.status,
        phase=state.phase.name.lower(),
        error=None if state.error is None else msgspec.to_builtins(state.error),
        nodes=tuple(nodes),
        waits=tuple(
            OpenWait(codec.key_text(key), wait.attempt, wait.kind, wait.due_ms, wait.on_expire)
            for key, wait in state.waits.items()
        ),
        retries=tuple(DueRetry(codec.key_text(key), *retry) for key, retry in state.retries.items()),
        ready=_ready(codec, state),
        scopes=tuple(OpenScope(codec.path_text(path), s.open, s.dead) for path, s in state.scopes.items()),
        containers=tuple(
            OpenContainer(
                codec.key_text((path, plan.regions[region].start)).replace(":start", "", 1),
                plan.regions[region].kind,
                container.count,
                container.opened,
                container.closed,
            )
            for (path, region), container in state.containers.items()
        ),
        variables=projection.variables or {},
        due_ms=state.due_ms(),
    )


def _ready(codec: Codec, state: State) -> tuple[str, ...]:
    waiting: list[tuple[int, NodeKey]] = sorted(entry for queue in state.ready for entry in queue)
    return tuple(codec.key_text(key) for _, key in waiting)
