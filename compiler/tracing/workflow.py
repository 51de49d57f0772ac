"""`@weft.workflow`: an async function that is called once, with traced values, and becomes a document.

    @weft.workflow
    async def review(url: str) -> float:
        page = await fetch(url)
        return await score(page.text)

Its parameters are the input of the run, by name; its return value is the output. It runs only to be traced, when the
document is made: runs execute the document, and call the steps.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Coroutine, Iterable, Mapping
from functools import update_wrapper
from typing import Any, Final, Generic, ParamSpec, TypeGuard, TypeVar, overload

from msgspec import UNSET

from compiler.builder.blocks import RunWorkflow, Start
from compiler.builder.errors import DefinitionError
from compiler.builder.workflow import Workflow
from compiler.document import FORMAT
from compiler.signature import Signature, SignatureUnusable, TypeUnknown, Unfit, signature_of, write
from compiler.tracing.body import present_body
from compiler.tracing.source import refuse_silent
from compiler.tracing.steps import Step
from compiler.tracing.trace import Trace, active, current, finished
from compiler.tracing.values import Traced

P = ParamSpec("P")
R = TypeVar("R")
R_co = TypeVar("R_co", covariant=True)
T = TypeVar("T")

_TYPES: Final = ("string", "number", "integer", "boolean", "object", "array")


class FunctionWorkflow(Generic[P, R_co]):
    """`name`: under which it is stored. `settings`: of the document."""

    def __init__(
        self, function: Callable[P, Coroutine[Any, Any, R_co]], name: str, settings: Mapping[str, Any]
    ) -> None:
        update_wrapper(self, function)
        self.function = function
        self.name = name
        self.settings = dict(settings)
        code = inspect.unwrap(function).__code__
        self.defined = (code.co_filename, code.co_firstlineno)
        if not inspect.iscoroutinefunction(function):
            message = f"{function.__name__} is not an `async def`, as functions of workflows are"
            raise DefinitionError(f"{message}: write `async def`, and `await` before its calls.", self.defined)
        try:
            self.signature: Signature = signature_of(function)
        except (SignatureUnusable, TypeUnknown) as error:
            raise DefinitionError(f"{error}.", self.defined) from None
        self._traced: tuple[dict[str, Any], Trace] | None = None

    def document(self) -> dict[str, Any]:
        """In the format weft/1. The function is called the first time. Raises DefinitionError, with the line."""
        return self._trace()[0]

    @property
    def steps(self) -> dict[str, Step[Any, Any]]:
        """The steps that it calls, by name. Raises DefinitionError."""
        return self._trace()[1].steps

    @property
    def calls(self) -> Mapping[str, Any]:
        """The workflows that it calls, by name; None for a workflow given only by its name. Raises DefinitionError."""
        return self._trace()[1].workflows

    def as_tool(self) -> dict[str, Any]:
        made = {"name": self.function.__name__, "workflow": self.name, "arguments": self.signature.params}
        return made | ({"description": self.signature.summary} if self.signature.summary else {})

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> Coroutine[Any, Any, R_co]:
        """Await it in another workflow function, or in a durable function: a run of its own, as with `weft.call`.
        Raises DefinitionError elsewhere."""
        body = present_body()
        if active() is None and body is None:
            hint = f"Start a run with engine.run({self.function.__name__}, {{...}}), or call its steps in a unit test."
            raise DefinitionError(f"{self.name} is a workflow, which runs in an engine. {hint}")
        try:
            bound = inspect.signature(self.function).bind(*args, **kwargs)
        except TypeError as error:
            raise DefinitionError(f"{self.name}: {error}.") from None
        return call(self, dict(bound.arguments))

    def _trace(self) -> tuple[dict[str, Any], Trace]:
        if self._traced is None:
            trace = Trace()
            trace.start.block = Start(self._fields() or UNSET)
            values = {
                one.name: Traced(trace.start, trace.root, (one.name,), one.schema) for one in self.signature.parameters
            }
            with trace.recording():
                self._record(trace, values)
            self._traced = {**self._envelope(), **trace.document()}, trace
        return self._traced

    def _record(self, trace: Trace, values: Mapping[str, Traced]) -> None:
        refuse_silent(self.function, trace.sources)
        function: Callable[..., Any] = self.function
        value = finished(function, function(**values))
        if value is not None:
            trace.end_with(value, "result")

    def _envelope(self) -> dict[str, Any]:
        made: dict[str, Any] = {"format": FORMAT, "name": self.name}
        if self.signature.summary:
            made["description"] = self.signature.summary
        if self.signature.parameters:
            made["input"] = {k: v for k, v in self.signature.params.items() if k != "additionalProperties"}
        if self.settings:
            made["settings"] = self.settings
        return made

    def _fields(self) -> list[dict[str, Any]]:
        fields = []
        for one in self.signature.parameters:
            kind = one.schema.get("type")
            field = {"name": one.name, "type": kind if kind in _TYPES else "any"}
            if one.required:
                field["required"] = True
            elif one.schema.get("default") is not None:
                field["default"] = one.schema["default"]
            fields.append(field)
        return fields


@overload
def workflow(function: Callable[P, Coroutine[Any, Any, R]], /) -> FunctionWorkflow[P, R]: ...


@overload
def workflow(
    *, name: str | None = None, settings: Mapping[str, Any] | None = None
) -> Callable[[Callable[P, Coroutine[Any, Any, R]]], FunctionWorkflow[P, R]]: ...


def workflow(
    function: Callable[..., Any] | None = None,
    /,
    *,
    name: str | None = None,
    settings: Mapping[str, Any] | None = None,
) -> Any:
    """Make an async function that awaits steps a workflow: it is called once, to draw their calls.

    name      its name; by default that of the function with `-` in place of `_`
    settings  `settings` of the document, such as `{"timeout_s": 3600}`

    Raises DefinitionError: a parameter has no JSON form, or the function is no `async def`.
    """

    def made(function: Callable[..., Any]) -> FunctionWorkflow[Any, Any]:
        return FunctionWorkflow(function, name or function.__name__.replace("_", "-"), settings or {})

    return made(function) if function is not None else made


@overload
def call(workflow: FunctionWorkflow[..., T], input: Any = None, *, id: str | None = None) -> Coroutine[Any, Any, T]: ...


@overload
def call(workflow: str, input: Any = None, *, id: str | None = None) -> Coroutine[Any, Any, Any]: ...


def call(workflow: str | FunctionWorkflow[Any, Any], input: Any = None, *, id: str | None = None) -> Any:
    """Start a run of another workflow, and wait for its output. A workflow function is stored together with this one; a
    workflow given by name must be stored when the run starts."""
    if (body := present_body()) is not None:
        return body.call(workflow, input)
    trace = current("call")
    called = None if isinstance(workflow, str) else workflow
    name = workflow if isinstance(workflow, str) else workflow.name
    known = trace.workflows.get(name)
    if called is not None:
        _check_input(called, input)
    if known is not None and called is not None and known is not called:
        raise DefinitionError(f"two workflows have the name {name!r}: give one of them another name=.")
    trace.workflows[name] = called or known
    shown = "weft.call" if called is None else called.function.__name__
    return trace.record(f"call-{name}", RunWorkflow(name, input=UNSET if input is None else input), id, called=shown)


def _check_input(called: FunctionWorkflow[Any, Any], input: Any) -> None:
    if isinstance(input, Traced):
        return
    takes = f"{called.name} takes its input by name, as {called.function.__name__}{inspect.signature(called.function)}"
    if not isinstance(input, Mapping | None):
        raise DefinitionError(f'{takes}. Write weft.call({called.function.__name__}, {{"name": value}}), or call it.')
    try:
        inspect.signature(called.function).bind(**(input or {}))
    except TypeError as error:
        raise DefinitionError(f"{takes}: {error}.") from None


def input_of(workflow: Any, input: Any, arguments: Mapping[str, Any]) -> Any:
    """Return the input of a run from the arguments of a workflow function, with which it could be called. Raises
    TypeError, also if there is an `input` beside them."""
    name = next(iter(arguments))
    if not isinstance(workflow, FunctionWorkflow):
        raise TypeError(f"unexpected argument {name!r}: only workflow functions have arguments by name")
    if input is not None:
        raise TypeError(f"{workflow.name} got an input and the argument {name!r}: pass one of them")
    inspect.signature(workflow.function).bind(**arguments)
    try:
        return {name: write(value) for name, value in arguments.items()}
    except Unfit as error:
        raise TypeError(f"{workflow.name}: an argument is {error.message}") from None


Composed = FunctionWorkflow[Any, Any] | Workflow  # a workflow in Python, which knows the steps and workflows it calls


def is_composed(value: Any) -> TypeGuard[Composed]:
    return isinstance(value, FunctionWorkflow | Workflow)


def called_by(workflows: Iterable[Composed], given: Iterable[Composed] = ()) -> dict[str, Composed]:
    """Return the workflows in Python that these call, also through others, by name. Those called by name are looked up
    in `workflows` and `given`. Raises DefinitionError if two have one name."""
    left = list(workflows)
    known = {one.name: one for one in (*given, *left)}
    found: dict[str, Composed] = {}
    while left:
        for name, called in left.pop().calls.items():
            called = called or known.get(name)
            if called is not None and name not in found:
                found[name] = called
                left.append(called)
            elif called is not None and found[name] is not called:
                raise DefinitionError(f"two workflows have the name {name!r}: give one of them another name=.")
    return found
