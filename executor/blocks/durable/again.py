"""When a step of a durable function is tried again after an error."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, ClassVar

from compiler.plan import Retry
from executor.errors import BlockError
from executor.kernel.core.decide_attempts import delay_ms
from executor.kernel.handler.base import StepContext


class Work:
    """Implements `executor.kernel.handler.durable.Work` for work of weft, tried `attempts` times."""

    output_schema: ClassVar[None] = None

    def __init__(self, ctx: StepContext, attempts: int, work: Callable[[int], Awaitable[Any]]) -> None:
        self._ctx = ctx
        self._retry = Retry(max_attempts=attempts)
        self.run = work

    def again_ms(self, n: int, times: int, error: BaseException) -> int | None:
        return again_ms(self._ctx, self._retry, n, times, error)


def again_ms(ctx: StepContext, retry: Retry, n: int, times: int, error: BaseException) -> int | None:
    """Return when step `n` begins again after its failure number `times`, or None if that is its end."""
    if times >= retry.max_attempts or not isinstance(error, BlockError) or not error.retryable:
        return None
    return max(ctx.clock() + delay_ms(retry, ctx.run_id, ((), n), times), error.retry_at_ms or 0)
