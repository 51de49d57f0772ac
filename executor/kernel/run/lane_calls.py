"""The calls that the code of a durable function makes: their numbers, and what each is until its end is delivered.

A call gets its number when it is made, and is compared with the one that an earlier entry made there. Nothing begins
here, and which end comes next is not known here: see `durable.py`.
"""

from __future__ import annotations

import asyncio
import heapq
from collections.abc import Mapping
from functools import partial
from typing import Any, NoReturn

from executor.errors import BlockError
from executor.kernel.core.events import StepEffect, StepKind, StepOnLost
from executor.kernel.handler.base import Leaving, MakeSuspend
from executor.kernel.handler.durable import ContinueAsNew, EndChild, Work
from executor.kernel.run.call_site import site_of
from executor.kernel.run.lane import Lane
from executor.kernel.run.lane_bounds import check_number
from executor.kernel.run.made import Boxes, Entry, Made, raised
from executor.kernel.run.mismatch import Arrival, Expected, changed, fits
from executor.kernel.run.opened import Opened
from executor.kernel.run.published import Published
from executor.kernel.run.step_work import Call, Ended, StepJournal, StepWork


class LaneCalls:
    """Implements `DurableCalls` but for `run`. `now_ms`: time of the last end that was delivered."""

    def __init__(self, entry: Entry, journal: StepJournal, work: StepWork) -> None:
        self.now_ms = self.started_ms = entry.started_ms
        self.turns = 0
        self.seed, self.by = entry.seed, entry.by
        self.body: Any = None
        self.held_bytes = 0
        self.refused: BlockError | None = None
        self._published = Published(journal, work.border)
        self._masks: dict[bytes, bytes] = {}
        self._lane = Lane(self._timer, lambda: self.now_ms, entry.seed)  # type: ignore[abstract]  # it gets those that it refuses by setattr
        self._file = ""  # of the code
        self._n = 0
        self._made: dict[int, Made] = {}  # not delivered yet
        self._expected = Expected(entry.known)
        self._new: list[int] = []  # not begun yet
        self._arrivals: list[Arrival] = []  # heap
        self._boxes = Boxes()
        self._continues: ContinueAsNew | None = None
        self._shields = 0  # that the code is in
        self._enter(entry, journal, work)

    def _enter(self, entry: Entry, journal: StepJournal, work: StepWork) -> None:
        self._is_over = False  # no call is made any more
        self._entry, self._journal, self._work = entry, journal, work
        self._work.masks = self._masks

    def step(
        self,
        name: str,
        input: Any,
        work: Work,
        effect: StepEffect,
        on_lost: StepOnLost = "",
        *,
        kind: StepKind = "step",
    ) -> asyncio.Future[Any]:
        return self._add(Made(self._call(kind, name, input, effect, on_lost), self._lane.create_future(), work=work))

    def wait(self, name: str, suspend: MakeSuspend, box: str | None = None) -> asyncio.Future[Any]:
        made = Made(self._call("wait", name, None, "none"), self._lane.create_future(), suspend=suspend, box=box)
        return made.future if self._boxes.answer(made) else self._add(made)

    def opened(self, wait: asyncio.Future[Any], end: EndChild | None = None) -> asyncio.Future[Any]:
        n = next(n for n, made in reversed(self._made.items()) if made.future is wait)
        work = Opened(self._entry.known, self._entry.recorded, n, wait, end)
        call = self._call("step", "opened", None, "none") if end is None else self._call("step", "end", n, "read")
        made = Made(call, self._lane.create_future(), work=work)
        made.needs = n
        return self._add(made)

    def mask(self, text: str, name: str) -> None:
        self._masks[text.encode()] = name.encode()

    def sleep(self, due_ms: int) -> asyncio.Future[Any]:
        return self._timer(due_ms, "sleep")

    @property
    def replaying(self) -> bool:
        return self._expected.are_left

    def publish(self, state: Any) -> None:
        self._published.put(state)

    def answer(self, name: str, update: str, answer: Any, refused: str | None) -> asyncio.Future[Any]:
        event = self._work.answered(name, update, answer, refused)
        given = {"update": update, "answer": answer} if refused is None else {"update": update, "refused": refused}
        call = self._call("step", f"answer {name}", given, "none")
        return self._add(Made(call, self._lane.create_future(), event=event))

    def continue_as_new(self, input: Any) -> NoReturn:
        self._continues = self._continues or ContinueAsNew(input)
        raise Leaving

    def _timer(self, due_ms: int, name: str = "timer") -> asyncio.Future[Any]:
        return self._add(Made(self._call("wait", name, None, "none"), self._lane.create_future(), due_ms=due_ms))

    def patched(self, name: str) -> bool:
        """Return True if the run has this mark here, or comes here for the first time: then it gets the mark."""
        n = self._n + 1
        was = self._entry.known.get(n)
        if was is None and not self._expected.is_beyond(n):
            return False
        if was is not None and (was.kind, was.name) != ("mark", name):
            return False
        call = self._call("mark", name, None, "none")
        if was is None:
            self._work.mark(call)
        return True

    def _call(self, kind: StepKind, name: str, input: Any, effect: StepEffect, on_lost: StepOnLost = "") -> Call:
        if self._is_over or self.refused is not None or self._continues is not None:
            raise Leaving
        known = self._entry.known.get(self._n + 1)
        if (error := check_number(self._n + 1, known is None, self._journal)) is not None:
            raise self.refuse(error)
        self._n += 1
        site = None if known is not None and known.finished_seq else site_of(self._file)
        call = self._work.call(self._n, kind, name, input, effect, site, on_lost)
        if known is not None and not fits(known, call):
            call = self._work.call(self._n, kind, name, input, effect, site_of(self._file))
            raise self.refuse(changed(known, call))
        return call

    def refuse(self, error: BlockError) -> Leaving:
        """The code cannot catch this: the entry ends with it."""
        self.refused = self.refused or error
        return Leaving()

    def _add(self, made: Made) -> asyncio.Future[Any]:
        n = made.call.n
        self._made[n] = made
        known = self._entry.known.get(n)
        if known is not None and known.finished_seq:
            heapq.heappush(self._arrivals, (known.finished_seq, n))
        else:
            self._new.append(n)
        made.future.add_done_callback(partial(self._done, made))
        return made.future

    def _done(self, made: Made, future: asyncio.Future[Any]) -> None:
        if future.cancelled():
            self._drop(made)

    def _drop(self, made: Made) -> None:
        """The code does not need the end of this call any more."""

    @property
    def outstanding(self) -> Mapping[int, bool]:
        """Return the numbers of the calls whose ends were not delivered, and whether the code awaits them."""
        return {n: not made.future.done() for n, made in self._made.items()}

    async def enter_shield(self) -> None:
        self._shields += 1

    def leave_shield(self) -> None:
        self._shields -= 1

    def _take(self, made: Made, ended: Ended) -> None:
        self.now_ms = max(self.now_ms, ended.at_ms)
        self.held_bytes += len(ended.output or b"")
        self.turns += 1
        if made.future.done():
            if made.box is not None and ended.error is None:
                self._boxes.pass_on(made.box, ended.value(), self._made)
            return
        if ended.error is None:
            made.future.set_result(ended.value())
        else:
            made.future.set_exception(raised(ended.error))
