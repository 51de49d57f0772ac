"""Runs at any event, why their nodes are in their state, and two runs compared; `engine.history`. All of it is from the
fold that also runs them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from itertools import chain
from typing import Any

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from compiler.keys import CLEANUP_SUFFIX, NodeKey, Path, format_key, parse_key, split_key
from compiler.plan import Plan
from executor.errors import NotFound
from executor.kernel.core import events as e
from executor.kernel.core.evolve import evolve
from executor.kernel.core.evolve_containers import cleanup_of
from executor.kernel.core.explain import explain
from executor.kernel.core.state import DECIDED, Container, ContainerKey, Scope, State, Status, Wait
from executor.kernel.journal.codec import Codec, data_of
from executor.kernel.journal.projection import Meaning, decision
from executor.kernel.journal.reader import Records, load_plan
from executor.kernel.read.find import existing_run
from executor.kernel.store.run_rows import Record, RunRow
from executor.kernel.store.topics.places import USED, PlaceRow
from executor.kernel.store.topics.store import Store
from executor.service.parts import Topic
from executor.service.views import NodeView, Why
from executor.service.views import diff as diff_view
from executor.service.views.diff import RunDiff
from executor.service.views.run import SlicedProjection, Slices, node_view, published_in

_DECIDED = frozenset(status.name.lower() for status in DECIDED)


class History(Topic):
    async def state(self, run: str, seq: int | None = None) -> RunState:
        async with existing_run(self._store, run) as row:
            return await state_at(self._store, await load_plan(self._store, row.plan_hash), row, seq)

    async def why(self, run: str, node: str | None = None, seq: int | None = None) -> list[Why]:
        """Explain every node that is not decided yet, or the given one (a node id or a whole key), after event `seq`.
        Raises NotFound."""
        async with existing_run(self._store, run) as row:
            plan = await load_plan(self._store, row.plan_hash)
            found = await explained(self._store, plan, row, node, seq)
            if seq is None and plan.has_limits and row.finished_at_ms is None:
                found = with_limits(found, await self._store.places_of(run), row.epoch)
            full = await self._store.waits_for(run) if seq is None else None
            since_ms = row.stale_since_ms(self._clock.now_ms()) if seq is None else None
            lacks = self._parts.owned.lacks(row) if seq is None else None
        if since_ms is not None:
            held_up = f"the worker of the run stopped responding at {since_ms} ms, and another one will continue it"
        elif lacks is not None:
            held_up = f"the run waits for a process that has {lacks}"
        elif full is not None:
            held_up = f"the run waits for limit {full.key} ({full.held} of {full.at_most})"
        else:
            return found
        return [why if why.state in _DECIDED else replace(why, reasons=(held_up, *why.reasons)) for why in found]

    async def diff(self, a: str, b: str) -> RunDiff:
        """Return where two runs differ. Blocks with the same id are the same, in any version of the workflow. Raises
        NotFound."""
        async with existing_run(self._store, a) as one, existing_run(self._store, b) as two:
            plan_one = await load_plan(self._store, one.plan_hash)
            plan_two = await load_plan(self._store, two.plan_hash)
            return await diff_view.build(self._store, one, plan_one, two, plan_two)


# --- the state after an event ---


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
    next, in this order; `due_ms` is the earliest timer. `state`: what its durable function published last."""

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
    state: Any


async def state_at(store: Store, plan: Plan, row: RunRow, seq: int | None) -> RunState:
    """Return the state after event `seq`, at most the last one, or as it is now if `seq` is None. Raises
    CorruptJournal, AssertionError."""
    codec = Codec(plan)
    projection = SlicedProjection(plan.variables)
    at_ms = row.created_at_ms
    slices = Slices()

    def see(record: Record, event: e.Event) -> None:
        nonlocal at_ms
        projection.apply_record(record)
        at_ms = record.at_ms

    state = await state_of(store, plan, row, seq, see, slices)
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
        state=await published_in(store, projection, slices),
    )


# --- why ---


# A block in a loop of a thousand iterations is decided a thousand times: the last ones are reported.
ENDED_MAX = 100


async def explained(store: Store, plan: Plan, row: RunRow, node: str | None, seq: int | None = None) -> list[Why]:
    """`seq`: after that event, or None for now. Raises NotFound (node_not_found)."""
    codec = Codec(plan)
    explained: dict[NodeKey, tuple[str, tuple[str, ...]]] = {}
    causes: dict[NodeKey, list[str]] = {}
    ids = () if node is None else _numbers(plan, split_key(node)[0])
    slices = Slices()

    def record_cause(record: Record, event: e.Event) -> None:
        decided = decision(record.type, data_of(record))
        for key, cause in led_to(plan, event, decided):
            if key[1] in ids:
                causes.setdefault(key, []).append(cause)
        if decided is not None and (key := key_of_decided(event))[1] in ids:
            because = causes.pop(key, []) if decided.status == "succeeded" else []
            explained[key] = decided.status, (*(f"it ran because {cause}" for cause in because), *reasons(plan, event))

    state = await state_of(store, plan, row, seq, record_cause if ids else None, slices)
    keys = await _keys_of(plan, state, node, list(explained)[-ENDED_MAX:], slices)
    found = await slices.of(
        lambda key: Why(codec.key_text(key), *(explained.get(key) or explain(plan, state, key))), keys
    )
    return list(found)


def with_limits(found: Sequence[Why], places: Sequence[PlaceRow], epoch: int) -> list[Why]:
    """Return the waits for limits of attempts that have been started and may not begin yet."""
    waits = {
        place.node: f"waits for limit {place.key} ({place.held} of {place.at_most})"
        for place in places
        if place.state != USED and place.epoch == epoch
    }
    return [
        replace(why, reasons=(waits[why.key], *why.reasons[1:])) if why.state == "running" and why.key in waits else why
        for why in found
    ]


async def state_of(
    store: Store,
    plan: Plan,
    row: RunRow,
    seq: int | None = None,
    see: Callable[[Record, e.Event], None] | None = None,
    slices: Slices | None = None,
) -> State:
    """Fold the journal up to event `seq` (by default all of it). `see` is called with each event."""
    upto = row.seq if seq is None else min(seq, row.seq)
    codec = Codec(plan)
    state = State.new(plan)
    slices = slices or Slices()
    async for record in Records(store, row.id, upto=upto):
        if slices.is_over:
            await slices.rest()
        event = codec.to_event(record)
        evolve(plan, state, event)
        if see is not None:
            see(record, event)
    return state


def led_to(plan: Plan, event: e.Event, decided: Meaning | None) -> list[tuple[NodeKey, str]]:
    """Return the nodes that the event makes live, each with a sentence about it."""
    if isinstance(event, e.RunStarted):
        return [(((), number), "the run started here") for number in plan.regions[0].entries]
    if isinstance(event, e.ScopesOpened):
        region = plan.regions[plan.nodes[event.key[1]].body]
        path = event.key[0]
        word = "iteration" if region.kind == "loop" else "branch"
        return [
            (((*path, (plan.nodes[event.key[1]].body, index)), number), f"{word} {index} of '{region.id}' started")
            for index in range(event.first, event.first + event.count)
            for number in region.entries
        ]
    if isinstance(event, e.CleanupOpened):
        region = plan.regions[cleanup_of(plan, event.key[1])]
        scope = (*event.key[0], (cleanup_of(plan, event.key[1]), 0))
        around = region.id.removesuffix(CLEANUP_SUFFIX)
        cause = f"'{around}' ended, and this is its cleanup" if around else "the run ended, and this is its cleanup"
        return [((scope, number), cause) for number in region.entries]
    if decided is None or decided.route is None:
        return []
    path, number = key = key_of_decided(event)
    how: str = "was skipped" if decided.status == "skipped" else decided.status
    if decided.route not in ("out", "error"):
        how = f"took branch '{decided.route}'"
    return [
        ((path, edge.target), f"'{format_key(plan, key)}' {how}")
        for edge in plan.nodes[number].out
        if edge.handle == decided.route
    ]


def key_of_decided(event: e.Event) -> NodeKey:
    key: NodeKey = event.key  # type: ignore[union-attr]  # what decides a node names it
    return key


def reasons(plan: Plan, event: e.Event) -> tuple[str, ...]:
    match event:
        case e.NodeSucceeded():
            return _success(event)
        case e.RegionSized():
            return () if event.count else ("there was nothing to run",)
        case e.RegionExited():
            return ("its output is reused from an earlier run",) if event.reused else ()
        case e.NodeSkipped(reason="pruned"):
            last = f": the last possible path ended at '{format_key(plan, event.because)}'" if event.because else ""
            return (f"no branch led here{last}",)
        case e.NodeSkipped():
            why = "its skip_if was true" if event.reason == "skip_if" else "it expired without an answer"
            return (f"{why}, so it was skipped and its output is null",)
        case e.NodeFailed():
            return _failure(plan, event)
        case _:
            return ()


def _success(event: e.NodeSucceeded) -> tuple[str, ...]:
    found = []
    if event.reused:
        found.append("its output is reused from an earlier run")
    if event.cached:
        found.append("its output comes from the cache")
    if event.pinned:
        found.append("its output is pinned in the draft")
    if not (event.reused or event.cached or event.pinned):
        found.append(f"attempt {event.attempt} succeeded")
    if event.route is None:
        found.append("no case was true, so no branch was taken")
    elif event.route != "out":
        found.append(f"it took branch '{event.route}'")
    return tuple(found)


def _failure(plan: Plan, event: e.NodeFailed) -> tuple[str, ...]:
    failure = f"{event.error.code}: {event.error.message}"
    match event.route, event.caught:
        case "error", _:
            return failure, "its error handle is connected, so the run continued there"
        case str(), _:
            return failure, "on_error is continue, so the run continued with null as its output"
        case _, (what, path):
            region = plan.regions[path[-1][0]]
            if what == "cleanup":
                return failure, "the cleanup was stopped because of it"
            stopped = f"branch {path[-1][1]} of '{region.id}'" if what == "branch" else f"'{region.id}'"
            if what == "container" and region.cleanup >= 0:
                return failure, f"{stopped} was stopped because of it, and its cleanup ran"
            return failure, f"{stopped} was stopped because of it, and the run continued"
        case _:
            return (failure,)


def _numbers(plan: Plan, text: str) -> list[int]:
    return [number for number, n in enumerate(plan.nodes) if text in (n.id, n.block)]


async def _keys_of(
    plan: Plan, state: State, node: str | None, decided: list[NodeKey], slices: Slices
) -> Sequence[NodeKey]:
    if node is None:
        every = [range(len(region.nodes)) for region in plan.regions]
        return [key for key, status in await _keys_in_open_scopes(plan, state, every, slices) if status not in DECIDED]
    if "@" in node:
        try:
            return [parse_key(plan, node)]
        except ValueError as error:
            raise NotFound(str(error), code="node_not_found") from error
    ids = _numbers(plan, node)
    if not ids:
        raise NotFound(f"the plan has no node '{node}'", code="node_not_found")
    asked = [
        [number - region.first for number in ids if plan.region_of[number] == n]
        for n, region in enumerate(plan.regions)
    ]
    found = [key for key, _ in await _keys_in_open_scopes(plan, state, asked, slices)] or decided
    return found or [((), number) for number in ids if plan.region_of[number] == 0] or [_unopened(plan, ids[0])]


def _unopened(plan: Plan, number: int) -> NodeKey:
    path: list[tuple[int, int]] = []
    region = plan.region_of[number]
    while region > 0:
        path.insert(0, (region, 0))
        region = plan.regions[region].parent
    return tuple(path), number


async def _keys_in_open_scopes(
    plan: Plan, state: State, offsets: Sequence[Sequence[int]], slices: Slices
) -> Sequence[tuple[NodeKey, Status]]:
    """`offsets`: those of the wanted nodes, by their region."""

    def of_scope(item: tuple[Path, Scope]) -> list[tuple[NodeKey, Status]]:
        path, scope = item
        first = plan.regions[scope.region].first
        return [((path, first + offset), Status(scope.status[offset])) for offset in offsets[scope.region]]

    return list(chain.from_iterable(await slices.of(of_scope, state.scopes.items())))
