"""Why: where each undecided node of a run is and what it waits for, or how the node asked for came to be decided. Folds
the journal and asks `core.explain`."""

from __future__ import annotations

from collections.abc import Callable

from compiler.keys import NodeKey, parse_key
from compiler.plan import Plan
from executor.core.events import Event
from executor.core.evolve import evolve
from executor.core.explain import ended, explain, led_to
from executor.core.state import DECIDED, State, Status
from executor.errors import NotFound
from executor.journal.codec import Codec
from executor.store.contract import Store
from executor.store.rows import RunRow
from executor.views import Why

PAGE = 10_000
# A block in a loop of a thousand iterations is decided a thousand times: the last ones are told.
ENDED_MAX = 100


async def build(store: Store, plan: Plan, row: RunRow, node: str | None, seq: int | None = None) -> list[Why]:
    """`seq`: as it stood after that event; None: now. Raises NotFound (node_not_found)."""
    codec = Codec(plan)
    told: dict[NodeKey, tuple[str, tuple[str, ...]]] = {}
    causes: dict[NodeKey, list[str]] = {}
    ids = () if node is None else _numbers(plan, node.partition("@")[0])

    def note(event: Event) -> None:
        for key, cause in led_to(plan, event):
            if key[1] in ids:
                causes.setdefault(key, []).append(cause)
        found = ended(plan, event)
        if found is not None and found[0][1] in ids:
            key, (word, reasons) = found
            because = causes.pop(key, []) if word == "succeeded" else []
            told[key] = word, (*(f"it ran because {cause}" for cause in because), *reasons)

    state = await state_of(store, plan, row, seq, note if ids else None)
    keys = _asked(plan, state, node, list(told)[-ENDED_MAX:])
    return [Why(codec.key_text(key), *(told.get(key) or explain(plan, state, key))) for key in keys]


async def state_of(
    store: Store, plan: Plan, row: RunRow, seq: int | None = None, see: Callable[[Event], None] | None = None
) -> State:
    """What the journal folds to, up to event `seq` (now). `see` is shown each event."""
    upto = row.seq if seq is None else min(seq, row.seq)
    codec = Codec(plan)
    state = State.new(plan)
    while state.seq < upto:
        records = await store.read_events(row.id, state.seq, min(PAGE, upto - state.seq))
        if not records:
            break
        for record in records:
            event = codec.to_event(record)
            evolve(plan, state, event)
            if see is not None:
                see(event)
    return state


def _numbers(plan: Plan, text: str) -> list[int]:
    """Of the nodes with this id, or of this block."""
    return [number for number, n in enumerate(plan.nodes) if text in (n.id, n.block)]


def _asked(plan: Plan, state: State, node: str | None, decided: list[NodeKey]) -> list[NodeKey]:
    """`decided`: keys of the node that the journal saw decided."""
    if node is None:
        return [key for key, status in _open_keys(plan, state) if status not in DECIDED]
    if "@" in node:
        try:
            return [parse_key(plan, node)]
        except ValueError as error:
            raise NotFound(str(error), code="node_not_found") from error
    ids = _numbers(plan, node)
    if not ids:
        raise NotFound(f"the plan has no node '{node}'", code="node_not_found")
    found = [key for key, _ in _open_keys(plan, state) if key[1] in ids] or decided
    return found or [((), number) for number in ids if plan.region_of[number] == 0] or [_unopened(plan, ids[0])]


def _unopened(plan: Plan, number: int) -> NodeKey:
    """The first scope the node would run in: index 0 all the way down."""
    path: list[tuple[int, int]] = []
    region = plan.region_of[number]
    while region > 0:
        path.insert(0, (region, 0))
        region = plan.regions[region].parent
    return tuple(path), number


def _open_keys(plan: Plan, state: State) -> list[tuple[NodeKey, Status]]:
    return [
        ((path, plan.regions[scope.region].first + offset), Status(code))
        for path, scope in state.scopes.items()
        for offset, code in enumerate(scope.status)
    ]
