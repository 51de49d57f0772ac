"""A step of a durable function while it is done: one try after another, as its policy says."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping
from typing import Any, Final, cast

import msgspec
import orjson
from msgspec.structs import replace

from compiler.document import CacheDoc
from compiler.plan import Retry
from compiler.regions import cache_of
from compiler.signature import write
from compiler.tracing.steps import Step, name_of
from executor.blocks.durable.again import again_ms
from executor.blocks.types.typed import call_function, raised_in
from executor.errors import BlockError, StepFailed, StepTimeout
from executor.kernel.core.events import StepOnLost
from executor.kernel.handler.base import Access, StepContext, Stepped
from executor.kernel.run.attempt import within
from executor.kernel.run.time_limit import TimeLimit

TIMEOUT_S: Final = 300.0  # of a try of a step without a timeout of its own, as of a block
ARGS_MAX_BYTES: Final = 16 * 1024  # of an exception that is kept as itself


class StepCall:
    """Implements `Work`. `given`: the arguments as JSON; `arguments`: with the types of the function."""

    def __init__(self, ctx: StepContext, step: Step[Any, Any], given: Mapping[str, Any], arguments: Mapping[str, Any]):
        self._ctx = ctx
        self._step = step
        self._given = given
        self._arguments = arguments
        self._retry = Retry(**step.policy.get("retry", {}))
        self._cache = msgspec.convert(step.policy["cache"], CacheDoc) if "cache" in step.policy else None
        if self._cache is not None and self._cache.key:
            raise TypeError(f"{step.name}: `key` of cache is an expression, which a durable function does not have")

    @property
    def on_lost(self) -> StepOnLost:
        """Return the policy, or "" for that of its effect."""
        own: StepOnLost = self._step.policy.get("on_lost", "")
        return "" if own == ("ask" if self._step.effect == "write" else "retry") else own

    @property
    def output_schema(self) -> dict[str, Any] | None:
        return self._step.result_schema or None

    async def run(self, n: int) -> Any:
        """Raises BlockError."""
        if self._cache is None:
            return await self._once(n)
        step = self._step
        params = {"function": step.name, **({"arguments": self._given} if self._given else {})}
        results = self._ctx.own.results_of(step.name, params, cache_of(self._cache), self.output_schema)
        found = await results.find()
        if found is not None:
            return Stepped(orjson.loads(found), cached=True)
        return Stepped(await self._once(n), keep=results.row)

    async def _once(self, n: int) -> Any:
        step, limit_s = self._step, self._step.policy.get("timeout_s", TIMEOUT_S)
        ctx = _context_of(self._ctx, n)
        keywords = {**self._arguments, "ctx": ctx} if step.signature.context else self._arguments
        loop = asyncio.get_running_loop()
        try:
            called = call_function(ctx, step.name, step.function, keywords, write, step.function)
            return await within(lambda: TimeLimit(limit_s, 0, loop), called, loop)
        except TimeoutError:
            error: BlockError = StepTimeout(
                f"{step.name} took longer than {limit_s:g} s", code=StepTimeout.code, type=name_of(TimeoutError)
            )
        except BlockError as raised:
            error = raised
        raised_as = raised_in(error)
        if step.retry is not None and not step.retry.permits(raised_as):
            error.retryable = False
        if isinstance(raised_as, step.raises):
            error.type = name_of(type(raised_as))
            error.arguments = _written(raised_as)
        raise error

    def again_ms(self, n: int, times: int, error: BaseException) -> int | None:
        return again_ms(self._ctx, self._retry, n, times, error)


def _written(raised: BaseException) -> list[Any] | None:
    try:
        data = orjson.dumps(list(raised.args))
    except TypeError:
        return None
    return orjson.loads(data) if len(data) <= ARGS_MAX_BYTES else None


def declared(step: Step[Any, Any], failed: StepFailed) -> Exception | None:
    """Return the exception that the step raised, if it declares it, made again from its arguments."""
    kind = next((kind for kind in _kinds(step.raises) if name_of(kind) == failed.type), None)
    if kind is None:
        return None
    why = f"its args are not JSON of at most {ARGS_MAX_BYTES // 1024} KiB"
    if failed.arguments is not None:
        try:
            return kind(*failed.arguments)
        except Exception as error:
            why = f"{kind.__qualname__}(*args) raised {type(error).__name__}: {error}"
    failed.message = f"{failed.message} (it cannot be raised as {kind.__qualname__}: {why})"
    failed.args = (failed.message,)
    return None


def _kinds(raises: tuple[type[Exception], ...]) -> Iterator[type[Exception]]:
    """Return the declared classes, and those below them."""
    for kind in raises:
        yield kind
        yield from _kinds(tuple(kind.__subclasses__()))


class _OfStep:
    """The attempt as the context of a step asks it."""

    def __init__(self, own: Access, n: int) -> None:
        self._own = own
        self.idempotency_key = f"{own.idempotency_key}#{n}"

    def __getattr__(self, name: str) -> Any:
        return getattr(self._own, name)

    def steps(self) -> Any:
        raise BlockError("a step has no steps of its own", code="step_nested", retryable=False)


def _context_of(ctx: StepContext, n: int) -> StepContext:
    return replace(ctx, own=cast(Access, _OfStep(ctx.own, n)), params={}, calls=None)
