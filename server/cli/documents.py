"""`weft validate`, `weft import` and `weft plan`: documents, checked, converted and compiled without a server."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from server.cli.common import FAILED, OK, Refused, call, check_variables, counted
from server.cli.reading import check_free, is_file, is_python, read_document, write_document
from server.cli.render import diagnostic_lines

if TYPE_CHECKING:
    from compiler.plan import Plan
    from compiler.render import Format
    from executor.blocks.types.registry import Registry


@click.command()
@click.argument("file")
@click.option("--trigger", help="Block to start at, if there are several triggers.")
@click.option("--strict", is_flag=True, help="Exit code 1 for warnings, too.")
@click.option("--json", "as_json", is_flag=True, help="Findings as JSON.")
def validate(file: str, trigger: str | None, strict: bool, as_json: bool) -> int:
    """Check the workflow in FILE (- for stdin). Exit code 1 when it has errors."""
    _, found = _compile(read_document(file), trigger, _steps_beside(file))
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
@click.option("-o", "--out", "out", metavar="FILE", help="Write it to FILE instead of stdout.")
@click.option("--force", is_flag=True, help="Replace FILE if it exists.")
@click.option("--python", "as_python", is_flag=True, help="As Python source, which `weft deploy` takes.")
def import_document(file: str, out: str | None, force: bool, as_python: bool) -> int:
    """Convert FILE (- for stdin), exported from Sim, to weft/1.

    The findings about it are printed as well. With errors, exit code 1: it is written all the same, for you to repair.
    """
    import msgspec

    from compiler.compile import compile_document
    from executor.kernel.run.imports import as_ours, importers

    check_free(out, force)
    document = read_document(file)
    with _catalog([]) as catalog:
        ours = as_ours(document, catalog=catalog) if isinstance(document, dict) else None
        if ours is None or ours.format is None:
            programs = " or ".join(name.capitalize() for name in importers())
            raise Refused(f"{file} is not a workflow that {programs} exported.", "A document of weft needs no import.")
        compiled = compile_document(ours.document, catalog)
    found = msgspec.to_builtins([*ours.diagnostics, *compiled.diagnostics])
    write_document(ours.document, out, as_python=as_python)
    for line in diagnostic_lines(found):
        click.echo(line, err=True)
    where = f", written to {out}" if out is not None else ""
    click.echo(f"{_count(found)}{where}", err=True)
    return FAILED if any(d["severity"] == "error" for d in found) else OK


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
    from executor.blocks.types.python_modules import load_module, steps_of

    path = file if file.endswith(".py") else file.rsplit(":", 1)[0]
    return [path] if steps_of(vars(load_module(path)).values()) else []


@contextmanager
def _catalog(more: list[str]) -> Iterator[Registry]:
    """Yield the block types of a server with these settings, without starting one. `more` adds to WEFT_FUNCTIONS."""
    from executor.blocks.connectors.load import connectors
    from executor.blocks.sandbox.sandbox import Sandbox
    from executor.blocks.types.python import python_blocks
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


COMMANDS = (validate, import_document, plan)
