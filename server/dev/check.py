"""Reads a file of workflows and prints its contents as JSON, or its errors on stderr: `python -m server.dev.check
FILE`. Output of the file itself goes to stderr."""

from __future__ import annotations

import os
import sys
import traceback
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import msgspec
from msgspec import Struct

from compiler.builder.errors import DefinitionError
from compiler.builder.workflow import defined_in, document_of
from compiler.compile import compile_document
from compiler.lint.lint import files_of, lint
from compiler.tracing.durable import durables_of
from compiler.tracing.workflow import called_by, is_composed
from executor.blocks.connectors.stored import connectors
from executor.blocks.sandbox.sandbox import Sandbox
from executor.blocks.types.functions import python_blocks
from executor.blocks.types.python import has_functions, load_module
from executor.blocks.types.registry import Registry


class Found(Struct, frozen=True):
    """The workflows of a file. `documents` are by name; `steps`: the file has functions for blocks of type `python`, or
    calls those of others; `durable`: the names of durable functions."""

    documents: dict[str, Any]
    steps: bool
    durable: list[str]


def main() -> int:
    [file] = sys.argv[1:]
    answer, sys.stdout = sys.stdout, sys.stderr
    try:
        found = read(file)
    except (DefinitionError, ValueError) as error:
        print(error, file=sys.stderr)
        return 1
    except BaseException as error:
        _print_error(error, file)
        return 1
    answer.write(msgspec.json.encode(found).decode())
    answer.flush()
    return 0


def read(file: str) -> Found:
    """Return the contents of the file. Raises ValueError for documents with errors, and the errors of the file
    itself."""
    module = load_module(file)
    documents = dict(_documents(module, Path(file).stem))
    steps = has_functions(module)
    named = [part.strip() for part in os.environ.get("WEFT_FUNCTIONS", "").split(",") if part.strip()]
    own = python_blocks([*named, *([file] if steps else ())])
    if not documents:
        raise ValueError(
            f"{file} has no workflow: write a function with @weft.durable or @weft.workflow, or a weft.draw.Workflow."
        )
    folder = os.environ.get("WEFT_CONNECTORS")
    sandbox = Sandbox()
    try:
        registry = Registry.load([*connectors(Path(folder) if folder else None), *own], sandbox=sandbox)
        for name, document in documents.items():
            compiled = compile_document(document, registry)
            if compiled.plan is None:
                lines = [f"  {one.pointer}: {one.message} {one.hint}".rstrip() for one in compiled.diagnostics]
                raise ValueError("\n".join([f"{name} has errors:", *lines]))
    finally:
        sandbox.close()
    _warn(module, Path(file))
    return Found(documents, steps, [one.name for one in durables_of(vars(module).values()).values()])


def _warn(module: ModuleType, file: Path) -> None:
    """Print the findings about the code of durable functions."""
    files = {**files_of(durables_of(vars(module).values()).values()), file.resolve(): ()}
    for one in lint(files):
        print(f"warning {one.file}:{one.line}: {one.message} [{one.code}]\n    {one.hint}", file=sys.stderr)


def _documents(module: ModuleType, stem: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """Return name and document of each workflow in Python in the module, and of the workflow functions that
    they call.
    """
    seen: set[str] = set()
    found = [*defined_in(vars(module)).values()]
    functions = [value for value in found if is_composed(value)]
    found += [value for value in called_by(functions).values() if value not in functions]
    for value in found:
        document = document_of(value, stem)
        name = document["name"]
        if name in seen:
            raise ValueError(f"two workflows have the name {name!r}.")
        seen.add(name)
        yield name, document


def _print_error(error: BaseException, file: str) -> None:
    """Print the error as Python does, from the file on, without the frames of weft above it."""
    frames = traceback.extract_tb(error.__traceback__)
    own = Path(file).resolve()
    first = next((at for at, frame in enumerate(frames) if Path(frame.filename) == own), len(frames))
    lines = traceback.format_list(frames[first:]) + traceback.format_exception_only(error)
    print("".join(lines).rstrip(), file=sys.stderr)


if __name__ == "__main__":
    sys.exit(main())
