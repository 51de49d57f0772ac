"""Waits beside `weft.sleep` and `weft.approve`: they may last for months, and hold no memory. In a workflow function
each is a block."""

from __future__ import annotations

from collections.abc import Coroutine, Mapping
from datetime import UTC, datetime
from typing import Any, TypeVar, Unpack, cast, overload

from compiler.builder.blocks import Sleep
from compiler.builder.step import Block
from compiler.signature import schema_of
from compiler.tracing.duration import Duration, seconds_of
from compiler.tracing.trace import active
from executor.blocks.durable.running import present

T = TypeVar("T")


async def until(time: datetime) -> None:
    """Wait until a time. One without a time zone is in UTC."""
    if (trace := active()) is not None:
        await trace.record("until", Sleep(until=time.isoformat() if isinstance(time, datetime) else time))
        return
    at = time if time.tzinfo is not None else time.replace(tzinfo=UTC)
    await present("until").until(round(at.timestamp() * 1000))


@overload
def signal(name: str, key: str | None = None, **within: Unpack[Duration]) -> Coroutine[Any, Any, Any]: ...


@overload
def signal(
    name: str, key: str | None = None, *, type: type[T], **within: Unpack[Duration]
) -> Coroutine[Any, Any, T]: ...


async def signal(name: str, key: str | None = None, *, type: Any = Any, **within: Unpack[Duration]) -> Any:
    """Wait for a signal of this name, and return its payload.

    key    its correlation: only signals with the same one are taken
    type   of the payload
    days, hours, minutes, seconds  how long to wait

    Raises TimeoutError. A signal that came before is taken at once."""
    params = {"name": name, "correlation": key, "expires_in_s": seconds_of(within)}
    if (trace := active()) is not None:
        schema = {} if type is Any else schema_of(type)
        block = Block("signal", params=_given(params))
        return await trace.record("signal", block, path=("payload",), schema=schema)
    return await present("signal").signal(_given(params), type)


async def form(
    title: str,
    *,
    type: type[T],
    text: str | None = None,
    show: Any = None,
    submit: str | None = None,
    notify: Mapping[str, Any] | None = None,
    remind_before: float | None = None,
    **within: Unpack[Duration],
) -> T:
    """Ask a person to fill in a form, and return what they wrote.

    type     of the answer: its fields are those of the form
    days, hours, minutes, seconds  the time to answer
    others   as the params of the block `form`; remind_before in seconds

    Raises TimeoutError."""
    params = {
        "title": title,
        "fields": schema_of(type),
        "text": text,
        "show": show,
        "submit": submit,
        "notify": notify,
        "remind_before_s": remind_before,
        "expires_in_s": seconds_of(within),
    }
    if (trace := active()) is not None:
        asked = trace.record("form", Block("form", params=_given(params)), schema=params["fields"])
    else:
        asked = present("form").form(_given(params), type)
    return cast(T, await asked)


def _given(params: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in params.items() if value is not None}
