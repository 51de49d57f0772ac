"""`approval`: asks a person. Shows something, offers actions, takes a form; without actions it is just a form."""

from __future__ import annotations

import re
from typing import Any

from compiler.catalog import Case, Finding, Params
from executor.blocks.types.declared import block_type
from executor.blocks.types.params import (
    EXPIRE_TITLES,
    EXPIRES_IN_S,
    HANDLE_PATTERN,
    expiry_ms,
    form_schema,
    invalid,
    param,
)
from executor.blocks.types.question import ADDRESSES, ANSWERED, BY, BY_PATTERN, Question, answer_schema, check_reminder
from executor.kernel.handler.base import StepContext, Suspend

_ACTIONS = ("approve", "reject")
_ENDS = ("fail", "continue", "skip")
_ANSWERED: dict[str, Any] = {
    "action": {"type": "string"},
    **ANSWERED,
    "expired": {"type": "boolean", "description": "true when no answer arrived in time"},
}


class _Params(Question):
    actions: list[Any] = param(
        "Buttons",
        "Buttons the approver sees. Each one is a branch.",
        default=list(_ACTIONS),
        order=5,
        ui={"handles": "items"},
        items={"type": "string", "pattern": HANDLE_PATTERN, "not": {"enum": ["out", "error"]}},
        uniqueItems=True,
        maxItems=20,
    )
    outcomes: Any = param(
        "What each button does",
        "One sentence for each button, shown beside it. Without one the page names the blocks that follow.",
        order=6,
        widget="keyvalues",
        type="object",
        additionalProperties={"type": "string"},
    )
    expires_in_s: float | None = EXPIRES_IN_S
    on_expire: str = param(
        "When it expires",
        "Choose a button as if it was pressed, or fail, continue or skip the block.",
        default="fail",
        order=9,
        titles=EXPIRE_TITLES,
    )
    by: list[Any] | None = BY
    not_starter: Any = param(  # not read as a boolean: what is neither true nor false must not open the door
        "Not who started the run",
        "Someone else must answer. They sign in to do so.",
        type="boolean",
        default=False,
        order=13,
        advanced=True,
    )
    fail_on: list[str] = param(
        "Fail on",
        "Buttons that make the block fail. Connect On error to handle the failure; otherwise the run fails.",
        default=[],
        order=11,
        advanced=True,
        uniqueItems=True,
        maxItems=20,
    )


def _actions(params: Params) -> tuple[str, ...]:
    listed = params.get("actions")
    if listed is None:
        return _ACTIONS
    return tuple(item for item in listed if isinstance(item, str)) if isinstance(listed, list) else ()


def _cases(params: Params) -> tuple[Case, ...]:
    return tuple(Case(action, action.replace("_", " ").replace("-", " ").capitalize()) for action in _actions(params))


def _fail_on(params: Params) -> tuple[str, ...]:
    listed = params.get("fail_on")
    return tuple(item for item in listed if isinstance(item, str)) if isinstance(listed, list) else ()


def _check(params: Params) -> tuple[Finding, ...]:
    actions, found = _actions(params), list(check_reminder(params))
    # Anything that cannot be an id is a reference, which is checked when the block runs.
    if isinstance(params.get("actions"), str) or not all(map(_is_id, actions)):
        return tuple(found)
    hint = f"The buttons are {', '.join(actions)}." if actions else "It has no buttons."
    found += [
        Finding("param_invalid", f"/fail_on/{position}", f'"{action[:80]}" is not a button of this block.', hint)
        for position, action in enumerate(_fail_on(params))
        if action not in actions
    ]
    outcomes = params.get("outcomes")
    found += [
        Finding("param_invalid", f"/outcomes/{action}", f'"{action[:80]}" is not a button of this block.', hint)
        for action in (outcomes if isinstance(outcomes, dict) else ())
        if action not in actions
    ]
    on_expire: Any = params.get("on_expire")
    if _is_id(on_expire) and on_expire not in (*_ENDS, *actions):
        message = f'"{on_expire[:80]}" is not a button of this block, and not fail, continue or skip.'
        found.append(Finding("param_invalid", "/on_expire", message, hint))
    return tuple(found)


def _answerers(params: _Params) -> dict[str, Any]:
    by = params.by or []
    if not all(isinstance(each, str) and re.fullmatch(BY_PATTERN, each) for each in by):
        raise invalid("by must be a list of users and roles", hint='such as ["user:ada", "role:approver", "chat"]')
    if not isinstance(params.not_starter, bool):
        raise invalid(f"not_starter must be true or false, not {str(params.not_starter)[:80]!r}")
    return ({"by": by} if by else {}) | ({"not_starter": True} if params.not_starter else {})


def _is_id(text: Any) -> bool:
    return isinstance(text, str) and re.fullmatch(HANDLE_PATTERN, text) is not None


@block_type(
    type="approval",
    title="Approval",
    description="Asks a person to decide and waits for the answer. The link to the page works once.",
    category="people",
    pauses=True,
    params=_Params.json_schema,
    cases=_cases,
    check=_check,
    output_from=lambda params: answer_schema(params, _ANSWERED),
    addresses=ADDRESSES,
    sentence="Ask: {title} | Ask a person",
    icon="person",
)
async def block(ctx: StepContext) -> Suspend:
    """Raises BlockError(params_invalid): better now than when a person has filled in the form."""
    params = _Params(ctx.params)
    actions = tuple(item for item in params.actions if isinstance(item, str))
    on_expire = params.on_expire
    if on_expire not in (*_ENDS, *actions):
        raise invalid(
            f'"{on_expire[:80]}" is not a button of this block, and not fail, continue or skip',
            hint=f"The buttons are {', '.join(actions)}." if actions else "It has no buttons.",
        )
    fail_on = [action for action in params.fail_on if action in actions]
    if on_expire in fail_on:
        on_expire = "fail"
    request = params.shown(ctx.name) | {"actions": list(actions)} | _answerers(params)
    if isinstance(params.outcomes, dict):
        request |= {"outcomes": {action: str(text) for action, text in params.outcomes.items() if text is not None}}
    return Suspend(
        "approval" if actions else "form",
        request=request | {"fail_on": fail_on} if fail_on else request,
        schema=form_schema(params.fields),
        actions=actions,
        due_ms=expiry_ms(params.expires_in_s, ctx.now_ms),
        on_expire=on_expire,
        messages=params.messages(),
        remind_ms=params.remind_ms(params.expires_in_s, ctx.now_ms),
    )
