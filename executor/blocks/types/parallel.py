"""`parallel`: runs its body once per branch, all at the same time. Its start sentinel returns the number of
branches.
"""

from __future__ import annotations

from typing import Any

from compiler.catalog import BRANCHES_MAX, CONCURRENCY_DEFAULT, BlockSpec
from executor.blocks.types.shared_params import ITEMS, RESULTS
from executor.errors import BlockError
from executor.kernel.handler.base import Context, Sized, Tested
from executor.kernel.values.coerce import to_count
from executor.kernel.values.items import to_items

_PARAMS: dict[str, Any] = {
    "type": "object",
    "additionalProperties": False,
    "properties": {
        "mode": {
            "enum": ["count", "each"],
            "title": "Branches",
            "description": "How many branches run.",
            "x-titles": {"count": "A number of branches", "each": "One for each item"},
            "x-ui": {"order": 1, "widget": "select"},
        },
        "count": {
            "title": "Number of branches",
            "description": "A number, or a reference to one.",
            "x-when": {"mode": ["count"]},
            "x-ui": {"order": 2, "widget": "number"},
        },
        "items": ITEMS,
        "concurrency": {
            "type": "integer",
            "title": "Max concurrency",
            "description": "How many branches run at the same time.",
            "minimum": 1,
            "default": CONCURRENCY_DEFAULT,
            "x-weft": "literal",
            "x-ui": {"order": 4, "widget": "number"},
        },
        "on_branch_error": {
            "enum": ["fail", "continue", "collect"],
            "title": "When a branch fails",
            "description": "Fail the block, or continue with null or the error as the result of that branch.",
            "default": "fail",
            "x-titles": {
                "fail": "Fail the block",
                "continue": "Continue with null",
                "collect": "Continue with the error",
            },
            "x-weft": "literal",
            "x-ui": {"order": 5, "widget": "select"},
        },
        "results": {
            **RESULTS,
            "description": "The outputs that each branch adds to the results.",
            "x-ui": {"order": 6, "widget": "select", "advanced": True},
        },
    },
}


class Parallel:
    spec = BlockSpec(
        type="parallel",
        title="Parallel",
        description="Runs the blocks inside it in parallel: a number of times, or for each item.",
        category="flow",
        params=_PARAMS,
        handles=("out", "body"),
        container="parallel",
        output={"type": "object", "properties": {"results": {"type": "array"}}},
        inline=True,
        sentence="For each of {items}, in parallel | {count} in parallel | In parallel",
        icon="parallel",
    )

    async def run(self, ctx: Context) -> Sized | Tested:
        """Raises BlockError: loop_limit, loop_count, loop_items, params_invalid."""
        if ctx.type == "parallel:end":
            return Tested(False)
        match ctx.params.get("mode", "each" if "items" in ctx.params else "count"):
            case "count":
                return Sized(_bounded(to_count(ctx.params.get("count"))))
            case "each":
                items = to_items(ctx.params.get("items"))
                return Sized(_bounded(len(items)), items)
            case mode:
                raise BlockError(f"unknown parallel mode {mode!r}", code="params_invalid", retryable=False)


def _bounded(branches: int) -> int:
    if branches > BRANCHES_MAX:
        raise BlockError(
            f"{branches} branches exceed the limit of {BRANCHES_MAX} for a parallel",
            code="loop_limit",
            retryable=False,
        )
    return branches


block = Parallel()
