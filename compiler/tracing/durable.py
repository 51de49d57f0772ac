"""`@weft.durable`: a function in ordinary Python whose run survives the end of its process.

    @weft.durable
    async def order(order: str, amount: float) -> str:
        paid = await charge(order, amount)
        await weft.sleep(days=3)
        return paid.id

Its document has one block, `body`, which runs the function. `executor/blocks/durable` has what the function can await.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Coroutine, Iterable, Mapping
from datetime import timedelta
from functools import cached_property
from typing import Any, Concatenate, Final, NoReturn, ParamSpec, TypeVar, overload

from compiler.builder.errors import DefinitionError
from compiler.builder.step import Block, Options
from compiler.tracing.asks import Query, Update
from compiler.tracing.calls import continue_as_new
from compiler.tracing.code import code_of, reached
from compiler.tracing.duration import pause_of
from compiler.tracing.listing import listing_of
from compiler.tracing.steps import NAME_LENGTH_MAX, module_of
from compiler.tracing.trace import Trace
from compiler.tracing.values import Traced
from compiler.tracing.workflow import FunctionWorkflow, called_by, is_composed
from compiler.wiring import FINALLY

P = ParamSpec("P")
Q = ParamSpec("Q")
A = TypeVar("A")
R = TypeVar("R")
S = TypeVar("S")
T = TypeVar("T")

BODY: Final = "body"
UNDO: Final = "undo"  # what the function does when its run is cancelled
TYPE: Final = "durable"


class DurableFunction(FunctionWorkflow[P, R]):
    """A durable function. `name`: of its workflow; `called`: that of its function in documents; `aliases`: those that
    this was before. Called in another durable function, or in a workflow function, it is a child run."""

    def __init__(
        self,
        function: Callable[P, Coroutine[Any, Any, R]],
        name: str,
        settings: Mapping[str, Any],
        state: Any = None,
        aliases: Iterable[str] = (),
    ) -> None:
        super().__init__(function, name, settings)
        self.state = state
        self.aliases = tuple(aliases)
        self.queries: dict[str, Query[..., Any]] = {}
        self.updates: dict[str, Update[Any, Any]] = {}
        self.called = f"{module_of(function)}.{function.__name__}"
        if function.__closure__:
            message = f"{function.__name__} uses {function.__code__.co_freevars[0]!r} of a function around it"
            raise DefinitionError(f"{message}: write it at the top of the module.", self.defined)
        if self.signature.context:
            raise DefinitionError(
                "a durable function has no parameter ctx: use weft.context() in a step.", self.defined
            )

    def query(self, function: Callable[Concatenate[S, Q], T], /) -> Query[Q, T]:
        """`@order.query` makes a function of the published state a query: `engine.query(order.eta, run)`. Its further
        parameters are those of the query. Raises DefinitionError."""
        query: Query[Q, T] = Query(function, self.called)
        self.queries[self._named(function)] = query
        return query

    @overload
    def update(self, function: Callable[[], T], /) -> Update[None, T]: ...

    @overload
    def update(self, function: Callable[[A], T], /) -> Update[A, T]: ...

    def update(self, function: Callable[..., Any], /) -> Any:
        """`@order.update` declares an update by the type of its value and that of its answer; the function is not
        called. Raises DefinitionError."""
        update: Update[Any, Any] = Update(function, self.called)
        self.updates[self._named(function)] = update
        return update

    async def continue_as_new(self, *args: P.args, **kwargs: P.kwargs) -> NoReturn:
        """`weft.continue_as_new` with the arguments of this function, which is the one that calls it."""
        bound = inspect.signature(self.function).bind(*args, **kwargs)
        await continue_as_new(dict(bound.arguments))

    def _named(self, function: Callable[..., Any]) -> str:
        name = function.__name__
        if hasattr(self, name):
            raise DefinitionError(f"{self.called} has {name!r} already: give the function another name.", self.defined)
        return name

    def __getattr__(self, name: str) -> Any:
        found = {**self.__dict__.get("queries", {}), **self.__dict__.get("updates", {})}
        if name in found:
            return found[name]
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    @cached_property
    def calls(self) -> Mapping[str, Any]:
        """The workflows in Python that its code names, also in functions of its package that it calls, when it is first
        asked for them: each submission does, and to read the source takes milliseconds."""
        found = (one.value for one in reached(self.function))
        return {one.name: one for one in found if is_composed(one) and one.name}

    @cached_property
    def code(self) -> str:
        """A hash of its code, when it is first asked for."""
        return code_of(self.function)

    def _trace(self) -> tuple[dict[str, Any], Trace]:
        if self._traced is None:
            document, trace = super()._trace()
            body = document["blocks"][BODY]
            document["blocks"][UNDO] = {"type": TYPE, "params": body["params"] | {"undoes": BODY}}
            document["edges"].append({"source": trace.start.id, "target": UNDO, "handle": FINALLY})
        return super()._trace()

    def _record(self, trace: Trace, values: Mapping[str, Traced]) -> None:
        params = {"function": self.called, "code": self.code}
        options: Options = {"params": params | ({"arguments": dict(values)} if values else {})}
        if (listing := listing_of(inspect.unwrap(self.function))) is not None:
            options["more"] = {"source": listing}
        trace.add(BODY, Block(TYPE, **options))


@overload
def durable(function: Callable[P, Coroutine[Any, Any, R]], /) -> DurableFunction[P, R]: ...


@overload
def durable(
    *,
    name: str | None = None,
    timeout: float | timedelta | None = None,
    undo: float | timedelta | None = None,
    state: Any = None,
    aliases: Iterable[str] = (),
    settings: Mapping[str, Any] | None = None,
) -> Callable[[Callable[P, Coroutine[Any, Any, R]]], DurableFunction[P, R]]: ...


def durable(
    function: Callable[..., Any] | None = None,
    /,
    *,
    name: str | None = None,
    timeout: float | timedelta | None = None,
    undo: float | timedelta | None = None,
    state: Any = None,
    aliases: Iterable[str] = (),
    settings: Mapping[str, Any] | None = None,
) -> Any:
    """Make an `async def` in ordinary Python a workflow: it awaits steps and what weft offers, and after a crash or a
    wait its run continues where it was.

    name      of the workflow; by default that of the function with `-` in place of `_`. It must stay the same while
              runs are open
    timeout   how long it may work in one stretch, as a timedelta or in seconds: not the time for which it waits
    undo      how long it may take to undo what it did, after a cancel or the timeout: 5 minutes by default
    state     the type of what it publishes with `weft.state`
    aliases   names that it had before, such as `shop.old.order`, if it was moved or renamed while runs are open
    settings  other `settings` of the document, such as `{"pool": "gpu"}`

    When its run is cancelled, or the timeout is over, `weft.Cancelled` is raised where it waits.

    Raises DefinitionError: a parameter has no JSON form, or the function is not an `async def` of a module.
    """

    def made(function: Callable[..., Any]) -> DurableFunction[Any, Any]:
        called = name or function.__name__.replace("_", "-")
        if len(called) > NAME_LENGTH_MAX:
            raise DefinitionError(f"a durable function cannot have the name {called[:80]!r}.")
        times = {"timeout_s": timeout, "cleanup_timeout_s": undo}
        given = {setting: pause_of(time, {}) for setting, time in times.items() if time is not None}
        return DurableFunction(function, called, {**(settings or {}), **given}, state, aliases)

    return made(function) if function is not None else made


def durables_of(values: Iterable[Any]) -> dict[str, DurableFunction[Any, Any]]:
    """Return the durable functions among these, and those that workflows among these call, also in others, by the names
    of documents. Raises ValueError, DefinitionError."""
    workflows = [value for value in values if is_composed(value)]
    found: dict[str, DurableFunction[Any, Any]] = {}
    for one in (*workflows, *called_by(workflows).values()):
        if isinstance(one, DurableFunction) and found.setdefault(one.called, one) is not one:
            raise ValueError(f"two durable functions have the name {one.called!r}: rename one of them")
    return found
