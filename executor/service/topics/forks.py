"""Forks: a run that continues the beginning of another run's journal, with other outputs if wanted.

A fork copies the records up to the fork point as they are, times included, and the rows of the waits among them, each
with a token of its own. Work that was under way there starts again here; waits still wait, until the same time, and no
notification of theirs is sent again. Outputs are shared with the other run unless they are edited: then those of the
containers around them are computed again. Blocks that had used an edited output keep their results, as do variables.
Signals that had come by then and were not consumed are here, too.

An answer of a person that is not valid in the fork is asked for again: the copy of the journal ends before the block
that asked began."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

import orjson
from msgspec import Struct
from msgspec.structs import asdict, replace

from compiler.keys import NodeKey, Path, format_key, join_key, parse_key, split_key
from compiler.plan import Plan
from executor.errors import BadRequest, BlockError, Conflict
from executor.kernel.core import events as e
from executor.kernel.core import facts as f
from executor.kernel.core.decide import decide
from executor.kernel.core.evolve import evolve
from executor.kernel.core.fork import fork_point, root_of
from executor.kernel.core.state import DECIDED, RunPhase, State
from executor.kernel.journal.codec import Codec, data_of
from executor.kernel.journal.given import ASKS, answers_in, below, bounds_of, is_changed_for, is_same
from executor.kernel.journal.reader import Records, output_of
from executor.kernel.process.acting import present_actor
from executor.kernel.run.links import Links
from executor.kernel.run.new_run import new_run_id, origin_as, placement_of
from executor.kernel.store.run_rows import NewRun, Record, RunRow
from executor.kernel.store.topics.inbox import SignalRow
from executor.kernel.store.topics.store import Store
from executor.kernel.store.topics.waits import WaitRow
from executor.kernel.values.fold import Fold
from executor.kernel.values.payload import encode, split
from executor.kernel.values.schema import Matches, check_output
from executor.kernel.values.scope import Values
from executor.service.parts import Parts
from executor.service.topics import rewinds
from executor.service.topics.rewinds import NO_REWIND, Rewind

SIGNALS_MAX = 1_000_000  # all


class Copied(Struct, frozen=True):
    """The beginning of a journal, decoded as well. `records[n]` is `events[n]`. `next_ms`: when the next event was
    recorded, or None if there is none yet."""

    records: list[Record]
    events: list[e.Event]
    next_ms: int | None

    def upto(self, count: int) -> Copied:
        if count >= len(self.events):
            return self
        return Copied(self.records[:count], self.events[:count], self.records[count].at_ms)


async def beginning(store: Store, plan: Plan, row: RunRow, seq: int) -> Copied:
    """Return the part of the run that a fork at `seq` takes over; see `fork_point`. It is read up to the seq of `row`:
    later events may be of another plan."""
    codec = Codec(plan)
    records: list[Record] = []
    events: list[e.Event] = []
    async for record in Records(store, row.id, upto=row.seq):
        records.append(record)
        events.append(codec.to_event(record))
        if record.seq > seq and fork_point(events, seq) < len(events):  # else events of the same step may follow
            break
    cut = fork_point(events, seq)
    return Copied(records[:cut], events[:cut], records[cut].at_ms if cut < len(records) else None)


async def fork(
    parts: Parts,
    plan: Plan,
    row: RunRow,
    copied: Copied,
    outputs: Mapping[str, Any],
    *,
    idempotency_key: str | None,
    request_hash: str,
    files: Sequence[str] = (),
    rewind: Rewind = NO_REWIND,
) -> tuple[NewRun, int]:
    """Return the new run, to be created, and how many events it takes over: fewer than are copied where an answer of a
    person does not count for it (`kept`). `outputs`: by node key, in place of recorded ones, with these `files`. Raises
    BadRequest (nothing is recorded under a key, or it cannot put this out), Conflict."""
    codec, store, now_ms = Codec(plan), parts.store, parts.clock.now_ms()
    id = new_run_id(now_ms)
    edits = await _checked(plan, copied, outputs, parts.services.sandbox.matches)
    changed = await _changed(store, copied, edits)
    results = rewinds.edited(plan, copied.events, rewind.steps)
    left = await kept(store, plan, row.id, copied.records, copied.events, changed, rewind is not NO_REWIND, results)
    copied = copied.upto(left.events)
    records, blobs = await _edited(store, plan, row, copied, edits)
    copied, records = _rewound(plan, row, copied, records, results, blobs, rewind.anew)
    started = copied.events[0]
    assert isinstance(started, e.RunStarted)
    # Outputs from a third run are found there; this run continues beyond the stop of the other one.
    source = started.source_run if (started.reuse or started.keeps) and started.source_run is not None else row.id
    # `not_starter` of its approvals is about the person who forks: the outputs may be theirs.
    started = replace(started, run=id, reuse=left.reuse, source_run=source, stop_after=None, by=present_actor())
    records[0] = codec.to_record(1, records[0].at_ms, started)
    state = _folded(plan, row, [started, *copied.events[1:]])
    made = decide(plan, state, f.ForkMade(now_ms, row.id, len(records)))
    records += [codec.to_record(len(records) + n, now_ms, event) for n, event in enumerate(made, 1)]
    opened, origin = _opened(codec, [*copied.events, *made]), rewind.origin or origin_as(row)
    new = NewRun(
        id=id,
        **asdict(origin),
        plan_hash=plan.hash,
        plan=plan.encoded,
        input=row.input,
        records=tuple(records),
        now_ms=now_ms,
        idempotency_key=idempotency_key,
        request_hash=request_hash,
        started_by=started.by,
        sources=(row.id, source) if source != row.id and _is_read(plan, state, started) else (row.id,),
        source_run_id=source,
        waits=tuple(await _waits(store, row.id, opened, id, parts.links, now_ms)),
        signals=tuple(await _signals(store, row.id, opened, copied, id)),
        blobs=tuple(blobs.items()),
        placement=placement_of(plan, orjson.loads(row.input)),
        files=tuple(files),
    )
    return new, len(copied.events)


def _folded(plan: Plan, row: RunRow, events: Sequence[e.Event]) -> State:
    state = State.new(plan)
    for event in events:
        evolve(plan, state, event)
        if state.phase is RunPhase.FAILING or state.ending is not None:
            raise _failing(plan, row.id, event, state.seq)
    return state


def _is_read(plan: Plan, state: State, started: e.RunStarted) -> bool:
    recorded = {*DECIDED, None}  # None once all of the root is recorded
    return started.keeps or any(state.status_of(plan, ((), node)) not in recorded for node in started.reuse)


def _failing(plan: Plan, run: str, event: e.Event, seq: int) -> Conflict:
    assert isinstance(event, e.NodeFailed | e.CleanupStopped)
    name = format_key(plan, event.key)
    return Conflict(
        f"run {run} was failing after event {seq}, where {name} failed: a fork there would fail too",
        code="fork_failing",
        hint=f"fork at {seq - 1} or before, or retry {name}",
        seq=seq - 1,
        node=name,
    )


# --- edited outputs ---------------------------------------------------------------------------------------------------


async def _checked(plan: Plan, copied: Copied, outputs: Mapping[str, Any], matches: Matches) -> dict[NodeKey, bytes]:
    there = {event.key for event in copied.events if isinstance(event, e.NodeSucceeded | e.RegionExited)}
    edits: dict[NodeKey, bytes] = {}
    for text, value in outputs.items():
        pointer = "/outputs/" + text.replace("~", "~0").replace("/", "~1")
        key = _key(plan, text)
        if key not in there:
            raise BadRequest(
                f"{text!r} has no output in the first {len(copied.events)} events",
                code="output_not_recorded",
                pointer=pointer,
                hint="use the key of a node that has succeeded by then, such as send@review#5",
            )
        try:
            edits[key] = encode(value)
            await check_output(plan.nodes[key[1]], edits[key], matches)
        except BlockError as error:
            raise BadRequest(error.message, code=error.code, pointer=pointer, hint=error.hint) from error
    return edits


async def _changed(store: Store, copied: Copied, edits: Mapping[NodeKey, bytes]) -> set[NodeKey]:
    changed = set()
    for record, event in zip(copied.records, copied.events, strict=True):
        if isinstance(event, e.NodeSucceeded | e.RegionExited) and event.key in edits:
            recorded = orjson.loads(await output_of(store, record) or b"null")
            if not is_same(recorded, orjson.loads(edits[event.key])):
                changed.add(event.key)
    return changed


def _key(plan: Plan, text: str) -> NodeKey | None:
    node, path = split_key(text)
    for name in (node, f"{node}:end"):
        try:
            return parse_key(plan, join_key(name, path))
        except ValueError:
            pass
    return None


def _rewound(
    plan: Plan,
    row: RunRow,
    copied: Copied,
    records: list[Record],
    results: Mapping[int, bytes],
    blobs: dict[str, bytes],
    anew: Collection[str],
) -> tuple[Copied, list[Record]]:
    """Return all with the other results of steps, and with the run that paid for each."""
    codec, events = Codec(plan), list(copied.events)
    for index, event in enumerate(events):
        if isinstance(event, e.StepStarted | e.StepFinished):
            again = plan.nodes[event.key[1]].block in anew
            record = replace(records[index], data=rewinds.marked(records[index], row.id, again))
            if index in results:
                data = {name: value for name, value in data_of(record).items() if name != "error"}
                record = _with_output(replace(record, data=orjson.dumps(data)), results[index], blobs)
            records[index], events[index] = record, codec.to_event(record)
        elif isinstance(event, e.WaitOpened) and "remind_ms" in (data := data_of(records[index])):
            del data["remind_ms"]  # the reminder is about the wait of the other run
            records[index] = replace(records[index], data=orjson.dumps(data))
    return Copied(copied.records, events, copied.next_ms), records


async def _edited(
    store: Store, plan: Plan, row: RunRow, copied: Copied, edits: Mapping[NodeKey, bytes]
) -> tuple[list[Record], dict[str, bytes]]:
    records = list(copied.records)
    if not edits:
        return records, {}
    fold = Fold(plan, Values(plan, orjson.loads(row.input), {}))
    blobs: dict[str, bytes] = {}
    for index, (record, event) in enumerate(zip(copied.records, copied.events, strict=True)):
        edit = edits.get(event.key) if isinstance(event, e.NodeSucceeded | e.RegionExited) else None
        again = edit is None and isinstance(event, e.RegionExited) and _holds(plan, event, edits)
        output = edit if edit is not None else None if again else await output_of(store, record)
        made = fold.apply(event, output)
        if edit is not None or again:
            final = edit if edit is not None else made
            assert final is not None
            records[index] = _with_output(record, final, blobs)
    return records, blobs


def _holds(plan: Plan, event: e.RegionExited, edits: Mapping[NodeKey, bytes]) -> bool:
    """Return True if an edited output is in a scope of the container that ended. A reused container has no scopes."""
    path: Path = event.key[0]
    body = plan.nodes[event.key[1]].body
    return not event.reused and any(
        len(p) > len(path) and p[: len(path)] == path and p[len(path)][0] == body for p, _ in edits
    )


def _with_output(record: Record, output: bytes, blobs: dict[str, bytes]) -> Record:
    data = data_of(record)
    data.pop("blob", None)
    data.pop("size", None)
    inline, blob = split(output)
    if blob is not None:
        blobs[blob] = output
        data |= {"blob": blob, "size": len(output)}
    return replace(record, output=inline, data=orjson.dumps(data) if data else None)


# --- waits and signals ------------------------------------------------------------------------------------------------


def _opened(codec: Codec, events: list[e.Event]) -> dict[str, bool]:
    """Return the ids of the waits among `events`, and if they are still open after them."""
    return {
        codec.wait_id(event.key, event.attempt): isinstance(event, e.WaitOpened)
        for event in events
        if isinstance(event, e.WaitOpened | e.WaitClosed)
    }


async def _waits(
    store: Store, source: str, opened: Mapping[str, bool], run: str, links: Links, now_ms: int
) -> list[WaitRow]:
    """Return the rows of the waits: those that are open here are pending, whatever their state in the source."""
    rows = []
    for id, is_open in opened.items():
        row = await store.get_wait(source, id)
        if row is None:
            raise Conflict(f"run {source} no longer has a wait '{id}'", code="wait_not_found")
        row = replace(row, run_id=run, token_hash=links.hash_of(run, id, row.kind))
        if is_open:
            row = replace(row, status="pending", response=None, answered_by=None, answered_at_ms=None)
        elif row.status == "pending" or row.kind == "child":
            row = replace(row, status="answered", response=None, answered_by=None, answered_at_ms=now_ms)
        rows.append(row)
    return rows


async def _signals(store: Store, source: str, opened: Mapping[str, bool], copied: Copied, run: str) -> list[SignalRow]:
    """Return the signals that had come until the event after the copied ones. One keeps its consumer if that is copied.
    One that then answered a wait which is open again, and had not come before the last copied event, is left out: this
    run is there to get another one."""
    last_ms = copied.records[-1].at_ms
    found: list[SignalRow] = []
    for row in await store.list_signals(source, limit=SIGNALS_MAX):
        consumed = row.consumed_by is not None and opened.get(row.consumed_by) is False
        early = row.received_at_ms <= last_ms
        unconsumed = (copied.next_ms is None or row.received_at_ms < copied.next_ms) and row.consumed_by not in opened
        if consumed or early or unconsumed:
            by = row.consumed_by if consumed else None
            found.append(replace(row, run_id=run, seq=len(found) + 1, consumed_by=by))
    return found


# --- answers of people ---


class _Question(Struct, frozen=True):
    """One node that asked. `first`: how many events come before it began."""

    key: NodeKey
    first: int
    is_own: bool
    is_answered: bool
    bound: bool
    once: bool


class Kept(Struct, frozen=True):
    """The part that a fork takes over: so many events, and the outputs of these root nodes that its source reuses."""

    events: int
    reuse: dict[int, str | None]


async def kept(
    store: Store,
    plan: Plan,
    run: str,
    records: Sequence[Record],
    events: Sequence[e.Event],
    changed: Collection[NodeKey],
    rewound: bool = False,
    results: Collection[int] = (),
) -> Kept:
    """Return the part of the run that a fork keeps. `changed`: the nodes with edited outputs; `rewound`: steps have
    other results (events `results`), or blocks other params. Raises Conflict if a change outside would be repeated."""
    started = events[0]
    assert isinstance(started, e.RunStarted)
    questions = await _reused(store, plan, started, events)
    questions += await _asked(store, plan, run, records, events)
    stale = [q for q in questions if _differs(plan, q, changed) or (rewound and q.bound and q.is_answered)]
    if not stale:
        return Kept(len(events), started.reuse)
    first = min(stale, key=lambda question: question.first)
    cut = len(events) if first.first >= len(events) else fork_point(events, first.first)
    own = {question.key for question in questions if question.is_own}
    left = {event.key for event in events[:cut] if isinstance(event, e.NodeSucceeded | e.RegionExited)}
    lost = not left.issuperset(changed) or any(index >= cut for index in results)
    if cut > first.first or lost or _has_effects(plan, events[cut:], own):
        raise Conflict(
            f"the answer to '{format_key(plan, first.key)}' does not count for this fork, and what was done after it "
            "would be done again",
            code="answer_not_carried",
            hint=f"fork at {cut}: it is asked again there" if cut else "start another run",
            seq=cut,
            node=format_key(plan, first.key),
        )
    dropped = {question.key[1] for question in stale}
    later = {number for number in started.reuse if root_of(plan, number) in dropped}
    return Kept(cut, {number: route for number, route in started.reuse.items() if number not in later})


def _differs(plan: Plan, question: _Question, changed: Collection[NodeKey]) -> bool:
    """Return True if it has to be answered again. A question for certain people protects the blocks after it, so it is
    asked again after any edit."""
    if question.is_answered and (question.once or (question.bound and changed)):
        return True
    return is_changed_for(plan, question.key, changed)


async def _asked(
    store: Store, plan: Plan, run: str, records: Sequence[Record], events: Sequence[e.Event]
) -> list[_Question]:
    codec = Codec(plan)
    began: dict[NodeKey, int] = {}
    closed = {
        (event.key, event.attempt)
        for event in events
        if isinstance(event, e.WaitClosed) and event.outcome == "answered"
    }
    over = {(event.key, event.attempt) for event in events if isinstance(event, e.WaitClosed)} - closed
    found: list[_Question] = []
    for index, event in enumerate(events):
        if isinstance(event, e.NodeStarted):
            began.setdefault(event.key, index)
        if not isinstance(event, e.WaitOpened) or (event.key, event.attempt) in over:
            continue
        is_answered = (event.key, event.attempt) in closed
        if event.kind in ASKS:
            row = await store.get_wait(run, codec.wait_id(event.key, event.attempt))
            bounds = (False, False) if row is None else bounds_of(row)
        elif event.kind == "child" and is_answered:
            answered = await below(store, data_of(records[index]).get("child"))
            if answered is None:
                continue
            bounds = answered
        else:
            continue
        is_own = plan.nodes[event.key[1]].type in ASKS
        found.append(_Question(event.key, began[event.key], is_own, is_answered, *bounds))
    return found


async def _reused(store: Store, plan: Plan, started: e.RunStarted, events: Sequence[e.Event]) -> list[_Question]:
    if not (started.reuse or started.keeps) or started.source_run is None:
        return []
    codec = Codec(plan)
    ended = [event for event in events if isinstance(event, e.NodeSucceeded | e.StepFinished) and event.from_run]
    taken = {codec.key_text(event.key): event.key for event in ended}
    found: list[_Question] = []
    for given in await answers_in(store, plan, started.source_run):
        key, is_own = taken.get(join_key(given.node, given.path)), not given.inner
        if key is None and given.root in started.reuse:
            key, is_own = ((), given.root), given.alone
        if key is not None:
            first = next((n for n, event in enumerate(events) if getattr(event, "key", None) == key), len(events))
            found.append(_Question(key, first, is_own, True, given.bound, given.once))
    return found


def _has_effects(plan: Plan, events: Sequence[e.Event], own: Collection[NodeKey]) -> bool:
    for event in events:
        match event:
            case e.NodeSucceeded() | e.NodeFailed() if event.key not in own:
                node = plan.nodes[event.key[1]]
                if node.effect == "write" and node.sentinel is None and not getattr(event, "reused", False):
                    return True
            case e.StepStarted(effect="write"):
                return True
            case e.WaitOpened(kind="child"):
                return True
    return False
