"""`parallel`: runs its body once per branch, all at the same time. Its start sentinel says how many branches there
are."""

from __future__ import annotations

from typing import Any, Final

from compiler.catalog import BlockSpec
from executor.blocks.base import Context, Sized, Tested
from executor.errors import BlockError
from executor.values.coerce import to_count
from executor.values.items import to_items

# The run's own limit on executions (10,000 unless set) is reached long before; this one keeps a number that was read
# from data from being taken for a count of branches.
BRANCHES_MAX: Final = 100_000

_PARAMS: dict[str, Any] = {
    "type": "object",
    "additionalProperties": False,
    "properties": {
        "mode": {
            "enum": ["count", "each"],
            "title": "Kind",
            "description": "A number of branches, or one for each item.",
            "x-ui": {"order": 1, "widget": "select"},
        },
        "count": {
            "title": "Branches",
            "description": "count: a number, or a reference to one.",
            "x-ui": {"order": 2, "widget": "number", "when": {"mode": ["count"]}},
        },
        "items": {
            "title": "Collection",
            "description": "each: a list, an object ([key, value] pairs), or a reference.",
            "x-ui": {"order": 3, "widget": "reference", "when": {"mode": ["each"]}},
        },
        "concurrency": {
            "type": "integer",
            "title": "At one time",
            "description": "So many branches run side by side; the next one begins when one is done.",
            "minimum": 1,
            "default": 100,
            "x-weft": "literal",
            "x-ui": {"order": 4, "widget": "number"},
        },
        "on_branch_error": {
            "enum": ["fail", "continue", "collect"],
            "title": "When a branch fails",
            "description": "fail: the parallel fails; continue: its result is null; collect: its result is the error.",
            "default": "fail",
            "x-weft": "literal",
            "x-ui": {"order": 5, "widget": "select"},
        },
        "results": {
            "enum": ["ends", "all"],
            "title": "Results hold",
            "description": "ends: the outputs of the blocks that nothing follows; all: of every block that ran.",
            "default": "ends",
            "x-weft": "literal",
            "x-ui": {"order": 6, "widget": "select", "advanced": True},
        },
    },
}


class Parallel:
    spec = BlockSpec(
        type="parallel",
        title="Parallel",
        description="Runs the blocks inside it in branches side by side: a number of times, or for each item.",
        category="flow",
        params=_PARAMS,
        handles=("out", "body"),
        container="parallel",
        output={"type": "object", "properties": {"results": {"type": "array"}}},
        inline=True,
        sentence="for each of {items}, side by side | {count} side by side | side by side",
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
                raise BlockError(f"there is no kind of parallel {mode!r}", code="params_invalid", retryable=False)


def _bounded(branches: int) -> int:
    if branches > BRANCHES_MAX:
        raise BlockError(
            f"{branches} branches are more than the {BRANCHES_MAX} a parallel may have",
            code="loop_limit",
            retryable=False,
        )
    return branches


block = Parallel()
