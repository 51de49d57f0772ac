"""The code of a durable function while it runs: what steps, workflows and waits do when it awaits them."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Awaitable, Mapping, Sequence
from datetime import UTC, datetime
from hashlib import sha256
from itertools import count
from typing import Any, Final, cast

from msgspec.structs import replace

from compiler.plan import Retry
from compiler.signature import Unfit, read, write
from compiler.tracing.body import present_body
from compiler.tracing.calls import Answer
from compiler.tracing.steps import Step
from compiler.tracing.workflow import FunctionWorkflow
from executor.blocks.types.approval import block as approval
from executor.blocks.types.form import block as form
from executor.blocks.types.run_workflow import block as run_workflow
from executor.blocks.types.signal import block as signal
from executor.blocks.types.typed import call_function
from executor.errors import BlockError
from executor.kernel.core.decide_attempts import delay_ms
from executor.kernel.handler.base import Access, Block, Context, Suspend
from executor.kernel.handler.durable import DurableCalls
from executor.kernel.run.mismatch import CodeUnfit

TIMEOUT_S: Final = 300.0  # of one call of a step without a timeout of its own, as of a block


class Running:
    """Implements `Body`. `seed` gives the next value of which random numbers are made."""

    def __init__(self, ctx: Context, calls: DurableCalls, is_changed: bool = False) -> None:
        self._ctx = ctx
        self.calls = calls
        self._is_changed = is_changed
        self._seeds = count(1)

    @property
    def now(self) -> datetime:
        return datetime.fromtimestamp(self.calls.now_ms / 1000, UTC)

    def seed(self) -> bytes:
        return sha256(f"{self.calls.seed}:{next(self._seeds)}".encode()).digest()

    async def step(self, step: Step[Any, Any], args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
        plain = inspect.signature(step.function)
        plain = plain.replace(parameters=[one for name, one in plain.parameters.items() if name != "ctx"])
        arguments = dict(plain.bind(*args, **kwargs).arguments)
        given = {name: _written(step.name, name, value) for name, value in arguments.items()}
        try:
            converted = step.signature.arguments(given)
        except Unfit as error:
            raise TypeError(f"{step.name}: {error.message}") from None

        def work(n: int) -> Awaitable[Any]:
            return self._tries(step, converted, n)

        return _read(step.signature.returns, await self.calls.step(step.name, given, work, step.effect))

    async def _tries(self, step: Step[Any, Any], arguments: Mapping[str, Any], n: int) -> Any:
        """Call the function, again after an error as its policy says. Raises BlockError."""
        retry, limit_s = Retry(**step.policy.get("retry", {})), step.policy.get("timeout_s", TIMEOUT_S)
        ctx = _context_of(self._ctx, n)
        keywords = {**arguments, "ctx": ctx} if step.signature.context else arguments
        for tries in count(1):
            try:
                async with asyncio.timeout(limit_s):
                    return await call_function(ctx, step.name, step.function, keywords, write, step.function)
            except TimeoutError:
                error = BlockError(f"{step.name} took longer than {limit_s:g} s", code="timeout")
            except BlockError as raised:
                error = raised
            if tries >= retry.max_attempts or not error.retryable:
                raise error
            pause_ms = delay_ms(retry, ctx.run_id, ((), n), tries)
            await asyncio.sleep(max(pause_ms, (error.retry_at_ms or 0) - ctx.clock()) / 1000)
        raise AssertionError("it counts without an end")

    async def call(self, workflow: str | FunctionWorkflow[Any, Any], input: Any) -> Any:
        if isinstance(workflow, str):
            return await self.ask(run_workflow, workflow, {"workflow": workflow, "input": input})
        given = {name: _written(workflow.name, name, value) for name, value in dict(input or {}).items()}
        params = {"definition": workflow.document(), "input": given}
        return _read(workflow.signature.returns, await self.ask(run_workflow, workflow.name, params))

    async def sleep(self, seconds: float) -> None:
        await self.calls.sleep(self.calls.now_ms + round(seconds * 1000))

    async def until(self, time_ms: int) -> None:
        await self.calls.sleep(time_ms)

    async def approve(self, params: Mapping[str, Any], fields: Any) -> Answer[Any]:
        answer = dict(await self.ask(approval, params["title"], params))
        action, by = answer.pop("action", ""), answer.pop("answered_by", None)
        answer.pop("answered_at", None)
        is_type = fields is not None and not isinstance(fields, Mapping)
        return Answer(action, _read(fields, answer) if is_type else answer, by)

    async def form(self, params: Mapping[str, Any], fields: Any) -> Any:
        answer = dict(await self.ask(form, params["title"], params))
        for name in ("answered_by", "answered_at"):
            answer.pop(name, None)
        return _read(fields, answer)

    async def signal(self, params: Mapping[str, Any], type: Any) -> Any:
        return _read(type, (await self.ask(signal, params["name"], params))["payload"])

    def refuse_type(self, error: BlockError) -> BaseException:
        """Return the error of a result that does not fit its type. If the run began with other code, the type may have
        been another."""
        return self.calls.refuse(CodeUnfit(error.message)) if self._is_changed else error

    def ask(self, block: Block, name: str, params: Mapping[str, Any]) -> Awaitable[Any]:
        """Wait as a block of this type does with these params."""
        ctx = replace(self._ctx, params=dict(params), now_ms=self.calls.now_ms)

        async def suspend() -> Suspend:
            return cast(Suspend, await block.run(ctx))

        return self.calls.wait(name, suspend)


def present(called: str) -> Running:
    """Raises RuntimeError: no durable function calls this."""
    body = present_body()
    if not isinstance(body, Running):
        raise RuntimeError(
            f"weft.{called}() works in a durable function: call it in one with @weft.durable, and not inside of a step"
        )
    return body


def _written(what: str, name: str, value: Any) -> Any:
    try:
        return write(value)
    except Unfit as error:
        raise TypeError(f"{what}: argument {name} is {error.message}") from None


def _read(type: Any, value: Any) -> Any:
    """Raises BlockError, or what the code cannot catch: it does not fit the type."""
    if type is None:
        return value
    try:
        return read(type, value)
    except Unfit as error:
        message = f"the result does not fit its type: {error.message}"
        raised = BlockError(message, code="output_invalid", retryable=False)
        body = present_body()
        raise (body.refuse_type(raised) if isinstance(body, Running) else raised) from None


class _OfStep:
    """The attempt as the context of a step asks it."""

    def __init__(self, own: Access, n: int) -> None:
        self._own = own
        self.idempotency_key = f"{own.idempotency_key}#{n}"

    def __getattr__(self, name: str) -> Any:
        return getattr(self._own, name)

    def steps(self) -> Any:
        raise BlockError("a step has no steps of its own", code="step_nested", retryable=False)


def _context_of(ctx: Context, n: int) -> Context:
    return replace(ctx, own=cast(Access, _OfStep(ctx.own, n)), params={}, calls=None)
