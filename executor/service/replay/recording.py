"""The input of each node key of a run, and what came of it. The journal has no inputs: they are made again by folding
the values and filling the params, as they were when the block began."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, Literal

import orjson
from msgspec import Struct, field

from compiler.keys import NodeKey
from compiler.plan import Node, Plan
from executor.errors import BlockError
from executor.kernel.core import events as e
from executor.kernel.core.decide_attempts import CANCELLED
from executor.kernel.handler.base import Registry, sees_all
from executor.kernel.journal.codec import Codec
from executor.kernel.journal.given import is_same
from executor.kernel.journal.reader import Records, output_of
from executor.kernel.run.step_work import Ended
from executor.kernel.store.run_rows import RunRow
from executor.kernel.store.topics.store import Store
from executor.kernel.values.fold import Fold
from executor.kernel.values.money import nanos_of, usd_of
from executor.kernel.values.payload import Bound
from executor.kernel.values.resolve import Template, compile_template
from executor.kernel.values.scope import Values
from executor.service.views.run import Slices

EVENTS_MAX: Final = 20_000
BYTES_MAX: Final = 32 * 1024 * 1024  # of outputs and inputs


class NotPlayed(Exception):
    """The run cannot be replayed; the text is why."""


class Inputs:
    """The inputs of the nodes of one plan, as JSON: equal texts are equal calls."""

    def __init__(self, plan: Plan, registry: Registry) -> None:
        self.plan = plan
        self._registry = registry
        self._templates: dict[int, Template] = {}

    def of(self, values: Values, key: NodeKey) -> bytes:
        """Return the input of a block that begins now: a list, whose second item has the params."""
        path, number = key
        node = self.plan.nodes[number]
        spec = self._registry.handler(node.type).spec
        template = self._templates.get(number)
        if template is None:
            template = self._templates[number] = compile_template(node, spec.addresses)
        parts: list[Any] = [node.type]
        try:
            parts += [template.fill(values, path), template.skip_if(values, path)]
        except BlockError as error:
            parts.append({"error": error.message})
        also = values.variables if sees_all(self._registry, node.type) else None
        options = orjson.OPT_SORT_KEYS | orjson.OPT_NON_STR_KEYS
        return orjson.dumps([*parts, node.policy.assign, also], default=_bound, option=options)


def _bound(value: Any) -> Any:
    if isinstance(value, Bound):
        return {"code": value.source, "values": value.values, "texts": value.texts}
    raise TypeError


class Used(Struct):
    """Cost, tokens and time of calls of models: those of the recording that stand, and those that were made, which
    `calls` counts. `cost_usd` is null if a price is not known."""

    cost_usd: float | None = 0.0
    tokens: int = 0
    ms: int = 0
    calls: int = 0

    def add(self, cost_usd: float | None, tokens: int, ms: int, calls: int = 0) -> None:
        known = None if cost_usd is None or self.cost_usd is None else nanos_of(cost_usd) + nanos_of(self.cost_usd)
        self.cost_usd = None if known is None else usd_of(known)
        self.tokens, self.ms, self.calls = self.tokens + tokens, self.ms + ms, self.calls + calls


def tokens_in(usage: Mapping[str, int]) -> int:
    return usage.get("input_tokens", 0) + usage.get("output_tokens", 0)


class Outcome(Struct):
    """The outcome of a node key. `seq` and `at_ms` are of the event that decided it, 0 while there is none; `count`:
    the scopes that a container opened; `steps`: the ends of its steps, by the hashes of their inputs."""

    node: Node
    input: bytes | None = None
    began_ms: int = 0
    seq: int = 0
    at_ms: int = 0
    ended: Literal["succeeded", "failed", "skipped"] | None = None
    route: str | None = None
    output: bytes | None = None
    error: e.ErrorInfo | None = None
    ends_run: bool = False
    count: int | None = None
    patches: list[list[object]] = []
    steps: dict[str, Ended] = {}
    used: Used = field(default_factory=Used)

    def came_to(self, other: Outcome) -> bool:
        """Returns True if both ended in the same way with the same result."""
        if self.output != other.output and not is_same(*(orjson.loads(one.output or b"null") for one in (self, other))):
            return False
        here, there = (one.error and one.error.code for one in (self, other))
        return (self.ended, self.route, self.count, here) == (other.ended, other.route, other.count, there)

    def decided_by(self, event: e.Event, output: bytes | None) -> bool:
        """Take what an event of this node decides. Returns False if it decides nothing."""
        match event:
            case e.NodeSucceeded():
                self.ended, self.route, self.output, self.ends_run = "succeeded", event.route, output, event.end_run
            case e.RegionExited():
                self.ended, self.route, self.output = "succeeded", "out", output
            case e.RegionSized():
                self.ended, self.count = "succeeded", event.count
            case e.NodeFailed() if event.error.code != CANCELLED.code:  # else it was given up for another one
                self.ended, self.route, self.error = "failed", event.route, event.error
            case e.NodeSkipped() if event.reason != "pruned":
                self.ended, self.route = "skipped", "out"
            case _:
                return False
        return True


class Recording(Struct):
    """`nodes` by the text of their keys."""

    row: RunRow
    plan: Plan
    started: e.RunStarted
    nodes: dict[str, Outcome]


async def read(store: Store, row: RunRow, inputs: Inputs, env: Mapping[str, str]) -> Recording:
    """Raises NotPlayed, CorruptJournal."""
    if row.seq > EVENTS_MAX:
        raise NotPlayed(f"it has {row.seq:,} events, and a replay reads at most {EVENTS_MAX:,}")
    plan, slices, room = inputs.plan, Slices(), BYTES_MAX
    codec, fold = Codec(plan), Fold(plan, Values(plan, orjson.loads(row.input), env))
    found = Recording(row, plan, e.RunStarted(row.id), {})
    patches: list[list[object]] = []
    begun: dict[tuple[str, int], tuple[e.StepStarted, int]] = {}
    async for record in Records(store, row.id, upto=row.seq):
        if slices.is_over:
            await slices.rest()
        event, output = codec.to_event(record), await output_of(store, record)
        key: NodeKey | None = getattr(event, "key", None)
        if isinstance(event, e.RunStarted):
            found.started = event
        elif key is not None:
            text, node = codec.key_text(key), plan.nodes[key[1]]
            was = found.nodes.get(text) or Outcome(node)
            begins = isinstance(event, e.NodeStarted)
            if begins:
                was.began_ms, found.nodes[text] = record.at_ms, was
            # An inline block runs when its result is decided, after what others changed meanwhile.
            due = begins != node.inline or getattr(event, "reused", False)
            if due and was.input is None and not (node.sentinel or isinstance(event, e.NodeSkipped | e.NodeLog)):
                was.input = inputs.of(fold.values, key)
                room -= len(was.input)
            if was.decided_by(event, output):
                was.seq, was.at_ms, was.patches, patches, found.nodes[text] = record.seq, record.at_ms, patches, [], was
            elif isinstance(event, e.VariablesPatched):
                patches = event.ops
            elif isinstance(event, e.StepStarted):
                begun[text, event.n] = event, record.at_ms
            elif isinstance(event, e.StepFinished) and (text, event.n) in begun:
                step, at_ms = begun.pop((text, event.n))
                was.steps[step.input_hash] = Ended(record.at_ms, output, event.error)
                if step.kind == "model":
                    was.used.add(event.cost, tokens_in(event.usage), record.at_ms - at_ms)
        fold.apply(event, output)
        room -= len(output or b"")
        if room < 0:
            raise NotPlayed(f"its values are larger than {BYTES_MAX // 1024 // 1024} MiB")
    return found
