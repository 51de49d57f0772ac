"""Compares the calls of code with those that it made when it first came there. The text of the error is made here."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from typing import Final

from executor.errors import BlockError
from executor.kernel.core.state import Step
from executor.kernel.run.step_work import Call

OF_BLOCK: Final = "a block must make the same calls in the same order each time; run it again from the start"
OF_FUNCTION: Final = (
    "A durable function must make the same calls each time it is entered. Did its code change while the run was open? "
    "Else look for times, random numbers and data from outside: use weft.now(), weft.random(), weft.uuid(), and steps."
)
Arrival = tuple[int, int, int]  # the event after which it is delivered, that of the end, number of the call


class Mismatch(BlockError):
    """The code makes another call than before, or does not make it."""

    def __init__(self, message: str, hint: str = OF_FUNCTION) -> None:
        super().__init__(message, code="steps_changed", retryable=False, hint=hint)


class Expected:
    """The calls of earlier entries. All are made again, each before its end is delivered."""

    def __init__(self, known: Mapping[int, Step]) -> None:
        self._known = known
        self._last = max(known, default=0)
        self._ends = deque(sorted(arrival_of(n, step) for n, step in known.items() if has_arrived(step)))

    def deliver(self, arrival: Arrival | None, made: int) -> None:
        """`arrival` is next, or nothing is; `made` calls have been made. Raises Mismatch."""
        if not self._ends:
            self.end(made)
        elif (end := self._ends.popleft()) != arrival:
            raise _missing(end[2], self._known)

    def end(self, made: int) -> None:
        """All is delivered, or the code has ended. Raises Mismatch."""
        if made < self._last:
            raise _missing(min(n for n in self._known if n > made), self._known)


def has_arrived(step: Step) -> bool:
    return step.finished_seq > 0 and step.arrives_seq >= 0


def arrival_of(n: int, step: Step) -> Arrival:
    return step.arrives_seq or step.finished_seq, step.finished_seq, n


def changed(was: Step, call: Call, hint: str = OF_FUNCTION) -> Mismatch:
    """Return the error of `call`, in whose place `was` is recorded."""
    before, now = f"{was.kind} {was.name!r}", f"{call.kind} {call.name!r}"
    if before == now:
        return Mismatch(f"call {call.n}, {now}, has other arguments now than when the code first came to it", hint)
    return Mismatch(f"call {call.n} is {now} now, and was {before} when the code first came to it", hint)


def _missing(n: int, known: Mapping[int, Step]) -> Mismatch:
    was = known[n]
    return Mismatch(f"call {n} was {was.kind} {was.name!r} when the code first came to it, and is not made now")
