"""The findings of the durable functions of files: also in functions of their package that they call, three deep."""

from __future__ import annotations

import ast
import inspect
from collections.abc import Collection, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from compiler.lint.body import Body, Found
from compiler.lint.modules import Function, Module, Package, decorated
from compiler.lint.rules import HINTS, SourceFinding
from compiler.tracing.durable import BODY, DurableFunction

DEPTH: Final = 3  # of calls
FINDINGS_MAX: Final = 100  # of a file

Chain = tuple[tuple[Module, Function, ast.AST], ...]  # the functions that are called, each with the call


def lint(files: Mapping[Path, Collection[str]]) -> list[SourceFinding]:
    """Return what may differ from entry to entry in the durable functions of these files, by file and line: in those
    of these names, or in all without any. Files that cannot be read are passed over: importing them fails."""
    found: dict[tuple[str, str, int], SourceFinding] = {}
    for path, names in files.items():
        module = Package(path).at(path)
        if module is not None:
            for one in _of_module(module, names):
                found.setdefault((one.code, one.file, one.line), one)
    return sorted(found.values(), key=lambda one: (one.file, one.line))[:FINDINGS_MAX]


def files_of(durables: Iterable[DurableFunction[Any, Any]]) -> dict[Path, set[str]]:
    """Return the files of these functions, each with their names in it."""
    found: dict[Path, set[str]] = {}
    for one in durables:
        code = inspect.unwrap(one.function).__code__
        found.setdefault(Path(code.co_filename), set()).add(code.co_name)
    return found


def _of_module(module: Module, names: Collection[str]) -> Iterator[SourceFinding]:
    functions = [one for one in ast.walk(module.tree) if isinstance(one, Function)]
    inner = {one for around in functions for part in around.body for one in ast.walk(part)}
    for function in functions:
        if (not names or function.name in names) and decorated(module, function, ("weft.durable",)):
            if function in inner:
                wrong = Found("durable_closure", function, "a durable function inside of a function is not found again")
                yield from _shown(module, function, (), wrong)
            yield from _of_function(module, function)


def _of_function(module: Module, function: Function) -> Iterator[SourceFinding]:
    seen = {(module.name, function.name)}
    left: list[tuple[Module, Function, Chain]] = [(module, function, ())]
    while left:
        where, one, chain = left.pop(0)
        body = Body(where, one)
        for wrong in body.found():
            yield from _shown(where, function, chain, wrong)
        if len(chain) == DEPTH:
            continue
        for there, called, at in body.calls():
            if (there.name, called.name) not in seen:
                seen.add((there.name, called.name))
                left.append((there, called, (*chain, (where, called, at))))


def _shown(module: Module, function: Function, chain: Chain, wrong: Found) -> Iterator[SourceFinding]:
    """Yield the finding, unless its line, or that of a call on the way to it, permits it."""
    places = [(module, wrong.node), *((where, at) for where, _, at in chain)]
    if any(where.permits(wrong.code, *_lines(node)) for where, node in places):
        return
    line = _lines(wrong.node)[0]
    way = ", which calls ".join(f"{to.name} ({at.path.name}:{_lines(node)[0]})" for at, to, node in chain)
    message = f"{function.name} calls {way}: {wrong.message}" if chain else f"{function.name}: {wrong.message}"
    pointer = f"/blocks/{BODY}"
    here = Path.cwd()
    file = str(module.path.relative_to(here) if module.path.is_relative_to(here) else module.path)
    yield SourceFinding(wrong.code, "warning", pointer, message, HINTS[wrong.code], BODY, file=file, line=line)


def _lines(node: ast.AST) -> tuple[int, int]:
    """Return the first and last line; of a statement with others inside, the first alone."""
    first: int = getattr(node, "lineno", 0)
    single = not isinstance(node, ast.ExceptHandler | ast.FunctionDef | ast.AsyncFunctionDef)
    return first, getattr(node, "end_lineno", first) if single else first
