"""Reads documents and inputs, from JSON and from Python files, and writes documents."""

from __future__ import annotations

import json
import os
import sys
import traceback
from collections.abc import Collection, Iterator
from contextlib import contextmanager, redirect_stdout
from pathlib import Path
from types import ModuleType
from typing import Any

import click

from server.cli.common import Refused

LINES_MAX = 4  # of a traceback


def is_file(text: str) -> bool:
    """A path, not the name of a stored workflow."""
    return text == "-" or text.endswith(".json") or is_python(text) or os.sep in text or os.path.isfile(text)


def is_python(text: str) -> bool:
    """Return whether it names a Python file, or a workflow in one: `flow.py:name`."""
    path, colon, name = text.rpartition(":")
    return text.endswith(".py") or bool(colon and path.endswith(".py") and name.isidentifier())


def read_document(path: str) -> Any:
    """The JSON of a file, or what a Python file defines; `-` is stdin. Raises Refused."""
    return read_documents(path)[0]


def read_documents(path: str) -> tuple[Any, list[dict[str, Any]]]:
    """Return the document, and those of the workflow functions that it calls. Raises Refused."""
    if is_python(path):
        return read_flow(path)
    return parse_json(read_text(path), path), []


def read_input(text: str | None, option: str = "--input") -> Any:
    """JSON from the command line, or from a file as `@FILE`; None without an option. Raises Refused."""
    if text is None:
        return None
    if text.startswith("@"):
        return parse_json(read_text(text[1:]), text[1:])
    return parse_json(text, option)


def parse_json(text: str, where: str) -> Any:
    """Raises Refused; `where` names the text in the message."""
    try:
        return json.loads(text)
    except json.JSONDecodeError as error:
        raise Refused(
            f"{where} is not JSON: {error.msg} at line {error.lineno}, column {error.colno}.",
            f"Text needs double quotes, in a shell for example: {where} '{{\"amount\": 120}}'"
            if where.startswith("--")
            else "",
        ) from None
    except RecursionError:
        raise Refused(f"{where} is nested too deeply.") from None


def read_text(path: str) -> str:
    """The text of a file in UTF-8; `-` is stdin. Raises Refused."""
    try:
        if path == "-":
            return sys.stdin.read()
        with open(path, encoding="utf-8") as file:
            return file.read()
    except FileNotFoundError:
        raise Refused(f"There is no file {path!r}.") from None
    except (OSError, UnicodeDecodeError) as error:
        raise Refused(f"{path} cannot be read: {error}") from None


def check_free(out: str | None, force: bool) -> None:
    """Raises Refused: there is a file `out`, which is not to be replaced."""
    if out is not None and not force and os.path.exists(out):
        raise Refused(f"{out} already exists.", "Use --force to replace it.")


def write_document(document: Any, out: str | None, *, as_python: bool = False) -> bool:
    """Write the document to `out`, or to stdout, and return whether it went to a file. Raises Refused."""
    text = text_of(document, as_python=as_python)
    if out is None:
        click.echo(text, nl=False)
        return False
    write_text(out, text)
    return True


def text_of(document: Any, *, as_python: bool) -> str:
    if as_python:
        from compiler.builder.source import source

        return source(document)
    return json.dumps(document, indent=2, ensure_ascii=False) + "\n"


def write_text(path: str, text: str) -> None:
    """Raises Refused."""
    try:
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
    except OSError as error:
        raise Refused(f"{path} cannot be written: {error.strerror or error}") from None


def read_flow(text: str) -> tuple[Any, list[dict[str, Any]]]:
    """Return the document of the workflow that is named, or of the only one in the file, and those of the workflow
    functions that it calls, which must be stored before it runs. Raises Refused."""
    path, name = _parts(text)
    from compiler.builder.workflow import document_of
    from compiler.tracing.workflow import called_by, is_composed

    with _reading(path):
        found = _found(load_flow(path), path, name)
        called = called_by([found]) if is_composed(found) else {}
        return document_of(found, Path(path).stem), [one.document() for one in called.values() if one is not found]


def load_flow(path: str, module: str = "") -> ModuleType:
    """Import a Python file, or the module that it is. Raises Refused."""
    from executor.blocks.types.python import load_module

    file = Path(path)
    if not file.is_file():
        raise Refused(f"There is no file {path!r}.")
    with _reading(path):
        if "." not in module:
            return load_module(path)
        root = str(file.resolve().parents[module.count(".")])
        if root not in sys.path:
            sys.path.insert(0, root)
        return load_module(module)


@contextmanager
def _reading(path: str) -> Iterator[None]:
    """Raises Refused for the errors of the file; what it prints goes to stderr."""
    with redirect_stdout(sys.stderr):
        try:
            yield
        except Refused:
            raise
        except (Exception, SystemExit) as error:
            raise _refused(Path(path), error) from None


def source_findings(text: str) -> list[dict[str, Any]]:
    """Return the findings about the code of durable functions of a workflow, which was read before; none if it is not
    in a Python file."""
    if not is_python(text):
        return []
    import msgspec

    from compiler.lint.lint import files_of, lint
    from compiler.tracing.durable import durables_of
    from executor.blocks.types.python import load_module

    path, name = _parts(text)
    found = _found(load_module(path), path, name)
    files: dict[Path, Collection[str]] = {**files_of(durables_of([found]).values())}
    return [msgspec.to_builtins(one) for one in lint(files)]


def _parts(text: str) -> tuple[str, str | None]:
    """Return the file, and the name in it."""
    path, _, name = (text, "", None) if text.endswith(".py") else text.rpartition(":")
    return path, name


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
        'Define one, such as `demo = weft.draw.Workflow("demo", ...)`, or a function `workflow()` that returns one.',
    )


def _listed(path: str, found: dict[str, Any]) -> str:
    return f"Workflows in it: {', '.join(f'{path}:{name}' for name in found)}." if found else "It has no workflow."


def _refused(file: Path, error: BaseException) -> Refused:
    from compiler.builder.errors import BuildError, DefinitionError

    if isinstance(error, BuildError):
        return Refused(f"{file}: {error.message}", error.hint)
    if isinstance(error, DefinitionError):
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
