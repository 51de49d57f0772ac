"""`continue_as_new`: ends the run, and a new run of the same workflow continues it with this input and an empty
journal."""

from __future__ import annotations

from typing import Any

import orjson

from executor.blocks.types.declared import block_type
from executor.blocks.types.params import TypedParams, param
from executor.kernel.handler.base import Done, StepContext


class _Params(TypedParams):
    input: Any = param(
        "Input", "Input of the new run. It is checked against the input schema of this workflow.", widget="keyvalues"
    )


@block_type(
    type="continue_as_new",
    title="Continue as new",
    description="Ends the run and starts a new run of this workflow in its place. "
    "Blocks that are still running are cancelled.",
    category="flow",
    params=_Params.json_schema,
    handles=(),
    effect="write",
    idempotent=True,  # an attempt that is lost has started nothing: the new run comes with the end of this one
    ends_run=True,
    continues=True,
    output={"type": "object", "properties": {"input": {}, "version": {"type": ["integer", "null"]}}},
    sentence="Continue as a new run with {input} | Continue as a new run",
    icon="continue_as_new",
)
async def block(ctx: StepContext) -> Done:
    """Output {"input", "version"} of the new run. Raises the BlockErrors of FurtherRuns.prepare_next."""
    new = await ctx.prepare_next(_Params(ctx.params).input)
    return Done({"input": orjson.loads(new.input), "version": new.version}, route=None, next=new)
