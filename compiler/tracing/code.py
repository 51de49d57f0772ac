"""The code of a durable function: what it reaches by global names, and a hash of that.

The hash is of the syntax of the function, and of the plain functions, classes and constants of its package that it
reaches, without docstrings, annotations and places. Of steps and workflows it has the name, the parameters, the effect
and the type of the result: what they do is not repeated when a function is entered again. What is reached in another
way, such as by `getattr`, is not in it.
"""

from __future__ import annotations

import ast
import inspect
import sys
from collections.abc import Callable, Iterator, Mapping
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from enum import Enum
from hashlib import sha256
from pathlib import PurePath
from textwrap import dedent
from types import CodeType, ModuleType
from typing import Any, Final
from uuid import UUID

from msgspec import Struct

from compiler.tracing.steps import Step
from compiler.tracing.workflow import FunctionWorkflow, is_composed

HASH_LENGTH: Final = 16  # characters; a change is to be seen, and none is made to deceive
_PLAIN: Final = (bool, int, float, complex, str, bytes, date, datetime, time, timedelta, Decimal, UUID, type(None))
_LEFT_OUT: Final = frozenset({"ctx", "kind", "type_comment", "type_ignores", "type_params"})


class Reached(Struct, frozen=True):
    """A value that the code reaches by this name. `syntax`: of a function or class of its package, else None."""

    name: str
    value: Any
    syntax: ast.AST | None = None


def code_of(function: Callable[..., Any]) -> str:
    """Return the hash."""
    syntax = _root_of(function)
    own = _text_of(syntax) if syntax is not None else repr(function.__code__.co_names)
    others = {f"{one.name}: {part}" for one in reached(function) if (part := _part_of(one))}
    return sha256("\n".join([own, *sorted(others)]).encode()).hexdigest()[:HASH_LENGTH]


def _root_of(function: Callable[..., Any]) -> ast.AST | None:
    syntax = _syntax_of(function)
    if isinstance(syntax, ast.AsyncFunctionDef):
        syntax.name, syntax.decorator_list = "", []  # they are its workflow's
    return syntax


def _part_of(one: Reached) -> str:
    match one.value:
        case Step() as step:
            names = [each.name for each in step.signature.parameters]
            return f"step {step.name} {names} {step.effect} {step.result_schema}"
        case FunctionWorkflow() as workflow:
            return f"workflow {workflow.name} {[each.name for each in workflow.signature.parameters]}"
        case value:
            if is_composed(value):
                return f"workflow {value.name}"
            return _constant(value) or "" if one.syntax is None else _text_of(one.syntax)


def reached(function: Callable[..., Any]) -> Iterator[Reached]:
    """Yield the values of the global names that the code uses, also through functions and classes of its package, or of
    modules beside its own."""
    seen, left = {id(function)}, [_values_of(function, _root_of(function))]
    while left:
        for name, value in left.pop():
            if id(value) in seen:
                continue
            seen.add(id(value))
            own = _own_of(value, function)
            syntax = None if own is None else _syntax_of(own)
            yield Reached(name, value, syntax)
            if own is not None:
                left.append(_values_of(own, syntax))


def _own_of(value: Any, function: Callable[..., Any]) -> Any:
    """Return the plain function or the class that the value is, if it is of the function's package; else None."""
    if isinstance(value, Step) or is_composed(value) or not callable(value):
        return None
    plain = inspect.unwrap(value)
    if not (inspect.isfunction(plain) or inspect.isclass(plain)) or not plain.__module__:
        return None
    here, there = function.__module__, plain.__module__
    is_beside = "." not in there and (folder := _folder_of(here)) is not None and folder == _folder_of(there)
    return plain if is_beside or here.partition(".")[0] == there.partition(".")[0] else None


def _folder_of(module: str) -> str | None:
    """Return the folder of a module that is in no package, and not installed."""
    file = getattr(sys.modules.get(module), "__file__", None)
    folder = None if file is None or "." in module else str(PurePath(file).parent)
    return None if folder is None or folder.endswith(("site-packages", "dist-packages")) else folder


def _values_of(work: Any, syntax: ast.AST | None) -> list[tuple[str, Any]]:
    """Return the global names that it uses, and names of modules such as `prices.TAX`, with their values."""
    is_function = inspect.isfunction(work)
    space = work.__globals__ if is_function else vars(sys.modules.get(work.__module__, work))
    names = set(_names_of(work.__code__)) if is_function else None
    if syntax is None:
        return [(name, space[name]) for name in sorted(names or ()) if name in space]
    found: dict[str, Any] = {}
    for node in ast.walk(syntax):
        if isinstance(node, ast.Name) and node.id in space and (names is None or node.id in names):
            found[node.id] = space[node.id]
        elif isinstance(node, ast.Attribute) and node.attr in (members := _members_of(node.value, space)):
            found[node.attr] = members[node.attr]
    return list(found.items())


def _members_of(node: ast.expr, space: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the names of the module that an expression is, such as those of `prices`; none if it is no module."""
    value = None
    if isinstance(node, ast.Name):
        value = space.get(node.id)
    elif isinstance(node, ast.Attribute):
        value = _members_of(node.value, space).get(node.attr)
    return vars(value) if isinstance(value, ModuleType) else {}


def _names_of(code: CodeType) -> Iterator[str]:
    yield from code.co_names
    for one in code.co_consts:
        if isinstance(one, CodeType):
            yield from _names_of(one)


def _syntax_of(work: Any) -> ast.AST | None:
    """Return its syntax without docstrings and annotations. Returns None if there is no source, as in a REPL."""
    try:
        (found,) = ast.parse(dedent(inspect.getsource(work))).body
    except (OSError, TypeError, SyntaxError, ValueError):
        return None
    bare: ast.AST = _Bare().visit(found)
    return bare


class _Bare(ast.NodeTransformer):
    def generic_visit(self, node: ast.AST) -> ast.AST:
        if (
            isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef)
            and ast.get_docstring(node) is not None
        ):
            node.body = node.body[1:]
        for name in ("returns", "annotation"):
            if hasattr(node, name) and not isinstance(node, ast.AnnAssign):
                setattr(node, name, None)
        return super().generic_visit(node)

    def visit_ClassDef(self, node: ast.ClassDef) -> ast.AST:
        fields = {n: one for n, one in enumerate(node.body) if isinstance(one, ast.AnnAssign)}  # types of results
        node.body = [ast.Pass() if n in fields else one for n, one in enumerate(node.body)]
        self.generic_visit(node)
        node.body += fields.values()
        return node

    def visit_AnnAssign(self, node: ast.AnnAssign) -> ast.AST:
        self.generic_visit(node)
        return ast.Expr(node.target) if node.value is None else ast.Assign([node.target], node.value)


def _text_of(node: Any) -> str:
    """Return the syntax as text, the same for each version of Python."""
    if isinstance(node, ast.AST):
        fields = ((name, value) for name, value in ast.iter_fields(node) if name not in _LEFT_OUT)
        shown = (f"{name}={_text_of(value)}" for name, value in fields if value not in (None, []))
        return f"{type(node).__name__}({', '.join(shown)})"
    if isinstance(node, list):
        return f"[{', '.join(map(_text_of, node))}]"
    return "" if node is None else repr(node)


def _constant(value: Any) -> str | None:
    """Return a constant as text. Returns None for what has no text that is the same in each process."""
    match value:
        case Enum():
            return f"{type(value).__name__}.{value.name}"
        case tuple() | list():
            return f"[{', '.join(_constant(one) or '' for one in value)}]"
        case set() | frozenset():
            return f"{{{', '.join(sorted(_constant(one) or '' for one in value))}}}"
        case dict():
            return f"{{{', '.join(f'{_constant(key)}: {_constant(one)}' for key, one in value.items())}}}"
        case _:
            return repr(value) if isinstance(value, _PLAIN) else None
