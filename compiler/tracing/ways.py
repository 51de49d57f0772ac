"""Functions of a workflow that take other functions, and choose or repeat what those call: `each`, `when` and
`attempt`. Each records blocks that the canvas has as well; all raise TraceError."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Coroutine, Generator, Iterable, Mapping
from contextlib import contextmanager
from functools import partial
from typing import Any, Literal, TypedDict, TypeVar, Unpack, cast, overload

from msgspec import UNSET

from compiler.builder.blocks import Branch, Case, Each, Loop, Set
from compiler.builder.errors import TraceError
from compiler.document import SettingsDoc
from compiler.tracing.graph import Junction, Node, Scope, nodes_of
from compiler.tracing.trace import Trace, current, finished
from compiler.tracing.values import Condition, Perhaps, Traced, field_of, kind_of, reference
from compiler.wiring import BODY, ERROR, FINALLY, OUT

T = TypeVar("T")
U = TypeVar("U")
_Async = Callable[[], Coroutine[Any, Any, T]]
_AsyncOf = Callable[[T], Coroutine[Any, Any, U]]


class Failed(Any):  # type: ignore[misc]  # strict forbids Any as a base; it fits any parameter of a step
    """The error that `failed` of `attempt` gets, for type checkers."""

    code: str
    message: str


class _EachOptions(TypedDict, total=False):
    concurrency: int | None
    id: str | None


class _AttemptOptions(TypedDict, total=False):
    cancelled: Callable[..., Any] | None
    finally_: Callable[..., Any] | None
    id: str | None


_THEN, _ELSE = "then", "else"
_EACH_MAX = SettingsDoc().max_executions
_ERROR = {
    "type": "object",
    "properties": {"code": {"type": "string"}, "message": {"type": "string"}},
    "additionalProperties": {},
}


@overload
def each(
    items: Iterable[T],
    function: _AsyncOf[T, U],
    *,
    one_at_a_time: bool = ...,
    on_error: Literal["fail"] = ...,
    **more: Unpack[_EachOptions],
) -> list[U]: ...


@overload
def each(
    items: Iterable[T],
    function: Callable[[T], U],
    *,
    one_at_a_time: bool = ...,
    on_error: Literal["fail"] = ...,
    **more: Unpack[_EachOptions],
) -> list[U]: ...


@overload
def each(
    items: Iterable[T], function: _AsyncOf[T, U], *, on_error: Literal["continue"], **more: Unpack[_EachOptions]
) -> list[U | None]: ...


@overload
def each(
    items: Iterable[T], function: Callable[[T], U], *, on_error: Literal["continue"], **more: Unpack[_EachOptions]
) -> list[U | None]: ...


@overload
def each(
    items: Iterable[T], function: _AsyncOf[T, U], *, on_error: Literal["collect"], **more: Unpack[_EachOptions]
) -> list[U | dict[str, Any]]: ...


@overload
def each(
    items: Iterable[T], function: Callable[[T], U], *, on_error: Literal["collect"], **more: Unpack[_EachOptions]
) -> list[U | dict[str, Any]]: ...


def each(
    items: Any,
    function: Callable[[Any], Any],
    *,
    one_at_a_time: bool = False,
    concurrency: int | None = None,
    on_error: Literal["fail", "continue", "collect"] = "fail",
    id: str | None = None,
) -> list[Any]:
    """Call `function` for each item: side by side, or one at a time. The value is the list of its results, in the order
    of the items.

    function      a step, or a function that calls steps; it is traced once
    concurrency   items in progress at the same time; 100 by default
    on_error      effect of a failed item: `fail` the run, `continue` with None in its place, or `collect`: with
                  `{"error": {...}}` in its place. Not with one_at_a_time
    """
    trace = current("each")
    if not isinstance(items, Traced):
        raise TraceError(
            f"weft.each takes a traced value, not {items!r}: use a plain `for` over what is known already."
        )
    if (kind := kind_of(items._schema)) not in ("", "array"):
        raise TraceError(f"weft.each takes a list: {reference(items)} is of type {kind}.")
    name = _name_of(function, "each")
    block: Loop | Each
    if one_at_a_time:
        if on_error != "fail" or concurrency is not None:
            raise TraceError("weft.each: concurrency and on_error are for items side by side, not one_at_a_time.")
        block = Loop(each=items, max=_EACH_MAX, results="value")
    else:
        at_most, then = UNSET if concurrency is None else concurrency, UNSET if on_error == "fail" else on_error
        block = Each(items=items, concurrency=at_most, on_branch_error=then, results="value")
    box = trace.add(name, block, id=id)
    box.body = Scope((box.id, BODY), box.scope, box, box.id)
    with trace.inside(box.body):
        returned = finished(function, function(Traced(box, box.body, ("item",), field_of(items._schema, 0))))
        one = _end_with(trace, returned, f"weft.each: {name}")
    schema = {"type": "array", "items": one if on_error == "fail" else {}}
    return cast(list[Any], Traced(box, box.scope, ("results",), schema))


@overload
def attempt(do: _Async[T], failed: None = None, **more: Unpack[_AttemptOptions]) -> T: ...


@overload
def attempt(do: Callable[[], T], failed: None = None, **more: Unpack[_AttemptOptions]) -> T: ...


@overload
def attempt(do: _Async[T], failed: _AsyncOf[Failed, U], **more: Unpack[_AttemptOptions]) -> T | U: ...


@overload
def attempt(do: _Async[T], failed: Callable[[Failed], U], **more: Unpack[_AttemptOptions]) -> T | U: ...


@overload
def attempt(do: Callable[[], T], failed: _AsyncOf[Failed, U], **more: Unpack[_AttemptOptions]) -> T | U: ...


@overload
def attempt(do: Callable[[], T], failed: Callable[[Failed], U], **more: Unpack[_AttemptOptions]) -> T | U: ...


def attempt(
    do: Callable[[], Any],
    failed: Callable[[Any], Any] | None = None,
    *,
    cancelled: Callable[..., Any] | None = None,
    finally_: Callable[..., Any] | None = None,
    id: str | None = None,
) -> Any:
    """Return the value of `do`, or that of `failed` if a step in `do` fails for good. All functions are traced.

    failed     gets the error: `code`, `message`; without it, the run fails as it would have without `attempt`
    cancelled  its calls run if `do` ends because the run does: it is cancelled, takes too long, or fails elsewhere
    finally_   the cleanup: its calls run when those of `do` have ended, even if these failed or were cancelled

    `cancelled` and `finally_` may take an argument, which has the calls of `do` by name: `lambda done: undo(done.pay)`.
    The value of a call that did not succeed is None.
    """
    trace = current("attempt")
    if failed is None and cancelled is None and finally_ is None:
        raise TraceError("weft.attempt takes what to do after a failure or a cancel, or finally_.")
    if cancelled is not None and finally_ is not None:
        # One attempt inside another: finally_ runs after the calls of `cancelled`, also if one of them fails.
        do, cancelled = cast(Callable[[], Any], partial(attempt, do, cancelled=cancelled)), None
    box = trace.add("attempt", Each(count=1, results="value"), id=id)
    box.body = Scope((box.id, BODY), box.scope, box, box.id)
    with trace.inside(box.body):
        schema = _end_with(trace, finished(do, do()), "weft.attempt")
    if finally_ is not None:
        _clean_up(trace, box, finally_, "finally_")
    if cancelled is not None:
        for item in _clean_up(trace, box, cancelled, "cancelled").items:
            if isinstance(item, Node):
                policy = item.block.options.get("policy", {})
                item.block.options["policy"] = {**policy, "skip_if": f'<{box.id}.outcome> !== "cancelled"'}
    done = Traced(box, box.scope, ("results", 0), schema)
    if failed is None:
        return done
    junction = Junction(box.scope, box)
    junction.done = [(box.id, OUT)]
    way = Scope((box.id, ERROR), box.scope, box, box.scope.container)
    junction.ways = [way]
    trace.join(junction)
    with trace.inside(way):
        other = _of_way(trace, finished(failed, failed(Traced(box, way, ("error",), _ERROR))))
    values = [_or_null(done), *other]
    return _first(trace, f"{box.id}-value", values, {} if other else schema, junction)


class Done:
    """The calls that a cleanup cleans up for, by name: `done.reserve`, `done["reserve-2"]`."""

    def __init__(self, calls: Mapping[str, Traced]) -> None:
        self._calls = calls

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return self[name]

    def __getitem__(self, name: str) -> Any:
        if name not in self._calls:
            made = ", ".join(self._calls) or "none"
            raise TraceError(f"what is cleaned up for has no call {name!r}. Its calls: {made}.")
        call = self._calls[name]
        call._node.needed = True
        return call


def _clean_up(trace: Trace, box: Node, handler: Callable[..., Any], called: str) -> Scope:
    scope = box.cleanup = Scope((box.id, FINALLY), box.scope, box, box.id)
    with trace.inside(scope):
        if _takes_one(handler):
            calls = _done_in(box)
            done = Done({call.id: Perhaps(call, scope, (), call.block.options.get("output")) for call in calls})
            finished(handler, handler(done))
        else:
            finished(handler, handler())
    if not scope.items:
        raise TraceError(f"weft.attempt: {called} makes no calls.")
    return scope


def _takes_one(handler: Callable[..., Any]) -> bool:
    try:
        parameters = inspect.signature(handler).parameters.values()
    except (TypeError, ValueError):
        return False
    positional = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    return any(one.default is one.empty and one.kind in positional for one in parameters)


def _done_in(box: Node) -> list[Node]:
    """Return the calls in it that its cleanup can read; calls made for each item are not. Attempts become loops that
    run once: a cleanup reads the blocks of a loop, and not those of a parallel."""
    assert box.body is not None
    inner = nodes_of(box.body)
    for node in (box, *inner):
        if node.block.type == "parallel" and node.block.params["mode"] == "count":
            node.block = Loop(count=1, results="value")
    return [node for node in inner if _is_readable(box, node.scope)]


def _is_readable(box: Node, scope: Scope) -> bool:
    while scope is not box.body:
        owner, parent = scope.owner, scope.parent
        if (
            owner is None
            or parent is None
            or scope is owner.cleanup
            or (scope is owner.body and owner.block.type != "loop")
        ):
            return False
        scope = parent
    return True


class When:
    """A condition in a workflow function: `with weft.when(...):`, and `with weft.otherwise():` right after it."""

    def __init__(self, trace: Trace, node: Node) -> None:
        self._trace = trace
        self.junction = Junction(node.scope, node)
        self.ways = {name: Scope((node.id, name), node.scope, node, node.scope.container) for name in (_THEN, _ELSE)}
        self.junction.ways = list(self.ways.values())
        self._left: Any = None
        trace.join(self.junction)

    def __enter__(self) -> None:
        self._left = self._trace.inside(self.ways[_THEN])
        self._left.__enter__()

    def __exit__(self, *error: Any) -> None:
        self._left.__exit__(*error)


@overload
def when(condition: Any, then: None = None, otherwise: None = None, *, id: str | None = None) -> When: ...


@overload
def when(condition: Any, then: _Async[T], otherwise: None = None, *, id: str | None = None) -> T | None: ...


@overload
def when(condition: Any, then: Callable[[], T], otherwise: None = None, *, id: str | None = None) -> T | None: ...


@overload
def when(condition: Any, then: _Async[T], otherwise: _Async[U], *, id: str | None = None) -> T | U: ...


@overload
def when(condition: Any, then: _Async[T], otherwise: Callable[[], U], *, id: str | None = None) -> T | U: ...


@overload
def when(condition: Any, then: Callable[[], T], otherwise: _Async[U], *, id: str | None = None) -> T | U: ...


@overload
def when(condition: Any, then: Callable[[], T], otherwise: Callable[[], U], *, id: str | None = None) -> T | U: ...


def when(
    condition: Any,
    then: Callable[[], Any] | None = None,
    otherwise: Callable[[], Any] | None = None,
    *,
    id: str | None = None,
) -> Any:
    """Run `then()` if the condition holds in the run, else `otherwise()`; the value is that of the function that ran.
    Both are traced. Without them: `with weft.when(a.score > 5):`, whose values exist only inside.

    condition   a comparison of traced values, with & | ~, or a traced value: JavaScript decides whether it is true
    """
    trace = current("when")
    holds = Condition.of(condition)
    block = Branch(Case(_THEN, holds.text), Case(_ELSE))
    node = trace.add("when", block, id=id, reads=holds.reads, is_plain=True)
    branch = When(trace, node)
    if then is None:
        if otherwise is not None:
            raise TraceError("weft.when: `otherwise` is there without `then`. Write both, or use ~ of the condition.")
        return branch
    with trace.inside(branch.ways[_THEN]):
        values = _of_way(trace, finished(then, then()))
    with trace.inside(branch.ways[_ELSE]):
        values += _of_way(trace, None if otherwise is None else finished(otherwise, otherwise()))
    return _first(trace, f"{node.id}-value", values, {}, branch.junction)


@contextmanager
def otherwise() -> Generator[None]:
    """Right after `with weft.when(...):`, for when its condition does not hold."""
    trace = current("otherwise")
    last = trace.scope.items[-1] if trace.scope.items else None
    if not isinstance(last, Junction) or len(last.ways) != 2 or last.ways[1].items:
        raise TraceError("weft.otherwise() must follow a `with weft.when(...):`, with no call between.")
    with trace.inside(last.ways[1]):
        yield


def _end_with(trace: Trace, value: Any, called: str) -> dict[str, Any]:
    """Make one block of the current body its only end, with `value` as output. Returns its schema."""
    last = trace.scope.last()
    if isinstance(value, Traced) and not value._path and last == [value._node]:
        value._node.needed = True
        return value._schema or {}
    if value is None and not last:
        raise TraceError(f"{called} makes no calls.")
    trace.add("value", Set(value), items=last)
    return (value._schema if isinstance(value, Traced) else None) or {}


def _of_way(trace: Trace, value: Any) -> list[str]:
    """Return a reference to the value of a way; it is null if the run took another way. Empty for None."""
    if value is None:
        return []
    if not isinstance(value, Traced) or value._scope is not trace.scope:
        # A value from outside exists whichever way the run takes; a block of the way has it only in this one.
        node = trace.add("value", Set(value), items=trace.scope.last())
        value = Traced(node, node.scope)
    value._node.needed = True
    return [_or_null(value)]


def _or_null(value: Traced) -> str:
    text = reference(value)
    return text if " ?? " in text else f"{text[:-1]} ?? null>"


def _first(trace: Trace, name: str, values: list[str], schema: dict[str, Any], behind: Junction) -> Any:
    node = trace.add(name, Set(first=values) if values else Set(None), items=[behind], is_plain=True)
    node.needed = False
    node.joins = True
    return Traced(node, node.scope, (), schema)


def _name_of(function: Any, else_: str) -> str:
    name = getattr(function, "__name__", "")
    return f"{else_}-{name}" if name.isidentifier() else else_
