"""Steps inside a block, as the state of a run has them: what `Context.step` and `Context.wait` of its handler began.

They belong to the node key and not to an attempt: an attempt that follows finds what the ones before it finished, by
the number of the call (`n`), and does not do it again. What a step put out is in the journal, in the record of event
`finished_seq`; the state has only what decides.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from compiler.keys import NodeKey
from executor.kernel.core.events import StepEffect, StepKind, StepStarted


@dataclass(slots=True)
class Step:
    """`failed`: it finished with an error. `lost`: nothing is known of its end, and it must not be done again unasked.
    Seq: number of the event; 0: not yet."""

    kind: StepKind
    name: str
    input_hash: str
    effect: StepEffect
    started_seq: int
    finished_seq: int = 0
    failed: bool = False
    lost: bool = False

    @property
    def under_way(self) -> bool:
        return not self.finished_seq and not self.lost


@dataclass(slots=True)
class NodeSteps:
    """The steps of one node key that is not decided. `entries` is the number of attempts that do not count as failed
    ones, because the handler waited. `last_wait` is the last number of the waits that are open side by side, or 0."""

    by_n: dict[int, Step] = field(default_factory=dict)
    entries: int = 0
    last_wait: int = 0

    def started(self, event: StepStarted, seq: int) -> None:
        self.by_n[event.n] = Step(event.kind, event.name, event.input_hash, event.effect, seq)

    def finished(self, n: int, failed: bool, seq: int) -> None:
        step = self.by_n[n]
        step.finished_seq, step.failed, step.lost = seq, failed, False

    def lose(self, n: int, again: bool) -> None:
        """`again`: it may be done as if it had not begun."""
        if again:
            del self.by_n[n]
        else:
            self.by_n[n].lost = True

    def try_again(self) -> None:
        """The node is tried again after an error: a failed step is done again if no step began after it had failed. A
        handler that continued after a failure depends on it."""
        last_start = max((step.started_seq for step in self.by_n.values()), default=0)
        self.by_n = {n: s for n, s in self.by_n.items() if not (s.failed and s.finished_seq > last_start)}


Steps = dict[NodeKey, NodeSteps]
