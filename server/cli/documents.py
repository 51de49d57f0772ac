"""`weft validate`, `import` and `plan`: documents, checked, converted and compiled without a server; `weft new-block`
and `weft python`, which make what their blocks need."""

from __future__ import annotations

import json
import keyword
import os
import re
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import click

from server.cli.common import FAILED, OK, Refused, call, check_variables, counted
from server.cli.reading import (
    check_free,
    is_file,
    is_python,
    read_document,
    source_findings,
    text_of,
    write_document,
    write_text,
)
from server.cli.render import diagnostic_lines, task_lines
from server.shipped import examples_folder

if TYPE_CHECKING:
    from compiler.catalog import Catalog
    from compiler.plan import Plan
    from compiler.render import Format
    from executor.blocks.types.registry import Registry

MODEL: Final = "word_count"
_FILES: Final = (
    "README.md",
    "pyproject.toml",
    "tests/test_word_count.py",
    "word_count/__init__.py",
    "word_count/block.py",
)
_PROGRAMS: Final = {"n8n": "n8n"}  # names that are not only a word with a capital
_NAME: Final = re.compile(r"[a-z][a-z0-9_]{1,39}")


@click.command()
@click.argument("file")
@click.option("--trigger", help="Block to start at, if there are several triggers.")
@click.option("--strict", is_flag=True, help="Exit code 1 for warnings, too.")
@click.option("--json", "as_json", is_flag=True, help="Findings as JSON.")
def validate(file: str, trigger: str | None, strict: bool, as_json: bool) -> int:
    """Check the workflow in FILE (- for stdin). Exit code 1 when it has errors."""
    _, found = _compile(read_document(file), trigger, _steps_beside(file))
    found += source_findings(file)
    errors = sum(d["severity"] == "error" for d in found)
    if as_json:
        click.echo(json.dumps(found, indent=2, ensure_ascii=False))
    else:
        for line in diagnostic_lines(found):
            click.echo(line)
        click.echo(_count(found), err=True)
    return FAILED if errors or (strict and found) else OK


@click.command("import")
@click.argument("file")
@click.option("-o", "--out", "out", metavar="FILE", help="Write it to FILE, or those of a folder to a folder.")
@click.option("--force", is_flag=True, help="Replace files that exist.")
@click.option("--python", "as_python", is_flag=True, help="As Python source, which `weft deploy` takes.")
def import_(file: str, out: str | None, force: bool, as_python: bool) -> int:
    """Convert FILE (- for stdin), exported from n8n or Sim, to weft/1.

    The findings about it are printed as well. With errors, exit code 1: it is written all the same, for you to repair.
    Of a folder, or a file with a list, all exports in it are converted; IMPORT.md in the folder of -o lists the
    findings by file, and the files that could not be converted: then the exit code is 1, too.
    """
    with _catalog([]) as catalog:
        if os.path.isdir(file):
            into = Path(out or file)
            found_in = list(_exports_in(Path(file), into.resolve() != Path(file).resolve()))
            return _import_all(found_in, into, catalog, force=force, as_python=as_python)
        document = read_document(file)
        if isinstance(document, list):
            if out is None:
                raise Refused(f"{file} has a list of {len(document)}.", "Name a folder for the workflows with -o.")
            listed = list(_exports_of(os.path.basename(file), Path(Path(file).stem), document))
            return _import_all(listed, Path(out), catalog, force=force, as_python=as_python)
        check_free(out, force)
        made = _imported(document, catalog)
        left = _left(made[0], catalog) if made is not None else []
    if made is None:
        from executor.kernel.run.imports import importers

        programs = " or ".join(_PROGRAMS.get(name, name.capitalize()) for name in importers())
        raise Refused(f"{file} is not a workflow that {programs} exported.", "A document of weft needs no import.")
    document, found = made
    write_document(document, out, as_python=as_python)
    for line in diagnostic_lines(found):
        click.echo(line, err=True)
    for line in left:
        click.echo(line, err=True)
    where = f", written to {out}" if out is not None else ""
    click.echo(f"{_count(found)}{where}", err=True)
    return FAILED if any(d["severity"] == "error" for d in found) else OK


def _imported(document: Any, catalog: Catalog) -> tuple[Any, list[dict[str, Any]]] | None:
    """Return the document in our format with all findings about it; None if it is no export."""
    import msgspec

    from compiler.compile import compile_document
    from executor.kernel.run.imports import as_ours

    ours = as_ours(document, catalog=catalog) if isinstance(document, dict) else None
    if ours is None or ours.format is None:
        return None
    compiled = compile_document(ours.document, catalog)
    return ours.document, msgspec.to_builtins([*ours.diagnostics, *compiled.diagnostics])


def _left(document: Any, catalog: Catalog) -> list[str]:
    """Return what is left before it runs, as lines. No server was asked which names and connections there are, so all
    that the document names are listed."""
    import msgspec

    from compiler.compile import compile_document
    from compiler.needs import missing_connections
    from compiler.setup import tasks

    found = [*compile_document(document, catalog, env_names=()).diagnostics]
    left = tasks(document, [*found, *missing_connections(document, catalog, {})], catalog)
    return ["Left to do before it runs:", *task_lines(msgspec.to_builtins(left))] if left else []


class _Converted(NamedTuple):
    """An export in a folder. `source`: its file; `found`: the findings; `left`: lines of what is left to do."""

    source: str
    target: Path
    text: str
    found: list[dict[str, Any]]
    left: list[str]


def _import_all(
    exports: Iterable[tuple[str, Path, Any]], out: Path, catalog: Catalog, *, force: bool, as_python: bool
) -> int:
    """Convert exports, with the names of their sources and their files below `out`. Nothing is written before all are
    converted. A document may be the error of reading it."""
    made: list[_Converted] = []
    failed: list[str] = []
    other: list[str] = []
    for source, target, document in exports:
        try:
            if isinstance(document, Refused):
                raise document
            done = _imported(document, catalog)
            if done is None:
                other.append(source)
                continue
            text = text_of(done[0], as_python=as_python)
            file = target.with_name(f"{target.name}{'.py' if as_python else '.json'}")
            made.append(_Converted(source, out / file, text, done[1], _left(done[0], catalog)))
        except Exception as error:  # one file, or the importer of another package, must not keep the others back
            why = str(error).partition("\n")[0]
            failed.append(why if source in why else f"{source}: {why}")
    for why in failed:
        click.echo(why, err=True)
    if not made:
        raise Refused("There is no workflow of another program in it.")
    report = out / "IMPORT.md"
    for path in (*(one.target for one in made), report):
        check_free(str(path), force)
    for one in made:
        one.target.parent.mkdir(parents=True, exist_ok=True)
        write_text(str(one.target), one.text)
        click.echo(f"{one.source}: {_count(one.found)}, written to {one.target}")
    write_text(str(report), _report(made, failed, other))
    passed = f" Passed over, as no workflow of another program: {counted(len(other), 'file')}." if other else ""
    click.echo(f"What differs is listed in {report}.{passed}")
    return FAILED if failed or any(d["severity"] == "error" for one in made for d in one.found) else OK


def _report(made: list[_Converted], failed: list[str], other: list[str]) -> str:
    lines = ["# Import\n"]
    for one in made:
        found = [click.unstyle(line) for line in diagnostic_lines(one.found)]
        lines += [f"\n## {one.source}\n", *map(_bullet, found)]
        lines += (
            [f"\n{one.left[0]}\n", *map(_bullet, (line.removeprefix("  ") for line in one.left[1:]))]
            if one.left
            else []
        )
    if failed:
        lines += ["\n## Not imported\n", *(f"- {why}" for why in failed)]
    if other:
        lines += ["\n## Other files\n", *(f"- {source}" for source in other)]
    return "\n".join(lines) + "\n"


def _bullet(line: str) -> str:
    return f"  {line.strip()}" if line.startswith(" ") else f"- {line}"


def _exports_in(folder: Path, apart: bool) -> Iterator[tuple[str, Path, Any]]:
    """Yield the documents in a folder and below it; a file may have a list of them, as n8n exports all workflows.
    `apart`: their files get other names than the exports."""
    for path in sorted(folder.rglob("*.json")):
        source, stem = str(path.relative_to(folder)), path.relative_to(folder).with_suffix("")
        target = stem if apart else stem.with_name(f"{stem.name}.weft")
        try:
            document = read_document(str(path))
        except Refused as error:
            yield source, target, error
            continue
        yield from _exports_of(source, target, document)


def _exports_of(source: str, target: Path, document: Any) -> Iterator[tuple[str, Path, Any]]:
    if not isinstance(document, list) or not document or not all(isinstance(one, dict) for one in document):
        yield source, target, document
        return
    for n, one in enumerate(document, 1):
        yield f"{source}, workflow {n}", target.with_name(f"{target.name}-{n}"), one


@click.command()
@click.argument("workflow", metavar="NAME|FILE")
@click.option("--trigger", help="Block to start at, if there are several triggers.")
@click.option("--version", type=click.IntRange(1), help="Version of a stored workflow. Default: the active one.")
@click.option("--expanded", is_flag=True, help="Show each branch of a parallel whose number of branches is known.")
@click.option(
    "--format", "form", type=click.Choice(["text", "json", "dot", "mermaid"]), default="text", show_default=True
)
@click.pass_obj
def plan(url: str, workflow: str, trigger: str | None, version: int | None, expanded: bool, form: Format) -> int:
    """Show the plan that a workflow is compiled to.

    A workflow in a file needs no server. Nothing runs.
    """
    if not is_file(workflow):
        drawn = call(
            url,
            lambda client: client.plan(workflow, version=version, trigger=trigger, form=form, expanded=expanded),
        )
        click.echo(json.dumps(json.loads(drawn), indent=2, ensure_ascii=False) if form == "json" else drawn)
        return OK
    from compiler.render import render

    compiled, found = _compile(read_document(workflow), trigger, _steps_beside(workflow))
    if compiled is None:
        for line in diagnostic_lines(found):
            click.echo(line, err=True)
        return FAILED
    click.echo(render(compiled, form, expanded=expanded))
    return OK


def _steps_beside(file: str) -> list[str]:
    """Return the Python file of a workflow, which was read before, in the form of WEFT_FUNCTIONS, if there are steps in
    it."""
    if not is_python(file):
        return []
    from executor.blocks.types.python import has_functions, load_module

    path = file if file.endswith(".py") else file.rsplit(":", 1)[0]
    return [path] if has_functions(load_module(path)) else []


@contextmanager
def _catalog(more: list[str]) -> Iterator[Registry]:
    """Yield the block types of a server with these settings, without starting one. `more` adds to WEFT_FUNCTIONS."""
    from executor.blocks.connectors.stored import connectors
    from executor.blocks.sandbox.sandbox import Sandbox
    from executor.blocks.types.functions import python_blocks
    from executor.blocks.types.registry import Registry

    check_variables()
    named = [part.strip() for part in os.environ.get("WEFT_FUNCTIONS", "").split(",") if part.strip()]
    named += [one for one in more if one not in named]
    try:
        own = python_blocks(named)
    except ValueError as error:
        raise Refused(f"WEFT_FUNCTIONS: {error}") from None
    folder = os.environ.get("WEFT_CONNECTORS")
    shipped = connectors(Path(folder) if folder else None)
    sandbox = Sandbox()
    try:
        yield Registry.load([*shipped, *own], sandbox=sandbox)
    finally:
        sandbox.close()


def _compile(document: Any, trigger: str | None, more: list[str]) -> tuple[Plan | None, list[dict[str, Any]]]:
    """(plan or None, findings as JSON), in this process, without a server."""
    import msgspec

    from compiler.compile import compile_document
    from executor.kernel.run.imports import accept

    with _catalog(more) as catalog:
        compiled = compile_document(accept(document, catalog), catalog, trigger=trigger)
    return compiled.plan, msgspec.to_builtins(compiled.diagnostics)


def _count(found: list[dict[str, Any]]) -> str:
    errors = sum(finding["severity"] == "error" for finding in found)
    return f"{counted(errors, 'error')}, {counted(len(found) - errors, 'warning')}"


@click.command("new-block")
@click.argument("name")
@click.option("--folder", type=click.Path(file_okay=False, path_type=Path), help="Where to write it. Default: ./NAME.")
def new_block(name: str, folder: Path | None) -> None:
    """Write a package with a block type NAME, and its tests.

    It is complete: `pip install -e FOLDER` makes the block available to a server of this environment, and
    `pytest FOLDER` passes. Files that are there are never overwritten.
    """
    from importlib.metadata import entry_points

    if not _NAME.fullmatch(name) or keyword.iskeyword(name) or name in ("tests", "weft"):
        raise Refused(
            f"{name!r} cannot be the name of a block: use 2 to 40 small letters, digits and _, as in fetch_price."
        )
    if name in sys.stdlib_module_names or name in {point.name for point in entry_points(group="weft.blocks")}:
        raise Refused(f"There is a block type or a module of Python called {name}.", "Choose another name.")
    target = folder or Path(name)
    if target.exists() and any(target.iterdir()):
        raise Refused(f"{target} is not empty. Choose another folder with --folder.")
    for source in _FILES:
        text = (examples_folder() / "block-package" / source).read_text(encoding="utf-8")
        path = target / _named(source, name)
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("x", encoding="utf-8") as file:
            file.write(_named(text, name))
        click.echo(path)
    click.echo(f"Next: pip install -e {target}, then edit {target / name / 'block.py'}", err=True)


def _named(text: str, name: str) -> str:
    return text.replace(MODEL, name).replace(MODEL.replace("_", "-"), name.replace("_", "-"))


@click.group()
def python() -> None:
    """Build the Python of function blocks (extra `python`)."""


@python.command()
@click.option("--force", is_flag=True, help="Build it even if it is there.")
@click.option("--held", is_flag=True, hidden=True, help="For `weft serve --build-python`, which has the lock.")
def build(force: bool, held: bool) -> None:
    """Build CPython for the sandbox, once on each machine: half a minute and 450 MB of memory.

    It is built from the package componentize-py, of the extra `python`; nothing is downloaded. The result is in
    the cache folder of this user; a server of the same user finds it there, without a restart.
    """
    from executor.blocks.sandbox.missing import missing
    from executor.errors import SandboxError

    if (reason := missing()) is not None:
        raise Refused(f"{reason.message}.", reason.hint)
    from executor.blocks.sandbox.python import component

    try:
        component.component()
    except SandboxError:
        is_there = False
    else:
        is_there = True
    if is_there and not force:
        click.echo(f"{component.compiled_file()} is there.", err=True)
        return
    with component.building() as is_ours:
        if not (is_ours or held) and component.is_being_built():
            raise Refused("Another process builds it already.", "Wait for half a minute.")
        if not held:
            click.echo("Building. This takes about half a minute.", err=True)
        try:
            click.echo(component.build())
        except component.BuildFailed as error:
            raise Refused(str(error)) from None
