"""`@weft.step`: a typed function that workflow functions and durable ones await. In a workflow function a call is a
block of type `python`, in a durable one a step of its run; elsewhere it calls the function, as in a unit test."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Coroutine, Iterable, Mapping
from functools import update_wrapper
from pathlib import PurePath
from typing import Any, Final, Generic, ParamSpec, Protocol, TypeVar, Unpack, cast, overload

import msgspec
from msgspec.structs import replace

from compiler.builder.errors import DefinitionError
from compiler.builder.step import Block, Options
from compiler.plan import Effect
from compiler.signature import Signature, SignatureUnusable, TypeUnknown, Unfit, read, schema_of, signature_of, write
from compiler.tracing.body import present_body
from compiler.tracing.policy import Errors, Policy, Retry, checked, policy_of
from compiler.tracing.trace import Call, Trace, active
from compiler.tracing.values import Condition, Traced, kind_of, reference

P = ParamSpec("P")
R = TypeVar("R")
R_co = TypeVar("R_co", covariant=True)

NAME_LENGTH_MAX: Final = 200


class _WithContext(Protocol[P, R_co]):
    """A function whose first parameter is `ctx`: a workflow does not pass it."""

    def __call__(self, ctx: Any, *args: P.args, **kwargs: P.kwargs) -> R_co: ...


class Step(Generic[P, R]):
    """A function that blocks of type `python` call by `name`. `policy`: of these blocks; `retry`: the part of it that
    documents do not have. `raises`: the exceptions that a durable function gets as themselves. `function`: with its
    parameter `ctx`; `plain`: its signature without that. `approve`: who decides about a call by an agent. A call is
    awaited, whether the function is async or not."""

    __name__: str

    def __init__(
        self,
        function: Callable[..., Any],
        name: str,
        effect: Effect,
        policy: Mapping[str, Any],
        approve: bool | Callable[..., Any] = False,
        retry: Retry | None = None,
        raises: Errors = (),
    ) -> None:
        update_wrapper(self, function)
        if effect == "write" and "cache" in policy:
            message = f"{function.__name__} may change something, which its cache would prevent"
            raise DefinitionError(
                f"{message}: set effect='read' or effect='none', or remove cache.", _defined(function)
            )
        self.retry = retry
        self.raises = raises
        self.function = function
        self.name = name
        self.effect = effect
        self.policy = dict(policy)
        self.approve = approve
        self.id: str | None = None
        plain = inspect.signature(function)
        self.plain = plain.replace(parameters=[one for name, one in plain.parameters.items() if name != "ctx"])
        try:
            self.signature: Signature = signature_of(function)
            returns = self.signature.returns
            self.result_schema = {} if returns in (None, Any) else schema_of(returns)
        except (SignatureUnusable, TypeUnknown) as error:
            hint = "Use dataclasses, msgspec Structs, TypedDicts, models of pydantic or plain types."
            raise DefinitionError(f"{error}. {hint}", _defined(function)) from None

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> Coroutine[Any, Any, R]:
        if (trace := active()) is not None:
            return cast(Coroutine[Any, Any, R], self._record(trace, args, kwargs))
        if (body := present_body()) is not None:
            return body.step(self, args, kwargs)
        return self._alone(args, kwargs)

    async def _alone(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> R:
        result = self.function(*args, **kwargs)
        return cast(R, await result if inspect.isawaitable(result) else result)

    def with_options(self, *, id: str | None = None, **policy: Unpack[Policy]) -> Step[P, R]:
        """Return the same step with options for one call: `await charge.with_options(id="deposit", retries=2)(order)`.

        id      of the block; without it, that of the function, with a number from the second call on
        others  as in `step`
        """
        given, retry = policy_of(policy), policy.get("retries")
        if isinstance(retry, Retry) and (retry.only or retry.never):
            raise DefinitionError(
                "only= and never= count for all calls of a step: write them in @weft.step(retries=…)."
            )
        made: Step[P, R] = Step(
            self.function, self.name, self.effect, {**self.policy, **given}, self.approve, self.retry, self.raises
        )
        made.id = id
        return made

    def with_defaults(self, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """Return arguments (JSON) of its types, those with a default filled in. Raises Unfit."""
        plain = self.plain.parameters
        defaults = {name: one.default for name, one in plain.items() if one.default is not inspect.Parameter.empty}
        return defaults | self.signature.arguments(arguments)

    def as_tool(self) -> dict[str, Any]:
        return {"name": self.function.__name__, "function": self.name}

    def _record(self, trace: Trace, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
        trace.use(self)
        arguments = self._bind(args, kwargs)
        options: Options = {"params": {"function": self.name} | ({"arguments": arguments} if arguments else {})}
        if self.policy:
            options["policy"] = self.policy
        if self.result_schema:
            options["output"] = self.result_schema
        name = self.function.__name__
        return trace.record(name, Block("python", **options), self.id, called=name, schema=self.result_schema)

    def _bind(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> dict[str, Any]:
        """Return the arguments by name; those without traced values are checked now. Raises DefinitionError."""
        shown = self.function.__name__
        try:
            bound = self.plain.bind(*args, **kwargs)
        except TypeError as error:
            raise DefinitionError(f"{shown}: {error}. It is {shown}{self.plain}.") from None
        for one in self.signature.parameters:
            if one.name in bound.arguments and not _is_traced(bound.arguments[one.name]):
                try:
                    read(one.type, write(bound.arguments[one.name]))
                except Unfit as error:
                    at = f" (at {error.pointer})" if error.pointer else ""
                    raise DefinitionError(f"{shown}: argument {one.name}: {error.message}{at}.") from None
            elif isinstance(value := bound.arguments.get(one.name), Traced):
                found, wanted = kind_of(value._schema), kind_of(one.schema)
                if found and wanted and found != wanted:
                    message = f"{reference(value)} is of type {found}, not {wanted}"
                    raise DefinitionError(f"{shown}: argument {one.name}: {message}. It is {shown}{self.plain}.")
        return dict(bound.arguments)


class _Decorator(Protocol):
    @overload
    def __call__(self, function: _WithContext[P, Coroutine[Any, Any, R]], /) -> Step[P, R]: ...

    @overload
    def __call__(self, function: Callable[P, Coroutine[Any, Any, R]], /) -> Step[P, R]: ...

    @overload
    def __call__(self, function: _WithContext[P, R], /) -> Step[P, R]: ...

    @overload
    def __call__(self, function: Callable[P, R], /) -> Step[P, R]: ...


@overload
def step(function: _WithContext[P, Coroutine[Any, Any, R]], /) -> Step[P, R]: ...


@overload
def step(function: Callable[P, Coroutine[Any, Any, R]], /) -> Step[P, R]: ...


@overload
def step(function: _WithContext[P, R], /) -> Step[P, R]: ...


@overload
def step(function: Callable[P, R], /) -> Step[P, R]: ...


@overload
def step(
    *,
    name: str | None = None,
    effect: Effect = "write",
    approve: bool | Callable[..., Any] = False,
    raises: Errors = (),
    **policy: Unpack[Policy],
) -> _Decorator: ...


def step(
    function: Callable[..., Any] | None = None,
    /,
    *,
    name: str | None = None,
    effect: Effect = "write",
    approve: bool | Callable[..., Any] = False,
    raises: Errors = (),
    **policy: Unpack[Policy],
) -> Any:
    """Make a function, sync or async, a step of workflows.

    name      the name in documents, `module.function` by default. It must stay the same while runs are open
    effect    its effect outside: `none`, `read`, or `write`
    approve   for agents, which have it as a tool. True: a person decides about each call; or a function of some of its
              arguments that returns whether a person does: `approve=lambda amount: amount > 50`
    raises    exceptions that a durable function gets as themselves, and not as StepFailed. They are made again from
              their `args`, which have to be JSON
    retries   how often a call is repeated after an exception: a number, a `weft.Retry`, or the fields of `policy.retry`
    timeout   seconds that one try may last; without it 300
    cache     True, or seconds, or the fields of `policy.cache`: equal calls return the stored result. Not of `write`
    on_lost   what follows when a call was under way as its process ended: `retry`, `ask` a person, or `fail`. Without
              it, a `write` is asked about, because it may be done already, and others are repeated

    Raises DefinitionError: a parameter or the result has no JSON form, or an option cannot be meant.
    """

    def made(function: Callable[..., Any]) -> Step[Any, Any]:
        called = name or f"{module_of(function)}.{function.__name__}"
        if len(called) > NAME_LENGTH_MAX or "<" in called:
            raise DefinitionError(f"a step cannot have the name {called[:80]!r}.", _defined(function))
        if effect not in ("none", "read", "write"):
            raise DefinitionError(f"effect is none, read or write, not {effect!r}.", _defined(function))
        fields = ({"on_lost": "retry"} if effect != "write" else {}) | policy_of(policy)
        retries = policy.get("retries")
        retry = retries if isinstance(retries, Retry) else None
        if retry is not None:
            retry = replace(retry, only=checked("only", retry.only), never=checked("never", retry.never))
        return Step(function, called, effect, fields, approve, retry, checked("raises", raises))

    return made(function) if function is not None else made


def name_of(kind: type[BaseException]) -> str:
    """Return the name of an exception as errors have it: `ValueError`, `flow.CardRefused`."""
    module = module_of(kind)
    return kind.__qualname__ if module == "builtins" else f"{module}.{kind.__qualname__}"


def module_of(function: Callable[..., Any]) -> str:
    """Return the module's name; for a program that is run as a file, the name of the file, as if it were imported."""
    module = function.__module__
    if module == "__main__":
        file = getattr(sys.modules.get("__main__"), "__file__", None)
        return PurePath(file).stem if file else "main"
    return module


def _is_traced(value: Any) -> bool:
    stack = [value]
    while stack:
        one = stack.pop()
        if isinstance(one, Traced | Condition | Call) or (isinstance(one, str) and "<" in one):
            return True
        if isinstance(one, dict):
            stack.extend(one.values())
        elif isinstance(one, list | tuple):
            stack.extend(one)
        elif isinstance(one, msgspec.Struct):
            stack.extend(getattr(one, field) for field in one.__struct_fields__)
        elif hasattr(one, "__dict__") and not isinstance(one, type):
            stack.extend(vars(one).values())
    return False


def _defined(function: Callable[..., Any]) -> tuple[str, int]:
    code = inspect.unwrap(function).__code__
    return code.co_filename, code.co_firstlineno


def steps_in(values: Iterable[Any]) -> dict[str, Step[Any, Any]]:
    """Return the steps among these, by name. Raises ValueError if two functions have one name."""
    found: dict[str, Step[Any, Any]] = {}
    for value in values:
        if isinstance(value, Step):
            known = found.setdefault(value.name, value)
            if known.function is not value.function:
                raise ValueError(f"two steps have the name {value.name!r}: give one of them another name=")
    return found
