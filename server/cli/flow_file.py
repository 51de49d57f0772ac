"""Workflows in Python files, `flow.py` or `flow.py:name`, for commands: the file is executed in this process, as
`python flow.py` would, and the workflows that it defines become documents.

A workflow is an object with a method `document()` that returns one; a tree of steps, or a function without arguments
that returns either, is one too if it is named, or called `workflow`. Output of the file goes to stderr. An error in it
is shown with the lines of the file that lead to it, and no others.
"""

from __future__ import annotations

import sys
import traceback
from contextlib import redirect_stdout
from pathlib import Path
from types import ModuleType
from typing import Any

from server.cli.common import Refused

LINES_MAX = 4  # of a traceback


def read(text: str) -> tuple[Any, list[dict[str, Any]]]:
    """Return the document of the workflow that is named, or of the only one in the file, and those of the workflow
    functions that it calls, which must be stored before it runs. Raises Refused."""
    path, name = (text, None) if text.endswith(".py") else text.rsplit(":", 1)
    from compiler.builder.workflow import document_of
    from compiler.tracing.workflow import FunctionWorkflow, called_by
    from executor.blocks.types.python_modules import load_module

    file = Path(path)
    if not file.is_file():
        raise Refused(f"There is no file {path!r}.")
    with redirect_stdout(sys.stderr):
        try:
            module = load_module(path)
            found = _found(module, path, name)
            called = called_by([found]) if isinstance(found, FunctionWorkflow) else {}
            return document_of(found, file.stem), [one.document() for one in called.values() if one is not found]
        except Refused:
            raise
        except (Exception, SystemExit) as error:
            raise _refused(file, error) from None


def _found(module: ModuleType, path: str, name: str | None) -> Any:
    from compiler.builder.workflow import defined_in

    defined = vars(module)
    found = defined_in(defined)
    if name is not None:
        if name not in defined:
            raise Refused(f"{path} has no {name!r}.", _listed(path, found))
        return defined[name]
    if len(found) > 1:
        raise Refused(f"{path} has several workflows.", f"Name one: {', '.join(f'{path}:{name}' for name in found)}.")
    if found:
        return next(iter(found.values()))
    raise Refused(
        f"{path} has no workflow.",
        'Define one, such as `demo = weft.Workflow("demo", ...)`, or a function `workflow()` that returns one.',
    )


def _listed(path: str, found: dict[str, Any]) -> str:
    return f"Workflows in it: {', '.join(f'{path}:{name}' for name in found)}." if found else "It has no workflow."


def _refused(file: Path, error: BaseException) -> Refused:
    """Return the error and its place in the file."""
    from compiler.builder.errors import BuildError, TraceError

    if isinstance(error, BuildError):
        return Refused(f"{file}: {error.message}", error.hint)
    if isinstance(error, TraceError):
        return Refused(f"{error}")
    if isinstance(error, SyntaxError) and error.filename == str(file.resolve()):
        return Refused(f"{file}, line {error.lineno}: {error.msg}", (error.text or "").strip())
    lines = [
        f"line {frame.lineno}, in {frame.name}: {frame.line}"
        for frame in traceback.extract_tb(error.__traceback__)
        if frame.filename == str(file.resolve())
    ]
    if isinstance(error, ImportError) and not lines:
        return Refused(f"{error}")  # of the file itself
    said = "".join(traceback.format_exception_only(error)).strip()
    return Refused(f"{file} fails: {said}", "\n  ".join(lines[-LINES_MAX:]))
