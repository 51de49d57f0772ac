"""Reads from a recorded run which work each node did, and on which values, so that another run, maybe of another
version, can determine whether a node of its own would do the same.

A signature is a hash of a block (type, params, and policy as far as it makes the output) and of the values of all its
references; of secrets it has only the names. Two nodes with one key and one signature are the same work, whatever else
has changed around them. Signatures are compared in memory and stored nowhere. A node reads at some time between its
start and its next event, so it has one only if nothing that it reads changed meanwhile. Of a question to people, all
that was put out before it is a part: an answer counts for what it was given for.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from typing import Any, Final

import orjson
from msgspec import Struct

from compiler.keys import NodeKey, split_key
from compiler.plan import Plan, Ref
from executor.errors import BlockError
from executor.kernel.core import events as e
from executor.kernel.core.fork import before
from executor.kernel.journal.codec import Codec
from executor.kernel.journal.given import Given, answers_in, meaning
from executor.kernel.journal.reader import Records, load_plan, output_of
from executor.kernel.store.run_rows import Record, RunRow
from executor.kernel.store.topics.store import Store
from executor.kernel.values.fold import Fold
from executor.kernel.values.payload import MISSING
from executor.kernel.values.scope import Values

CHAIN_MAX: Final = 20  # runs that take over from one another
# Errors of blocks whose code makes other calls than before: with the same steps they would fail again.
_STEPS_USELESS: Final = frozenset({"steps_changed", "steps_unordered"})
# True for a type of block that may read all variables and the input, whatever references it has.
SeesAll = Callable[[str], bool]


class Outcome(Struct):
    """The work of one node of `run`. `seq`: the event with its output, or 0 if it did not succeed. `asked`: a person's
    answer is part of it. `steps`: by number, the events with which each began and ended, and if it failed."""

    run: str
    signature: bytes
    asked: bool = False
    seq: int = 0
    route: str | None = None
    patches: list[list[Any]] = []
    steps: dict[int, tuple[int, int, bool]] = {}
    last_start: int = 0

    @property
    def steps_kept(self) -> list[tuple[int, int]]:
        """Return the steps that count: those that ended, except failures after which no step began."""
        last = self.last_start
        return [(began, ended) for began, ended, failed in self.steps.values() if not (failed and ended > last)]


class Signatures:
    """Makes the signatures of the nodes of one plan."""

    def __init__(self, plan: Plan, sees_all: SeesAll) -> None:
        self._plan = plan
        self._sees_all = sees_all
        self._blocks: dict[int, list[Any]] = {}

    def may_take(self, key: NodeKey) -> bool:
        """Return False for what always runs: containers themselves, cleanups, pinned blocks, and the end of a run."""
        node = self._plan.nodes[key[1]]
        other = node.sentinel is not None or node.ends_run or node.pin is not None
        return not other and not self._plan.in_cleanup(key[0])

    def of(self, values: Values, key: NodeKey, asked: bool = False) -> bytes:
        """Return the signature of a node that would start now. `asked`: with all that was put out before it."""
        number = key[1]
        plan, node = self._plan, self._plan.nodes[number]
        parts: list[Any] = [self.block(number)]
        for ref in sorted(node.needs, key=lambda ref: ref.text):
            parts.append([ref.text, None if ref.kind == "env" else _read(values, ref, key)])
        if self._sees_all(node.type):
            parts += [values.variables, values.input]
        elif number in plan.regions[0].entries:
            parts.append(values.input)
        for id, other in sorted((plan.nodes[other].id, other) for other in before(plan, number)) if asked else ():
            parts.append([id, self.block(other), _read(values, Ref(id, "block", other), key)])
        shown = orjson.dumps(parts, option=orjson.OPT_SORT_KEYS | orjson.OPT_NON_STR_KEYS)
        return hashlib.blake2b(shown, digest_size=16).digest()

    def block(self, number: int) -> list[Any]:
        """Return the part of a block's definition that makes its output."""
        block = self._blocks.get(number)
        if block is None:
            node = self._plan.nodes[number]
            kind, _, *policy = meaning(node)
            wired = sorted({edge.handle for edge in node.out} - {"out", "error"})  # an answer leaves by its own handle
            params = orjson.loads(bytes(node.params))
            block = [kind, params, *policy, node.code, node.literal, node.output_schema, wired]
            self._blocks[number] = block
        return block


def _read(values: Values, ref: Ref, key: NodeKey) -> list[Any]:
    try:
        value = values.lookup(ref, key[0])
    except BlockError as error:
        return ["failed", error.code]
    return [] if value is MISSING else [value]


async def outcomes_of(store: Store, row: RunRow, sees_all: SeesAll) -> dict[str, list[Outcome]]:
    """Return the work of a run by node key; if the run took over from another, that of the other comes after it."""
    found: dict[str, list[Outcome]] = {}
    run: RunRow | None = row
    again: set[str] = set()
    for _ in range(CHAIN_MAX):
        if run is None:
            break
        plan = await load_plan(store, run.plan_hash)
        reader = _Reader(plan, run, sees_all, await answers_in(store, plan, run.id))
        async for record in Records(store, run.id, upto=run.seq):
            reader.apply(record, await output_of(store, record))
        for key, outcome in reader.found.items():
            if split_key(key)[0] not in again:
                found.setdefault(key, []).append(outcome)
        started = reader.started
        if started is None or started.source_run is None or not (started.reuse or started.keeps):
            break
        again.update(started.again)
        run = await store.get_run(started.source_run)
    return found


class _Reader:
    def __init__(self, plan: Plan, row: RunRow, sees_all: SeesAll, given: Sequence[Given]) -> None:
        self.found: dict[str, Outcome] = {}
        self.started: e.RunStarted | None = None
        self._run = row.id
        self._codec = Codec(plan)
        self._fold = Fold(plan, Values(plan, orjson.loads(row.input), {}))
        self._signatures = Signatures(plan, sees_all)
        self._given = {(each.node, each.path): each for each in given}
        self._reading: dict[NodeKey, bytes] = {}  # nodes that have started, and have no other event yet
        self._begun: dict[tuple[NodeKey, int], int] = {}  # steps
        self._left: set[NodeKey] = set()

    def apply(self, record: Record, output: bytes | None) -> None:
        event = self._codec.to_event(record)
        key: NodeKey | None = getattr(event, "key", None)
        if isinstance(event, e.RunStarted):
            self.started = event
        elif isinstance(event, e.RunMigrated):  # the blocks of the plan before are not known here
            self.found.clear()
            self._reading.clear()
        elif key is not None and self._signatures.may_take(key):
            self._of_node(event, key, record)
        self._fold.apply(event, output)

    def _of_node(self, event: e.Event, key: NodeKey, record: Record) -> None:
        text, given = self._codec.key_text(key), self._given.get((record.node or "", record.path))
        if isinstance(event, e.NodeStarted):
            if given is None or not given.once:
                self._reading[key] = self._signatures.of(self._fold.values, key, given is not None)
            return
        outcome = self.found.get(text)
        if (read := self._reading.pop(key, None)) is not None:
            steps = ({}, 0) if outcome is None else (outcome.steps, outcome.last_start)
            outcome = Outcome(self._run, read, given is not None, 0, None, [], *steps)
            self.found[text] = outcome
            if read != self._signatures.of(self._fold.values, key, given is not None):
                del self.found[text]
                return
        if outcome is None:
            return
        match event:
            case e.VariablesPatched():
                outcome.patches = [*outcome.patches, *event.ops]
            case e.NodeSucceeded():
                outcome.seq, outcome.route = record.seq, event.route
            case e.StepStarted():
                self._begun[key, event.n] = outcome.last_start = record.seq
            case e.StepFinished() if (began := self._begun.pop((key, event.n), None)) is not None:
                if key in self._left:
                    return
                outcome.steps[event.n] = began, record.seq, event.error is not None
            case e.NodeFailed() if event.error.code in _STEPS_USELESS:
                outcome.steps = {}
            case e.NodeLeft() | e.WaitOpened(each=True):  # it depends on answers, which belong to the run
                self._left.add(key)
                outcome.steps = {}
