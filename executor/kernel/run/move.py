"""Moving an open run to another version of its workflow: whether it fits, and what becomes of what is under way.

The journal stays as it is and is read with the new plan from now on. So it must fold under that plan to a state in
which everything recorded is where it was: each block that has a record is there with the same id, type and containers,
what started could have started, what was skipped stays skipped. Whatever has no record yet may differ in any way.

Numbers of nodes and regions belong to a plan; ids do not. Attempts under way end under the plan they began with, and
their results are carried over by id.
"""

from __future__ import annotations

import logging
from collections.abc import Callable

import orjson
from msgspec import Struct

from compiler.keys import NodeKey
from compiler.plan import Plan
from executor.errors import BlockError, CorruptJournal
from executor.kernel.core.events import Event, NodeSkipped, NodeStarted, RunMigrated, RunStarted
from executor.kernel.core.evolve import evolve
from executor.kernel.core.explain import explain
from executor.kernel.core.messages import Migrate
from executor.kernel.core.state import RunPhase, State, Status
from executor.kernel.journal import given
from executor.kernel.journal.codec import Codec, key_of
from executor.kernel.journal.reader import Records, load_plan, output_of
from executor.kernel.store.run_rows import Append, Move, Record, RunRow
from executor.kernel.store.topics.store import Store
from executor.kernel.values.fold import Fold
from executor.kernel.values.scope import Values

log = logging.getLogger("weft.run")


class Misfit(Struct, frozen=True):
    """A reason why a run cannot move. `node` is a block id or a node key, None if it is about the run; `why` completes
    a sentence about it."""

    node: str | None
    why: str


class Fit(Struct, frozen=True):
    """The result of a check. If `misfits` is empty the run may move, and `pruned` are the nodes that the new plan has
    skipped by now though no record shows it, each with the node whose edge died last."""

    misfits: tuple[Misfit, ...] = ()
    pruned: tuple[tuple[NodeKey, NodeKey], ...] = ()


async def fit(store: Store, row: RunRow, old: Plan, new: Plan) -> Fit:
    """Check whether the journal of `row`, made under `old`, is valid under `new` as well."""
    reader = _Reader(row, old, new)
    misfits: dict[str | None, Misfit] = {}
    after = 0
    async for record in Records(store, row.id):
        found = reader.place_of(record) or (None if misfits else await reader.fold(store, record))
        if found is not None:
            misfits.setdefault(found.node, found)
        after = record.seq
    if after < row.seq:
        raise CorruptJournal(f"run {row.id}: event {after + 1} is missing")
    if not misfits:
        misfits |= {block: Misfit(block, why) for block, why in await given.misfits(store, old, new, row.id)}
    if not misfits and (reader.state.phase is not RunPhase.RUNNING or reader.state.ending is not None):
        phase = "ending" if reader.state.ending is not None else reader.state.phase.name.lower()
        misfits[None] = Misfit(None, f"the run is {phase}: it is about to end")
    return Fit(tuple(misfits.values()), () if misfits else tuple(reader.untold.items()))


class _Reader:
    """Reads the journal with the new plan, as recovery will."""

    def __init__(self, row: RunRow, old: Plan, new: Plan) -> None:
        self._old, self._new = old, new
        self._codec = Codec(new)
        self._fold = Fold(new, Values(new, orjson.loads(row.input), {}))
        self.state = State.new(new)
        self.untold: dict[NodeKey, NodeKey] = {}

    def place_of(self, record: Record) -> Misfit | None:
        """Return why the record's node has no equal in the new plan, or None if it has one."""
        if record.node is None:
            return None
        before, after = self._old.node_index(record.node), self._new.node_index(record.node)
        assert before is not None, "the journal fits the plan it was made under"
        block = self._old.nodes[before].block
        if after is None:
            gone = block not in {node.block for node in self._new.nodes}
            return Misfit(block, "it has run but was removed" if gone else "its block type has changed")
        if self._old.nodes[before].type != self._new.nodes[after].type:
            return Misfit(
                block,
                f"its block type has changed from {self._old.nodes[before].type} to {self._new.nodes[after].type}",
            )
        if containers_of(self._old, before) != containers_of(self._new, after):
            return Misfit(block, "it was moved into or out of a loop or parallel")
        return None

    async def fold(self, store: Store, record: Record) -> Misfit | None:
        """Fold one record. After a misfit nothing more can be folded."""
        try:
            event = self._codec.to_event(record)
            found = self._numbers_kept(event) if isinstance(event, RunStarted) else self._may_follow(event)
            if found is None:
                for key, because in evolve(self._new, self.state, event):
                    self.untold[key] = because
                if isinstance(event, NodeSkipped) and event.reason == "pruned":
                    self.untold.pop(event.key, None)
                self._fold.apply(event, await output_of(store, record))
        except (AssertionError, KeyError, IndexError, ValueError, BlockError, CorruptJournal) as error:
            return Misfit(key_of(record), f"event {record.seq} ({record.type}) is not possible: {error}")
        return found

    def _may_follow(self, event: Event) -> Misfit | None:
        """Return what would run differently, in words, or None; the fold finds the rest."""
        if not isinstance(event, NodeStarted | NodeSkipped):
            return None
        key = event.key
        status = self.state.status_of(self._new, key)
        if isinstance(event, NodeStarted) and key not in self.state.retries and status is not Status.READY:
            state, reasons = explain(self._new, self.state, key)
            why = f": {'; '.join(reasons)}" if reasons else ""
            return Misfit(self._codec.key_text(key), f"it has already started, but would be {state} now{why}")
        if isinstance(event, NodeSkipped) and event.reason == "pruned" and status not in (Status.SKIPPED, None):
            return Misfit(self._codec.key_text(key), "it was skipped, but would run now")
        return None

    def _numbers_kept(self, event: RunStarted) -> Misfit | None:
        """The first record names nodes by number."""
        numbers = [*event.reuse, *(() if event.stop_after is None else (event.stop_after,))]
        for number in numbers:
            same = number < len(self._new.nodes) and self._new.nodes[number].id == self._old.nodes[number].id
            if not same:
                why = "the run reuses its output or stops after it, so its position cannot change"
                return Misfit(self._old.nodes[number].block, why)
        return None


def containers_of(plan: Plan, number: int) -> list[tuple[str, str]]:
    found: list[tuple[str, str]] = []
    region = plan.region_of[number]
    while region > 0:
        found.append((plan.regions[region].id, plan.regions[region].kind))
        region = plan.regions[region].parent
    return found


# --- done by the run's owner ------------------------------------------------------------------------------------------


async def move(
    store: Store, row: RunRow, old: Plan, migrate: Migrate, n: int, now_ms: Callable[[], int]
) -> Plan | None:
    """Let the run follow the plan that message `n` of its inbox asks for; `row` is as it is now. Returns that plan, or
    None if the journal does not fit it. Raises what `append` raises."""
    try:
        new = await load_plan(store, migrate.plan)
    except CorruptJournal as error:
        log.error("run %s: cannot move to version %s: %s", row.id, migrate.version, error)
        return None
    fitted = await fit(store, row, old, new)
    if fitted.misfits:
        return None
    wanted = Move(migrate.version, new.hash, new.encoded)
    await store.append(_move_append(row, wanted, new, fitted, n, now_ms()))
    return new


def _move_append(row: RunRow, move: Move, new: Plan, fitted: Fit, n: int, now_ms: int) -> Append:
    """Return the append of the move, fenced like any other; it consumes message `n`."""
    codec = Codec(new)
    events: list[Event] = [RunMigrated(move.version, move.plan_hash)]
    events += [NodeSkipped(key, "pruned", because) for key, because in fitted.pruned]
    return Append(
        run_id=row.id,
        epoch=row.epoch,
        expected_seq=row.seq,
        records=tuple(codec.to_record(seq, now_ms, event) for seq, event in enumerate(events, row.seq + 1)),
        now_ms=now_ms,
        consumed_inbox=(n,),
        move=move,
    )


def translator(old: Plan, new: Plan) -> Callable[[NodeKey], NodeKey]:
    """Keys of recorded nodes of `old` as keys of `new`."""

    def translate(key: NodeKey) -> NodeKey:
        path = tuple((new.region_index(old.regions[region].id), index) for region, index in key[0])
        return path, new.node_index(old.nodes[key[1]].id)  # type: ignore[return-value]  # they are there: it fits

    return translate
