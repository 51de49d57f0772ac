"""executor/open/sync.pyi: the methods of `weft.SyncEngine` for type checkers, made of those of `Engine` and its topics.

To write it after one of them has changed: `python -m tests.support.sync_engine`.
"""

from __future__ import annotations

import ast
import builtins
import inspect
import re
import sys
import textwrap
from collections.abc import Iterator, Mapping
from copy import deepcopy
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

from executor.open import embed, engine, sync
from executor.open.blocking import OF_THE_ENGINE, TOPICS
from executor.open.engine import Engine

OUT = Path(sync.__file__).with_suffix(".pyi")
HEAD = "# Made of `Engine` and its topics by `python -m tests.support.sync_engine`.\n# fmt: off\n# ruff: noqa\n"
STREAMS = ("AsyncGenerator", "AsyncIterator")


def stub() -> str:
    """The whole file."""
    imports = {"import builtins", "from collections.abc import Generator", "from typing import Self, overload"}
    start = inspect.getsource(Engine.__init__)
    types = {name: vars(engine)[made] for name, made in re.findall(r"self\.(\w+) = (\w+)\(parts", start)}
    lines = [f"class SyncEngine:\n{_text(sync.SyncEngine)}"]
    lines += [f"    {topic}: _{types[topic].__name__}" for topic in TOPICS]
    for name, topic, method in re.findall(r"self\.(\w+) = (?:awaited\()?self\.(\w+)\.(\w+)\b", start):
        if topic in TOPICS and method in _functions(types[topic]):
            lines += _methods(types[topic], method, name, imports)
    lines.append("    def __enter__(self) -> Self: ...\n    def __exit__(self, *error: object) -> None: ...")
    lines.append(f"    def close(self) -> None:\n{_text(sync.SyncEngine.close, 8)}        ...\n")
    for topic in TOPICS:
        lines.append(f"\nclass _{types[topic].__name__}:")
        for name in _functions(types[topic]):
            if not name.startswith("_") and name not in OF_THE_ENGINE:
                lines += _methods(types[topic], name, name, imports)
    (opening,) = deepcopy(_functions(embed)["open_engine"])
    opening.name, opening.returns = "open_sync", ast.Name("SyncEngine")
    lines.append("\n" + _signature(opening, embed, "", imports))
    return re.sub(r" +\n", "\n", "\n".join([HEAD, *sorted(imports), "", *lines]) + "\n")


def _methods(topic: type, name: str, called: str, imports: set[str]) -> Iterator[str]:
    """Yield the method under the name by which it is called, each of its overloads; nothing if it does not block."""
    module = sys.modules[topic.__module__]
    found = _functions(topic)[name]
    for function in deepcopy(found[:-1] or found):
        returned = ast.unparse(function.returns) if function.returns else "None"
        stream = re.fullmatch(rf"(?:{'|'.join(STREAMS)})\[(.*?)(?:, None)?\]", returned)
        if stream is None and not isinstance(function, ast.AsyncFunctionDef):
            return
        if stream is not None:
            function.returns = ast.parse(f"Generator[{stream[1]}, None, None]", mode="eval").body
        function.name = called
        yield _signature(_Qualified(vars(topic)).visit(function), module, "    ", imports)


def _signature(
    function: ast.FunctionDef | ast.AsyncFunctionDef, module: ModuleType, indent: str, imports: set[str]
) -> str:
    arguments = function.args
    every = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs, arguments.vararg, arguments.kwarg]
    for node in [function.returns, *(each.annotation for each in every if each is not None)]:
        imports.update(_import(name.id, module) for name in ast.walk(node or ast.Pass()) if isinstance(name, ast.Name))
    arguments.defaults = [_default(each) for each in arguments.defaults]
    arguments.kw_defaults = [each and _default(each) for each in arguments.kw_defaults]
    is_overload = any(ast.unparse(each) == "overload" for each in function.decorator_list)
    text = ast.get_docstring(function)
    body = f'\n{indent}    """{text.replace(chr(10), chr(10) + indent + "    ")}"""' if text else " ..."
    returned = ast.unparse(function.returns or ast.Constant(None))
    head = f"{indent}def {function.name}({ast.unparse(arguments)}) -> {returned}:"
    return f"{indent}@overload\n{head}{body}" if is_overload else f"{head}{body}"


class _Qualified(ast.NodeTransformer):
    """Qualifies a type of Python that a method is named like: in a stub, names stand for what comes later as well."""

    def __init__(self, methods: Mapping[str, Any]) -> None:
        self._methods = methods

    def visit_Name(self, node: ast.Name) -> ast.expr:
        is_hidden = node.id in self._methods and hasattr(builtins, node.id)
        return ast.Attribute(ast.Name("builtins"), node.id) if is_hidden else node


def _default(value: ast.expr) -> ast.expr:
    return value if isinstance(value, ast.Constant) else ast.Constant(...)


@cache
def _import(name: str, module: ModuleType) -> str:
    """Return where a name of an annotation comes from. Python's own, and those of this file, are there."""
    if hasattr(builtins, name) or name in ("builtins", "SyncEngine", "Generator"):
        return "import builtins"
    for node in ast.walk(ast.parse(inspect.getsource(module))):
        for alias in node.names if isinstance(node, ast.ImportFrom) else ():
            if name == (alias.asname or alias.name) and isinstance(node, ast.ImportFrom):
                return f"from {node.module} import {alias.name}" + (f" as {alias.asname}" if alias.asname else "")
    return f"from {module.__name__} import {name}"


@cache
def _functions(owner: Any) -> dict[str, list[ast.FunctionDef | ast.AsyncFunctionDef]]:
    """Return the functions of a class or a module by name, overloads before what they are of."""
    (tree,) = (
        ast.parse(inspect.getsource(owner)).body if inspect.isclass(owner) else [ast.parse(inspect.getsource(owner))]
    )
    found: dict[str, list[ast.FunctionDef | ast.AsyncFunctionDef]] = {}
    for node in tree.body if isinstance(tree, ast.ClassDef | ast.Module) else ():
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            found.setdefault(node.name, []).append(node)
    return found


def _text(owner: Any, indent: int = 4) -> str:
    return textwrap.indent(f'"""{inspect.getdoc(owner)}"""\n', " " * indent)


if __name__ == "__main__":
    OUT.write_text(stub(), encoding="utf-8")
