"""`condition`: takes the first case whose expression is true. A case without an expression is the else."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, TypeVar

from compiler.catalog import Case, Finding, Params
from executor.blocks.types.declared import block_type
from executor.blocks.types.params import CASE_ID, CASE_TITLE, TypedParams, param, shape
from executor.errors import BlockError
from executor.kernel.handler.base import Done, StepContext
from executor.kernel.values.coerce import truthy
from executor.kernel.values.payload import Bound


class Branch(TypedParams):
    """A way out of a block that chooses one."""

    id: str = CASE_ID
    title: str | None = CASE_TITLE


C = TypeVar("C", bound=Branch)


class _Case(Branch):
    when: Any = param(
        "Condition",
        "A JavaScript expression. Leave empty for else.",
        order=3,
        widget="code",
        rows=1,
        weft="expression",
        type=["string", "boolean", "null"],
    )


class _Params(TypedParams):
    cases: list[_Case] = param(
        "Cases",
        "Checked from top to bottom. The run takes the first case that is true.",
        required=True,
        ui={"handles": "id"},
        minItems=1,
        maxItems=100,
    )
    carry: Any = param(
        "Extra output",
        "An object whose fields are added to the output. Conditions imported from Sim add the output "
        "of the previous block, and also return Sim's selectedOption and conditionResult.",
        advanced=True,
    )


def named_cases(params: Params, key: str) -> tuple[Case, ...]:
    """Return the items of the list param `key` that have an id, as handles. Malformed items are ignored."""
    items = params.get(key)
    found = (
        [i for i in items if isinstance(i, dict) and isinstance(i.get("id"), str)] if isinstance(items, list) else []
    )
    return tuple(Case(i["id"], title if isinstance(title := i.get("title"), str) else "") for i in found)


def _check(params: Params) -> tuple[Finding, ...]:
    """Check for an else: a case without an expression, which matches everything."""
    cases = params.get("cases")
    if not isinstance(cases, list) or not cases:
        return ()
    catches = [i for i, case in enumerate(cases) if isinstance(case, dict) and case.get("when") in (None, "")]
    if not catches:
        message = "has no else. The run stops here when no case matches."
        hint = "Add a last case without a condition."
        return (Finding("else_missing", "/cases", message, hint, of_block=True),)
    return tuple(_not_last(cases[at], at) for at in catches if at != len(cases) - 1)


def _not_last(case: dict[str, Any], at: int) -> Finding:
    title = str(case.get("title") or case.get("id") or at + 1)[:80]
    message = f'case "{title}" has no condition. Only the last case can be without one.'
    return Finding("else_not_last", f"/cases/{at}/when", message)


def _output_schema(params: Params) -> dict[str, Any] | None:
    if "carry" in params:
        return None
    return shape(case=["string", "null"], title="string", result="boolean")


@block_type(
    type="condition",
    title="Condition",
    description="Continues on the first case that matches.",
    category="flow",
    params=_Params.json_schema,
    handles=(),
    cases=lambda params: named_cases(params, "cases"),
    check=_check,
    output_from=_output_schema,
    inline=True,
    sentence="If {cases[0].when} | {cases[].title} | First case that matches",
    icon="branch",
)
async def block(ctx: StepContext) -> Done:
    """Output {"case", "title", "result"}; nothing true and no else: case null, result false, and no way is
    taken."""
    params = _Params(ctx.params)
    case = await first_true(ctx, [(case, case.when) for case in params.cases])
    route, title = (None, "") if case is None else (case.id, case.title or "")
    output: dict[str, Any] = {"case": route, "title": title, "result": case is not None}
    if "carry" in ctx.params:
        output |= params.carry if isinstance(params.carry, dict) else {}
        output |= {"conditionResult": case is not None, "selectedOption": route}
    return Done(output, route=route)


async def first_true(ctx: StepContext, cases: Iterable[tuple[C, Any]]) -> C | None:
    """Return the first case whose expression holds, or None. All expressions go to the sandbox in one call; a case
    after the one that holds does not matter, even if it throws. Raises BlockError, naming the case that threw."""
    asked = [(case, expression(when)) for case, when in cases]
    bound = [when for _, when in asked if isinstance(when, Bound)]
    results: list[Any] | None = None
    if len(bound) > 1:
        try:
            results = await ctx.evaluate(bound)
        except BlockError:
            results = None  # one of them threw: find out if an earlier one holds
    found = iter(results or ())
    for case, when in asked:
        if isinstance(when, Bound):
            what = f'condition "{case.title or case.id}"'
            if truthy(next(found) if results is not None else await evaluate(ctx, when, what)):
                return case
        elif when is None or truthy(when):
            return case
    return None


def expression(when: Any) -> Any:
    """Return the expression, or None for an else. A text here is an expression without references, wherever the params
    come from."""
    if isinstance(when, str):
        return Bound(when, {}) if when.strip() else None
    return when


async def evaluate(ctx: StepContext, when: Bound, what: str) -> Any:
    """Return the value of one expression. Raises BlockError, with its name `what`."""
    try:
        return (await ctx.evaluate([when]))[0]
    except BlockError as error:
        raise BlockError(
            f"Evaluation error in {what}: {error.message}",
            code=error.code,
            retryable=error.retryable,
            hint=error.hint,
        ) from error
