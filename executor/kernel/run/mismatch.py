"""Compares the calls of code with those that it made when it first came there. The text of the error is made here."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import PurePath
from typing import Any, Final

import orjson

from executor.errors import BlockError
from executor.kernel.core.state import Step
from executor.kernel.journal.codec import data_of
from executor.kernel.run.step_work import Call
from executor.kernel.store.run_rows import Record

ANY_INPUT: Final = ""  # as the hash of the input of a step whose result counts for any: the block has other params now
OF_BLOCK: Final = "a block must make the same calls in the same order each time; run it again from the start"
OF_FUNCTION: Final = (
    'Did the code change while the run was open? Put what is new behind `if weft.patched("…"):`. Did it not? '
    "Something in the body is not the same each time, such as a clock or a set: `weft validate` finds most of these."
)
SIDE_MAX: Final = 300  # characters of a call
BEFORE_MAX: Final = 3  # calls that are named before it
Arrival = tuple[int, int]  # the number of its event, and of the call


class CodeUnfit(BlockError):
    """The code does not fit what is recorded."""

    def __init__(self, message: str, hint: str = OF_FUNCTION) -> None:
        super().__init__(message, code="steps_changed", retryable=False, hint=hint)


class Mismatch(CodeUnfit):
    """The code makes another call than before, or does not make it. `was`: what is recorded as call `n`; `call`: what
    is made in its place."""

    def __init__(self, message: str, n: int, was: Step, call: Call | None = None, hint: str = OF_FUNCTION) -> None:
        super().__init__(message, hint)
        self.n = n
        self.was = was
        self.call = call

    def explain(self, recorded: Record | None, known: Mapping[int, Step], run: str, file: str) -> None:
        """Say where it is, and what the calls were made with. `recorded`: the start of the call; `file`: of the
        function."""
        data = {} if recorded is None else data_of(recorded)
        was = text_of_call(self.was.kind, self.was.name, data.get("shown"))
        name, call = PurePath(file).name, self.call
        if call is not None:
            at = f"{name}:{call.site.line}: " if call.site.line else ""
            now = call_text(call)
            text = f"{at}call {self.n} is {now} now, and was {was} when this run first came here"
            if now == was:
                text = f"{at}call {self.n}, {now}, has other arguments now than when this run first came here"
        else:
            line = data.get("line")
            at = f"{name}:{line}: " if line else ""
            text = f"{at}call {self.n} was {was} when this run first came here, and is not made now"
        time = (
            "" if recorded is None else f", {datetime.fromtimestamp(recorded.at_ms // 1000, UTC):%Y-%m-%d %H:%M:%S} UTC"
        )
        place = f"(run {run}, event {self.was.started_seq}{time})"
        before = ", ".join(f"{known[n].name} ({n})" for n in sorted(known) if n < self.n and n >= self.n - BEFORE_MAX)
        self.message = f"{text} {place}. {f'Calls before it: {before}.' if before else 'It is the first call.'}"
        self.args = (self.message,)
        self.hint = f"{OF_FUNCTION} `weft debug {run}` stops there."


class Expected:
    """The calls of earlier entries. All are made again, each before its end is delivered."""

    def __init__(self, known: Mapping[int, Step]) -> None:
        self._known = known
        self._last = max(known, default=0)
        ends = ((step.finished_seq, n) for n, step in known.items() if step.kind != "mark")
        self._ends = deque(sorted(end for end in ends if end[0]))

    @property
    def are_left(self) -> bool:
        """Returns True if ends of them are to be delivered."""
        return bool(self._ends)

    def is_beyond(self, n: int) -> bool:
        """Return True if no call `n` or later is recorded."""
        return n > self._last

    def deliver(self, arrival: Arrival | None, made: int) -> None:
        """`arrival` is next, or nothing is; `made` calls have been made. Raises Mismatch."""
        if not self._ends:
            self.end(made)
        elif (end := self._ends.popleft()) != arrival:
            raise _missing(end[1], self._known)

    def end(self, made: int) -> None:
        """All is delivered, or the code has ended. Raises Mismatch."""
        if made < self._last:
            raise _missing(min(n for n in self._known if n > made), self._known)


def fits(was: Step, call: Call) -> bool:
    return was.input_hash in (call.input_hash, ANY_INPUT)


def changed(was: Step, call: Call, hint: str = OF_FUNCTION) -> Mismatch:
    """Return the error of `call`, in whose place `was` is recorded."""
    before, now = f"{was.kind} {was.name!r}", f"{call.kind} {call.name!r}"
    message = f"call {call.n} is {now} now, and was {before} when the code first came to it"
    if before == now:
        message = f"call {call.n}, {now}, has other arguments now than when the code first came to it"
    return Mismatch(message, call.n, was, call, hint)


def _missing(n: int, known: Mapping[int, Step]) -> Mismatch:
    was = known[n]
    message = f"call {n} was {was.kind} {was.name!r} when the code first came to it, and is not made now"
    return Mismatch(message, n, was)


def call_text(call: Call) -> str:
    return text_of_call(call.kind, call.name, call.shown)


def text_of_call(kind: str, name: str, input: Any) -> str:
    """Return `charge(order="7", amount=3)`, or for a wait its name."""
    if kind != "step":
        more = "" if input is None else f" with {orjson.dumps(input).decode()}"
        return f"the {kind} `{name}`{more if len(more) <= SIDE_MAX else f'{more[:SIDE_MAX]}…'}"
    if isinstance(input, dict):
        input = ", ".join(f"{key}={orjson.dumps(value).decode()}" for key, value in input.items())
    text = f"{name}({'' if input is None else input}"
    return f"`{text[:SIDE_MAX]}…`" if len(text) > SIDE_MAX else f"`{text})`"
