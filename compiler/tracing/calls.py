"""Functions that workflow functions call besides their steps, each for one block of the canvas: `sleep`, `approve`
and `continue_as_new`; and `in_order`. All raise TraceError. `ways.py` has those for several ways, `blocks.py` those of
models, requests, mails and databases."""

from __future__ import annotations

from collections.abc import Awaitable, Generator, Mapping, Sequence
from contextlib import contextmanager
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Generic, NoReturn, TypedDict, TypeVar, Unpack, cast

import msgspec
from msgspec import UNSET

from compiler.builder.blocks import Approval, ContinueAsNew, Sleep
from compiler.builder.errors import TraceError
from compiler.signature import TypeUnknown, schema_of
from compiler.tracing.body import present_body
from compiler.tracing.duration import Duration, pause_of, seconds_of
from compiler.tracing.trace import current
from compiler.tracing.values import Traced

F = TypeVar("F")


class Pause(TypedDict, total=False):
    """A Duration whose seconds have a place of their own."""

    days: float
    hours: float
    minutes: float


@contextmanager
def in_order() -> Generator[None]:
    """`with weft.in_order():` each call in it waits for all calls before it, whether it uses their values or not."""
    trace = current("in_order")
    before, trace.scope.ordered = trace.scope.ordered, True
    scope = trace.scope
    try:
        yield
    finally:
        scope.ordered = before


if TYPE_CHECKING:
    # Types alone. They have the base Any, which mypy refuses, because workflow functions use the values as any others,
    # and Awaitable for pyright, which otherwise takes what is awaited as unknown.
    class Sleeping(Awaitable[None], Any):  # type: ignore[misc]  # base Any: used as any value
        """A pause: awaited in a durable function; in a workflow function the block is recorded already."""

        def __await__(self) -> Generator[Any, Any, None]: ...

    class Asking(Awaitable["Answer[Any]"], Any):  # type: ignore[misc]  # base Any: used as any value
        """A question to a person: awaited in a durable function, it gives the answer; in a workflow function it stands
        for that."""

        def __await__(self) -> Generator[Any, Any, Answer[Any]]: ...

    class Continuing(Awaitable[NoReturn], Any):  # type: ignore[misc]  # base Any: used as any value
        """The end of the run: awaited in a durable function; in a workflow function the block is recorded already."""

        def __await__(self) -> Generator[Any, Any, NoReturn]: ...


class Answer(msgspec.Struct, Generic[F], frozen=True):
    """The answer of a person. `fields`: of the form, of the type that was asked for. `by`: who answered, if that is
    known."""

    action: str
    fields: F
    by: str | None = None


def sleep(seconds: float | timedelta | Any = None, *, id: str | None = None, **more: Unpack[Pause]) -> Sleeping:
    """A pause, on disk: `sleep(30)`, `sleep(days=3)`, `sleep(timedelta(hours=1))`. In a durable function it is awaited.
    In a workflow function it waits for all calls before it, and all calls after it wait for it."""
    length = pause_of(seconds, cast(Duration, more))
    if (body := present_body()) is not None:
        return cast("Sleeping", body.sleep(length))
    trace = current("sleep")
    node = trace.add("sleep", Sleep(length), id=id, barrier=True)
    return cast("Sleeping", Traced(node, node.scope))


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
) -> Asking:
    """Ask a person.

    fields       a type, or a JSON Schema: the form for the person
    actions      ids of the buttons; without them `approve` and `reject`
    days, hours, minutes, seconds  the time to answer, or `expires_in`, in seconds, as remind_before
    others       as the params of the block `approval`

    In a durable function it is awaited, and returns an Answer with `action`, `fields` and `by`; it raises TimeoutError
    when no answer came in time. In a workflow function it waits for all calls before it, and all calls after it
    wait for the answer; the value has the fields, `action`, `answered_by` and `answered_at`.
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
        return cast("Asking", body.approve({"title": title, **given}, fields))
    trace = current("approve")
    node = trace.add("approve", Approval(title, **given), id=id, barrier=True)
    return cast("Asking", Traced(node, node.scope))


def continue_as_new(input: Any = None, *, id: str | None = None) -> Continuing:
    """End the run here; a new run of this workflow continues it with this input. In a durable function it is awaited
    and never returns: `await order.continue_as_new("7")` takes the arguments of the function. In a workflow function it
    waits for all calls before it. Inside `with weft.when(...)` this happens only in that case, and all later calls wait
    until it is known."""
    if (body := present_body()) is not None:
        return cast("Continuing", body.continue_as_new(input))
    trace = current("continue_as_new")
    block = ContinueAsNew(UNSET if input is None else input)
    trace.add("continue", block, id=id, barrier=True).ends = True
    trace.scope.ends_here()
    return cast("Continuing", None)


def _form(fields: Any) -> Any:
    if fields is None or isinstance(fields, Mapping):
        return fields
    try:
        return schema_of(fields)
    except TypeUnknown as error:
        raise TraceError(f"weft.approve: {error}.") from None
