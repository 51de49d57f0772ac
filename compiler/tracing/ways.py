"""Functions of a workflow that take other functions, and choose or repeat what those call: `each`, `when` and
`attempt`. Each records blocks that the canvas has as well; all raise DefinitionError."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Coroutine, Generator, Iterable, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any, Literal, TypedDict, TypeVar, Unpack, overload

from msgspec import UNSET

from compiler.builder.blocks import Branch, Case, Each, Loop, Set
from compiler.builder.errors import DefinitionError
from compiler.document import SettingsDoc
from compiler.tracing.graph import Node, Scope
from compiler.tracing.trace import Call, Trace, current, recorded, settled
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
) -> Coroutine[Any, Any, list[U]]: ...


@overload
def each(
    items: Iterable[T], function: _AsyncOf[T, U], *, on_error: Literal["continue"], **more: Unpack[_EachOptions]
) -> Coroutine[Any, Any, list[U | None]]: ...


@overload
def each(
    items: Iterable[T], function: _AsyncOf[T, U], *, on_error: Literal["collect"], **more: Unpack[_EachOptions]
) -> Coroutine[Any, Any, list[U | dict[str, Any]]]: ...


@recorded
async def each(
    items: Any,
    function: Callable[[Any], Any],
    *,
    one_at_a_time: bool = False,
    concurrency: int | None = None,
    on_error: Literal["fail", "continue", "collect"] = "fail",
    id: str | None = None,
) -> Any:
    """Call an async function for each item: side by side, or one at a time. The value is the list of its results, in
    the order of the items.

    function      a step, or a function that awaits steps; it is traced once
    concurrency   items in progress at the same time; 100 by default
    on_error      effect of a failed item: `fail` the run, `continue` with None in its place, or `collect`: with
                  `{"error": {...}}` in its place. Not with one_at_a_time
    """
    trace = current("each")
    if not isinstance(items, Traced):
        raise DefinitionError(
            f"weft.each takes a traced value, not {items!r}: use a plain `for` over what is known already."
        )
    if (kind := kind_of(items._schema)) not in ("", "array"):
        raise DefinitionError(f"weft.each takes a list: {reference(items)} is of type {kind}.")
    name = _name_of(function, "each")
    block: Loop | Each
    if one_at_a_time:
        if on_error != "fail" or concurrency is not None:
            raise DefinitionError("weft.each: concurrency and on_error are for items side by side, not one_at_a_time.")
        block = Loop(each=items, max=_EACH_MAX, results="value")
    else:
        at_most, then = UNSET if concurrency is None else concurrency, UNSET if on_error == "fail" else on_error
        block = Each(items=items, concurrency=at_most, on_branch_error=then, results="value")
    box = trace.add(name, block, id=id)
    one = await _body(trace, box, function, Traced(box, box.inside(BODY), ("item",), field_of(items._schema, 0)))
    return Traced(box, box.scope, ("results",), {"type": "array", "items": one if on_error == "fail" else {}})


async def drawn_together(trace: Trace, given: Sequence[Any], at_most: int) -> Any:
    """`weft.gather` in a workflow function."""
    if len(given) == 2 and isinstance(given[0], Traced):
        return await each(given[0], given[1], concurrency=at_most)
    if len(given) == 2 and not isinstance(given[0], Awaitable):
        return await trace.side_by_side([settled(given[1](item)) for item in given[0]])
    return tuple(await trace.side_by_side(given))


@overload
def attempt(do: _Async[T], failed: None = None, **more: Unpack[_AttemptOptions]) -> Coroutine[Any, Any, T]: ...


@overload
def attempt(
    do: _Async[T], failed: _AsyncOf[Failed, U], **more: Unpack[_AttemptOptions]
) -> Coroutine[Any, Any, T | U]: ...


@overload
def attempt(
    do: _Async[T], failed: Callable[[Failed], U], **more: Unpack[_AttemptOptions]
) -> Coroutine[Any, Any, T | U]: ...


@recorded
async def attempt(
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
        raise DefinitionError("weft.attempt takes what to do after a failure or a cancel, or finally_.")
    if cancelled is not None and finally_ is not None:
        # One attempt inside another: finally_ runs after the calls of `cancelled`, also if one of them fails.
        do, cancelled = partial(attempt, do, cancelled=cancelled), None
    box = trace.add("attempt", Each(count=1, results="value"), id=id)
    schema = await _body(trace, box, do)
    if finally_ is not None:
        await _clean_up(trace, box, finally_, "finally_")
    if cancelled is not None:
        for node in (await _clean_up(trace, box, cancelled, "cancelled")).nodes:
            policy = node.block.options.get("policy", {})
            node.block.options["policy"] = {**policy, "skip_if": f'<{box.id}.outcome> !== "cancelled"'}
    done = Traced(box, box.scope, ("results", 0), schema)
    if failed is None:
        return done
    way = box.way(ERROR)
    other = await _way(trace, way, failed, Traced(box, way, ("error",), _ERROR))
    box.scope.follow([[(box.id, OUT)], way.exits])
    return _first(trace, f"{box.id}-value", [done, *other], {} if other else schema)


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
            raise DefinitionError(f"what is cleaned up for has no call {name!r}. Its calls: {made}.")
        call = self._calls[name]
        call._node.needed = True
        return call


async def _body(trace: Trace, box: Node, function: Callable[..., Any], *item: Traced) -> dict[str, Any]:
    """Trace a function as the body of a container. Returns the schema of its value."""
    box.body = item[0]._scope if item else box.inside(BODY)
    with trace.inside(box.body) as body:
        value = await settled(function(*item))
        if value is None and not body.nodes:
            raise DefinitionError(f"weft.{'each' if item else 'attempt'}: the function makes no calls.")
        return trace.end_with(value, "value")


async def _clean_up(trace: Trace, box: Node, handler: Callable[..., Any], called: str) -> Scope:
    scope = box.cleanup = box.inside(FINALLY)
    assert box.body is not None
    calls = trace.nodes_in(box.body)
    with trace.inside(scope):
        if _takes_one(handler):
            done = Done(
                {one.id: Perhaps(one, scope, (), one.block.options.get("output")) for one in _done_in(box, calls)}
            )
            await settled(handler(done))
        else:
            await settled(handler())
    if not scope.nodes:
        raise DefinitionError(f"weft.attempt: {called} makes no calls.")
    return scope


def _takes_one(handler: Callable[..., Any]) -> bool:
    try:
        parameters = inspect.signature(handler).parameters.values()
    except (TypeError, ValueError):
        return False
    positional = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    return any(one.default is one.empty and one.kind in positional for one in parameters)


def _done_in(box: Node, inner: list[Node]) -> list[Node]:
    """Return the calls in it that its cleanup can read; calls made for each item are not. Attempts become loops that
    run once: a cleanup reads the blocks of a loop, and not those of a parallel."""
    for node in (box, *inner):
        if node.block.type == "parallel" and node.block.params["mode"] == "count":
            node.block = Loop(count=1, results="value")
    hidden = [node.cleanup for node in inner if node.cleanup is not None]
    hidden += [node.body for node in inner if node.body is not None and node.block.type != "loop"]
    return [node for node in inner if not any(scope.holds(node.scope) for scope in hidden)]


class When:
    """A condition in a workflow function: `with weft.when(...):`, and `with weft.otherwise():` right after it."""

    def __init__(self, trace: Trace, condition: Any, id: str | None) -> None:
        holds = Condition.of(condition)
        self._trace = trace
        self.node = trace.add(
            "when", Branch(Case(_THEN, holds.text), Case(_ELSE)), id=id, reads=holds.reads, is_plain=True
        )
        self.then, self.otherwise = self.node.way(_THEN), self.node.way(_ELSE)
        self.join()

    def join(self) -> None:
        scope = self.node.scope
        scope.condition = self
        self.ends = scope.follow([self.then.exits, self.otherwise.exits])

    def __enter__(self) -> None:
        self._left = self._trace.inside(self.then)
        self._left.__enter__()

    def __exit__(self, *error: Any) -> None:
        self._left.__exit__(*error)
        self.join()


@overload
def when(condition: Any, *, id: str | None = None) -> When: ...


@overload
def when(
    condition: Any, then: _Async[T], otherwise: None = None, *, id: str | None = None
) -> Coroutine[Any, Any, T | None]: ...


@overload
def when(
    condition: Any, then: _Async[T], otherwise: _Async[U], *, id: str | None = None
) -> Coroutine[Any, Any, T | U]: ...


@overload
def when(
    condition: Any, then: _Async[T], otherwise: Callable[[], U], *, id: str | None = None
) -> Coroutine[Any, Any, T | U]: ...


@overload
def when(
    condition: Any, then: Callable[[], T], otherwise: _Async[U], *, id: str | None = None
) -> Coroutine[Any, Any, T | U]: ...


@overload
def when(
    condition: Any, then: Callable[[], T], otherwise: Callable[[], U], *, id: str | None = None
) -> Coroutine[Any, Any, T | U]: ...


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
    if then is None:
        if otherwise is not None:
            raise DefinitionError(
                "weft.when: `otherwise` is there without `then`. Write both, or use ~ of the condition."
            )
        return When(trace, condition, id)
    return Call(trace, "weft.when", _when(trace, condition, then, otherwise, id))


async def _when(trace: Trace, condition: Any, then: Any, otherwise: Any, id: str | None) -> Any:
    branch = When(trace, condition, id)
    values = await _way(trace, branch.then, then)
    if otherwise is not None:
        values += await _way(trace, branch.otherwise, otherwise)
    branch.join()
    return _first(trace, f"{branch.node.id}-value", values, {})


@contextmanager
def otherwise() -> Generator[None]:
    """Right after `with weft.when(...):`, for when its condition does not hold."""
    trace = current("otherwise")
    last = trace.scope.condition
    if last is None or last.ends is not trace.scope.exits or last.otherwise.nodes:
        raise DefinitionError("weft.otherwise() must follow a `with weft.when(...):`, with no call between.")
    with trace.inside(last.otherwise):
        yield
    last.join()


async def _way(trace: Trace, scope: Scope, function: Callable[..., Any], *given: Traced) -> list[Traced]:
    """Trace a function after an exit. Returns its value, or nothing for None."""
    with trace.inside(scope):
        value = await settled(function(*given))
        if value is None:
            return []
        if not isinstance(value, Traced) or value._scope is not scope:
            # A value from outside exists whichever way the run takes; a block of the way has it only in this one.
            node = trace.add("value", Set(value))
            value = Traced(node, scope)
    return [value]


def _first(trace: Trace, name: str, values: list[Traced], schema: dict[str, Any]) -> Traced:
    """Return the one value that is there: the others are null, as the run took another way."""
    texts = [text if " ?? " in (text := reference(value)) else f"{text[:-1]} ?? null>" for value in values]
    node = trace.add(name, Set(first=texts) if texts else Set(None), is_plain=True)
    node.needed, node.joins = False, True
    node.reads += [value._node for value in values]
    return Traced(node, node.scope, (), schema)


def _name_of(function: Any, else_: str) -> str:
    name = getattr(function, "__name__", "")
    return f"{else_}-{name}" if name.isidentifier() else else_
