"""An event of a step on its way from the attempt to the loop of its run, which records it."""

from __future__ import annotations

import asyncio

from executor.errors import BlockError
from executor.kernel.core.events import StepFinished, StepStarted


class StepNote:
    """The event of a step for the run's loop to record. `done` is set when the event is on disk, or is None if nothing
    waits for that. The key of `event` is filled in when it is recorded: the run may have moved to another plan by
    then."""

    __slots__ = ("done", "event", "output")

    def __init__(
        self,
        event: StepStarted | StepFinished,
        output: bytes | None = None,
        done: asyncio.Future[None] | None = None,
    ) -> None:
        self.event = event
        self.output = output
        self.done = done

    def settle(self) -> None:
        """Note that the event is on disk."""
        if self.done is not None and not self.done.done():
            self.done.set_result(None)

    def refuse(self) -> None:
        """Refuse the event: the attempt was over, so it is not recorded."""
        if self.done is not None and not self.done.done():
            message = f"attempt {self.event.attempt} has ended: its step {self.event.n} was not recorded"
            self.done.set_exception(BlockError(message, code="attempt_over", retryable=False))
