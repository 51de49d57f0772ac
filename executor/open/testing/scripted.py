"""Block types with the results that a test gives, in the place of real ones."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from compiler.catalog import BlockSpec
from executor.blocks.types.registry import Registry
from executor.errors import BlockError
from executor.kernel.handler.base import Block, Done, Outcome, StepContext, Suspend


class Call(Struct, frozen=True):
    """One attempt of a scripted block. `params` as they were filled in."""

    block: str
    key: str
    attempt: int
    idempotency_key: str
    params: dict[str, Any]


class ScriptedBlock:
    """See `scripted`. `calls`: its attempts, in the order in which they began."""

    def __init__(self, spec: BlockSpec, script: Sequence[Any]) -> None:
        self.spec = spec
        self.calls: list[Call] = []
        self._script = list(script)

    async def run(self, ctx: StepContext) -> Outcome:
        self.calls.append(Call(ctx.block, ctx.key, ctx.attempt, ctx.idempotency_key, ctx.params))
        if not self._script:
            return Done(None)
        result = self._script.pop(0) if len(self._script) > 1 else self._script[0]
        if callable(result) and not isinstance(result, type):
            result = result(ctx)
            if asyncio.iscoroutine(result):
                result = await result
        if isinstance(result, BaseException):
            raise result
        return result if isinstance(result, Done | Suspend) else Done(result)


def scripted(type: str, *script: Any, like: Block | None = None) -> ScriptedBlock:
    """A block type `type` whose attempts have these results, one after the other, and the last one from then on: an
    output (any JSON value), a `Done` or `Suspend`, an exception to raise, or a function that gets `ctx` and returns one
    of these.

    Params, exits and effect are those of `like`, or of the installed type of this name. Without either any params are
    accepted, and the effect is `write`."""
    spec = like.spec if like is not None else Registry.load().get(type)
    if spec is None:
        params = {"type": "object", "properties": {}, "additionalProperties": True}
        spec = BlockSpec(type, type, "", "action", params=params, effect="write", idempotent=False)
    return ScriptedBlock(replace(spec, type=type, inline=False), script)


def failure(message: str, code: str = "scripted", *, retryable: bool = True) -> BlockError:
    """Return an error for a script."""
    return BlockError(message, code=code, retryable=retryable)
