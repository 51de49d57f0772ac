"""Checks answers to waits and payloads of signals before they are recorded."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, cast

import orjson
from msgspec import Struct

from executor.errors import AnswerInvalid, BadRequest, BlockError, NotYours, SignInRequired
from executor.kernel.core.events import ErrorInfo
from executor.kernel.core.messages import Answer, Withdrawn
from executor.kernel.process.acting import Role, includes
from executor.kernel.run.new_run import BOUNDS_HINT, mismatch
from executor.kernel.store.topics.store import Store
from executor.kernel.store.topics.waits import WaitRow
from executor.kernel.values.payload import encode
from executor.kernel.values.schema import Matches, violations_aside

# Kinds of waits that people answer, by their link. The row of these, and of webhook, decides who was first.
ASK_PEOPLE: Final = frozenset({"approval", "form", "attention"})
CANCELLABLE: Final = ASK_PEOPLE | {"webhook"}


class Answerer(Struct, frozen=True):
    """Someone who signed in, or the visitor of a chat. `name` is recorded, `names` may have started runs."""

    name: str
    names: frozenset[str]
    role: Role | None

    def is_among(self, by: Sequence[str]) -> bool:
        """Returns True if one of these matches: `user:ID`, or `role:ROLE` for that role and all above it."""
        return any(
            self.role is not None and includes(self.role, cast(Role, each[5:]))
            if each.startswith("role:")
            else each in self.names
            for each in by
        )


VISITOR: Final = Answerer("chat", frozenset({"chat"}), None)  # the holder of the address of a conversation


def needs_sign_in(request: Mapping[str, Any]) -> bool:
    """Returns True if the link of this wait is not enough."""
    return bool(request.get("by") or request.get("not_starter"))


async def check_answerer(store: Store, row: WaitRow, who: Answerer | None) -> None:
    """Check that `who` may answer. Raises SignInRequired, NotYours."""
    request = orjson.loads(row.request)
    if not needs_sign_in(request):
        return
    if who is None:
        raise SignInRequired(hint="Sign in, and open the link again.")
    by = request.get("by") or ()
    if by and not who.is_among(by):
        raise NotYours(f"This is for {', '.join(by)} to answer; you are {who.name}, {who.role}.")
    if request.get("not_starter") and await starter_of(store, row.run_id) in who.names:
        raise NotYours("You started this run: someone else has to answer.")


async def starter_of(store: Store, run: str) -> str | None:
    """Return who started the run, or the topmost run above it. Returns None if a trigger did."""
    while (row := await store.get_run(run)) is not None and row.parent_run_id is not None:
        run = row.parent_run_id
    records = await store.read_events(run, limit=1)
    started = orjson.loads(records[0].data or b"{}") if records else {}
    by = started.get("by")
    return by if isinstance(by, str) else None


def check_payload(payload: Any, pointer: str = "/payload") -> bytes:
    """Return the payload of a signal as JSON. Raises BadRequest for a payload beyond the bounds, which no block could
    put out. `pointer`: its place in the request."""
    try:
        encode({"payload": payload})
    except BlockError as error:
        raise BadRequest(error.message, code=error.code, pointer=pointer, hint=BOUNDS_HINT) from None
    return encode(payload)


async def check_answer(
    row: WaitRow, fields: Mapping[str, Any], action: str | None, matches: Matches | None = None
) -> dict[str, Any]:
    """Return the fields as they will be recorded. Raises AnswerInvalid: the wait stays open."""
    actions = orjson.loads(row.request).get("actions") or []
    if actions and action not in actions:
        listed = ", ".join(repr(name) for name in actions)
        what = "`action` is required" if action is None else f"there is no action {action!r}"
        raise AnswerInvalid(
            f"{what}; choose one of {listed}", code="action_unknown", pointer="/action", actions=actions
        )
    if not actions and action is not None:
        raise AnswerInvalid(
            f"this wait has no actions, but the answer has action {action!r}", code="action_unknown", pointer="/action"
        )
    value = dict(fields)
    if row.kind == "attention" and action == "done":
        value.setdefault("output", None)
    if row.schema is not None:
        schema = orjson.loads(row.schema)
        for name, field in (schema.get("properties") or {}).items():
            if isinstance(field, dict) and "default" in field:
                value.setdefault(name, field["default"])
        found = await violations_aside(schema, value, matches)
        if found:
            raise AnswerInvalid(
                mismatch("the answer", found),
                pointer="/fields" + found[0]["pointer"],
                hint="`schema` of the wait describes the fields",
                errors=found,
            )
    try:
        encode(value)
    except BlockError as error:
        raise AnswerInvalid(error.message, code=error.code, pointer="/fields", hint=BOUNDS_HINT) from None
    return value


def answer_message(row: WaitRow, fields: dict[str, Any], action: str | None, by: str | None, at_ms: int) -> Answer:
    refused = action is not None and action in (orjson.loads(row.request).get("fail_on") or ())
    return Answer(row.id, at_ms, fields, action, by=by, refused=refused)


def answer_output(answer: Answer) -> dict[str, Any]:
    if answer.output is not None:
        return dict(answer.output)
    output = {**(answer.fields or {}), "answered_by": answer.by, "answered_at": answer.at_ms}
    if answer.action is not None:
        output["action"] = answer.action
    return output


def refusal_error(answer: Answer) -> ErrorInfo:
    """Return the error of a block whose question was answered by an action in its `fail_on`."""
    by = f" by {answer.by}" if answer.by else ""
    return ErrorInfo(
        "refused", f"the answer was {answer.action!r}{by}", hint="`fail_on` of the block lists this action"
    )


def withdrawal_error(withdrawn: Withdrawn) -> ErrorInfo:
    by = f" by {withdrawn.by}" if withdrawn.by else ""
    reason = f": {withdrawn.reason}" if withdrawn.reason else ""
    return ErrorInfo("wait_cancelled", f"the wait was cancelled{by}{reason}")
