"""`python`: calls a Python function that is registered by name when the server starts. Documents choose one of the
names and its arguments; they cannot bring code. Without registered functions there is no such block type.

For a step (`compiler.tracing.steps`) the types are known: its arguments are converted to them, and checked when a
document is compiled; its result is written as JSON. `load_module` reads the files that `WEFT_FUNCTIONS`, `weft dev` and
programs name.
"""

from __future__ import annotations

import importlib
import importlib.util
import inspect
import sys
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from types import ModuleType
from typing import Any

from compiler.builder.errors import DefinitionError
from compiler.catalog import BlockSpec, Finding, Params
from compiler.diagnostics import suggest
from compiler.references import escape
from compiler.signature import Signature, SignatureUnusable, TypeUnknown, Unfit, signature_of, write
from compiler.tracing.durable import durables_of
from compiler.tracing.steps import Step, steps_in
from compiler.tracing.workflow import called_by, is_composed
from executor.blocks.runners.call import place_of
from executor.blocks.services import call_elsewhere
from executor.blocks.types.params import function_params, invalid, lacking_function
from executor.blocks.types.typed import call_function, raised_in
from executor.errors import BlockError
from executor.kernel.handler.base import Done, StepContext
from executor.kernel.process.tracebacks import log_raised
from executor.kernel.values.payload import encode

Function = Callable[..., Any]
CONTEXT = "ctx"  # a parameter of this name gets the StepContext of the attempt


class Python:
    """`functions`: by the name that documents use, steps among them; plain ones run in a thread, `async def` in the
    event loop."""

    def __init__(self, functions: Mapping[str, Function]) -> None:
        self._steps = {name: function for name, function in functions.items() if isinstance(function, Step)}
        self._functions = {name: getattr(self._steps.get(name), "function", f) for name, f in functions.items()}
        functions = self._functions
        self._signatures = {name: inspect.signature(function) for name, function in functions.items()}
        about = [f"{name}{_shown(signature)}" for name, signature in self._signatures.items()]
        self.spec = BlockSpec(
            type="python",
            title="Python",
            description=f"Calls a Python function registered on this server: {', '.join(about)}.",
            category="action",
            params=function_params(functions, "A function registered when the server was started."),
            # The effect of a plain function is unknown: after a crash a person decides if it may be repeated.
            effect="write",
            idempotent=False,
            only_reads=self._only_reads,
            runners=("inline", "process", "dask"),
            output_from=self._output_of,
            check=self._check,
            sentence="Call {function} | Call a function",
            icon="code",
        )

    def lacks(self, params: dict[str, Any]) -> str | None:
        """See `executor.kernel.worker.missing`."""
        return lacking_function("Python function", params, self._functions)

    @property
    def names(self) -> list[str]:
        return sorted(self._functions)

    def step_of(self, name: str) -> Step[Any, Any] | None:
        return self._steps.get(name)

    def signature_of(self, name: str) -> Signature | None:
        """Return the parameters of a function with their schemas, or None if there is no such function. Raises
        BlockError: one of them has no schema."""
        if (step := self._steps.get(name)) is not None or name not in self._functions:
            return None if step is None else step.signature
        try:
            return signature_of(self._functions[name])
        except (SignatureUnusable, TypeUnknown) as error:
            raise invalid(f"{name} cannot be called by a model: {error}", hint="annotate its parameters") from None

    async def run(self, ctx: StepContext) -> Done:
        """Output the return value of the function, any JSON value. Raises BlockError: `function_failed` for an
        exception (tried again if the block's policy allows it), `params_invalid` for arguments that do not fit."""
        name, arguments = ctx.params.get("function"), ctx.params.get("arguments") or {}
        function = self._functions.get(name) if isinstance(name, str) else None
        if function is None or not isinstance(name, str):
            raise invalid(f"there is no function {name!r} here", hint=f"there are {', '.join(sorted(self._functions))}")
        if not isinstance(arguments, dict):
            raise invalid("arguments must be an object, by name")
        signature, step = self._signatures[name], self._steps.get(name)
        if step is not None:
            arguments = _converted(step, arguments, ctx.runner)
        keywords = {**arguments, CONTEXT: ctx} if CONTEXT in signature.parameters else arguments
        try:
            signature.bind(**keywords)
        except TypeError as error:
            raise invalid(f"{name}: {error}", hint=f"it is {name}{_shown(signature)}") from None
        if ctx.runner != "inline":
            context = CONTEXT if CONTEXT in signature.parameters else None
            try:
                return Done(await call_elsewhere(ctx, place_of(function), name, encode(arguments), context))
            except BlockError as error:
                log_raised(name, f"run {ctx.run_id}, block {ctx.key}", error)
                raise
        outcome: Callable[[Any], Done] = Done if step is None else lambda returned: Done(write(returned))
        try:
            return await call_function(ctx, name, function, keywords, outcome, function)
        except BlockError as error:
            if step is not None and step.retry is not None and not step.retry.permits(raised_in(error)):
                error.retryable = False
            raise

    def _only_reads(self, params: Params) -> bool:
        step = self._steps.get(str(params.get("function")))
        return step is not None and step.effect != "write"

    def _output_of(self, params: Params) -> dict[str, Any] | None:
        step = self._steps.get(str(params.get("function")))
        return step.result_schema or None if step is not None else None

    def _check(self, params: Params) -> tuple[Finding, ...]:
        """Names of arguments of a step: the types of those with references are known only in a run."""
        step, arguments = self._steps.get(str(params.get("function"))), params.get("arguments") or {}
        if step is None or not isinstance(arguments, dict):
            return ()
        known = {one.name: one for one in step.signature.parameters}
        found = [
            Finding(
                "param_invalid",
                f"/arguments/{escape(name)}",
                f"{step.name} has no argument {name!r}.",
                suggest(name, known),
            )
            for name in arguments
            if name not in known
        ]
        return (
            *found,
            *(
                Finding("required", "/arguments", f"{step.name} needs the argument {name!r}.")
                for name, one in known.items()
                if one.required and name not in arguments
            ),
        )


def _converted(step: Step[Any, Any], arguments: dict[str, Any], runner: str) -> dict[str, Any]:
    if runner != "inline":
        message = f"{step.name} is a step, which runs in this process: remove policy.runner"
        raise BlockError(message, code="runner_unfit", retryable=False)
    try:
        return step.signature.arguments(arguments)
    except Unfit as error:
        place = f" (at {error.pointer})" if error.pointer.count("/") > 1 else ""
        raise invalid(f"{step.name}: {error.message}{place}", hint=f"it is {step.name}{_shown_of(step)}") from None


def _shown_of(step: Step[Any, Any]) -> str:
    return _shown(inspect.signature(step.function))


def has_functions(module: ModuleType) -> bool:
    """Return True if blocks call functions of the module. Raises ValueError, DefinitionError."""
    values = list(vars(module).values())
    return bool(steps_of(values) or durables_of(values))


def is_module(text: str) -> bool:
    return ":" not in text and "=" not in text


def import_functions(named: Iterable[str]) -> dict[str, Function]:
    """Import functions, each `package.module:function` or `name=package.module:function`; or the steps of a whole file
    or module, `flow.py`, `shop.flow`. Raises ValueError, naming the failing entry and the reason."""
    found: dict[str, Function] = {}
    for text in named:
        if is_module(text):
            for name, step in _steps_in(text).items():
                if found.get(name, step) is not step:  # one file may import the steps of another
                    raise ValueError(f"two functions have the name {name!r}; give the step in {text} another name=")
                found[name] = step
            continue
        name, equals, place = text.partition("=")
        module, _, attribute = (place if equals else name).partition(":")
        name = name if equals else attribute
        if not (module and attribute and name):
            raise ValueError(f"{text!r} does not have the form package.module:function")
        try:
            function = getattr(importlib.import_module(module), attribute)
            if not callable(function):
                raise TypeError("it is not a function")
            if isinstance(function, Step) and not equals:
                name = function.name
            inspect.signature(function)
        except Exception as error:
            raise ValueError(f"{text}: {type(error).__name__}: {error}") from error
        if name in found:
            raise ValueError(f"two functions have the name {name!r}; write other_name={module}:{attribute}")
        found[name] = function
    return found


def _steps_in(place: str) -> dict[str, Step[Any, Any]]:
    try:
        module = load_module(place)
        found = steps_of(vars(module).values())
    except DefinitionError as error:
        raise ValueError(f"{place}: {error}") from error
    except Exception as error:
        raise ValueError(f"{place}: {type(error).__name__}: {error}") from error
    if not has_functions(module):
        raise ValueError(
            f"{place} has no function with @weft.step or @weft.durable; write {place}:function for a plain one"
        )
    return found


def _shown(signature: inspect.Signature) -> str:
    visible = [p for name, p in signature.parameters.items() if name != CONTEXT]
    return str(signature.replace(parameters=visible))


def load_module(place: str) -> ModuleType:
    """Import `flow.py`, `folder/flow.py`, or a module by name, `shop.flow`. A file is imported under its own name, and
    can import its neighbours, as when Python runs it. Raises ImportError, and the errors of the module."""
    if not place.endswith(".py"):
        return importlib.import_module(place)
    path = Path(place).resolve()
    name = path.stem
    known = sys.modules.get(name)
    if known is not None:
        if _file_of(known) == path:
            return known
        raise ImportError(f"a module {name!r} is already loaded ({_file_of(known) or 'built in'}); rename the file")
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None or not path.is_file():
        raise ImportError(f"there is no file {place}")
    if str(path.parent) not in sys.path:
        sys.path.insert(0, str(path.parent))
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[name]
        raise
    return module


def steps_of(values: Iterable[Any]) -> dict[str, Step[Any, Any]]:
    """Return the steps among these, and those that workflows among these call, also in other workflows, by name. Raises
    ValueError, DefinitionError."""
    found = list(values)
    workflows = [value for value in found if is_composed(value)]
    for workflow in (*workflows, *called_by(workflows).values()):
        found += workflow.steps.values()
    return steps_in(found)


def _file_of(module: ModuleType) -> Path | None:
    file = getattr(module, "__file__", None)
    return Path(file).resolve() if file else None
