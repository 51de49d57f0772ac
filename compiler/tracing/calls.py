"""Functions that durable functions and workflow functions await besides their steps, each for one block of the canvas:
`sleep`, `approve` and `continue_as_new`. All raise DefinitionError. `ways.py` has those for several ways, `blocks.py`
those of models, requests, mails and databases."""

from __future__ import annotations

from collections.abc import Coroutine, Mapping, Sequence
from datetime import timedelta
from typing import Any, Generic, NoReturn, TypedDict, TypeVar, Unpack, cast

import msgspec
from msgspec import UNSET

from compiler.builder.blocks import Approval, ContinueAsNew, Sleep
from compiler.builder.errors import DefinitionError
from compiler.signature import TypeUnknown, schema_of
from compiler.tracing.body import present_body
from compiler.tracing.duration import Duration, pause_of, seconds_of
from compiler.tracing.trace import Call, Trace, current
from compiler.tracing.values import Answered

F = TypeVar("F")


class Pause(TypedDict, total=False):
    """A Duration whose seconds have a place of their own."""

    days: float
    hours: float
    minutes: float


class Answer(msgspec.Struct, Generic[F], frozen=True):
    """The answer of a person. `fields`: of the form, of the type that was asked for. `by`: who answered, if that is
    known."""

    action: str
    fields: F
    by: str | None = None


def sleep(
    seconds: float | timedelta | Any = None, *, id: str | None = None, **more: Unpack[Pause]
) -> Coroutine[Any, Any, None]:
    """A pause, on disk: `await sleep(30)`, `sleep(days=3)`, `sleep(timedelta(hours=1))`."""
    length = pause_of(seconds, cast(Duration, more))
    if (body := present_body()) is not None:
        return body.sleep(length)
    return cast(Coroutine[Any, Any, None], current("sleep").record("sleep", Sleep(length), id))


def approve(
    title: str,
    *,
    text: str | None = None,
    show: Any = None,
    fields: Any = None,
    actions: Sequence[str] | None = None,
    expires_in: float | None = None,
    on_expire: str | None = None,
    remind_before: float | None = None,
    by: Sequence[str] | None = None,
    notify: Mapping[str, Any] | None = None,
    id: str | None = None,
    **within: Unpack[Duration],
) -> Coroutine[Any, Any, Answer[Any]]:
    """Ask a person. The answer has `action`, `fields` and `by`.

    fields       a type, or a JSON Schema: the form for the person
    actions      ids of the buttons; without them `approve` and `reject`
    days, hours, minutes, seconds  the time to answer, or `expires_in`, in seconds, as remind_before
    others       as the params of the block `approval`

    In a durable function it raises TimeoutError when no answer came in time; in a workflow function the block fails
    then, or does what `on_expire` names.
    """
    limit_s = seconds_of(within)
    given = {
        "text": text,
        "show": show,
        "fields": _form(fields),
        "actions": actions,
        "expires_in_s": expires_in if limit_s is None else limit_s,
        "on_expire": on_expire,
        "remind_before_s": remind_before,
        "by": by,
        "notify": notify,
    }
    given = {key: value for key, value in given.items() if value is not None}
    if (body := present_body()) is not None:
        return body.approve({"title": title, **given}, fields)
    asked = current("approve").record("approve", Approval(title, **given), id, of=Answered)
    return cast(Coroutine[Any, Any, Answer[Any]], asked)


def continue_as_new(input: Any = None, *, id: str | None = None) -> Coroutine[Any, Any, NoReturn]:
    """End the run here; a new run of this workflow continues it with this input. It never returns:
    `await order.continue_as_new("7")` in a durable function takes the arguments of the function. In a workflow function
    no call can follow it, but for those of other branches."""
    if (body := present_body()) is not None:
        return body.continue_as_new(input)
    trace = current("continue_as_new")
    return cast(Coroutine[Any, Any, NoReturn], Call(trace, "weft.continue_as_new", _continue(trace, input, id)))


async def _continue(trace: Trace, input: Any, id: str | None) -> None:
    trace.add("continue", ContinueAsNew(UNSET if input is None else input), id=id)
    trace.scope.exits = []


def _form(fields: Any) -> Any:
    if fields is None or isinstance(fields, Mapping):
        return fields
    try:
        return schema_of(fields)
    except TypeUnknown as error:
        raise DefinitionError(f"weft.approve: {error}.") from None
