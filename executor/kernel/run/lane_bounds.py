"""The number of calls that a durable function may make, and the errors of one that cannot continue."""

from __future__ import annotations

import logging
from typing import Final

from executor.errors import BlockError
from executor.kernel.run.step_work import StepJournal

log = logging.getLogger("weft.durable")

STEPS_MAX: Final = 100_000  # each entry from the first line reads the results of all
STEPS_MANY: Final = 10_000  # the log names `continue_as_new` from here on: such an entry takes half a second


def check_number(n: int, is_new: bool, journal: StepJournal) -> BlockError | None:
    """Return the error of call number `n`, if it is one too many. Logs that there are many."""
    if n > STEPS_MAX:
        hint = "end the run with `await function.continue_as_new(...)`, or split the work into runs that it calls"
        message = f"the durable function has more than {STEPS_MAX:,} steps"
        return BlockError(message, code="limit_steps", retryable=False, hint=hint)
    if n == STEPS_MANY and is_new:
        text = (
            f"the durable function has {n:,} steps: after a crash all their results are read again. "
            f"`await function.continue_as_new(...)` begins with none; the limit is {STEPS_MAX:,}"
        )
        log.warning("run %s: %s", journal.run_id, text)
        journal.keep(text, "log")
    return None


def nothing_comes() -> BlockError:
    """Return the error of code that waits for something that none of its own tasks brings."""
    message = "the durable function waits for something that cannot come: nothing is under way"
    hint = "It awaits a future, a lock or a queue of asyncio that none of its own tasks serves."
    return BlockError(message, code="durable_stuck", retryable=False, hint=hint)
