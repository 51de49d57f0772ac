"""Lost attempts: what a person is asked when it is unknown how far an attempt got, and what the answers mean.

The core opens a wait of kind attention when the process of an attempt is gone and running the block again might do harm
(`policy.on_lost`), or when it was lost too often. Nothing here decides whether to ask.

A run whose code is not here asks as well (`OtherCode`): it waits, and is entered again when a process has other code
(`worker/other_code.py`), or when a person wants it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final, Literal, assert_never, cast, get_args

from compiler.keys import NodeKey
from compiler.plan import Node
from executor.kernel.core import facts as f
from executor.kernel.core.events import CODE, LOST, ErrorInfo
from executor.kernel.core.state import Wait
from executor.kernel.handler.base import Suspend

Action = Literal["retry", "done", "fail"]
ACTIONS: Final[tuple[str, ...]] = get_args(Action)

_WHY: Final = {
    "ask": "It may have done all, part or none of its work, so running it again may repeat that work.",
    "retry": "This has happened several times, so the block itself may be what stops the process.",
    "fail": "",
}
_TEXT: Final = (
    "The process that ran this attempt has ended. {why} Check what the block did, then choose how to continue. "
    "retry: run the block again. done: mark it as succeeded, with the output below. fail: mark it as failed."
)
_STEP_TEXT: Final = (
    "The process ended during step {step}. It may have done all, part or none of its work. Check what it did, then "
    "choose how to continue. retry: run the step again. done: mark it as finished, with the output below. "
    "fail: mark it as failed."
)


LISTED_MAX: Final = 10  # functions
CODE_ACTIONS: Final = ("retry", "fail")
_CODE_TEXT: Final = (
    "The run is entered again as soon as a process with other code is there: put the code back that it began with, or "
    'deploy code that fits, such as with `if weft.patched("…"):` around what is new. retry: enter it again now. '
    "fail: mark it as failed."
)


def _form(what: str, schema: Mapping[str, Any] | None = None) -> dict[str, Any]:
    output: dict[str, Any] = {
        "type": ["object", "array", "string", "number", "boolean", "null"],  # named, so that forms read JSON
        "title": "Output",
        "description": f"For done: the output of the {what}, as JSON. Default: null.",
    }
    if schema is not None:  # beside the type: a form reads JSON, and may be left empty to retry
        output |= {"description": f"For done: what the {what} returns, as JSON.", "allOf": [schema]}
    return {"type": "object", "properties": {"output": output}, "additionalProperties": False}


def question(node: Node, attempt: int) -> Suspend:
    title = f"Attempt {attempt} of {node.name} was lost"
    text = _TEXT.format(why=_WHY[node.policy.on_lost])
    return Suspend("attention", {"title": title, "text": text}, _form("block"), ACTIONS)


def step_question(node: str, n: int, step: str, output: Mapping[str, Any] | None = None) -> Suspend:
    """`output`: the schema of what the step returns, which the answer `done` has to fit."""
    request = {"title": f"Step {n} of {node} was lost", "text": _STEP_TEXT.format(step=step), "step": n}
    return Suspend("attention", request, _form("step", output), ACTIONS)


class OtherCode(Exception):
    """The code that is here does not fit the run; no caller of weft gets this. `title` and the message are for people,
    `request` for handlers, which look there whether they have other code now."""

    def __init__(self, title: str, message: str, request: Mapping[str, Any]) -> None:
        super().__init__(message)
        self.message = message
        self.title = title
        self.request = request

    @property
    def question(self) -> Suspend:
        request = {"title": self.title, "text": f"{self.message}\n{_CODE_TEXT}", "reason": "code", **self.request}
        return Suspend("attention", request, None, CODE_ACTIONS)


def not_here(function: str, has: Iterable[str] = ()) -> OtherCode:
    """Return the question of a run whose durable function is missing. `has`: those that are here."""
    here = ", ".join(sorted(has)[:LISTED_MAX]) or "none"
    message = f"There is no durable function {function!r}: was it renamed, moved or removed? This process has {here}."
    return OtherCode(f"{function} is not here", message, {"function": function, "code": ""})


def answer(
    at_ms: int, key: NodeKey, wait: Wait, action: str, fields: Mapping[str, Any], by: str | None
) -> tuple[f.Fact, Any]:
    """Return the fact that follows from an answer, and the output it gives the block (None unless it is done)."""
    attempt, who = wait.attempt, f" by {by}" if by else ""
    match cast(Action, action):
        case "retry":
            return f.WaitRetried(at_ms, key, attempt, by), None
        case "done":
            return f.WaitAnswered(at_ms, key, attempt, "out", by), fields.get("output")
        case "fail":
            error = ErrorInfo(LOST, f"the attempt was lost and marked as failed{who}")
            if wait.reason:
                error = ErrorInfo(CODE, f"the code did not fit the run, which was marked as failed{who}")
            return f.WaitFailed(at_ms, key, attempt, error, by), None
        case never:
            assert_never(never)
