"""RunState: a run as it stood after an event, from the fold that also runs it."""

from __future__ import annotations

from functools import partial
from itertools import chain
from typing import Any

import msgspec
from msgspec import Struct

from compiler.keys import NodeKey
from compiler.plan import Plan
from executor.kernel.core.evolve import evolve
from executor.kernel.core.state import Container, ContainerKey, State, Wait
from executor.kernel.journal.codec import Codec
from executor.kernel.journal.reader import read
from executor.kernel.store.run_rows import RunRow
from executor.kernel.store.topics.store import Store
from executor.service.views import NodeView
from executor.service.views.run import node_view
from executor.service.views.slices import SlicedProjection, Slices


class OpenWait(Struct, frozen=True, omit_defaults=True):
    """An open wait. `due_ms`: when it ends (timer) or expires; null if it does not expire."""

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
    stopping, failing, cancelling, ending (its cleanups run) or finished. `nodes` have no outputs; `ready` nodes start
    next, in this order; `due_ms` is the earliest timer."""

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
    """Return the state after event `seq`, at most the last one, or as it is now if `seq` is None. Raises
    CorruptJournal, AssertionError."""
    upto = row.seq if seq is None else min(seq, row.seq)
    codec = Codec(plan)
    state = State.new(plan)
    projection = SlicedProjection(plan.variables)
    at_ms = row.created_at_ms
    slices = Slices()
    async for record in read(store, row.id, upto=upto):
        if slices.is_over:
            await slices.rest()
        evolve(plan, state, codec.to_event(record))
        projection.apply_record(record)
        at_ms = record.at_ms
    nodes = await slices.of(partial(node_view, plan), projection.taken_out())

    def open_wait(item: tuple[NodeKey, Wait]) -> OpenWait:
        key, wait = item
        return OpenWait(codec.key_text(key), wait.attempt, wait.kind, wait.due_ms, wait.on_expire)

    def open_container(item: tuple[ContainerKey, Container]) -> OpenContainer:
        (path, region), container = item
        return OpenContainer(
            codec.key_text((path, plan.regions[region].start)).replace(":start", "", 1),
            plan.regions[region].kind,
            container.count,
            container.opened,
            container.closed,
        )

    return RunState(
        run=row.id,
        workflow=row.workflow,
        version=row.version,
        seq=state.seq,
        last_seq=row.seq,
        at_ms=at_ms,
        status=row.status if state.seq == row.seq else projection.status,
        phase="ending" if state.ending and not state.ended else state.phase.name.lower(),
        error=None if state.error is None else msgspec.to_builtins(state.error),
        nodes=nodes,
        waits=await slices.of(open_wait, list(state.open_waits())),
        retries=await slices.of(
            lambda item: DueRetry(codec.key_text(item[0]), *item[1]),
            state.retries.items(),
        ),
        ready=await slices.of(lambda entry: codec.key_text(entry[1]), sorted(chain.from_iterable(state.ready))),
        scopes=await slices.of(
            lambda item: OpenScope(codec.path_text(item[0]), item[1].open, item[1].dead), state.scopes.items()
        ),
        containers=await slices.of(open_container, state.containers.items()),
        variables=projection.variables or {},
        due_ms=state.due_ms(),
    )
