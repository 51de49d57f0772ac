"""`approval`: asks a person. Shows something, offers actions, takes a form; without actions it is just a form."""

from __future__ import annotations

import re
from typing import Any

from compiler.catalog import BlockSpec, Case, Finding, Params
from executor.blocks.types.question import ADDRESSES, ANSWERED, NOTIFY, QUESTION, answer_schema, notify_messages, shown
from executor.blocks.types.shared_params import (
    EXPIRES_IN_S,
    HANDLE_PATTERN,
    ON_EXPIRE,
    expiry_ms,
    form_schema,
    invalid,
    text,
)
from executor.kernel.handler.base import Context, Suspend

_ACTIONS = ("approve", "reject")
_ENDS = ("fail", "continue", "skip")
BY_PATTERN = r"^(user:[a-z0-9][a-z0-9._@-]{0,99}|role:(viewer|approver|editor|admin))$"
_ANSWERED: dict[str, Any] = {
    "action": {"type": "string"},
    **ANSWERED,
    "expired": {"type": "boolean", "description": "true when no answer arrived in time"},
}
_PARAMS: dict[str, Any] = {
    "type": "object",
    "additionalProperties": False,
    "properties": {
        **QUESTION,
        "actions": {
            "type": "array",
            "title": "Buttons",
            "description": "Buttons the approver sees. Each one is a branch.",
            "items": {"type": "string", "pattern": HANDLE_PATTERN, "not": {"enum": ["out", "error"]}},
            "uniqueItems": True,
            "maxItems": 20,
            "default": list(_ACTIONS),
            "x-ui": {"order": 5, "widget": "list", "handles": "items"},
        },
        "expires_in_s": EXPIRES_IN_S,
        "on_expire": {key: value for key, value in ON_EXPIRE.items() if key != "enum"}
        | {
            "description": "Choose a button as if it was pressed, or fail, continue or skip the block.",
            "x-ui": {"order": 9, "widget": "text"},
        },
        "notify": NOTIFY,
        "by": {
            "type": "array",
            "title": "Who may answer",
            "description": 'Users and roles, such as "user:ada", or "role:approver" and all roles above. They sign in '
            "to answer. Without any, the link is enough.",
            "items": {"type": "string", "pattern": BY_PATTERN},
            "uniqueItems": True,
            "maxItems": 50,
            "x-ui": {"order": 12, "widget": "list", "advanced": True},
        },
        "not_starter": {
            "type": "boolean",
            "title": "Not who started the run",
            "description": "Someone else must answer. They sign in to do so.",
            "default": False,
            "x-ui": {"order": 13, "widget": "boolean", "advanced": True},
        },
        "fail_on": {
            "type": "array",
            "title": "Fail on",
            "description": "Buttons that make the block fail. Connect On error to handle the failure; otherwise the "
            "run fails.",
            "items": {"type": "string"},
            "uniqueItems": True,
            "maxItems": 20,
            "default": [],
            "x-ui": {"order": 11, "widget": "list", "advanced": True},
        },
    },
}


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
    actions = _actions(params)
    # Anything that cannot be an id is a reference, which is checked when the block runs.
    if isinstance(params.get("actions"), str) or not all(map(_is_id, actions)):
        return ()
    hint = f"The buttons are {', '.join(actions)}." if actions else "It has no buttons."
    found = [
        Finding("param_invalid", f"/fail_on/{position}", f'"{action[:80]}" is not a button of this block.', hint)
        for position, action in enumerate(_fail_on(params))
        if action not in actions
    ]
    on_expire: Any = params.get("on_expire")
    if _is_id(on_expire) and on_expire not in (*_ENDS, *actions):
        message = f'"{on_expire[:80]}" is not a button of this block, and not fail, continue or skip.'
        found.append(Finding("param_invalid", "/on_expire", message, hint))
    return tuple(found)


def _answerers(params: Params) -> dict[str, Any]:
    """Return the part of the wait's request about who may answer. Raises BlockError(params_invalid)."""
    by, not_starter = params.get("by"), params.get("not_starter") or False
    if by is not None and not (
        isinstance(by, list) and all(isinstance(each, str) and re.fullmatch(BY_PATTERN, each) for each in by)
    ):
        raise invalid("by must be a list of users and roles", hint='such as ["user:ada", "role:approver"]')
    if not isinstance(not_starter, bool):
        raise invalid("not_starter must be true or false")
    return ({"by": by} if by else {}) | ({"not_starter": True} if not_starter else {})


def _is_id(text: Any) -> bool:
    return isinstance(text, str) and re.fullmatch(HANDLE_PATTERN, text) is not None


class Approval:
    spec = BlockSpec(
        type="approval",
        title="Approval",
        description="Asks a person to decide and waits for the answer. The link to the page works once.",
        category="people",
        pauses=True,
        params=_PARAMS,
        cases=_cases,
        check=_check,
        output_from=lambda params: answer_schema(params, _ANSWERED),
        addresses=ADDRESSES,
        sentence="Ask: {title} | Ask a person",
        icon="person",
    )

    async def run(self, ctx: Context) -> Suspend:
        """Raises BlockError(params_invalid): better now than when a person has filled in the form."""
        actions = _actions(ctx.params)
        on_expire = text(ctx.params, "on_expire") or "fail"
        if on_expire not in (*_ENDS, *actions):
            raise invalid(
                f'"{on_expire[:80]}" is not a button of this block, and not fail, continue or skip',
                hint=f"The buttons are {', '.join(actions)}." if actions else "It has no buttons.",
            )
        fail_on = [action for action in _fail_on(ctx.params) if action in actions]
        if on_expire in fail_on:
            on_expire = "fail"
        request = shown(ctx) | {"actions": list(actions)} | _answerers(ctx.params)
        return Suspend(
            "approval" if actions else "form",
            request=request | {"fail_on": fail_on} if fail_on else request,
            schema=form_schema(ctx.params.get("fields")),
            actions=actions,
            due_ms=expiry_ms(ctx.params, ctx.now_ms),
            on_expire=on_expire,
            messages=notify_messages(ctx.params),
        )


block = Approval()
