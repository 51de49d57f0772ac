"""Finds constructs in the source of a workflow function that placeholders cannot refuse: `a is None` and `match` look
at the placeholder instead of the value, and `try` ends before the steps run. Without source, as in an interactive
session, they are not found."""

from __future__ import annotations

import ast
import inspect
import linecache
from collections.abc import Callable, Iterator
from types import CodeType, FunctionType, ModuleType
from typing import Any, Final

from compiler.builder.errors import DefinitionError, is_of_user
from compiler.tracing.values import DURABLE

_Function = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda
_CALLS: Final = tuple(
    f"compiler.tracing.{name}" for name in ("blocks", "calls", "ways", "workflow")
)  # of weft.each, weft.when …
_IS: Final = (
    "`is` looks at the placeholder, not at the value of a run. Write weft.when(value == None, ...), with != for "
    f"`is not`, decide inside a step, {DURABLE}."
)
_MATCH: Final = (
    "`match` looks at the placeholder, not at the value of a run. Write weft.when(...), match inside a step, "
    f"{DURABLE}."
)
_ISINSTANCE: Final = f"isinstance looks at the placeholder, not at the value of a run: ask inside a step, {DURABLE}."
_TRY: Final = (
    "`{0}` around a call catches nothing: the step runs later, when a run executes the workflow. Write "
    f"weft.attempt(do, failed), catch inside the step, {DURABLE}."
)
_FINALLY: Final = (
    "calls in `finally` are no cleanup: they are not made if a step before them fails. Write "
    f"weft.attempt(do, finally_=...), {DURABLE}."
)


class Sources:
    """The files of the functions that one trace calls, each parsed once."""

    def __init__(self) -> None:
        self._files: dict[str, dict[tuple[str, int], list[_Function]]] = {}
        self._protected: dict[CodeType, list[tuple[int, int, str]]] = {}

    def function(self, code: CodeType) -> _Function | None:
        """Return its definition, or None without source, or if two lambdas are in one line."""
        file = code.co_filename
        if file not in self._files:
            self._files[file] = _functions_in(file)
        found = self._files[file].get((code.co_name, code.co_firstlineno), [])
        return found[0] if len(found) == 1 else None

    def refuse_try(self) -> None:
        """A call is recorded: no function on the way to it may be inside `try`. Raises DefinitionError."""
        frame = inspect.currentframe()
        while frame is not None and not (frame.f_code.co_name == "_trace" and not is_of_user(frame.f_code)):
            if is_of_user(frame.f_code):
                for first, last, message in self._protections(frame.f_code):
                    if first <= frame.f_lineno <= last:
                        raise DefinitionError(message, (frame.f_code.co_filename, frame.f_lineno))
            frame = frame.f_back

    def _protections(self, code: CodeType) -> list[tuple[int, int, str]]:
        """Return the lines of each part of the function inside `try`, and the message for a call there."""
        if code not in self._protected:
            node = self.function(code)
            self._protected[code] = [] if node is None else list(_protections_of(node))
        return self._protected[code]


def refuse_silent(function: Callable[..., Any], sources: Sources) -> None:
    """Check the function, and those that it calls with traced values, for `is` and `match`. Raises DefinitionError."""
    node = sources.function(inspect.unwrap(function).__code__)
    if node is not None:
        _Reading(sources, function, node, frozenset(_parameters(node)), None, set()).check()


class _Reading:
    """Reads one function. `given` are the parameters that are traced; `around` is the function around it; `seen` are
    the functions already read. A name is traced if all its values are."""

    def __init__(
        self,
        sources: Sources,
        function: Callable[..., Any],
        node: _Function,
        given: frozenset[str],
        around: _Reading | None,
        seen: set[tuple[int, frozenset[str]]],
    ) -> None:
        self._sources = sources
        self._code = inspect.unwrap(function).__code__
        self._function = function
        self._names = _names_of(function)
        self._own = list(_own(node))
        self._seen = seen
        nested = {one.name: one for one in self._own if isinstance(one, ast.FunctionDef | ast.AsyncFunctionDef)}
        self._nested: dict[str, _Function] = {**(around._nested if around else {}), **nested}
        self._bound = _bindings(self._own)
        for parameter in _parameters(node):
            self._bound.setdefault(parameter, [])
        for name in nested:
            self._bound.setdefault(name, []).append(None)
        self._traced: dict[str, bool] = {**(around._traced if around else {}), **dict.fromkeys(self._bound, False)}
        while True:
            found = {
                name
                for name, values in self._bound.items()
                if not self._traced[name]
                and (name in given or values)
                and all(value is not None and self._is_traced(value) for value in values)
            }
            if not found:
                break
            self._traced.update(dict.fromkeys(found, True))

    def check(self) -> None:
        for one in self._own:
            if isinstance(one, ast.Compare) and any(isinstance(op, ast.Is | ast.IsNot) for op in one.ops):
                if any(self._is_traced(side) for side in (one.left, *one.comparators)):
                    raise DefinitionError(_IS, (self._code.co_filename, one.lineno))
            elif isinstance(one, ast.Match) and self._is_traced(one.subject):
                raise DefinitionError(_MATCH, (self._code.co_filename, one.lineno))
            elif isinstance(one, ast.Call):
                asks = isinstance(one.func, ast.Name) and one.func.id == "isinstance"
                if asks and one.args and self._is_traced(one.args[0]):
                    raise DefinitionError(_ISINSTANCE, (self._code.co_filename, one.lineno))
                self._check_called(one)

    def _check_called(self, call: ast.Call) -> None:
        arguments = [*call.args, *(keyword.value for keyword in call.keywords)]
        if self._is_of_weft(call.func):
            for argument in arguments:
                self._follow(argument, _without_default)
            return
        traced = [self._is_traced(argument) for argument in arguments]
        if any(traced):
            by_name = dict(zip([keyword.arg for keyword in call.keywords], traced[len(call.args) :], strict=True))

            def given(node: _Function) -> frozenset[str]:
                named = dict(zip(_parameters(node), traced, strict=False)) | by_name
                return frozenset(name for name in _without_default(node) if named.get(name))

            self._follow(call.func, given)

    def _follow(self, function: ast.expr, given: Callable[[_Function], frozenset[str]]) -> None:
        node = self._nested.get(function.id) if isinstance(function, ast.Name) else None
        node = function if isinstance(function, ast.Lambda) else node
        called, around = self._function, self if node is not None else None
        if isinstance(value := self._value_of(function), FunctionType) and is_of_user(value.__code__):
            called, node = value, self._sources.function(value.__code__)
        if node is None or getattr(node, "decorator_list", []) or (id(node), given(node)) in self._seen:
            return
        self._seen.add((id(node), given(node)))
        _Reading(self._sources, called, node, given(node), around, self._seen).check()

    def _is_traced(self, value: ast.expr) -> bool:
        match value:
            case ast.Name():
                return self._traced.get(value.id, False)
            case ast.Attribute() | ast.Subscript() | ast.Await() | ast.NamedExpr():
                return self._is_traced(value.value)
            case ast.IfExp():
                return self._is_traced(value.body) and self._is_traced(value.orelse)
            case ast.Call():
                return self._is_step(value.func) or self._is_of_weft(value.func)
            case _:
                return False

    def _is_step(self, function: ast.expr) -> bool:
        if isinstance(function, ast.Call) and isinstance(function.func, ast.Attribute):
            return function.func.attr == "with_options" and self._is_step(function.func.value)
        return type(self._value_of(function)).__module__ in ("compiler.tracing.steps", "compiler.tracing.workflow")

    def _is_of_weft(self, function: ast.expr) -> bool:
        return getattr(self._value_of(function), "__module__", None) in _CALLS

    def _value_of(self, name: ast.expr) -> Any:
        """Return the object that a name of the module, or of a module in it, stands for, or None."""
        if isinstance(name, ast.Name):
            return None if name.id in self._bound else self._names.get(name.id)
        if isinstance(name, ast.Attribute) and isinstance(holder := self._value_of(name.value), ModuleType):
            return getattr(holder, name.attr, None)
        return None


def _functions_in(file: str) -> dict[tuple[str, int], list[_Function]]:
    try:
        tree = ast.parse("".join(linecache.getlines(file)))
    except (SyntaxError, ValueError, RecursionError):
        return {}
    found: dict[tuple[str, int], list[_Function]] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Lambda):
            found.setdefault(("<lambda>", node.lineno), []).append(node)
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            first = min([node.lineno, *(decorator.lineno for decorator in node.decorator_list)])
            found.setdefault((node.name, first), []).append(node)
    return found


def _own(function: _Function) -> Iterator[ast.AST]:
    stack: list[ast.AST] = [function.body] if isinstance(function, ast.Lambda) else list(reversed(function.body))
    while stack:
        node = stack.pop()
        yield node
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda | ast.ClassDef):
            stack.extend(reversed(list(ast.iter_child_nodes(node))))


def _protections_of(function: _Function) -> Iterator[tuple[int, int, str]]:
    for one in _own(function):
        if isinstance(one, ast.Try | ast.TryStar):
            if not all(_only_raises(handler) for handler in one.handlers):
                yield one.body[0].lineno, one.body[-1].end_lineno or 0, _TRY.format("try")
            if one.finalbody:
                yield one.finalbody[0].lineno, one.finalbody[-1].end_lineno or 0, _FINALLY
        elif isinstance(one, ast.With | ast.AsyncWith):
            called = [item.context_expr.func for item in one.items if isinstance(item.context_expr, ast.Call)]
            if "suppress" in [getattr(name, "attr", getattr(name, "id", "")) for name in called]:
                yield one.body[0].lineno, one.body[-1].end_lineno or 0, _TRY.format("suppress")


def _only_raises(handler: ast.ExceptHandler) -> bool:
    """`except ...: raise` changes nothing."""
    return all(isinstance(one, ast.Raise) and one.exc is None for one in handler.body)


def _bindings(nodes: list[ast.AST]) -> dict[str, list[ast.expr | None]]:
    """Return the values assigned to each name; None stands for a value that is not a plain expression."""
    found: dict[str, list[ast.expr | None]] = {}
    bound: set[int] = set()

    def bind(target: ast.expr, value: ast.expr | None) -> None:
        if isinstance(target, ast.Name):
            bound.add(id(target))
            found.setdefault(target.id, []).append(value)
        elif isinstance(target, ast.Tuple | ast.List) and isinstance(value, ast.Tuple | ast.List):
            for inner, part in zip(target.elts, value.elts, strict=False):
                bind(inner, part)

    for node in nodes:
        if isinstance(node, ast.Assign):
            for target in node.targets:
                bind(target, node.value)
        elif isinstance(node, ast.AnnAssign | ast.NamedExpr):
            if node.value is not None:
                bind(node.target, node.value)
            elif isinstance(node.target, ast.Name):
                bound.add(id(node.target))
    for node in nodes:  # targets of `for`, `with`, `+=`, `del` and others
        if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load) and id(node) not in bound:
            found.setdefault(node.id, []).append(None)
    return found


def _parameters(function: _Function) -> list[str]:
    arguments = function.args
    return [one.arg for one in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs)]


def _without_default(function: _Function) -> frozenset[str]:
    """`def helper(text=None)` may ask whether it was given a text."""
    arguments = function.args
    positional = [*arguments.posonlyargs, *arguments.args]
    plain = positional[: len(positional) - len(arguments.defaults)]
    named = zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True)
    return frozenset(one.arg for one in (*plain, *(one for one, default in named if default is None)))


def _names_of(function: Callable[..., Any]) -> dict[str, Any]:
    plain = inspect.unwrap(function)
    names = dict(getattr(plain, "__globals__", {}))
    for name, cell in zip(plain.__code__.co_freevars, getattr(plain, "__closure__", None) or (), strict=False):
        try:
            names[name] = cell.cell_contents
        except ValueError:  # it is not set yet
            names.pop(name, None)
    return names
