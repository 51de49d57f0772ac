"""Functions that workflow functions call besides their steps, each for one block of the canvas: `sleep`, `approve`,
`http` and `continue_as_new`; and `in_order`. All raise TraceError. `ways.py` has those for several ways."""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from msgspec import UNSET

from compiler.builder.blocks import Approval, ContinueAsNew, Http, Sleep
from compiler.builder.errors import TraceError
from compiler.signature import TypeUnknown, schema_of
from compiler.tracing.trace import current
from compiler.tracing.values import Traced


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


def sleep(seconds: float | Any, *, id: str | None = None) -> Any:
    """A pause of the run, on disk. It waits for all calls before it, and all calls after it wait for it."""
    trace = current("sleep")
    node = trace.add("sleep", Sleep(seconds), id=id, barrier=True)
    return Traced(node, node.scope)


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
) -> Any:
    """Ask a person. It waits for all calls before it, and all calls after it wait for the answer.

    fields       a type, or a JSON Schema: the form for the person
    actions      ids of the buttons; without them `approve` and `reject`
    expires_in   seconds, as remind_before
    others       as the params of the block `approval`

    The value has the fields, `action`, `answered_by` and `answered_at`.
    """
    trace = current("approve")
    given = {
        "text": text,
        "show": show,
        "fields": _form(fields),
        "actions": actions,
        "expires_in_s": expires_in,
        "on_expire": on_expire,
        "remind_before_s": remind_before,
        "by": by,
        "notify": notify,
    }
    block = Approval(title, **{key: value for key, value in given.items() if value is not None})
    node = trace.add("approve", block, id=id, barrier=True)
    return Traced(node, node.scope)


def continue_as_new(input: Any = None, *, id: str | None = None) -> None:
    """End the run here; a new run of this workflow continues it with this input. It waits for all calls before it.
    Inside `with weft.when(...)` this happens only in that case, and all later calls wait until it is known."""
    trace = current("continue_as_new")
    block = ContinueAsNew(UNSET if input is None else input)
    trace.add("continue", block, id=id, barrier=True).ends = True
    trace.scope.ends_here()


def http(
    url: str,
    *,
    method: str = "GET",
    headers: Mapping[str, Any] | None = None,
    query: Mapping[str, Any] | None = None,
    body: Any = None,
    id: str | None = None,
    **params: Any,
) -> Any:
    """An HTTP request by the block `http`, which keeps `${NAME}` secret and repeats what may be repeated. Others of its
    params can be added. The value has `status`, `headers`, `body`."""
    trace = current("http")
    given = {"headers": headers, "query": query, "body": body, **params}
    block = Http(url, method=method, params={key: value for key, value in given.items() if value is not None})
    node = trace.add("http", block, id=id)
    return Traced(node, node.scope)


def _form(fields: Any) -> Any:
    if fields is None or isinstance(fields, Mapping):
        return fields
    try:
        return schema_of(fields)
    except TypeUnknown as error:
        raise TraceError(f"weft.approve: {error}.") from None
