"""The text of a durable function beside its document, in which the calls that its lane has are marked.

It is a field of the block that only people read, as a description: it is not in the plan, and is not compared with the
code of a run. A version is the document, so another comment is another version, whose lines are right."""

from __future__ import annotations

import ast
import inspect
import linecache
from collections.abc import Callable, Iterator, Mapping
from pathlib import PurePath
from types import ModuleType
from typing import Any, Final, Literal

from compiler.tracing.steps import Step
from compiler.tracing.workflow import FunctionWorkflow

TEXT_BYTES_MAX: Final = 64 * 1024
WAITS: Final = frozenset({"approve", "callback", "form", "signal", "sleep", "timeout", "until"})
CALLS: Final = frozenset({"call", "start"})
OURS: Final = ("compiler", "executor")

Kind = Literal["step", "wait", "call"]
Json = dict[str, Any]
Functions = (ast.FunctionDef, ast.AsyncFunctionDef)


def listing_of(function: Callable[..., Any]) -> Json | None:
    """Return file, text and marked calls: the whole module, or the function alone if that is too long. `first_line` is
    that of the text, `line` that of the function. None if the text is not at hand."""
    code = inspect.unwrap(function).__code__
    linecache.checkcache(code.co_filename)
    lines = linecache.getlines(code.co_filename, function.__globals__)
    if not lines:
        return None
    text, first = "".join(lines), 1
    try:
        tree = ast.parse(text)
    except SyntaxError:
        return None  # it was changed since it was loaded
    found = next((node for node in _functions(tree) if _first_line(node) == code.co_firstlineno), None)
    if found is None:
        return None
    if len(text.encode(errors="replace")) > TEXT_BYTES_MAX:
        first = code.co_firstlineno
        text = "".join(lines[first - 1 : found.end_lineno])
        text = text.encode(errors="replace")[:TEXT_BYTES_MAX].decode(errors="ignore")
    last = first + text.count("\n")
    marks = [[line, kind, name] for line, kind, name in _marks(tree, function) if first <= line <= last]
    file = PurePath(code.co_filename)
    depth = (function.__module__ or "").count(".") + 1
    return {
        "file": "/".join(file.parts[-depth:]),
        "text": text,
        "first_line": first,
        "line": found.lineno,
        "end_line": found.end_lineno,
        "calls": marks,
    }


def _functions(tree: ast.AST) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    return (node for node in ast.walk(tree) if isinstance(node, Functions))


def _first_line(node: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    return min([node.lineno, *(one.lineno for one in node.decorator_list)])


def _marks(tree: ast.Module, function: Callable[..., Any]) -> list[tuple[int, Kind, str]]:
    """Return line, kind and name of each call of the function, and of functions of its module that it calls."""
    by_name = {node.name: node for node in tree.body if isinstance(node, Functions)}
    marks = _Marks(function.__globals__)
    left, seen = [function.__name__], set[str]()
    while left:
        name = left.pop()
        if name in by_name and name not in seen:
            seen.add(name)
            marks.visit(by_name[name])
            left += marks.functions
    return sorted(set(marks.found))


class _Marks(ast.NodeVisitor):
    """Names that are steps, workflows or waits of weft where they are used, and no local variables."""

    def __init__(self, names: Mapping[str, Any]) -> None:
        self.found: list[tuple[int, Kind, str]] = []
        self.functions: list[str] = []  # plain ones, by name
        self._names = names
        self._local: frozenset[str] = frozenset()

    def visit_FunctionDef(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> None:
        around = self._local
        own = {one.arg for one in ast.walk(node.args) if isinstance(one, ast.arg)}
        own |= {one.id for one in ast.walk(node) if isinstance(one, ast.Name) and isinstance(one.ctx, ast.Store)}
        self._local = around | own
        for one in node.body:
            self.visit(one)
        self._local = around

    visit_AsyncFunctionDef = visit_FunctionDef

    def visit_Name(self, node: ast.Name) -> None:
        self._mark(node)

    def visit_Attribute(self, node: ast.Attribute) -> None:
        if not self._mark(node):
            self.visit(node.value)

    def _mark(self, node: ast.Name | ast.Attribute) -> bool:
        value = self._value(node)
        kind = _kind(value)
        if kind is not None:
            self.found.append((node.lineno, kind, getattr(value, "__name__", "")))
        elif inspect.isfunction(value) and value.__module__ == self._names.get("__name__"):
            self.functions.append(value.__name__)
        return kind is not None

    def _value(self, node: ast.expr) -> Any:
        if isinstance(node, ast.Name):
            return None if node.id in self._local else self._names.get(node.id)
        if isinstance(node, ast.Attribute) and isinstance(module := self._value(node.value), ModuleType):
            return getattr(module, node.attr, None)
        return None


def _kind(value: Any) -> Kind | None:
    if isinstance(value, Step):
        return "step"
    if isinstance(value, FunctionWorkflow):
        return "call"
    if not inspect.isfunction(value) or value.__module__.partition(".")[0] not in OURS:
        return None
    return "wait" if value.__name__ in WAITS else "call" if value.__name__ in CALLS else None
