"""`weft.agent` in a durable function: the loop of the block `agent`, whose steps and waits are calls in the same lane.
So an approval holds no memory, and a model is never asked the same again."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, cast

from msgspec.structs import replace

from compiler.builder.tools import called, entries
from compiler.signature import Unfit, read
from compiler.tracing.steps import Step
from executor.blocks.durable.again import Work
from executor.blocks.durable.group import group
from executor.blocks.llm.base import Reply
from executor.blocks.services import services_of
from executor.blocks.types.agent.block import Talk
from executor.blocks.types.agent.tools import Tool, read_tools
from executor.blocks.types.asking import ATTEMPTS, wrong
from executor.blocks.types.python import Python
from executor.errors import BlockError
from executor.kernel.core.events import StepEffect
from executor.kernel.handler.base import Access, MakeSuspend, StepContext, StepKind, Suspend
from executor.kernel.handler.durable import DurableCalls
from executor.kernel.values.payload import Bound

EndOf = Callable[[asyncio.Future[Any], int], Awaitable[Any]]  # see `Running.end_of`


async def converse(
    ctx: StepContext,
    calls: DurableCalls,
    end_of: EndOf,
    n: int,
    params: dict[str, Any],
    tools: Sequence[Any],
    answer: Answer,
) -> Any:
    """Return the answer of agent number `n` of the function. Raises BlockError; BuildError: a tool is none."""
    own = cast(Access, _OfAgent(ctx.own, n))
    steps = LaneSteps(ctx, calls)
    inner = replace(ctx, own=own, params=params, now_ms=calls.now_ms, last_checkpoint=None, steps=steps, calls=None)

    async def judge(reply: Reply, schema: Mapping[str, Any]) -> Sequence[str]:
        return wrong(reply, schema, answer.problems, ctx.services.sandbox.matches)

    with group("agent"):
        done = await Talk(inner, _tools(ctx, tools), judge, group, lambda wait: end_of(wait, calls.turns)).run()
    return answer.of(done.output["content"])


class Answer:
    """The answer of an agent: of the type `output`, at `path` in what the model returns."""

    def __init__(self, output: Any, path: Sequence[str]) -> None:
        self._output = output
        self._path = path

    def of(self, content: Any) -> Any:
        """Raises Unfit."""
        for name in self._path:
            content = content[name]
        return content if isinstance(self._output, Mapping) else read(self._output, content)

    def problems(self, content: dict[str, Any]) -> Sequence[str]:
        """Return why the answer, which its schema permits, is not of its type."""
        try:
            self.of(content)
        except Unfit as error:
            return [f"{error.pointer or 'the answer'}: {error.message}"]
        return ()


class LaneSteps:
    """Implements `Steps`: each call takes its number when it is made."""

    def __init__(self, ctx: StepContext, calls: DurableCalls) -> None:
        self._ctx = ctx
        self._calls = calls

    def step(
        self, kind: StepKind, name: str, input: Any, work: Callable[[], Awaitable[Any]], effect: StepEffect
    ) -> asyncio.Future[Any]:
        attempts = ATTEMPTS if kind == "model" else 1  # a function is tried again by its own policy
        return self._calls.step(name, input, Work(self._ctx, attempts, lambda n: work()), effect, kind=kind)

    def wait(self, suspend: Suspend | MakeSuspend, name: str) -> asyncio.Future[Any]:
        async def make() -> Suspend:
            return suspend if isinstance(suspend, Suspend) else await suspend()

        return self._calls.wait(name, make)

    def step_from_thread(self, *given: Any) -> Any:
        raise BlockError("a durable function has no threads", code="steps_not_available", retryable=False)

    wait_from_thread = step_from_thread


class _OfAgent:
    """The attempt as one of the agents of a durable function asks it: each has keys and a turn in memory of its own."""

    def __init__(self, own: Access, n: int) -> None:
        self._own = own
        self.idempotency_key = f"{own.idempotency_key}#agent{n}"
        self.key_text = f"{own.key_text}#agent{n}"

    def __getattr__(self, name: str) -> Any:
        return getattr(self._own, name)


def _tools(ctx: StepContext, tools: Sequence[Any]) -> dict[str, Tool]:
    listed = [_bound(entry) for entry in entries(tools)]
    steps = {one.name: one for one in called(tools) if isinstance(one, Step)}
    workflows = {one.name: one for one in called(tools) if not isinstance(one, Step)}
    found = read_tools(listed, services_of(ctx).registry, listed, Python(steps))
    for name, tool in found.items():
        if tool.given.workflow in workflows:
            found[name] = replace(tool, definition=workflows[tool.given.workflow].document())
    return found


def _bound(entry: Mapping[str, Any]) -> dict[str, Any]:
    """Return the tool with its condition as an expression, as the params of a block have it."""
    condition = entry.get("approve_if")
    return {**entry, **({"approve_if": Bound(condition, {})} if isinstance(condition, str) else {})}
