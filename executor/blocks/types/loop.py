"""`loop`: repeats its body. The start sentinel returns the initial number of rounds; after each round the end sentinel
decides if there is another one.
"""

from __future__ import annotations

from typing import Any

from compiler.catalog import ITERATIONS_MAX, LOOP_MAX_DEFAULT
from executor.blocks.types.condition import evaluate, expression
from executor.blocks.types.declared import block_type
from executor.blocks.types.params import ITEMS, RESULTS, TypedParams, changed, invalid, param
from executor.errors import BlockError
from executor.kernel.handler.base import Sized, StepContext, Tested
from executor.kernel.values.coerce import to_count, to_items, truthy
from executor.kernel.values.payload import Bound


class _Params(TypedParams):
    mode: str = param(
        "Repeat",
        "How often the blocks inside run.",
        required=True,
        choices={
            "for": "A number of times",
            "each": "For each item",
            "while": "While a condition is true",
            "until": "Until a condition is true, at least once",
            "do_while": "While a condition is true, at least once",
        },
    )
    count: Any = param("Number of times", "A number, or a reference to one.", widget="number", when={"mode": ["for"]})
    items: Any = ITEMS
    condition: Any = param(
        "Condition",
        "A JavaScript expression. <loop.index> is the index of the next iteration.",
        widget="code",
        rows=1,
        weft="expression",
        when={"mode": ["while", "until", "do_while"]},
        type=["string", "boolean"],
    )
    max: Any = param(
        "Max iterations", "The loop stops here, whatever the setting above.", default=LOOP_MAX_DEFAULT, widget="number"
    )
    on_max: str = param(
        "When the maximum is reached",
        "Fail, or end the loop and keep the results so far.",
        default="fail",
        advanced=True,
        choices={"fail": "Fail the loop", "exit": "End the loop, keep results"},
    )
    results: str = changed(RESULTS, description="The outputs that each iteration adds to the results.", advanced=True)


@block_type(
    type="loop",
    title="Loop",
    description="Runs the blocks inside it a number of times, for each item, or while a condition holds.",
    category="flow",
    params=_Params.json_schema,
    handles=("out", "body"),
    container="loop",
    output={"type": "object", "properties": {"results": {"type": "array"}, "last": {"type": "object"}}},
    inline=True,
    sentence="For each of {items} | Repeat {count} times | Repeat: {mode} {condition} | Repeat",
    icon="repeat",
)
async def block(ctx: StepContext) -> Sized | Tested:
    """Raises BlockError: loop_limit at the bound, loop_count and loop_items for invalid sizes, params_invalid, and
    the errors of a condition that throws."""
    params = _Params(ctx.params)
    return await _again(ctx, params) if ctx.type == "loop:end" else await _size(ctx, params)


async def _size(ctx: StepContext, params: _Params) -> Sized:
    match params.mode:
        case "for":
            return Sized(_bounded(params, to_count(params.count)))
        case "each":
            items = to_items(params.items)
            return Sized(_bounded(params, len(items)), items)
        case "while":
            return Sized(_bounded(params, 1) if await _holds(ctx, params.condition) else 0)
        case _:
            return Sized(_bounded(params, 1))


async def _again(ctx: StepContext, params: _Params) -> Tested:
    """Return whether another iteration follows; `ctx.turn` are done. The size was fixed at the start: it is
    `ctx.count`, because the params may have other values by now."""
    if ctx.broke:
        return Tested(False)
    if params.mode in ("for", "each"):
        return Tested(ctx.turn < ctx.count)
    again = await _holds(ctx, params.condition) != (params.mode == "until")
    return Tested(again and _bounded(params, ctx.turn + 1) > ctx.turn)


async def _holds(ctx: StepContext, condition: Any) -> bool:
    condition = expression(condition)
    if condition is None:
        raise invalid("Condition is required")
    return truthy(await evaluate(ctx, condition, "loop condition") if isinstance(condition, Bound) else condition)


def _bounded(params: _Params, rounds: int) -> int:
    """`rounds`, at most `max`: beyond it the loop fails, or (on_max: exit) ends there."""
    most = LOOP_MAX_DEFAULT if params.max == "" else to_count(params.max, "max")
    if rounds > most and params.on_max == "exit":
        rounds = most
    if rounds > ITERATIONS_MAX:
        raise BlockError(
            f"{rounds} iterations exceed the limit of {ITERATIONS_MAX} for a loop",
            code="loop_limit",
            retryable=False,
        )
    if rounds <= most:
        return rounds
    raise BlockError(
        f"The loop reached its maximum of {most} iterations",
        code="loop_limit",
        retryable=False,
        hint="Increase Max iterations, or end the loop there and keep the results so far.",
    )
