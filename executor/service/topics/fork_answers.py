"""Answers of people in a fork: ends its copy of the journal so that invalid answers are asked for again.

A question is opened again by copying only what was recorded before its block began: the block then runs with the
outputs that the fork has, and shows them.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from msgspec import Struct

from compiler.keys import NodeKey, format_key
from compiler.plan import Plan
from executor.errors import Conflict
from executor.kernel.core.events import (
    Event,
    NodeFailed,
    NodeStarted,
    NodeSucceeded,
    RegionExited,
    RunStarted,
    StepStarted,
    WaitClosed,
    WaitOpened,
)
from executor.kernel.core.fork import fork_point, root_of
from executor.kernel.journal.codec import Codec, data_of
from executor.kernel.journal.given import ASKS, answers_in, below, bounds_of, is_changed_for
from executor.kernel.store.run_rows import Record
from executor.kernel.store.topics.store import Store


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
    store: Store, plan: Plan, run: str, records: Sequence[Record], events: Sequence[Event], changed: Collection[NodeKey]
) -> Kept:
    """Return the part of the run that a fork keeps. `changed`: the nodes whose outputs differ from the recorded ones.
    Raises Conflict if a change outside would be repeated."""
    started = events[0]
    assert isinstance(started, RunStarted)
    questions = await _reused(store, plan, started, events)
    questions += await _asked(store, plan, run, records, events)
    stale = [question for question in questions if _differs(plan, question, changed)]
    if not stale:
        return Kept(len(events), started.reuse)
    first = min(stale, key=lambda question: question.first)
    cut = len(events) if first.first >= len(events) else fork_point(events, first.first)
    own = {question.key for question in questions if question.is_own}
    left = {event.key for event in events[:cut] if isinstance(event, NodeSucceeded | RegionExited)}
    if cut > first.first or not left.issuperset(changed) or _has_effects(plan, events[cut:], own):
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
    """Return True if the question has to be answered again. A question for certain people protects the blocks after it,
    so it is asked again after any edit."""
    if question.is_answered and (question.once or (question.bound and changed)):
        return True
    return is_changed_for(plan, question.key, changed)


async def _asked(
    store: Store, plan: Plan, run: str, records: Sequence[Record], events: Sequence[Event]
) -> list[_Question]:
    codec = Codec(plan)
    began: dict[NodeKey, int] = {}
    closed = {
        (event.key, event.attempt) for event in events if isinstance(event, WaitClosed) and event.outcome == "answered"
    }
    over = {(event.key, event.attempt) for event in events if isinstance(event, WaitClosed)} - closed
    found: list[_Question] = []
    for index, event in enumerate(events):
        if isinstance(event, NodeStarted):
            began.setdefault(event.key, index)
        if not isinstance(event, WaitOpened) or (event.key, event.attempt) in over:
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


async def _reused(store: Store, plan: Plan, started: RunStarted, events: Sequence[Event]) -> list[_Question]:
    """Find questions whose answers the run has from the one that it was started from."""
    if not started.reuse or started.source_run is None:
        return []
    found: list[_Question] = []
    for given in await answers_in(store, plan, started.source_run):
        if given.root not in started.reuse:
            continue
        key: NodeKey = ((), given.root)
        first = next((n for n, event in enumerate(events) if getattr(event, "key", None) == key), len(events))
        found.append(_Question(key, first, given.alone, True, given.bound, given.once))
    return found


def _has_effects(plan: Plan, events: Sequence[Event], own: Collection[NodeKey]) -> bool:
    """Return True if one of the events that are left out is of work that changes something outside."""
    for event in events:
        match event:
            case NodeSucceeded() | NodeFailed() if event.key not in own:
                node = plan.nodes[event.key[1]]
                if node.effect == "write" and node.sentinel is None and not getattr(event, "reused", False):
                    return True
            case StepStarted(effect="write"):
                return True
            case WaitOpened(kind="child"):
                return True
    return False
