"""Blocks that a durable function awaits: `weft.http`, `email` and `sql`, each a step whose work is the handler of the
block type, and `weft.agent`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import count
from typing import Any, Final

from compiler.diagnostics import suggest
from compiler.signature import Unfit, read, write
from executor.blocks.durable.again import Work
from executor.blocks.durable.agents import Answer, EndOf, converse
from executor.blocks.types import email, http, sql
from executor.blocks.types.agent.block import AgentBlock
from executor.blocks.types.agent.calls import call_block, effect_with
from executor.kernel.handler.base import Block, StepContext
from executor.kernel.handler.durable import DurableCalls

BLOCKS: Final[dict[str, Block]] = {"http": http.block, "email": email.block, "sql": sql.block}


class Blocks:
    """Implements `compiler.tracing.body.Blocks`, in the lane."""

    def __init__(self, ctx: StepContext, calls: DurableCalls, end_of: EndOf) -> None:
        self._ctx = ctx
        self._calls = calls
        self._end_of = end_of
        self._agents = count(1)

    async def call(self, type: str, params: Mapping[str, Any], returns: Any) -> Any:
        """Raises StepFailed; TypeError: a param has no JSON form, or is none of the block."""
        block, given = BLOCKS[type], checked(type, BLOCKS[type], params)
        for pointer in block.spec.addresses:  # which of its commas the author wrote is not known
            name = pointer.removeprefix("/")
            if isinstance(given.get(name), str):
                given[name] = [given[name]]

        async def work(n: int) -> Any:
            return await call_block(self._ctx, block, given, f"#{n}")

        step = self._calls.step(type, given, Work(self._ctx, block.spec.attempts, work), effect_with(block, given))
        return read(returns, await step)

    async def agent(self, params: Mapping[str, Any], tools: Sequence[Any], output: Any, path: Sequence[str]) -> Any:
        """Return the answer, of the type `output`, which is at `path` in what the model returns. Raises StepFailed,
        and BlockError with the codes of the block."""
        given = checked("agent", AgentBlock(), params)
        number, of_type = next(self._agents), Answer(output, path)
        return await converse(self._ctx, self._calls, self._end_of, number, given, tools, of_type)


def checked(type: str, block: Block, params: Mapping[str, Any]) -> dict[str, Any]:
    """Return params as JSON. Raises TypeError."""
    known = block.spec.params["properties"]
    for name in params:
        if name not in known:
            raise TypeError(f"weft.{type} has no argument {name!r}. {suggest(name, known)}".rstrip())
    try:
        return {name: write(value) for name, value in params.items()}
    except Unfit as error:
        raise TypeError(f"weft.{type}: an argument is {error.message}") from None
