"""`parallel`: runs its body once per branch, all at the same time. Its start sentinel returns the number of
branches.
"""

from __future__ import annotations

from typing import Any

from compiler.catalog import BRANCHES_MAX, CONCURRENCY_DEFAULT
from executor.blocks.types.declared import block_type
from executor.blocks.types.params import ITEMS, RESULTS, TypedParams, changed, param
from executor.errors import BlockError
from executor.kernel.handler.base import Sized, StepContext, Tested
from executor.kernel.values.coerce import to_count, to_items


class _Params(TypedParams):
    mode: str | None = param(
        "Branches", "How many branches run.", choices={"count": "A number of branches", "each": "One for each item"}
    )
    count: Any = param(
        "Number of branches", "A number, or a reference to one.", widget="number", when={"mode": ["count"]}
    )
    items: Any = ITEMS
    concurrency: int = param(
        "Max concurrency",
        "How many branches run at the same time.",
        default=CONCURRENCY_DEFAULT,
        weft="literal",
        minimum=1,
    )
    on_branch_error: str = param(
        "When a branch fails",
        "Fail the block, or continue with null or the error as the result of that branch.",
        default="fail",
        weft="literal",
        choices={"fail": "Fail the block", "continue": "Continue with null", "collect": "Continue with the error"},
    )
    results: str = changed(RESULTS, description="The outputs that each branch adds to the results.", advanced=True)


@block_type(
    type="parallel",
    title="Parallel",
    description="Runs the blocks inside it in parallel: a number of times, or for each item.",
    category="flow",
    params=_Params.json_schema,
    handles=("out", "body"),
    container="parallel",
    output={"type": "object", "properties": {"results": {"type": "array"}}},
    inline=True,
    sentence="For each of {items}, in parallel | {count} in parallel | In parallel",
    icon="parallel",
)
async def block(ctx: StepContext) -> Sized | Tested:
    """Raises BlockError: loop_limit, loop_count, loop_items, params_invalid."""
    if ctx.type == "parallel:end":
        return Tested(False)
    params = _Params(ctx.params)
    if (params.mode or ("each" if "items" in ctx.params else "count")) == "count":
        return Sized(_bounded(to_count(params.count)))
    items = to_items(params.items)
    return Sized(_bounded(len(items)), items)


def _bounded(branches: int) -> int:
    if branches > BRANCHES_MAX:
        raise BlockError(
            f"{branches} branches exceed the limit of {BRANCHES_MAX} for a parallel",
            code="loop_limit",
            retryable=False,
        )
    return branches
