"""The conditions of n8n -> JavaScript: If, Filter and Switch."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from compiler.imports.n8n_step import Made, Step
from compiler.imports.n8n_text import listed, quoted
from compiler.imports.sim_text import mapping, number_in

_TEXT: Final = "String({} ?? '')"
_TESTS: Final = {
    "equals": "{a} === {b}", "notEquals": "{a} !== {b}",
    "contains": "{a}.includes({b})", "notContains": "!{a}.includes({b})",
    "startsWith": "{a}.startsWith({b})", "notStartsWith": "!{a}.startsWith({b})",
    "endsWith": "{a}.endsWith({b})", "notEndsWith": "!{a}.endsWith({b})",
    "regex": "new RegExp({r}).test({a})", "notRegex": "!new RegExp({r}).test({a})",
    "gt": "{a} > {b}", "lt": "{a} < {b}", "gte": "{a} >= {b}", "lte": "{a} <= {b}",
    "after": "{a} > {b}", "before": "{a} < {b}", "afterOrEquals": "{a} >= {b}", "beforeOrEquals": "{a} <= {b}",
    "true": "{p} === true", "false": "!{p}", "exists": "{p} != null", "notExists": "{p} == null",
    "empty": "{p} == null || Object.keys(Object({p})).length === 0",
    "notEmpty": "{p} != null && Object.keys(Object({p})).length > 0",
    "lengthEquals": "{p}.length === {b}", "lengthNotEquals": "{p}.length !== {b}", "lengthGt": "{p}.length > {b}",
    "lengthLt": "{p}.length < {b}", "lengthGte": "{p}.length >= {b}", "lengthLte": "{p}.length <= {b}",
}  # fmt: skip
_OLD: Final = {
    "equal": "equals", "notEqual": "notEquals", "larger": "gt", "smaller": "lt", "largerEqual": "gte",
    "smallerEqual": "lte", "isEmpty": "empty", "isNotEmpty": "notEmpty",
}  # fmt: skip
_CASTS: Final = {"number": "Number({})", "dateTime": "+new Date({})", "string": _TEXT}


def test(step: Step, left: Any, right: Any, kind: str, operation: str) -> str:
    """Return a condition as JavaScript."""
    operation = _OLD.get(operation, operation)
    a, b = step.texts.script(left), step.texts.script(right)
    template = _TESTS.get(operation)
    if template is None:
        step.lose(f'Its test "{operation}" is not imported.', "Write the condition.")
        return "false"
    cast = _CASTS.get(kind, "{}")
    if kind == "string" and operation in ("empty", "notEmpty"):
        return f"{_TEXT.format(a)} {'===' if operation == 'empty' else '!=='} ''"
    if kind in ("array", "object", "boolean") and "equals" in operation.lower() and "length" not in operation:
        literal = {"true": "true", "false": "false"}.get(str(right).lower().removeprefix("=")) or b
        return template.format(a=a if kind == "boolean" else f"JSON.stringify({a})",
                               b=literal if kind == "boolean" else f"JSON.stringify({b})")  # fmt: skip
    if kind in ("array", "object"):
        cast = f"({{}} ?? {'[]' if kind == 'array' else '{{}}'})"
        return template.format(a=cast.format(a), b=b, p=cast.format(a), r=b)
    if kind == "string" and operation in ("equals", "notEquals") and isinstance(right, str) and right[:1] != "=":
        return template.format(a=a, b=quoted(right))
    number = number_in(right) if kind == "number" else None
    shown = quoted(number) if isinstance(number, int | float) else cast.format(b)
    return template.format(a=cast.format(a), b=shown, p=a, r=b)


def tests(step: Step, conditions: Any, combine: str = "") -> str:
    """Conditions of either version: a list with operators, or lists by type."""
    if not isinstance(conditions, Mapping):
        return "false"
    made: list[str] = []
    if isinstance(conditions.get("conditions"), list):
        combine = str(conditions.get("combinator") or "and")
        for one in listed(conditions, "conditions"):
            operator = mapping(one.get("operator"))
            kind, operation = str(operator.get("type") or "string"), str(operator.get("operation") or "equals")
            made.append(test(step, one.get("leftValue"), one.get("rightValue"), kind, operation))
    else:
        first = {"number": "smaller", "dateTime": "after"}
        for kind in conditions:
            for one in listed(conditions, kind):
                operation = str(one.get("operation") or first.get(kind, "equal"))
                made.append(test(step, one.get("value1"), one.get("value2"), str(kind), operation))
    joined = [f"({one})" if len(made) > 1 and ("||" in one or "&&" in one) else one for one in made]
    return (" || " if combine in ("or", "any") else " && ").join(joined) or "true"


def if_(step: Step) -> Made:
    when = tests(step, step.get("conditions"), step.text("combineOperation"))
    cases = [{"id": "true", "title": "true", "when": when}, {"id": "false", "title": "false"}]
    return Made("condition", {"cases": cases}, None, handles=("true", "false"))


def filter_(step: Step) -> Made:
    when = tests(step, step.get("conditions"), step.text("combineConditions").lower())
    return Made("condition", {"cases": [{"id": "kept", "title": "kept", "when": when}]}, None, handles=("kept",))


def switch(step: Step) -> Made:
    cases: list[dict[str, Any]] = []
    handles: dict[int, str] = {}
    old = listed(step.get("rules"), "rules") if step.node.version < 3 else []
    if step.text("mode") == "expression":
        chosen = step.js("output", otherwise=0)
        number = int(number_in(step.get("numberOutputs", otherwise=step.get("outputsAmount", otherwise=4))))
        for i in range(number):
            cases.append({"id": f"case_{i}", "title": str(i), "when": f"Number({chosen}) === {i}"})
            handles[i] = f"case_{i}"
    for i, rule in enumerate(old):
        output = int(rule.get("output") or 0)
        kind, operation = step.text("dataType") or "number", str(rule.get("operation") or "equal").removeprefix("=")
        when = test(step, step.get("value1"), rule.get("value2"), kind, operation)
        if output in handles:  # several rules may lead to one output
            known = next(case for case in cases if case["id"] == handles[output])
            known["when"] = f"({known['when']}) || ({when})"
            continue
        cases.append({"id": f"case_{i}", "title": str(rule.get("value2") or output), "when": when})
        handles[output] = f"case_{i}"
    for i, rule in enumerate(listed(step.get("rules"), "values") if not old else ()):
        title = str(rule.get("outputKey") or i)
        cases.append({"id": f"case_{i}", "title": title, "when": tests(step, rule.get("conditions"))})
        handles[i] = f"case_{i}"
    fallback = step.get("options", "fallbackOutput", otherwise=step.get("fallbackOutput", otherwise=-1))
    if fallback not in (-1, "none"):
        cases.append({"id": "otherwise", "title": "otherwise"})
        handles.setdefault(len(handles) if fallback == "extra" else int(number_in(fallback)), "otherwise")
    if step.get("options", "allMatchingOutputs") is True:
        step.lose("It sends items to the first output that matches, not to all.", "Use a condition for each output.")
    ways = [handles.get(i, "") for i in range(max(handles, default=-1) + 1)]
    return Made("condition", {"cases": cases}, None, handles=ways)
