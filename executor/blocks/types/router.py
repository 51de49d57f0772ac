"""`router`: chooses a way by rule: the route whose value equals the given one, or whose expression is true."""

from __future__ import annotations

from typing import Any

from compiler.catalog import Case, Finding, Params
from executor.blocks.types.condition import Branch, first_true, named_cases
from executor.blocks.types.declared import block_type
from executor.blocks.types.params import TypedParams, param, shape
from executor.kernel.handler.base import Done, StepContext
from executor.kernel.values.payload import render


class _Route(Branch):
    equals: Any = param("Equals", "Matches when the value equals this. Default: the id.", order=3, widget="text")
    when: Any = param(
        "Condition",
        "A JavaScript expression. The route matches when it is true.",
        order=4,
        widget="code",
        rows=1,
        advanced=True,
        weft="expression",
        type=["string", "boolean"],
    )


class _Params(TypedParams):
    value: Any = param("Value", "The value that is compared with each route.", widget="reference")
    routes: list[_Route] = param(
        "Routes",
        "Checked in order. A route without a rule matches when the value equals its id.",
        required=True,
        ui={"handles": "id"},
        minItems=1,
        maxItems=100,
    )
    default: str | None = param(
        "Default route", "Used when no route matches.", ui={"handles": "value"}, pattern="^[A-Za-z0-9_.-]{0,128}$"
    )


def _check(params: Params) -> tuple[Finding, ...]:
    found: list[Finding] = []
    routes = params.get("routes")
    listed = routes if isinstance(routes, list) else []
    compared = [route for route in listed if isinstance(route, dict) and not _has_rule(route)]
    if compared and params.get("value") in (None, ""):
        found.append(Finding("required", "/value", "Value is required.", "Routes without a condition compare it."))
    if not params.get("default"):
        message = "has no default route. The run stops here when no route matches."
        found.append(Finding("else_missing", "", message, "Set a default route.", of_block=True))
    return tuple(found)


def _cases(params: Params) -> tuple[Case, ...]:
    routes = named_cases(params, "routes")
    other = params.get("default")
    if isinstance(other, str) and other and all(case.id != other for case in routes):
        return (*routes, Case(other, "Default"))
    return routes


@block_type(
    type="router",
    title="Router",
    description="Continues on the route that matches a value.",
    category="flow",
    params=_Params.json_schema,
    handles=(),
    cases=_cases,
    check=_check,
    output=shape(route=["string", "null"], title="string", result="boolean"),
    inline=True,
    sentence="Route by {value} | Route to {routes[].id}",
    icon="route",
)
async def block(ctx: StepContext) -> Done:
    """Output {"route", "title", "result"}; `result` is false when no route fits (then `default` is taken, if
    given)."""
    params = _Params(ctx.params)
    rules = (
        (one, one.when if one.when not in (None, "") else same(given.get("equals", one.id), params.value))
        for one, given in zip(params.routes, ctx.params["routes"], strict=True)
    )
    route = await first_true(ctx, rules)
    if route is not None:
        return Done({"route": route.id, "title": route.title or "", "result": True}, route=route.id)
    return Done({"route": params.default, "title": "", "result": False}, route=params.default)


def same(left: Any, right: Any) -> bool:
    """Compare as JSON; a text also equals the value that it renders, so that the form value "3" finds the route 3."""
    if isinstance(left, str) or isinstance(right, str):
        return render(left) == render(right)
    if isinstance(left, bool) or isinstance(right, bool):  # Python's True is 1, JSON's true is not
        return left is right
    if isinstance(left, dict) and isinstance(right, dict):
        return left.keys() == right.keys() and all(same(item, right[key]) for key, item in left.items())
    if isinstance(left, list) and isinstance(right, list):
        return len(left) == len(right) and all(map(same, left, right))
    return bool(left == right)


def _has_rule(route: dict[str, Any]) -> bool:
    return route.get("when") not in (None, "")
