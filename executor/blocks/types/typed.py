"""`@weft.block`: a block type from a typed function or class.

    @weft.block(type="convert", category="data", effect="read")
    async def convert(amount: Decimal, currency: str = "EUR", *, ctx: weft.StepContext) -> Price:
        '''Converts an amount.'''

Params, form and output follow from the signature (compiler.signature). The function can still be called directly. Its
return value is the output, unless it is a `Done` or `Suspend`.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Final, Generic, Literal, ParamSpec, TypeVar, get_args, overload

from msgspec.structs import replace

from compiler.catalog import BlockSpec
from compiler.plan import Effect
from compiler.signature import (
    CONTEXT,
    Signature,
    Unfit,
    fields_of,
    is_struct,
    output_of,
    returns_of,
    signature_of,
    write,
)
from compiler.tracing.steps import name_of
from executor.blocks.services import services_of
from executor.blocks.types.params import invalid
from executor.errors import BlockError, Fenced
from executor.kernel.handler.base import Done, Outcome, StepContext, Suspend
from executor.kernel.process.observe import inside
from executor.kernel.process.tracebacks import log_raised, traceback_of

P = ParamSpec("P")
R = TypeVar("R")
End = TypeVar("End", bound=Outcome)

Category = Literal["trigger", "flow", "data", "action", "connector", "people", "annotation"]
CATEGORIES: Final = get_args(Category)
EFFECTS: Final = get_args(Effect)
TYPE_PATTERN: Final = re.compile(r"[A-Za-z][A-Za-z0-9_.-]{0,63}")
_OUTCOMES: Final = (Done, Suspend)


class TypedBlock(Generic[P, R]):
    """A Block, and the function or class that it was made of."""

    def __init__(self, work: Callable[P, R], call: Callable[..., Any], signature: Signature, spec: BlockSpec) -> None:
        self.spec = spec
        self.work = work
        self.signature = signature
        self._call = call
        self.__doc__ = work.__doc__
        self.__name__ = spec.type

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        return self.work(*args, **kwargs)

    def __repr__(self) -> str:
        return f"<block type {self.spec.type!r}>"

    async def run(self, ctx: StepContext) -> Outcome:
        """Raises BlockError: the function's own; `params_invalid`; or `function_failed` for other exceptions, which is
        tried again if the policy allows it."""
        try:
            arguments = self.signature.arguments(ctx.params)
        except Unfit as error:
            raise invalid(f"{error.message} (at {error.pointer or '/'})") from error
        if self.signature.context:
            arguments[CONTEXT] = ctx
        return await call_function(ctx, self.spec.type, self._call, arguments, _outcome, self.work)


async def call_function(
    ctx: StepContext,
    name: str,
    function: Callable[..., Any],
    arguments: Mapping[str, Any],
    outcome: Callable[[Any], End],
    work: Callable[..., Any],
) -> End:
    """Return the outcome that `outcome` makes of the result: an `async def` runs in the event loop, other functions in
    a thread. `work` is what the author wrote, for tracebacks. Raises BlockError: see TypedBlock.run."""
    about = f"run {ctx.run_id}, block {ctx.key}"
    try:
        with inside(ctx):
            if inspect.iscoroutinefunction(function):
                return outcome(await function(**arguments))
            called = partial(_in_thread, function, arguments)
            functions = services_of(ctx).functions
            return outcome(await functions.call(called, function=name, about=about, waiting=ctx.waiting))
    except Fenced:
        raise
    except BlockError as error:
        error.traceback = traceback_of(error, work)
        log_raised(name, about, error)
        raise
    except Unfit as error:
        raise BlockError(f"{name} returned {error.message}", code="output_invalid", retryable=False) from error
    except (Exception, SystemExit) as error:
        # Its author has to correct it: the message is that of the function.
        message, traceback = f"{name}: {type(error).__name__}: {error}", traceback_of(error, work)
        log_raised(name, about, error)
        raised = name_of(type(error))
        raise BlockError(message, code="function_failed", traceback=traceback, type=raised) from error


def raised_in(error: BlockError) -> BaseException:
    """Return the exception that the author's code raised, from the error of `call_function`."""
    return error.__cause__ if error.type and error.__cause__ is not None else error


def _in_thread(function: Callable[..., Any], arguments: Mapping[str, Any]) -> Any:
    try:
        return function(**arguments)
    except StopIteration as error:  # no future carries it: the end of the function would be lost
        raise RuntimeError("it raised StopIteration, as next() does when nothing is left") from error


@overload
def block(work: Callable[P, R], /) -> TypedBlock[P, R]: ...


@overload
def block(
    *,
    type: str | None = ...,
    title: str | None = ...,
    description: str | None = ...,
    category: Category = ...,
    effect: Effect = ...,
    idempotent: bool | None = ...,
    handles: Sequence[str] = ...,
    attempts: int = ...,
    timeout_s: float = ...,
    heartbeat_timeout_ms: int | None = ...,
    sentence: str = ...,
    icon: str = ...,
) -> Callable[[Callable[P, R]], TypedBlock[P, R]]: ...


def block(
    work: Callable[..., Any] | None = None,
    /,
    *,
    type: str | None = None,
    title: str | None = None,
    description: str | None = None,
    category: Category = "action",
    effect: Effect = "write",
    idempotent: bool | None = None,
    handles: Sequence[str] = ("out",),
    attempts: int = 1,
    timeout_s: float = 300,
    heartbeat_timeout_ms: int | None = None,
    sentence: str = "",
    icon: str = "block",
) -> Any:
    """Make a block type of a function or class.

    type         the type in documents; the name of the function without one. Letters, digits, `_`, `.` and `-`
    title, description  by default the type in words, and the first paragraph of the docstring
    category     of the list of blocks in the editor: data, action, connector, people, flow
    effect       none: it computes; read: it reads from outside; write: it may change something outside
    idempotent   a repeated attempt with the same `ctx.idempotency_key` does no harm. After a crash such a block is
                 repeated; for a `write` that is not, a person decides
    handles      exits; `Done(output, route="name")` chooses one, other outputs leave by the first
    attempts, timeout_s, heartbeat_timeout_ms  defaults of the policy of such blocks
    sentence, icon       of the card in the editor: see compiler.catalog.BlockSpec

    An `async def` runs in the event loop, other functions in a thread of their own. The fields of a class are the
    params: one object is made for each attempt, and its method `run` (with `ctx`, or nothing) does the work; a class
    without fields of its own kind becomes a dataclass. Raises TypeError or ValueError with the reason."""

    def made(work: Callable[..., Any]) -> TypedBlock[..., Any]:
        work, call, signature = _parts_of(work)
        name = type or work.__name__
        spec = BlockSpec(
            type=name,
            title=title or signature.title,
            description=signature.summary if description is None else description,
            category=category,
            params=signature.params,
            handles=tuple(handles),
            effect=effect,
            idempotent=effect != "write" if idempotent is None else idempotent,
            pauses=_suspends(signature.returns),
            output=_output(name, signature),
            attempts=attempts,
            timeout_ms=max(1, round(timeout_s * 1000)),
            heartbeat_timeout_ms=heartbeat_timeout_ms,
            sentence=sentence,
            icon=icon,
        )
        _check(spec)
        return TypedBlock(work, call, signature, spec)

    return made if work is None else made(work)


def _parts_of(work: Any) -> tuple[Any, Callable[..., Any], Signature]:
    """Return what is decorated (a class then has fields), the function that runs it, and its signature."""
    if inspect.isclass(work):
        return _of_class(work)
    if callable(work) and hasattr(work, "__name__"):
        return work, work, signature_of(work)
    raise TypeError(f"@weft.block is for functions and classes, not {work!r}")


def _output(name: str, signature: Signature) -> Any:
    try:
        return output_of(signature.returns, _OUTCOMES)
    except TypeError as error:
        raise TypeError(f"block type {name!r}: the result: {error}") from error


def _of_class(type: Any) -> tuple[Any, Callable[..., Any], Signature]:
    method = type.__dict__.get("run") or getattr(type, "run", None)
    if not inspect.isfunction(method):
        raise TypeError(f"{type.__name__} has no method run")
    others = [name for name in list(inspect.signature(method).parameters)[1:] if name != CONTEXT]
    if others:
        raise TypeError(
            f"{type.__name__}.run may take ctx only, not {', '.join(others)}: params are fields of the class"
        )
    made = type if is_struct(type) else dataclass(type)
    context = CONTEXT in inspect.signature(method).parameters
    fields = fields_of(made)
    signature = Signature(fields.name, fields.title, fields.summary, fields.parameters, context, returns_of(method))

    def begin(arguments: dict[str, Any]) -> Callable[[], Any]:
        about = {CONTEXT: arguments.pop(CONTEXT)} if context else {}
        try:
            one = made(**arguments)
        except (TypeError, ValueError) as error:  # its own checks
            raise invalid(str(error)) from error
        return partial(method, one, **about)

    if inspect.iscoroutinefunction(method):

        async def run(**arguments: Any) -> Any:
            return await begin(arguments)()

        return made, run, signature
    return made, lambda **arguments: begin(arguments)(), signature


def _check(spec: BlockSpec) -> None:
    about = f"block type {spec.type!r}"
    if not TYPE_PATTERN.fullmatch(spec.type):
        raise ValueError(f"{about}: a type begins with a letter and has at most 64 letters, digits, '_', '.' and '-'")
    if spec.category not in CATEGORIES:
        raise ValueError(f"{about}: the category is one of {', '.join(CATEGORIES)}, not {spec.category!r}")
    if spec.effect not in EFFECTS:
        raise ValueError(f"{about}: the effect is one of {', '.join(EFFECTS)}, not {spec.effect!r}")
    if not spec.handles or "error" in spec.handles:
        raise ValueError(f"{about}: handles are one or more exits; every block also has the exit `error`")
    if not 1 <= spec.attempts <= 100:
        raise ValueError(f"{about}: attempts are 1 to 100, not {spec.attempts}")
    if not 0 < spec.timeout_ms <= 31_536_000_000:
        raise ValueError(f"{about}: timeout_s is more than 0 and at most a year")
    if spec.heartbeat_timeout_ms is not None and not 100 <= spec.heartbeat_timeout_ms <= 86_400_000:
        raise ValueError(f"{about}: heartbeat_timeout_ms is 100 to 86400000, a day")


def _suspends(returns: Any) -> bool:
    return returns is Suspend or Suspend in get_args(returns)


def _outcome(result: Any) -> Outcome:
    """Raises Unfit: the output is not JSON."""
    if isinstance(result, Done):
        return replace(result, output=write(result.output))
    return result if isinstance(result, Suspend) else Done(write(result))
