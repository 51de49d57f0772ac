"""Looks up what a node takes over from the run before (`run.started` with `keeps`), when the node starts.

The start and the end of a node that takes its output over are in one append, so a crash finds it not begun, or done.
The steps of a node that had not succeeded are recorded with its start, and its handler finds them as after a crash.
"""

from __future__ import annotations

from functools import partial

from msgspec import Struct
from msgspec.structs import replace

from compiler.keys import NodeKey
from executor.kernel.core import facts as f
from executor.kernel.core.events import NodeSucceeded, StepFinished, StepStarted
from executor.kernel.handler.base import sees_all
from executor.kernel.journal.outcomes import Outcome, Signatures, outcomes_of
from executor.kernel.journal.reader import Records, output_of
from executor.kernel.run.loaded import LoadedRun
from executor.kernel.run.parts import Parts
from executor.kernel.run.results import Payload, Result
from executor.kernel.store.topics.store import Store

Taken = list[tuple[StepStarted | StepFinished, bytes | None]]
_TYPES = ("step.started", "step.finished", "node.succeeded")


class Earlier(Struct, frozen=True):
    """The outcomes of the run before, for a run in memory. `again`: blocks that take nothing over."""

    run: LoadedRun
    store: Store
    signatures: Signatures
    outcomes: dict[str, list[Outcome]]
    again: tuple[str, ...]

    def find(self, key: NodeKey, attempt: int) -> Outcome | None:
        """Return what a node takes over that starts now, or None. Only its first attempt does."""
        if attempt != 1 or not self.signatures.may_take(key) or self.run.plan.nodes[key[1]].block in self.again:
            return None
        same = [
            outcome
            for outcome in self.outcomes.get(self.run.codec.key_text(key), ())
            if (outcome.seq or outcome.steps)
            and self.signatures.of(self.run.fold.values, key, outcome.asked) == outcome.signature
        ]
        return next((outcome for outcome in same if outcome.seq), same[0] if same else None)

    async def read(self, outcome: Outcome, key: NodeKey, now_ms: int) -> tuple[Taken, Result | None]:
        """Return the events of the steps as those of the first attempt of the node, and its result if it has one."""
        wanted = {outcome.seq, *(seq for pair in outcome.steps_kept for seq in pair)}
        codec, taken, result = self.run.codec, Taken(), None
        node, path = self.run.plan.nodes[key[1]].id, codec.path_text(key[0])
        first = min(wanted - {0}, default=1) - 1
        async for record in Records(
            self.store, outcome.run, after=first, upto=max(wanted), node=node, path=path, types=_TYPES
        ):
            event = codec.to_event(record) if record.seq in wanted else None
            output = None if event is None else await output_of(self.store, record)
            match event:
                case StepStarted():
                    taken.append((replace(event, attempt=1), None))
                case StepFinished():
                    event = replace(event, attempt=1, from_run=event.from_run or outcome.run)
                    taken.append((event, output))
                case NodeSucceeded():
                    fact = f.NodeDone(now_ms, key, 1, outcome.route, from_run=outcome.run)
                    result = Result(fact, Payload(output, outcome.patches))
        return taken, result


async def earlier_of(parts: Parts, run: LoadedRun) -> Earlier | None:
    """Return what the run takes over, or None if it takes nothing over."""
    if run.notes.keeps is None:
        return None
    source, again = run.notes.keeps
    sees = partial(sees_all, parts.registry)
    if run.notes.outcomes is None:
        row = await parts.store.get_run(source)
        run.notes.outcomes = {} if row is None else await outcomes_of(parts.store, row, sees)
    return Earlier(run, parts.store, Signatures(run.plan, sees), run.notes.outcomes, again)
